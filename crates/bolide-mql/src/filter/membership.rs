//! `$in`: equality with one of several values, or a match of one of several regular expressions.

use std::collections::HashSet;
use std::sync::OnceLock;

use bson::{RawBson, RawBsonRef, RawDocumentBuf};

use super::comparison::is_null;
use super::node::Evaluation;
use super::pattern::Pattern;
use super::predicate::regex_matches;
use crate::error::Result;
use crate::value::collation::Collation;
use crate::value::{compare, equal_with, key};

/// The operand of `$in`.
#[derive(Debug, Clone)]
pub(super) struct Membership {
    /// In the order of values, each once.
    values: Vec<RawBson>,
    regexes: Vec<Pattern>,
    has_null: bool,
    /// Made when first needed: a filter is evaluated under one collation.
    collated: OnceLock<Collated>,
}

/// The keys of the values under a collation.
#[derive(Debug, Clone)]
struct Collated {
    /// The specification of the collation.
    collation: RawDocumentBuf,
    keys: HashSet<Vec<u8>>,
}

impl Membership {
    pub(super) fn new(mut values: Vec<RawBson>, regexes: Vec<Pattern>) -> Membership {
        values.sort_by(|a, b| compare(a.as_raw_bson_ref(), b.as_raw_bson_ref()));
        values.dedup_by(|a, b| compare(a.as_raw_bson_ref(), b.as_raw_bson_ref()).is_eq());
        Membership {
            has_null: values.iter().any(|value| matches!(value, RawBson::Null)),
            values,
            regexes,
            collated: OnceLock::new(),
        }
    }

    pub(super) fn values(&self) -> &[RawBson] {
        &self.values
    }

    pub(super) fn patterns(&self) -> &[Pattern] {
        &self.regexes
    }

    /// Returns the values, if there are no regular expressions.
    pub(super) fn only_values(&self) -> Option<&[RawBson]> {
        self.regexes.is_empty().then_some(&self.values)
    }

    /// Tells whether a value is one of those, `None` being a missing one.
    pub(super) fn matches(&self, value: Option<RawBsonRef<'_>>, evaluation: &Evaluation<'_>) -> Result<bool> {
        if self.has_null && is_null(value) {
            return Ok(true);
        }
        let Some(value) = value else {
            return Ok(false);
        };
        if self.contains(value, evaluation.collation) {
            return Ok(true);
        }
        let mut steps = 0;
        for regex in &self.regexes {
            evaluation.step(&mut steps)?;
            if regex_matches(regex, value)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn contains(&self, value: RawBsonRef<'_>, collation: Option<&Collation>) -> bool {
        let Some(collation) = collation else {
            let found = self
                .values
                .binary_search_by(|own| compare(own.as_raw_bson_ref(), value));
            return found.is_ok();
        };
        // The values are not in the order of the collation.
        let keys_of = |values: &[RawBson]| {
            values
                .iter()
                .map(|own| key::of(own.as_raw_bson_ref(), Some(collation)))
                .collect()
        };
        let collated = self.collated.get_or_init(|| Collated {
            collation: collation.to_document().to_owned(),
            keys: keys_of(&self.values),
        });
        if *collated.collation == *collation.to_document() {
            return collated.keys.contains(&key::of(value, Some(collation)));
        }
        let mut values = self.values.iter();
        values.any(|own| equal_with(own.as_raw_bson_ref(), value, Some(collation)))
    }
}
