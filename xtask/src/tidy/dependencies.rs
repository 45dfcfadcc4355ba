//! Compares the dependency table of `ARCHITECTURE.md` with the manifests.
//!
//! A row is a crate and our crates that it uses. A crate may only use those above it in the table; this is the whole layering rule.

use std::collections::BTreeSet;

use serde_json::Value;

/// A crate and our crates that it uses.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    name: String,
    uses: BTreeSet<String>,
}

/// Compares the table with cargo's metadata.
pub fn check(architecture: &str, metadata: &Value) -> Vec<String> {
    let table = table_in(architecture);
    let manifests = manifests_in(metadata);
    let mut problems = Vec::new();
    for manifest in &manifests {
        match table.iter().find(|row| row.name == manifest.name) {
            None => problems.push(format!(
                "ARCHITECTURE.md: the dependency table has no row for {}",
                manifest.name
            )),
            Some(row) => problems.extend(differences(row, manifest)),
        }
    }
    for row in &table {
        if manifests.iter().all(|manifest| manifest.name != row.name) {
            problems.push(format!(
                "ARCHITECTURE.md: the dependency table has {}, which is no crate",
                row.name
            ));
        }
    }
    problems.extend(upward_uses(&table));
    problems
}

fn differences(row: &Row, manifest: &Row) -> Vec<String> {
    let missing = manifest
        .uses
        .difference(&row.uses)
        .map(|used| format!("{} uses {used}, which its row lacks", row.name));
    let stale = row
        .uses
        .difference(&manifest.uses)
        .map(|used| format!("{} does not use {used} of its row", row.name));
    missing
        .chain(stale)
        .map(|problem| format!("ARCHITECTURE.md: {problem}"))
        .collect()
}

fn upward_uses(table: &[Row]) -> Vec<String> {
    let mut above = BTreeSet::new();
    let mut problems = Vec::new();
    for row in table {
        let upward = row.uses.iter().filter(|used| !above.contains(*used));
        problems.extend(upward.map(|used| format!("ARCHITECTURE.md: {} uses {used}, which is not above it", row.name)));
        above.insert(row.name.clone());
    }
    problems
}

/// The rows ``| `crate` | `used`, `used` | … |`` of the table whose heading begins with `| crate | uses`.
fn table_in(architecture: &str) -> Vec<Row> {
    let lines = architecture
        .lines()
        .skip_while(|line| !line.starts_with("| crate | uses"))
        .skip(2);
    lines
        .take_while(|line| line.starts_with('|'))
        .filter_map(row_in)
        .collect()
}

fn row_in(line: &str) -> Option<Row> {
    let mut cells = line.trim_matches('|').split('|');
    let name = in_backticks(cells.next()?).next()?;
    Some(Row {
        name,
        uses: in_backticks(cells.next()?).collect(),
    })
}

fn in_backticks(cell: &str) -> impl Iterator<Item = String> + '_ {
    cell.split('`').skip(1).step_by(2).map(str::to_owned)
}

/// The same from the manifests. Development dependencies are not restricted: a test may use a crate that is above its own.
fn manifests_in(metadata: &Value) -> Vec<Row> {
    let packages: Vec<&Value> = metadata["packages"].as_array().into_iter().flatten().collect();
    let ours: BTreeSet<&str> = packages.iter().filter_map(|package| package["name"].as_str()).collect();
    let uses_of = |package: &Value| {
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let normal = dependencies.filter(|dependency| dependency["kind"] != "dev");
        normal
            .filter_map(|dependency| dependency["name"].as_str())
            .filter(|name| ours.contains(name))
            .map(str::to_owned)
            .collect()
    };
    packages
        .iter()
        .map(|package| Row {
            name: package["name"].as_str().unwrap_or_default().to_owned(),
            uses: uses_of(package),
        })
        .collect()
}

#[cfg(test)]
mod tests;
