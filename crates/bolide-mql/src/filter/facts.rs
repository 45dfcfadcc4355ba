//! What a filter says about every document that matches it.

use bson::{RawBson, RawBsonRef};

use super::node::Node;
use super::predicate::Predicate;
use crate::error::{Code, Error, Result};
use crate::value::collation::Collation;

/// See [`Filter::equalities`](super::Filter::equalities).
pub(super) fn equalities(root: &Node) -> Result<Vec<(&str, &RawBson)>> {
    let mut found = Vec::new();
    collect_equalities(root, &mut found);
    check_conflicts(&found)?;
    Ok(found)
}

/// See [`Filter::id_equalities`](super::Filter::id_equalities).
pub(super) fn id_equalities(root: &Node) -> Result<Vec<(&str, &RawBson)>> {
    let mut found = Vec::new();
    collect_equalities(root, &mut found);
    found.retain(|(path, _)| *path == "_id" || path.starts_with("_id."));
    check_conflicts(&found)?;
    Ok(found)
}

fn collect_equalities<'f>(node: &'f Node, found: &mut Vec<(&'f str, &'f RawBson)>) {
    match node {
        Node::And(children) => {
            for child in children {
                collect_equalities(child, found);
            }
        }
        Node::Or(children) => {
            if let [only] = &children[..] {
                collect_equalities(only, found);
            }
        }
        Node::Field(field) => {
            let value = match &field.predicate {
                Predicate::Comparison(comparison) => comparison.equal_to(),
                Predicate::Membership(membership) => match membership.only_values() {
                    Some([only]) => Some(only),
                    _ => None,
                },
                _ => None,
            };
            found.extend(value.map(|value| (field.path.as_str(), value)));
        }
        Node::Nor(_) | Node::Not(_) | Node::Constant(_) | Node::Schema(_) | Node::Expression(_) | Node::Text(_) => {}
    }
}

/// Checks that no path is another, or inside another. Sorted with dots below all else, a path comes right before those inside it.
fn check_conflicts(found: &[(&str, &RawBson)]) -> Result<()> {
    let mut paths: Vec<Vec<&str>> = found.iter().map(|(path, _)| path.split('.').collect()).collect();
    paths.sort();
    for pair in paths.windows(2) {
        let (outer, inner) = (&pair[0], &pair[1]);
        if outer == inner {
            let text = format!(
                "cannot infer query fields to set, path '{}' is matched twice",
                outer.join(".")
            );
            return Err(Error::new(Code::NOT_SINGLE_VALUE_FIELD, text));
        }
        if inner.starts_with(outer) {
            let (outer, inner) = (outer.join("."), inner.join("."));
            let text = format!("cannot infer query fields to set, both paths '{inner}' and '{outer}' are matched");
            return Err(Error::new(Code::NOT_SINGLE_VALUE_FIELD, text));
        }
    }
    Ok(())
}

/// See [`Filter::id_equality`](super::Filter::id_equality).
pub(super) fn id_equality<'f>(root: &'f Node, collation: Option<&Collation>) -> Option<&'f RawBson> {
    match &id_in(root, collation)?[..] {
        [only] => Some(only),
        _ => None,
    }
}

/// See [`Filter::id_in`](super::Filter::id_in).
pub(super) fn id_in<'f>(root: &'f Node, collation: Option<&Collation>) -> Option<Vec<&'f RawBson>> {
    let values = values_in(root, "_id", collation)?;
    // Null also stands for undefined and missing.
    let is_one_id = |value: &RawBson| !matches!(value, RawBson::Null);
    values.iter().all(|value| is_one_id(value)).then_some(values)
}

/// Returns the values one of which the field at a path equals in every document that matches. An array could also be an element.
pub(super) fn values_in<'f>(root: &'f Node, path: &str, collation: Option<&Collation>) -> Option<Vec<&'f RawBson>> {
    let values: Vec<_> = match root {
        Node::And(children) => {
            let mut sets = children.iter().filter_map(|child| values_in(child, path, collation));
            let first = sets.next()?;
            // The smallest set is the best; each of them holds.
            return Some(sets.fold(first, |best, next| if next.len() < best.len() { next } else { best }));
        }
        Node::Or(children) => match &children[..] {
            [only] => return values_in(only, path, collation),
            _ => return None,
        },
        Node::Field(field) if field.path.as_str() == path => match &field.predicate {
            Predicate::Comparison(comparison) => vec![comparison.equal_to()?],
            Predicate::Membership(membership) => membership.only_values()?.iter().collect(),
            _ => return None,
        },
        _ => return None,
    };
    let is_one_value = |value: &RawBson| match value.as_raw_bson_ref() {
        RawBsonRef::String(_) | RawBsonRef::Symbol(_) | RawBsonRef::Document(_) | RawBsonRef::Array(_) => {
            collation.is_none()
        }
        _ => true,
    };
    values.iter().all(|value| is_one_value(value)).then_some(values)
}

/// See [`Filter::paths`](super::Filter::paths).
pub(super) fn paths(root: &Node) -> Vec<&str> {
    let mut found = Vec::new();
    collect_paths(root, &mut found);
    found
}

fn collect_paths<'f>(node: &'f Node, found: &mut Vec<&'f str>) {
    match node {
        Node::And(children) | Node::Or(children) | Node::Nor(children) => {
            for child in children {
                collect_paths(child, found);
            }
        }
        Node::Not(child) => collect_paths(child, found),
        Node::Field(field) => {
            let path = field.path.as_str();
            if !found.contains(&path) {
                found.push(path);
            }
        }
        Node::Constant(_) | Node::Schema(_) | Node::Expression(_) | Node::Text(_) => {}
    }
}
