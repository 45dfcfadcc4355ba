//! The tree of a specification: names of fields, and what happens to each.

use std::collections::HashMap;

use bson::raw::CString;

use super::array::{ElementMatch, Slice};
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::path::field::join;

/// The fields of one level.
#[derive(Debug, Default)]
pub(super) struct Node {
    fields: Vec<(CString, Action)>,
    places: HashMap<String, usize>,
    computes: bool,
    has_positional: bool,
}

/// What happens to a field.
#[derive(Debug)]
pub(super) enum Action {
    Keep,
    Drop,
    Compute(Expression),
    Descend(Node),
    Slice(Slice),
    ElementMatch(Box<ElementMatch>),
    /// The element of the array that the query matched.
    Positional,
}

impl Action {
    /// Whether the field's value comes from an expression or a condition: its place is at the end of an inclusion.
    pub(super) fn computes(&self) -> bool {
        match self {
            Action::Compute(_) | Action::ElementMatch(_) => true,
            Action::Descend(node) => node.computes,
            Action::Keep | Action::Drop | Action::Slice(_) | Action::Positional => false,
        }
    }

    fn has_positional(&self) -> bool {
        match self {
            Action::Positional => true,
            Action::Descend(node) => node.has_positional,
            _ => false,
        }
    }
}

impl Node {
    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the fields in the order of the specification.
    pub(super) fn fields(&self) -> &[(CString, Action)] {
        &self.fields
    }

    /// Returns the place of a field among [`Node::fields`], and its action.
    pub(super) fn find(&self, name: &str) -> Option<(usize, &Action)> {
        let place = *self.places.get(name)?;
        self.fields.get(place).map(|(_, action)| (place, action))
    }

    /// Whether a field below is computed, so that a missing document is made.
    pub(super) fn computes(&self) -> bool {
        self.computes
    }

    /// Whether `a.$` stands here or below.
    pub(super) fn has_positional(&self) -> bool {
        self.has_positional
    }

    /// Adds an action at a path.
    ///
    /// # Errors
    /// 31249 if an ancestor of the path has an action, 31250 if the path has one or a descendant of it.
    pub(super) fn insert(&mut self, path: &[CString], action: Action) -> Result<()> {
        self.insert_below(path, 0, action)
    }

    fn insert_below(&mut self, path: &[CString], level: usize, action: Action) -> Result<()> {
        let Some((name, rest)) = path.get(level..).and_then(<[CString]>::split_first) else {
            return Ok(());
        };
        self.computes |= action.computes();
        self.has_positional |= action.has_positional();
        let place = self.places.get(name.as_str()).copied();
        match (place.and_then(|place| self.fields.get_mut(place)), rest.is_empty()) {
            (Some(_), true) => Err(Error::new(31250, format!("Path collision at {}", join(path)))),
            (Some((_, Action::Descend(node))), false) => node.insert_below(path, level + 1, action),
            (Some(_), false) => {
                let (at, remaining) = (join(path), join(path.get(1..).unwrap_or_default()));
                Err(Error::new(
                    31249,
                    format!("Path collision at {at} remaining portion {remaining}"),
                ))
            }
            (None, is_last) => {
                let new = if is_last {
                    action
                } else {
                    let mut node = Node::default();
                    node.insert_below(path, level + 1, action)?;
                    Action::Descend(node)
                };
                self.places.insert(name.as_str().to_owned(), self.fields.len());
                self.fields.push((name.clone(), new));
                Ok(())
            }
        }
    }

    /// Removes a top-level field that was added last or not; the order of the others stays.
    pub(super) fn remove(&mut self, name: &str) {
        self.fields.retain(|(other, _)| other.as_str() != name);
        self.places = self
            .fields
            .iter()
            .enumerate()
            .map(|(place, (name, _))| (name.as_str().to_owned(), place))
            .collect();
    }
}
