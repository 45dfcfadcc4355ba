//! `$pull` and `$pullAll`.

use std::collections::HashSet;

use bson::raw::cstr;
use bson::{RawBson, RawBsonRef, RawDocument, RawDocumentBuf};

use super::array_filters::check_allowed;
use super::operator::{Change, Target, array_of, elements_of};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::filter::{DEPTH_LIMIT, Filter, is_path_operator};
use crate::value;

/// The condition of `$pull`.
#[derive(Debug)]
pub(super) enum Pull {
    /// A condition on the fields of elements that are documents: `{$pull: {results: {score: 8}}}`.
    Fields(Filter),
    /// A condition on elements: `{$pull: {scores: {$gte: 80}}}`. It is a filter on the field `element`.
    Element(Filter),
    /// A value that elements are equal to.
    Equal(RawBson),
}

impl Pull {
    /// Parses the condition.
    ///
    /// # Errors
    /// Those of a filter.
    pub(super) fn parse(argument: RawBsonRef<'_>) -> Result<Pull> {
        match argument {
            RawBsonRef::Document(document) => {
                let first = document.into_iter().next().transpose()?;
                let is_element_condition = first.is_some_and(|(name, _)| is_path_operator(name.as_str()));
                if is_element_condition {
                    Pull::element(argument)
                } else {
                    check_conditions(document, 0)?;
                    Ok(Pull::Fields(Filter::parse(document)?))
                }
            }
            RawBsonRef::RegularExpression(_) => Pull::element(argument),
            value => Ok(Pull::Equal(value.into())),
        }
    }

    fn element(condition: RawBsonRef<'_>) -> Result<Pull> {
        let mut filter = RawDocumentBuf::new();
        filter.append(cstr!("element"), condition);
        Ok(Pull::Element(Filter::parse(&filter)?))
    }

    /// Removes the elements that match.
    ///
    /// # Errors
    /// `BadValue`: the value is not an array.
    pub(super) fn change(&self, current: RawBsonRef<'_>, target: &Target<'_>) -> Result<Change> {
        retain("$pull", current, target, |element| {
            Ok(!self.matches(element, target.ctx)?)
        })
    }

    fn matches(&self, element: RawBsonRef<'_>, ctx: &Context) -> Result<bool> {
        match self {
            Pull::Fields(filter) => match element {
                RawBsonRef::Document(document) => filter.matches(document, ctx),
                _ => Ok(false),
            },
            Pull::Element(filter) => filter.matches_value(element, ctx),
            Pull::Equal(value) => Ok(value::equal_with(
                value.as_raw_bson_ref(),
                element,
                ctx.collation.as_deref(),
            )),
        }
    }
}

/// Checks that a condition needs only the element.
fn check_conditions(filter: &RawDocument, nesting: usize) -> Result<()> {
    for field in filter {
        let (name, condition) = field?;
        check_allowed(name.as_str())?;
        // Deeper ones are refused by the parser of filters.
        let RawBsonRef::Array(conditions) = condition else {
            continue;
        };
        if nesting < DEPTH_LIMIT && matches!(name.as_str(), "$and" | "$or" | "$nor") {
            for condition in conditions {
                if let RawBsonRef::Document(condition) = condition? {
                    check_conditions(condition, nesting + 1)?;
                }
            }
        }
    }
    Ok(())
}

/// The values that `$pullAll` removes.
#[derive(Debug)]
pub(super) struct PullAll {
    values: Vec<RawBson>,
}

impl PullAll {
    /// Parses the array of values.
    ///
    /// # Errors
    /// `BadValue`: not an array.
    pub(super) fn parse(argument: RawBsonRef<'_>) -> Result<PullAll> {
        let RawBsonRef::Array(array) = argument else {
            return Err(Error::bad_value(format!(
                "$pullAll requires an array argument but was given a {}",
                value::types::name(argument)
            )));
        };
        let values = elements_of(array)?.into_iter().map(RawBson::from).collect();
        Ok(PullAll { values })
    }

    /// Removes the elements that are equal to one of the values.
    ///
    /// # Errors
    /// `BadValue`: the value is not an array.
    pub(super) fn change(&self, current: RawBsonRef<'_>, target: &Target<'_>) -> Result<Change> {
        let collation = target.ctx.collation.as_deref();
        let keys: HashSet<Vec<u8>> = (self.values.iter())
            .map(|value| value::key::of(value.as_raw_bson_ref(), collation))
            .collect();
        retain("$pullAll", current, target, |element| {
            Ok(!keys.contains(&value::key::of(element, collation)))
        })
    }
}

fn retain(
    operator: &str,
    current: RawBsonRef<'_>,
    target: &Target<'_>,
    mut keeps: impl FnMut(RawBsonRef<'_>) -> Result<bool>,
) -> Result<Change> {
    let RawBsonRef::Array(array) = current else {
        return Err(Error::bad_value(format!(
            "Cannot apply {operator} to a non-array value"
        )));
    };
    let elements = elements_of(array)?;
    let mut kept = Vec::with_capacity(elements.len());
    for element in &elements {
        target.ctx.interrupt.check(1)?;
        if keeps(*element)? {
            kept.push(*element);
        }
    }
    if kept.len() == elements.len() {
        return Ok(Change::None);
    }
    Ok(Change::Value(RawBson::Array(array_of(kept))))
}
