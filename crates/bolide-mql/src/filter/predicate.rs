//! Predicates on one value.

use bson::{RawBsonRef, RawDocument};

use super::bits::Bits;
use super::comparison::Comparison;
use super::membership::Membership;
use super::node::{Evaluation, Node, Subject};
use super::pattern::Pattern;
use crate::error::Result;
use crate::geo;
use crate::value::number::Number;
use crate::value::types::TypeSet;

/// A predicate on one value; which values, the path says.
#[derive(Debug, Clone)]
pub(super) enum Predicate {
    /// `$eq $lt $lte $gt $gte`
    Comparison(Comparison),
    /// `$in`
    Membership(Membership),
    /// `$exists: true`
    Exists,
    /// `$type`
    Type(TypeSet),
    /// `$regex`
    Regex(Box<Pattern>),
    /// `$mod`; the divisor is not zero.
    Mod { divisor: i64, remainder: i64 },
    /// `$size`
    Size(usize),
    /// `$bitsAllSet` and the like
    Bits(Bits),
    /// `$geoWithin`, `$geoIntersects`, `$near` and the like
    Geometry(geo::Predicate),
    /// `$elemMatch` with conditions on fields of the elements
    ElementFields(Box<Node>),
    /// `$elemMatch` with conditions on the elements themselves, all of which hold for one
    ElementItself(Vec<Node>),
}

impl Predicate {
    /// Tells whether an array at the end of the path is judged as a whole, and not opened.
    pub(super) fn takes_whole_arrays(&self) -> bool {
        matches!(
            self,
            Predicate::Size(_) | Predicate::ElementFields(_) | Predicate::ElementItself(_)
        )
    }

    /// Tells whether the predicate holds for a value, `None` being a missing one. `$elemMatch` sets the index of the element.
    pub(super) fn matches(
        &self,
        value: Option<RawBsonRef<'_>>,
        evaluation: &Evaluation<'_>,
        array_index: &mut Option<usize>,
    ) -> Result<bool> {
        // Only equality with null, and the ends of the order, know missing values.
        let value = match (self, value) {
            (Predicate::Comparison(comparison), value) => return Ok(comparison.matches(value, evaluation.collation)),
            (Predicate::Membership(membership), value) => return membership.matches(value, evaluation),
            (_, None) => return Ok(false),
            (_, Some(value)) => value,
        };
        Ok(match self {
            Predicate::Comparison(_) | Predicate::Membership(_) | Predicate::Exists => true,
            Predicate::Type(types) => types.matches(value),
            Predicate::Regex(regex) => return regex_matches(regex, value),
            Predicate::Mod { divisor, remainder } => {
                // i64::MIN by -1 leaves zero, which the processor's instruction cannot compute.
                let left = |dividend: i64| dividend.checked_rem(*divisor).unwrap_or(0);
                Number::of(value)
                    .and_then(Number::truncated)
                    .is_some_and(|dividend| left(dividend) == *remainder)
            }
            Predicate::Size(size) => match value {
                RawBsonRef::Array(array) => array.into_iter().count() == *size,
                _ => false,
            },
            Predicate::Bits(bits) => bits.matches(value),
            Predicate::Geometry(geometry) => return geometry.matches(value),
            Predicate::ElementFields(condition) => {
                return any_element(value, evaluation, array_index, |element| match document_of(element) {
                    Some(document) => condition.matches(Subject::Document(document), evaluation, &mut None),
                    None => Ok(false),
                });
            }
            Predicate::ElementItself(conditions) => {
                return any_element(value, evaluation, array_index, |element| {
                    for condition in conditions {
                        if !condition.matches(Subject::Element(element), evaluation, &mut None)? {
                            return Ok(false);
                        }
                    }
                    Ok(true)
                });
            }
        })
    }
}

/// Tells whether a regular expression occurs in a string, or the value is the same regular expression.
pub(super) fn regex_matches(regex: &Pattern, value: RawBsonRef<'_>) -> Result<bool> {
    match value {
        RawBsonRef::String(text) | RawBsonRef::Symbol(text) => regex.is_match(text),
        RawBsonRef::RegularExpression(value) => Ok(regex.is_made_from(value.pattern.as_str(), value.options.as_str())),
        _ => Ok(false),
    }
}

fn any_element<'d>(
    value: RawBsonRef<'d>,
    evaluation: &Evaluation<'_>,
    array_index: &mut Option<usize>,
    mut holds: impl FnMut(RawBsonRef<'d>) -> Result<bool>,
) -> Result<bool> {
    let RawBsonRef::Array(array) = value else {
        return Ok(false);
    };
    let mut steps = 0;
    for (index, element) in array.into_iter().map_while(Result::ok).enumerate() {
        evaluation.step(&mut steps)?;
        if holds(element)? {
            *array_index = Some(index);
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns an element as a document; an array is one whose names are the indexes.
fn document_of(element: RawBsonRef<'_>) -> Option<&RawDocument> {
    match element {
        RawBsonRef::Document(document) => Some(document),
        RawBsonRef::Array(array) => RawDocument::from_bytes(array.as_bytes()).ok(),
        _ => None,
    }
}
