//! Cases: one query each, with its expected result. They are outside the project, where each family's README describes the format.

mod compare;
mod container;
mod index_paths;
mod merge;
mod plan;
mod sql;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use self::plan::run as plan;
pub use self::sql::run as sql;
use crate::Result;

/// The wall clock of the server during the cases, in epoch milliseconds.
const CLOCK_MS: i64 = 1_700_000_000_000;

/// One case.
struct Case {
    name: String,
    body: Value,
}

impl Case {
    /// The body of the request: the query and its parameters.
    fn request(&self) -> Value {
        let parameters = self
            .body
            .get("parameters")
            .cloned()
            .unwrap_or_else(|| Value::Array(Vec::new()));
        serde_json::json!({ "query": self.body["query"], "parameters": parameters })
    }

    /// The entries of a list, if the case has it.
    fn list(&self, member: &str) -> impl Iterator<Item = &Value> {
        self.body[member].as_array().into_iter().flatten()
    }
}

/// The number of cases of a family according to `conformance/case_counts.json`, which is known even if the cases are missing.
///
/// # Errors
/// If the list cannot be read.
pub fn count(conformance: &Path, family: &str) -> Result<u64> {
    let text = std::fs::read_to_string(conformance.join("case_counts.json"))?;
    let counts: Value = serde_json::from_str(&text)?;
    counts[family]
        .as_u64()
        .ok_or_else(|| format!("case_counts.json has no number. family=`{family}`").into())
}

/// The number of cases in the files of a family.
///
/// # Errors
/// If a file cannot be read.
pub fn number_of(folder: &Path, family: &str) -> Result<usize> {
    Ok(read(&folder.join(family))?.len())
}

/// The names of all cases.
///
/// # Errors
/// If a file cannot be read, or two cases have the same name.
pub fn names(cases: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for family in ["sql", "query-plan"] {
        for case in read(&cases.join(family))? {
            if !names.insert(case.name.clone()) {
                return Err(format!("two cases have one name. name=`{}`", case.name).into());
            }
        }
    }
    Ok(names)
}

/// The cases of a family, in the order of its files.
fn read(directory: &Path) -> Result<Vec<Case>> {
    let with_path = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let entries = std::fs::read_dir(directory).map_err(|error| with_path(directory, &error))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).map_err(|error| with_path(&file, &error))?;
        let list: Vec<Value> = serde_json::from_str(&text).map_err(|error| with_path(&file, &error))?;
        for body in list {
            let name = body["name"]
                .as_str()
                .ok_or_else(|| with_path(&file, &"a case has no name"))?;
            cases.push(Case {
                name: name.to_owned(),
                body,
            });
        }
    }
    Ok(cases)
}
