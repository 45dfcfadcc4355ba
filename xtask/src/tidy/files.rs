//! Rules for single files: length, white space, ignored tests.

use super::TextFile;

/// Code longer than this has more than one idea in it and becomes a folder.
const CODE_LINES_LIMIT: usize = 800;

/// Checks every file by itself.
pub fn check(files: &[TextFile]) -> Vec<String> {
    files.iter().flat_map(problems_of).collect()
}

fn problems_of(file: &TextFile) -> Vec<String> {
    let path = &file.path;
    let mut problems = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if line.ends_with([' ', '\t', '\r']) {
            problems.push(format!("{path}:{}: white space at the end of the line", index + 1));
        }
        if is_unexplained_ignore(path, line) {
            problems.push(format!("{path}:{}: an ignored test without a reason", index + 1));
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        problems.push(format!("{path}: no line break at the end"));
    }
    let lines = code_lines(file);
    if lines > CODE_LINES_LIMIT {
        problems.push(format!("{path}: {lines} lines of code, more than {CODE_LINES_LIMIT}"));
    }
    problems
}

/// An `#[ignore]` says why, as in `#[ignore = "needs a second machine"]`.
fn is_unexplained_ignore(path: &str, line: &str) -> bool {
    path.ends_with(".rs") && line.trim() == "#[ignore]"
}

/// Lines of Rust before a file's own tests; files of tests may be as long as they need.
fn code_lines(file: &TextFile) -> usize {
    let is_test = file.path.ends_with("/tests.rs") || file.path.contains("/tests/") || file.path.contains("/suite/");
    if is_test || !file.path.ends_with(".rs") {
        return 0;
    }
    file.text.lines().take_while(|line| *line != "#[cfg(test)]").count()
}

#[cfg(test)]
mod tests;
