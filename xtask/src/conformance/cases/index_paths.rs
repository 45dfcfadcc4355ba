//! The paths that an indexing policy names for the items of a case: every path that an index can have, up to the number of indexes of a container.
//!
//! Except those that would change the result: a query sorted by a path that is named also returns items without a value there.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Case;

/// Maximum number of indexes of a container (docs/query.md).
const MAX_INDEXES: usize = 64;

/// The paths in an order in which those of scalar values come first, then those of elements of arrays, then those of the computed properties and of all
/// other values.
pub fn of(case: &Case) -> Vec<String> {
    let mut paths = Paths::default();
    for document in case.list("documents") {
        for (name, value) in document.as_object().into_iter().flatten() {
            paths.add(&mut vec![name], value);
        }
    }
    // No item has a value there, so that an index used in place of the property's expression would lose rows.
    let computed = case
        .list("computedProperties")
        .filter_map(|property| property["name"].as_str());
    paths.others.extend(computed.filter_map(|name| text(&[name], "/?")));
    let mut all: Vec<String> = Vec::new();
    paths.scalars.retain(|path| !may_add_rows(case, path));
    paths.others.retain(|path| !may_add_rows(case, path));
    for path in paths.scalars.into_iter().chain(paths.elements).chain(paths.others) {
        if all.len() < MAX_INDEXES && !all.contains(&path) {
            all.push(path);
        }
    }
    all
}

/// Whether some item has no value at a path by whose last name the query is sorted.
fn may_add_rows(case: &Case, path: &str) -> bool {
    let query = case.body["query"].as_str().unwrap_or_default();
    let Some((_, order)) = query.split_once("ORDER BY") else {
        return false;
    };
    let pointer = path.trim_end_matches("/?").replace('"', "");
    let name = pointer.rsplit('/').next().unwrap_or_default();
    order.contains(name)
        && case
            .list("documents")
            .any(|document| document.pointer(&pointer).is_none())
}

#[derive(Default)]
struct Paths {
    scalars: BTreeSet<String>,
    elements: BTreeSet<String>,
    others: BTreeSet<String>,
}

impl Paths {
    fn add<'v>(&mut self, names: &mut Vec<&'v str>, value: &'v Value) {
        match value {
            Value::Object(members) => {
                self.others.extend(text(names, "/?"));
                for (name, value) in members {
                    names.push(name);
                    self.add(names, value);
                    names.pop();
                }
            }
            // An index has elements only at the end of its path.
            Value::Array(_) => {
                self.elements.extend(text(names, "/[]/?"));
                self.others.extend(text(names, "/?"));
            }
            _ => self.scalars.extend(text(names, "/?")),
        }
    }
}

/// The path as a policy writes it; `None` if a policy has no way to write one of its names.
fn text(names: &[&str], end: &str) -> Option<String> {
    let mut path = String::new();
    for name in names {
        if name.contains('"') || ["*", "?", "[]"].contains(name) {
            return None;
        }
        let is_plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        path += &if is_plain {
            format!("/{name}")
        } else {
            format!("/\"{name}\"")
        };
    }
    Some(path + end)
}

#[cfg(test)]
mod tests;
