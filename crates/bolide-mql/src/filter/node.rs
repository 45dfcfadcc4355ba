//! The tree of a filter, and its evaluation.

use std::sync::Arc;

use bson::{RawBsonRef, RawDocument};

use super::predicate::Predicate;
use super::schema::Schema;
use super::text;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::expression::{Expression, Scope};
use crate::path::{LastArray, Path, Place};
use crate::text_search::TextQuery;
use crate::value::collation::Collation;

/// A condition on a document.
#[derive(Debug, Clone)]
pub(super) enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Nor(Vec<Node>),
    Not(Box<Node>),
    /// `$alwaysTrue`, `$alwaysFalse`, `$all` of nothing.
    Constant(bool),
    /// In a box, so that the recursion of the parser moves little.
    Field(Box<Field>),
    /// `$jsonSchema`
    Schema(Box<Schema>),
    /// `$expr`
    Expression(Arc<Expression>),
    /// `$text`
    Text(Arc<TextQuery>),
}

/// A predicate on the places that a path leads to.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) path: Path,
    pub(super) predicate: Predicate,
}

/// What all parts of a filter see.
pub(super) struct Evaluation<'e> {
    context: &'e Context,
    pub(super) collation: Option<&'e Collation>,
}

/// Elements or patterns are counted up to this many before the context is asked whether to go on.
const INTERRUPT_STEPS: u64 = 256;

impl<'e> Evaluation<'e> {
    pub(super) fn new(context: &'e Context) -> Evaluation<'e> {
        Evaluation {
            context,
            collation: context.collation.as_deref(),
        }
    }

    /// Counts one element or pattern.
    ///
    /// # Errors
    /// That of the context's interrupt.
    pub(super) fn step(&self, steps: &mut u64) -> Result<()> {
        *steps += 1;
        if steps.is_multiple_of(INTERRUPT_STEPS) {
            self.context.interrupt.check(INTERRUPT_STEPS)?;
        }
        Ok(())
    }
}

/// What a condition is about.
#[derive(Clone, Copy)]
pub(super) enum Subject<'d> {
    /// A document.
    Document(&'d RawDocument),
    /// The value that the first part of every path stands for; an array is opened.
    Value(RawBsonRef<'d>),
    /// One element inside `$elemMatch` of values; an array is not opened.
    Element(RawBsonRef<'d>),
}

impl Node {
    /// Tells whether the condition holds. `array_index` becomes the index of the element that made it hold.
    pub(super) fn matches(
        &self,
        subject: Subject<'_>,
        evaluation: &Evaluation<'_>,
        array_index: &mut Option<usize>,
    ) -> Result<bool> {
        match self {
            Node::Field(field) => field.matches(subject, evaluation, array_index),
            Node::And(children) => {
                for child in children {
                    if !child.matches(subject, evaluation, array_index)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Or(children) => {
                for child in children {
                    if child.matches(subject, evaluation, array_index)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Node::Nor(children) => {
                for child in children {
                    if child.matches(subject, evaluation, &mut None)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Not(child) => Ok(!child.matches(subject, evaluation, &mut None)?),
            Node::Constant(value) => Ok(*value),
            Node::Schema(schema) => {
                let value = match subject {
                    Subject::Document(document) => RawBsonRef::Document(document),
                    Subject::Value(value) | Subject::Element(value) => value,
                };
                schema.validates(value, evaluation)
            }
            Node::Text(query) => match (subject, &evaluation.context.text) {
                (Subject::Document(document), Some(source)) => Ok(query.score(source, document).is_some()),
                _ => Err(text::no_index()),
            },
            Node::Expression(expression) => match subject {
                Subject::Document(document) => expression.is_true(&Scope::new(evaluation.context, document)),
                // The parser and the callers let no $expr through here.
                Subject::Value(_) | Subject::Element(_) => Err(Error::new(
                    Code::QUERY_FEATURE_NOT_ALLOWED,
                    "$expr is not allowed in this context",
                )),
            },
        }
    }
}

impl Field {
    fn matches(
        &self,
        subject: Subject<'_>,
        evaluation: &Evaluation<'_>,
        array_index: &mut Option<usize>,
    ) -> Result<bool> {
        let mut inner_index = None;
        let mut outer_index = None;
        let mut steps = 0;
        let visit = |place: Place<'_>| {
            evaluation.step(&mut steps)?;
            let matches = self.predicate.matches(place.value, evaluation, &mut inner_index)?;
            outer_index = place.array_index;
            Ok(matches)
        };
        let last = if self.predicate.takes_whole_arrays() {
            LastArray::Whole
        } else {
            LastArray::Opened
        };
        let matches = match subject {
            Subject::Document(document) => self.path.any(document, last, visit)?,
            Subject::Value(value) => self.path.any_of_value(value, last, visit)?,
            Subject::Element(value) => self.predicate.matches(Some(value), evaluation, &mut inner_index)?,
        };
        if matches && let Some(index) = outer_index.or(inner_index) {
            *array_index = Some(index);
        }
        Ok(matches)
    }
}
