//! Checks that each TTL requirement is cited by a test or a scenario.
//!
//! `docs/ttl-requirements.md` lists them, one per line: `- **TTL-045** text`. A line that ends in `*(untested: reason)*` is an open point; it must
//! not be cited, so that the note is removed when a test is added.

use std::collections::BTreeSet;

use serde_json::Value;

use super::TextFile;

/// A line of the list.
struct Requirement {
    number: String,
    is_open: bool,
}

/// Compares the list with the citations.
pub fn check(list: &str, files: &[TextFile]) -> Vec<String> {
    let cited: BTreeSet<String> = files.iter().flat_map(citations).collect();
    let requirements: Vec<Requirement> = list.lines().filter_map(requirement_in).collect();
    let known: BTreeSet<&str> = requirements
        .iter()
        .map(|requirement| requirement.number.as_str())
        .collect();
    let listed = requirements.iter().filter_map(|requirement| {
        match (cited.contains(&requirement.number), requirement.is_open) {
            (false, false) => Some(format!("{} is cited by no test and no scenario", requirement.number)),
            (true, true) => Some(format!(
                "{} is cited by a test and still marked untested",
                requirement.number
            )),
            _ => None,
        }
    });
    let unknown = cited.iter().filter(|number| !known.contains(number.as_str()));
    listed
        .chain(unknown.map(|number| format!("{number} is cited and not in the list of requirements")))
        .collect()
}

fn requirement_in(line: &str) -> Option<Requirement> {
    let (number, _) = line.strip_prefix("- **")?.split_once("**")?;
    let number = number.starts_with("TTL-").then(|| number.to_owned())?;
    Some(Requirement {
        number,
        is_open: line.ends_with(")*") && line.contains("*(untested:"),
    })
}

/// The requirements that a file cites: those that a scenario covers, and those that a test names.
fn citations(file: &TextFile) -> Vec<String> {
    if file.path.starts_with("conformance/") && file.path.ends_with(".json") {
        let scenario: Value = serde_json::from_str(&file.text).unwrap_or_default();
        let covers = scenario["covers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        return covers
            .filter(|number| number.starts_with("TTL-"))
            .map(str::to_owned)
            .collect();
    }
    numbers_in(test_code(file))
}

/// The part of a Rust or Python file with tests.
fn test_code(file: &TextFile) -> &str {
    let is_ours_to_check = !file.path.starts_with("xtask/");
    let path = &file.path;
    let is_test =
        path.ends_with("/tests.rs") || path.contains("/tests/") || path.contains("/suite/") || path.ends_with(".py");
    match (is_ours_to_check, is_test, path.ends_with(".rs")) {
        (true, true, _) => &file.text,
        (true, false, true) => file.text.find("#[cfg(test)]").map_or("", |start| &file.text[start..]),
        _ => "",
    }
}

fn numbers_in(text: &str) -> Vec<String> {
    let after = text.match_indices("TTL-").map(|(start, _)| &text[start..]);
    let numbers = after.filter_map(|rest| {
        rest.get(..7)
            .filter(|number| number[4..].bytes().all(|byte| byte.is_ascii_digit()))
    });
    numbers.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
