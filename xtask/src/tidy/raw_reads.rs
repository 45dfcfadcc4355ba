//! Stored rows, including expired ones, may be read only in a few places, which decide themselves whether a row has expired. All other code uses a
//! snapshot, which returns only visible records.

use super::TextFile;

const CORE: &str = "crates/bolide-core/src/";

/// Names that return stored rows, or that tell whether a row has expired.
const RAW_READS: [&str; 7] = [
    "read_raw(",
    "read_raw_with_tombstones(",
    "RawPages",
    "get_raw(",
    "get_all_raw(",
    "scan_raw(",
    ".is_live(",
];

/// Folders of the core that may use them: where they are defined, and background and admin tasks on stored rows.
const ALLOWED: [&str; 3] = ["partition/", "background/", "admin/"];

/// Further allowed files, with the reason.
const EXCEPTIONS: [(&str, &str); 4] = [
    ("catalog/batch.rs", "rows of the catalog are no items"),
    ("change_log/endings.rs", "it tells which documents have ended"),
    ("change_log/trim.rs", "entries of the history are no items"),
    ("cluster/mod.rs", "heartbeats are no items"),
];

/// Reports raw reads where they are not allowed.
pub fn check(files: &[TextFile]) -> Vec<String> {
    let core = files
        .iter()
        .filter_map(|file| Some((file, file.path.strip_prefix(CORE)?)));
    core.filter(|(_, path)| path.ends_with(".rs") && !is_allowed(path))
        .flat_map(|(file, _)| problems_of(file))
        .collect()
}

fn is_allowed(path: &str) -> bool {
    ALLOWED.iter().any(|folder| path.starts_with(folder)) || EXCEPTIONS.iter().any(|(file, _)| path == *file)
}

fn problems_of(file: &TextFile) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if let Some(name) = RAW_READS.iter().find(|name| line.contains(*name)) {
            let path = &file.path;
            problems.push(format!(
                "{path}:{}: `{name}` reads rows that may have ended; take a snapshot, or a slot",
                index + 1
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests;
