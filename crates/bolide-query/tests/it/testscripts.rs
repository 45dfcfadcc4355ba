//! Runs the scripts in `testscripts/`, the language's own cases: written by hand from the reference, never from the output of the code.

use std::path::{Path, PathBuf};

use bolide_query::{PageLimit, Parameters, QueryError};
use serde_json::{Value as Json, json};

use crate::compare::{Tolerance, same_results};
use crate::container::Container;
use crate::script::{Expected, ExpectedError, Order, Script, Statement};

/// All rows in one page, and one page per row: the size of pages must not change the rows.
const PAGES: [PageLimit; 2] = [
    PageLimit::NONE,
    PageLimit {
        rows: 1,
        bytes: usize::MAX,
    },
];

/// Allowed relative difference of numbers; integers must be equal.
const TOLERANCE: f64 = 1e-9;

#[test]
fn scripts_of_the_language_hold() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testscripts");
    let mut failures = Vec::new();
    let mut statements = 0;
    let files = files_below(&folder);
    for file in &files {
        let name = file.strip_prefix(&folder).unwrap().display();
        let script = match Script::parse(&std::fs::read_to_string(file).unwrap()) {
            Ok(script) => script,
            Err(error) => {
                failures.push(format!("{name}: {error}"));
                continue;
            }
        };
        let container = Container::new(&script.settings, &script.documents);
        statements += script.statements.len();
        for statement in &script.statements {
            for limit in PAGES {
                if let Err(error) = check(&container, statement, limit) {
                    let Statement { line, text, .. } = statement;
                    failures.push(format!(
                        "{name}:{line}: {text}\n    pages of {} rows: {error}",
                        limit.rows
                    ));
                    break;
                }
            }
        }
    }
    println!("{statements} statements in {} scripts", files.len());
    assert!(
        failures.is_empty(),
        "{} of {statements} statements fail:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// `testscripts/<topic>/<case>`, in order.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let mut files: Vec<PathBuf> = entries(folder).iter().flat_map(|topic| entries(topic)).collect();
    files.sort();
    files
}

fn check(container: &Container, statement: &Statement, limit: PageLimit) -> Result<(), String> {
    let parameters = statement.parameters.iter();
    let parameters = parameters.fold(Parameters::none(), |all, (name, value)| all.with(name, value));
    let outcome = container.rows(&statement.text, &parameters, limit);
    match (outcome, &statement.expected) {
        (Ok(found), Expected::Rows { rows, order }) => {
            let tolerance = Tolerance {
                relative: TOLERANCE,
                unordered_arrays: *order == Order::OfElementsIsOpen,
            };
            let is_same = same_results(&found, rows, *order == Order::Counts, tolerance);
            let differs = || format!("got {}, expected {}", json!(found), json!(rows));
            is_same.then_some(()).ok_or_else(differs)
        }
        (Err(error), Expected::Error(expected)) => check_error(&error, expected),
        (Ok(found), Expected::Error(_)) => Err(format!("got {}, expected an error", json!(found))),
        (Err(error), Expected::Rows { .. }) => Err(error.body()),
    }
}

fn check_error(error: &QueryError, expected: &ExpectedError) -> Result<(), String> {
    let body: Json = serde_json::from_str(&error.body()).unwrap();
    let same_place = |place: &Json| *place == body["errors"][0]["location"];
    let agrees = error.code().unwrap_or_default() == expected.code
        && expected.location.as_ref().is_none_or(same_place)
        && expected.message.as_ref().is_none_or(|text| *text == error.message());
    agrees.then_some(()).ok_or_else(|| format!("got {body}"))
}
