//! The operators of an update as one tree of paths, in which conflicts show.
//!
//! `{$set: {"a.b": 1, "a.c": 2}, $inc: {d: 3}}` becomes
//!
//!   root ─ a ─ b: $set 1
//!        │   └ c: $set 2
//!        └ d: $inc 3

use std::collections::BTreeMap;

use super::operator::Operator;
use super::path::{Name, Step, UpdatePath};
use crate::error::{Code, Error, Result};

/// What to do with a value and the values inside it.
#[derive(Debug)]
pub(super) enum Plan {
    /// Nothing: only while the tree is built.
    Empty,
    /// One operator on the value itself.
    Leaf(Leaf),
    /// Changes of fields of a document, or of single elements of an array.
    Fields(Fields),
    /// Changes of the elements of an array that match array filters, by identifier; the empty one matches every element.
    Elements(BTreeMap<String, Plan>),
}

/// An operator and the path it was written with.
#[derive(Debug)]
pub(super) struct Leaf {
    /// The operator.
    pub(super) operator: Operator,
    /// The path, for error messages.
    pub(super) path: String,
}

/// Changes of fields.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// By name, in the order in which new fields are added.
    pub(super) named: BTreeMap<Name, Plan>,
    /// The change of the element that the query matched (`$`).
    pub(super) matched: Option<Box<Plan>>,
}

impl Plan {
    /// Adds an operator on a path.
    ///
    /// # Errors
    /// `ConflictingUpdateOperators`: the path is the same as another, leads into its value, or needs an array where another needs a document.
    pub(super) fn add(&mut self, path: &UpdatePath, operator: Operator) -> Result<()> {
        let mut plan = self;
        for (depth, step) in path.steps.iter().enumerate() {
            plan = plan.child(step).ok_or_else(|| conflict(path, depth))?;
        }
        if !matches!(plan, Plan::Empty) {
            return Err(conflict(path, path.steps.len()));
        }
        let path = path.to_string();
        *plan = Plan::Leaf(Leaf { operator, path });
        Ok(())
    }

    /// Returns what to do after this step, made if there is nothing yet; `None` if the step does not fit the others.
    fn child(&mut self, step: &Step) -> Option<&mut Plan> {
        if let Plan::Empty = self {
            *self = match step {
                Step::Field(_) | Step::Matched => Plan::Fields(Fields::default()),
                Step::Elements(_) => Plan::Elements(BTreeMap::new()),
            };
        }
        match (self, step) {
            (Plan::Fields(fields), Step::Field(name)) => Some(fields.named.entry(name.clone()).or_insert(Plan::Empty)),
            (Plan::Fields(fields), Step::Matched) => Some(fields.matched.get_or_insert_with(|| Box::new(Plan::Empty))),
            (Plan::Elements(elements), Step::Elements(identifier)) => {
                Some(elements.entry(identifier.clone()).or_insert(Plan::Empty))
            }
            _ => None,
        }
    }

    /// Returns the path of the first operator.
    pub(super) fn first_path(&self) -> &str {
        match self {
            Plan::Empty => "",
            Plan::Leaf(leaf) => &leaf.path,
            Plan::Fields(fields) => {
                let first = fields.named.values().next().or(fields.matched.as_deref());
                first.map_or("", Plan::first_path)
            }
            Plan::Elements(elements) => elements.values().next().map_or("", Plan::first_path),
        }
    }

    /// Returns the path, below `path`, at which two plans for one value conflict.
    pub(super) fn conflict_with(&self, other: &Plan, path: &str) -> Option<String> {
        match (self, other) {
            (Plan::Empty, _) | (_, Plan::Empty) => None,
            (Plan::Fields(left), Plan::Fields(right)) => {
                if let (Some(left), Some(right)) = (&left.matched, &right.matched) {
                    let conflict = left.conflict_with(right, &format!("{path}.$"));
                    if conflict.is_some() {
                        return conflict;
                    }
                }
                let shared = (left.named.iter()).filter_map(|(name, plan)| Some((name, plan, right.named.get(name)?)));
                (shared.into_iter())
                    .find_map(|(name, left, right)| left.conflict_with(right, &format!("{path}.{}", name.as_str())))
            }
            (Plan::Elements(left), Plan::Elements(right)) => {
                let shared = left
                    .iter()
                    .filter_map(|(name, plan)| Some((name, plan, right.get(name)?)));
                (shared.into_iter())
                    .find_map(|(name, left, right)| left.conflict_with(right, &format!("{path}.$[{name}]")))
            }
            _ => Some(path.to_owned()),
        }
    }
}

fn conflict(path: &UpdatePath, depth: usize) -> Error {
    let at = path.prefix(depth);
    Error::new(
        Code::CONFLICTING_UPDATE_OPERATORS,
        format!("Updating the path '{path}' would create a conflict at '{at}'"),
    )
}
