//! The distance by which a filter with `$near` orders documents.

use bson::RawDocument;

use super::node::Node;
use super::predicate::Predicate;
use crate::error::{Error, Result};
use crate::geo::Near;
use crate::path::{self, Path};

/// Checks that `$near` stands once, beside conditions that all hold.
///
/// # Errors
/// `BadValue`.
pub(super) fn check(root: &Node) -> Result<()> {
    let top_level = match root {
        Node::And(children) => &children[..],
        other => std::slice::from_ref(other),
    };
    let mut count = 0;
    for node in top_level {
        match near_of(node) {
            Some(_) => count += 1,
            None if is_inside(node) => return Err(Error::bad_value("geo $near must be top-level expr")),
            None => {}
        }
    }
    if count > 1 {
        return Err(Error::bad_value("Too many geoNear expressions"));
    }
    Ok(())
}

/// Finds the distance, and the path of the field that it is to.
pub(super) fn find(root: &Node) -> Option<(&Path, &Near)> {
    match root {
        Node::And(children) => children.iter().find_map(near_of),
        node => near_of(node),
    }
}

/// The distance of a document: that of its nearest place in range.
pub(super) fn distance(root: &Node, document: &RawDocument) -> Option<f64> {
    let (path, near) = find(root)?;
    let values = path::values(document, path).into_iter().flatten();
    values.filter_map(|value| near.distance(value)).reduce(f64::min)
}

fn near_of(node: &Node) -> Option<(&Path, &Near)> {
    match node {
        Node::Field(field) => match &field.predicate {
            Predicate::Geometry(geometry) => geometry.near().map(|near| (&field.path, near)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether there is a `$near` anywhere in a condition. The depth is bounded by that of filters.
fn is_inside(node: &Node) -> bool {
    match node {
        Node::And(children) | Node::Or(children) | Node::Nor(children) => children.iter().any(is_inside),
        Node::Not(child) => is_inside(child),
        Node::Field(field) => match &field.predicate {
            Predicate::Geometry(geometry) => geometry.near().is_some(),
            Predicate::ElementFields(node) => is_inside(node),
            Predicate::ElementItself(nodes) => nodes.iter().any(is_inside),
            _ => false,
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests;
