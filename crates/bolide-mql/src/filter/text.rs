//! Where `$text` may stand in a filter.

use super::node::Node;
use super::predicate::Predicate;
use crate::error::{Code, Error, Result};
use crate::text_search::TextQuery;

/// The error of `$text` on a collection without text index.
pub(super) fn no_index() -> Error {
    Error::new(Code::INDEX_NOT_FOUND, "text index required for $text query")
}

/// Checks that `$text` stands once, not inside a negation, and not beside `$near`.
///
/// # Errors
/// `BadValue`.
pub(super) fn check(root: &Node) -> Result<()> {
    let mut seen = Seen::default();
    seen.visit(root, false);
    if seen.texts > 1 {
        return Err(Error::bad_value("Too many text expressions"));
    }
    if seen.is_negated {
        return Err(Error::bad_value("text expression not allowed in nor"));
    }
    if seen.texts > 0 && seen.has_near {
        return Err(Error::bad_value("text and geoNear not allowed in same query"));
    }
    Ok(())
}

/// Finds the search.
pub(super) fn find(node: &Node) -> Option<&TextQuery> {
    match node {
        Node::Text(query) => Some(query),
        Node::And(children) | Node::Or(children) => children.iter().find_map(find),
        _ => None,
    }
}

#[derive(Debug, Default)]
struct Seen {
    texts: usize,
    is_negated: bool,
    has_near: bool,
}

impl Seen {
    /// The depth is bounded by that of filters.
    fn visit(&mut self, node: &Node, in_negation: bool) {
        match node {
            Node::Text(_) => {
                self.texts += 1;
                self.is_negated |= in_negation;
            }
            Node::And(children) | Node::Or(children) => {
                children.iter().for_each(|child| self.visit(child, in_negation));
            }
            Node::Nor(children) => children.iter().for_each(|child| self.visit(child, true)),
            Node::Not(child) => self.visit(child, true),
            Node::Field(field) => {
                if let Predicate::Geometry(geometry) = &field.predicate {
                    self.has_near |= geometry.near().is_some();
                }
            }
            Node::Constant(_) | Node::Schema(_) | Node::Expression(_) => {}
        }
    }
}
