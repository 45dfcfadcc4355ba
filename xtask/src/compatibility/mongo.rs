//! The page of the MongoDB API: every check of the tours is a row, so that a claim stands there exactly if something ran for it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Results, read, write_files};
use crate::Result;
use crate::project::Project;

/// The path of the page.
pub const PAGE: &str = "docs/compatibility/mongodb.md";

/// The clients: key in the results, name.
const CLIENTS: [(&str, &str); 7] = [
    ("pymongo", "PyMongo"),
    ("mongodb-node", "Node.js"),
    ("mongodb-rust", "Rust"),
    ("mongodb-go", "Go"),
    ("mongodb-java", "Java"),
    ("mongosh", "mongosh"),
    ("mongo-tools", "mongo-tools"),
];

/// The tables of the page: title, and the words with which the names of its checks begin. The first table takes those of no other.
const TABLES: [(&str, &[&str]); 6] = [
    ("Connections, documents, time to live, transactions", &[]),
    ("Commands", &["command: ", "command refused: "]),
    ("Query operators and options", &["find: "]),
    ("Update operators", &["update: ", "update refused: "]),
    (
        "Aggregation stages and accumulators",
        &["aggregate: ", "aggregate refused: "],
    ),
    ("Aggregation expressions", &["expression: "]),
];

/// Suites: key in the results, title, list of expected failures.
const SUITES: [(&str, &str, &str); 4] = [
    (
        "mongo-specifications",
        "Tests of the driver specifications",
        "conformance/clients/mongo/specifications/expected_failures.json",
    ),
    (
        "mongo-corpus",
        "The BSON corpus",
        "conformance/clients/mongo/specifications/expected_failures.json",
    ),
    (
        "pymongo",
        "PyMongo's own tests",
        "conformance/clients/mongo/python/suite_expected_failures.json",
    ),
    (
        "mongoose",
        "Mongoose's own tests",
        "conformance/clients/mongo/node/suite_expected_failures.json",
    ),
];

/// The expected content of the page.
///
/// # Errors
/// If a list of expected failures cannot be read.
pub fn render(project: &Project, results: &Results) -> Result<String> {
    let mut page = String::from(
        "# Compatibility with MongoDB\n\n\
         Made by `cargo xtask compatibility` from what ran; do not edit by hand. A cell says yes where a check passed with that client, and is\n\
         empty where none has tried or the check fails. What a row asks exactly stands under `conformance/clients/mongo/`.\n\n",
    );
    let clients: Vec<_> = CLIENTS
        .into_iter()
        .filter(|(key, _)| results.checks.contains_key(*key))
        .collect();
    for (title, prefixes) in TABLES {
        write_table(&mut page, title, prefixes, &clients, results)?;
    }
    for (suite, title, list) in SUITES {
        if let Some(files) = results.files.get(suite) {
            write_files(&mut page, title, files, &read(project, list)?)?;
        }
    }
    Ok(page)
}

fn write_table(
    page: &mut String,
    title: &str,
    prefixes: &[&str],
    clients: &[(&str, &str)],
    results: &Results,
) -> Result<()> {
    let checks: BTreeSet<&str> = clients
        .iter()
        .flat_map(|(key, _)| &results.checks[*key])
        .map(String::as_str)
        .filter(|check| is_in_table(check, prefixes))
        .collect();
    if checks.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = clients.iter().map(|(_, name)| *name).collect();
    writeln!(page, "## {title}\n\n| check | {} |", names.join(" | "))?;
    writeln!(page, "| --- |{}", " --- |".repeat(names.len()))?;
    for check in checks {
        let mut cells = String::new();
        for (key, _) in clients {
            let has_passed = results.checks[*key].iter().any(|passed| passed == check);
            cells.push_str(if has_passed { " yes |" } else { " |" });
        }
        let label = prefixes.iter().find_map(|prefix| check.strip_prefix(prefix));
        // A refusal is marked, because its row would otherwise look like one of an operator that works.
        let refused = if check.contains(" refused: ") { "refused: " } else { "" };
        writeln!(
            page,
            "| {refused}{} |{cells}",
            label.unwrap_or(check).replace('|', "\\|")
        )?;
    }
    page.push('\n');
    Ok(())
}

/// Whether a check is in the table of these prefixes.
fn is_in_table(check: &str, prefixes: &[&str]) -> bool {
    if prefixes.is_empty() {
        return !TABLES
            .iter()
            .flat_map(|(_, prefixes)| *prefixes)
            .any(|prefix| check.starts_with(prefix));
    }
    prefixes.iter().any(|prefix| check.starts_with(prefix))
}

#[cfg(test)]
mod tests;
