//! Texts that only clients of Cosmos DB's protocol read belong in `bolide-cosmos`: the core returns data, for every front end.

use super::TextFile;

/// The crates below the front ends.
const BELOW: [&str; 3] = [
    "crates/bolide-core/src/",
    "crates/bolide-model/src/",
    "crates/bolide-storage/src/",
];

/// Names and phrases of that protocol, in lower case.
const TEXTS: [&str; 14] = [
    "x-ms-",
    "statuscode",
    "resource not found",
    "entity with the specified id",
    "aka.ms",
    "resource with specified id",
    "pre-condition",
    "request rate is large",
    "request size is too large",
    "partition key provided",
    "continuation token",
    "cross partition query",
    "more request units",
    "utilizedsingleindexes",
];

/// Reports such texts in crates where they must not be. Comments are checked too, because there they should apply to every protocol.
pub fn check(files: &[TextFile]) -> Vec<String> {
    let below = files
        .iter()
        .filter(|file| file.path.ends_with(".rs") && BELOW.iter().any(|folder| file.path.starts_with(folder)));
    below.flat_map(problems_of).collect()
}

fn problems_of(file: &TextFile) -> Vec<String> {
    let mut problems = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let line = line.to_lowercase();
        if let Some(text) = TEXTS.iter().find(|text| line.contains(*text)) {
            let path = &file.path;
            problems.push(format!(
                "{path}:{}: `{text}` belongs to Cosmos DB's protocol; return a bolide_model::Reason, and write the text in bolide-cosmos",
                index + 1
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests;
