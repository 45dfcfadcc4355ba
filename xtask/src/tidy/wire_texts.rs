//! What only a client of Cosmos DB's protocol reads stands in `bolide-cosmos`: the core says what it found as data, for every front end.

use super::TextFile;

/// The crates below the front ends.
const BELOW: [&str; 3] = [
    "crates/bolide-core/src/",
    "crates/bolide-model/src/",
    "crates/bolide-storage/src/",
];

/// Names and phrases of that protocol, in small letters.
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

/// Reports such texts where there should be none; in comments too, for what is said there should be said of every protocol.
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
                "{path}:{}: `{text}` is of Cosmos DB's protocol; give a reason (bolide_model::Reason), and let bolide-cosmos word it",
                index + 1
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests;
