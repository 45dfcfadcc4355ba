//! Paths into a document: property names and array elements.

use crate::value::Value;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PathStep {
    /// A property of an object.
    Name(String),
    /// A zero-based element of an array.
    Element(usize),
    /// Any element (`[]` in policies, `x IN c.path` in queries).
    Each,
    /// An index that no array has: negative or fractional. Always undefined.
    Nowhere,
}

impl PathStep {
    /// A property step.
    pub fn name(name: &str) -> PathStep {
        PathStep::Name(name.to_owned())
    }

    /// Reads a policy path such as `/a/"odd name"/[]/b`.
    pub fn parse_policy_path(text: &str) -> Vec<PathStep> {
        let mut steps = Vec::new();
        let mut rest = text.strip_prefix('/').unwrap_or(text);
        while !rest.is_empty() {
            let (step, after) = match rest.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
                Some((name, after)) => (name, after.strip_prefix('/').unwrap_or(after)),
                None => rest.split_once('/').unwrap_or((rest, "")),
            };
            steps.push(if step == "[]" {
                PathStep::Each
            } else {
                PathStep::name(step)
            });
            rest = after;
        }
        steps
    }

    /// Whether two steps share an index entry: all elements of an array share the entry `[]`.
    pub(crate) fn same_index_step(&self, other: &PathStep) -> bool {
        match (self, other) {
            (PathStep::Name(a), PathStep::Name(b)) => a == b,
            (PathStep::Name(_), _) | (_, PathStep::Name(_)) => false,
            _ => true,
        }
    }

    /// Applies the step to a value.
    pub(crate) fn of<'a>(&self, value: &Value<'a>) -> Value<'a> {
        match self {
            PathStep::Name(name) => value.member(name),
            PathStep::Element(index) => value.element(*index),
            PathStep::Each | PathStep::Nowhere => Value::Undefined,
        }
    }
}
