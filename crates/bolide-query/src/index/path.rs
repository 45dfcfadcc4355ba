//! Paths of indexes.

use std::fmt;
use std::ops::ControlFlow;

use super::key::Key;
use crate::path::PathStep;
use crate::value::{Item, ItemScan, Value};

/// A path has at most so many steps. Paths of a query may be longer, and are copied for each condition.
const MAX_STEPS: usize = 32;

/// Maximum length of all names of a path, in bytes.
const MAX_NAME_BYTES: usize = 1_024;

/// A path of an index: one or more names of properties, and at the end possibly the elements of an array.
///
/// A name that a policy cannot tell from its own marks is never part of it: `*`, `?`, `[]`, and any name with a quotation mark.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexPath {
    /// Names only, at least one.
    names: Vec<PathStep>,
    of_elements: bool,
}

impl IndexPath {
    /// Reads a path as policies write it: `/a/b/?`, `/tags/[]/?`, `/"odd name"/?`, also without the `?`.
    ///
    /// `None` for a path that names no property, has a wildcard, has elements of an array before its end, or is longer than 32 steps or 1,024 bytes.
    pub fn parse(policy_text: &str) -> Option<IndexPath> {
        let text = policy_text.strip_suffix("/?").unwrap_or(policy_text);
        IndexPath::from_steps(PathStep::parse_policy_path(text).iter())
    }

    /// The path of these steps, if an index can have it; see [`IndexPath::parse`].
    pub fn of_steps(steps: &[PathStep]) -> Option<IndexPath> {
        IndexPath::from_steps(steps.iter())
    }

    /// The path of these steps, if an index can have it. An element at the end stands for all elements.
    pub(super) fn from_steps<'s>(steps: impl Iterator<Item = &'s PathStep>) -> Option<IndexPath> {
        let (mut names, mut bytes) = (Vec::new(), 0);
        let mut of_elements = false;
        for step in steps {
            if of_elements || names.len() == MAX_STEPS {
                return None;
            }
            match step {
                PathStep::Name(name) => {
                    bytes += name.len();
                    if bytes > MAX_NAME_BYTES || is_mark(name) {
                        return None;
                    }
                    names.push(step.clone());
                }
                PathStep::Each | PathStep::Element(_) => of_elements = true,
                PathStep::Nowhere => return None,
            }
        }
        (!names.is_empty()).then_some(IndexPath { names, of_elements })
    }

    /// Whether the index has the elements of an array, so that an item may have several keys.
    pub fn is_of_elements(&self) -> bool {
        self.of_elements
    }

    /// The steps of the path; [`PathStep::Each`] is the last one if the index has the elements of an array.
    pub fn steps(&self) -> Vec<PathStep> {
        let elements = self.of_elements.then_some(PathStep::Each);
        self.names.iter().cloned().chain(elements).collect()
    }

    /// The names of the path.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.names.iter().filter_map(|step| match step {
            PathStep::Name(name) => Some(&**name),
            _ => None,
        })
    }

    /// The path of the elements of the array at this path.
    pub(super) fn elements(self) -> Option<IndexPath> {
        (!self.of_elements).then_some(IndexPath {
            of_elements: true,
            ..self
        })
    }

    /// Whether the path is a property of the item itself, with this name.
    pub(super) fn is_property(&self, name: &str) -> bool {
        !self.of_elements && matches!(self.names.as_slice(), [PathStep::Name(own)] if own == name)
    }

    /// Calls `f` with the value of an item at the path; not for paths of elements.
    pub(super) fn value<R>(&self, item: &Item<'_>, f: impl FnOnce(&Value<'_>) -> R) -> R {
        f(&ItemScan::of(item).walk(item, &self.names))
    }

    /// The keys of an item: those of its value, or of each element of its array, at the path. Sorted, each once.
    ///
    /// An undefined value has no key, nor has a value that is no array at a path of elements. For the bytes see [`super`].
    pub fn keys(&self, item: &Item<'_>) -> Vec<Vec<u8>> {
        let value = ItemScan::of(item).walk(item, &self.names);
        let mut keys = Vec::new();
        let mut add = |value: &Value<'_>| keys.extend(Key::of(value).map(|key| key.bytes));
        if self.of_elements {
            let _: ControlFlow<()> = value.each_element(|element| {
                add(&element);
                ControlFlow::Continue(())
            });
        } else {
            add(&value);
        }
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The vector of an item: the numbers of the array at the path; `None` for another value, as in `VectorDistance`.
    pub fn vector(&self, item: &Item<'_>) -> Option<Vec<f64>> {
        let value = ItemScan::of(item).walk(item, &self.names);
        value.elements()?.iter().map(Value::as_f64).collect()
    }
}

/// Whether a policy cannot have a property of this name: quoted or not, it would be read as something else.
fn is_mark(name: &str) -> bool {
    matches!(name, "*" | "?" | "[]") || name.contains('"')
}

/// The canonical text of a policy: names with characters other than letters, digits and underscores are quoted.
impl fmt::Display for IndexPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.names {
            let PathStep::Name(name) = step else { continue };
            if !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_') {
                write!(f, "/{name}")?;
            } else {
                write!(f, "/\"{name}\"")?;
            }
        }
        f.write_str(if self.of_elements { "/[]/?" } else { "/?" })
    }
}

#[cfg(test)]
mod tests;
