//! Projections, and the stages that change the shape of a document.
//!
//! A specification becomes a tree of field names (`tree`), which `apply` walks beside a document. There are three kinds:
//!
//! * inclusion keeps the named fields in the document's order; computed fields come last, in the order of the specification;
//! * exclusion keeps all fields but the named ones;
//! * addition (`$addFields`) keeps all fields and sets the named ones in their places, new ones at the end.

mod add_fields;
mod apply;
mod array;
mod bounds;
mod parse;
mod stage;
#[cfg(test)]
mod tests;
mod tree;

use bson::raw::{RawDocument, RawDocumentBuf};

pub use bounds::{MAX_DEPTH, check_bytes, check_depth};
pub use stage::ShapeStage;

use crate::error::{Error, Result};
use crate::expression::{ParseScope, Scope};
use crate::filter::Filter;
use tree::Node;

/// A projection, ready to be applied.
#[derive(Debug)]
pub struct Projection {
    kind: Kind,
    root: Node,
    has_positional: bool,
}

/// What happens to fields that the specification does not name, and where computed fields go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Inclusion,
    Exclusion,
    Addition,
}

impl Projection {
    /// Parses the projection of `find` and `findAndModify`, with `$slice`, `$elemMatch` and `a.$`. An empty one keeps everything.
    ///
    /// # Errors
    /// 31249 and 31250 for paths that collide, 31253 and 31254 for inclusion mixed with exclusion, 16410, 40352 and 40353 for bad paths,
    /// others for bad operators (mongo.md §8, §11).
    pub fn parse_find(spec: &RawDocument, scope: &mut ParseScope) -> Result<Projection> {
        parse::parse(spec, parse::Language::Find, scope)
    }

    /// Parses the specification of the stage `$project`.
    ///
    /// # Errors
    /// As [`Projection::parse_find`], and 51272 for an empty one.
    pub fn parse_project(spec: &RawDocument, scope: &mut ParseScope) -> Result<Projection> {
        if spec.is_empty() {
            return Err(Error::new(
                51272,
                "projection specification must have at least one field",
            ));
        }
        parse::parse(spec, parse::Language::Stage, scope)
    }

    /// Parses the specification of the stages `$addFields` and `$set`.
    ///
    /// # Errors
    /// 40176 for paths that collide, 40177, 40180, 40181, 40183 for other shapes.
    pub fn parse_add_fields(spec: &RawDocument, scope: &mut ParseScope) -> Result<Projection> {
        add_fields::parse(spec, scope)
    }

    /// Returns true if the document would be unchanged, whatever it is.
    pub fn is_identity(&self) -> bool {
        self.kind != Kind::Inclusion && self.root.is_empty()
    }

    /// Returns true if it has `a.$`, so that [`Projection::apply_matched`] evaluates the filter.
    pub fn is_positional(&self) -> bool {
        self.has_positional
    }

    /// Applies a projection without `a.$`.
    ///
    /// # Errors
    /// Those of its expressions; 15 for a result that is nested too deeply.
    pub fn apply(&self, document: &RawDocument, scope: &Scope<'_>) -> Result<RawDocumentBuf> {
        apply::apply(self, document, scope, None)
    }

    /// Applies the projection of a `find` to a document that `filter` has matched.
    ///
    /// # Errors
    /// As [`Projection::apply`]; 51246 if `a.$` has no matched element.
    pub fn apply_matched(&self, document: &RawDocument, filter: &Filter, scope: &Scope<'_>) -> Result<RawDocumentBuf> {
        let matched = match self.has_positional {
            true => filter
                .matches_with(document, scope.context())?
                .and_then(|details| details.array_index),
            false => None,
        };
        apply::apply(self, document, scope, matched)
    }
}
