//! Query filters (`mongo.md §9, §10`).
//!
//! [`Filter::parse`] checks a filter once; [`Filter::matches`] evaluates it on raw documents. A predicate on a path is true if any place that the path
//! leads to satisfies it (see [`crate::path`]); negations are negations of that. Comparisons are within one bracket of types.

mod bits;
mod comparison;
mod conditions;
mod facts;
mod membership;
mod near;
mod node;
mod parse;
mod pattern;
mod predicate;
mod schema;
mod text;

use bson::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf, rawdoc};

use crate::context::Context;
use crate::error::Result;
use crate::expression::ParseScope;
use crate::value::collation::Collation;

use node::{Evaluation, Node, Subject};

pub use comparison::Operator;
pub use conditions::{Condition, Conjunction, Test};
pub use parse::{DEPTH_LIMIT, is_path_operator};

/// A parsed filter.
#[derive(Debug, Clone)]
pub struct Filter {
    root: Node,
}

/// How a document matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MatchDetails {
    /// The index of the first element that matched, for the positional operator `$`; `None` if no array was entered without an index.
    pub array_index: Option<usize>,
}

impl Filter {
    /// Parses a filter whose `$expr` uses no variables of the command.
    ///
    /// # Errors
    /// Those of [`Filter::parse_in`].
    pub fn parse(document: &RawDocument) -> Result<Filter> {
        Filter::parse_in(document, &ParseScope::default())
    }

    /// Parses a filter; its `$expr` may use the variables of the scope.
    ///
    /// # Errors
    /// As MongoDB: mostly `BadValue` for unknown operators and bad operands. `IndexNotFound` for `$text` if the scope's context has no text index.
    pub fn parse_in(document: &RawDocument, scope: &ParseScope) -> Result<Filter> {
        let root = parse::filter(document, scope)?;
        near::check(&root)?;
        text::check(&root)?;
        Ok(Filter { root })
    }

    /// Returns the filter that every document matches.
    pub fn all() -> Filter {
        Filter {
            root: Node::And(Vec::new()),
        }
    }

    /// Returns the filter that documents match which match both.
    #[must_use]
    pub fn and(self, other: &Filter) -> Filter {
        let root = match self.root {
            Node::And(mut conditions) => {
                conditions.push(other.root.clone());
                Node::And(conditions)
            }
            root => Node::And(vec![root, other.root.clone()]),
        };
        Filter { root }
    }

    /// Tells whether the document matches. Strings compare by the collation of the context.
    ///
    /// # Errors
    /// Those of `$expr`, and a regular expression that needs too many steps.
    pub fn matches(&self, document: &RawDocument, context: &Context) -> Result<bool> {
        self.root
            .matches(Subject::Document(document), &Evaluation::new(context), &mut None)
    }

    /// Tells how the document matches; `None` if it does not.
    ///
    /// # Errors
    /// Those of [`Filter::matches`].
    pub fn matches_with(&self, document: &RawDocument, context: &Context) -> Result<Option<MatchDetails>> {
        let mut details = MatchDetails::default();
        let evaluation = Evaluation::new(context);
        let matches = self
            .root
            .matches(Subject::Document(document), &evaluation, &mut details.array_index)?;
        Ok(matches.then_some(details))
    }

    /// Tells whether a value matches, where the first part of every path stands for the value: `{"x.a": 1}` and `{x: {$gt: 2}}` are conditions on an
    /// element `x`, whatever its name. For array filters and conditions of `$pull`.
    ///
    /// # Errors
    /// Those of [`Filter::matches`].
    pub fn matches_value(&self, value: RawBsonRef<'_>, context: &Context) -> Result<bool> {
        self.root
            .matches(Subject::Value(value), &Evaluation::new(context), &mut None)
    }

    /// Returns what every document that matches fulfils, as far as an index can serve it.
    pub fn conditions(&self) -> Conjunction<'_> {
        conditions::of(&self.root)
    }

    /// Tells whether the filter has no condition: `{}`, or only a comment.
    pub fn is_empty(&self) -> bool {
        matches!(&self.root, Node::And(conditions) if conditions.is_empty())
    }

    /// Returns the paths and values that a matching document must equal, in the order of the filter, as an upsert takes them into the new document:
    /// equalities, `$in` and `$all` of one value, also inside `$and` and an `$or` of one filter.
    ///
    /// # Errors
    /// `NotSingleValueField` if a path is given twice, or together with one inside it.
    pub fn equalities(&self) -> Result<Vec<(&str, &RawBson)>> {
        facts::equalities(&self.root)
    }

    /// Returns those of [`Filter::equalities`] that are on `_id` or inside it.
    ///
    /// # Errors
    /// `NotSingleValueField` if one of these paths is given twice, or together with one inside it.
    pub fn id_equalities(&self) -> Result<Vec<(&str, &RawBson)>> {
        facts::id_equalities(&self.root)
    }

    /// Returns the one `_id` that matching documents have, if the filter states it; other conditions may exclude that document.
    ///
    /// `None` where several ids could match: also for a value with strings under a collation.
    pub fn id_equality(&self, collation: Option<&Collation>) -> Option<&RawBson> {
        facts::id_equality(&self.root, collation)
    }

    /// Returns the values of which the `_id` of a matching document equals one, if the filter states them, as [`Filter::id_equality`] does.
    pub fn id_in(&self, collation: Option<&Collation>) -> Option<Vec<&RawBson>> {
        facts::id_in(&self.root, collation)
    }

    /// Returns the only value that the field at a path equals in every document that matches; `None` if the filter names none, or several.
    pub fn value_at(&self, path: &str, collation: Option<&Collation>) -> Option<&RawBson> {
        match &facts::values_in(&self.root, path, collation)?[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Tells whether the filter has `$near`, `$nearSphere` or `$geoNear`, so that results are in order of distance.
    pub fn has_near(&self) -> bool {
        near::find(&self.root).is_some()
    }

    /// Returns the distance of a document by the filter's `$near`, in the unit of that operator; `None` if it has no place in range.
    pub fn near_distance(&self, document: &RawDocument) -> Option<f64> {
        near::distance(&self.root, document)
    }

    /// Tells whether the filter has `$text`, so that documents have a score.
    pub fn has_text(&self) -> bool {
        text::find(&self.root).is_some()
    }

    /// Returns the score of a document by the filter's `$text`; `None` if it does not match that.
    pub fn text_score(&self, document: &RawDocument, context: &Context) -> Option<f64> {
        text::find(&self.root)?.score(context.text.as_deref()?, document)
    }

    /// Returns what `$meta` reads of a document that matches: its `textScore`. `None` without `$text`.
    pub fn metadata(&self, document: &RawDocument, context: &Context) -> Option<RawDocumentBuf> {
        let score = self.text_score(document, context)?;
        Some(rawdoc! { "textScore": score })
    }

    /// Returns the paths of all predicates, each once, in the order of the filter. Paths inside `$elemMatch`, `$expr` and `$jsonSchema` are not among
    /// them.
    pub fn paths(&self) -> Vec<&str> {
        facts::paths(&self.root)
    }
}

#[cfg(test)]
pub(crate) mod tests;
