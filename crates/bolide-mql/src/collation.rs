//! Collations: comparisons of strings by the rules of a language (`mongo.md §11`).
//!
//! The rules are those of Unicode's CLDR, from `icu_collator`. Text is always compared in normal form, so `normalization` is stored and shown, and
//! changes nothing.

use std::sync::Arc;

use bson::{RawDocument, RawDocumentBuf, rawdoc};
use icu_collator::options::{
    AlternateHandling, CaseLevel, CollatorOptions, MaxVariable, ResolvedCollatorOptions, Strength,
};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{CollatorBorrowed, CollatorPreferences};

use crate::error::{Code, Error, Result};
use crate::value::text::render_document;

mod locale;
mod specification;

pub use crate::value::collation::Collation;

use specification::Specification;

/// The version of the rules that MongoDB 7.0 reports and expects.
const VERSION: &str = "57.1";

impl Collation {
    /// Returns the collation of a specification; `None` for bytewise comparison: the locale `simple`, or no field at all.
    ///
    /// # Errors
    /// As MongoDB for unknown fields, types, values, combinations and locales; `NotImplemented` for `backwards` where the library has no such rules.
    pub fn parse(document: &RawDocument) -> Result<Option<Arc<Collation>>> {
        if document.is_empty() {
            return Ok(None);
        }
        let specification = Specification::parse(document)?;
        if specification.locale == "simple" {
            if document.iter().count() == 1 {
                return Ok(None);
            }
            return Err(Error::bad_value(format!(
                "If 'locale' is \"simple\", no other fields should be present in: {}",
                render_document(document)
            )));
        }
        let locale = locale::parse(&specification.locale)
            .ok_or_else(|| Error::bad_value(format!("Field 'locale' is invalid in: {}", render_document(document))))?;
        let backwards = specification.backwards.unwrap_or(locale::is_backwards(&locale));
        let locale = locale::with_backwards(locale, backwards).ok_or_else(|| {
            let text = "the collation option 'backwards' is not supported for the locale '";
            Error::new(Code::NOT_IMPLEMENTED, format!("{text}{}'", specification.locale))
        })?;
        let mut preferences = CollatorPreferences::from(&locale);
        preferences.case_first = specification.case_first.or(preferences.case_first);
        preferences.numeric_ordering = specification.numeric_ordering.or(preferences.numeric_ordering);
        let collator = CollatorBorrowed::try_new(preferences, specification.options())
            .map_err(|error| Error::new(Code::INTERNAL_ERROR, format!("collation: {error}")))?;
        let resolved = collator.resolved_options();
        check_combination(&resolved, backwards, document)?;
        let in_full = in_full(&specification, &resolved, backwards);
        Ok(Some(Arc::new(Collation::new(collator, in_full))))
    }
}

fn check_combination(options: &ResolvedCollatorOptions, backwards: bool, document: &RawDocument) -> Result<()> {
    if backwards && options.strength == Strength::Primary {
        return Err(Error::bad_value(format!(
            "'backwards' is invalid with 'strength' of 1 in: {}",
            render_document(document)
        )));
    }
    let has_case = options.case_level == CaseLevel::On || options.strength > Strength::Secondary;
    let asks_for_case = document.get("caseFirst").ok().flatten().is_some();
    if asks_for_case && options.case_first != CollationCaseFirst::False && !has_case {
        return Err(Error::bad_value(format!(
            "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2 in: {}",
            render_document(document)
        )));
    }
    Ok(())
}

/// Returns the specification with every field, in MongoDB's order.
fn in_full(specification: &Specification, options: &ResolvedCollatorOptions, backwards: bool) -> RawDocumentBuf {
    rawdoc! {
        "locale": specification.locale.as_str(),
        "caseLevel": options.case_level == CaseLevel::On,
        "caseFirst": match options.case_first {
            CollationCaseFirst::Upper => "upper",
            CollationCaseFirst::Lower => "lower",
            _ => "off",
        },
        "strength": match options.strength {
            Strength::Primary => 1_i32,
            Strength::Secondary => 2,
            Strength::Tertiary => 3,
            Strength::Quaternary => 4,
            _ => 5,
        },
        "numericOrdering": options.numeric == CollationNumericOrdering::True,
        "alternate": match options.alternate_handling {
            AlternateHandling::Shifted => "shifted",
            _ => "non-ignorable",
        },
        "maxVariable": match options.max_variable {
            MaxVariable::Space => "space",
            _ => "punct",
        },
        "normalization": specification.normalization,
        "backwards": backwards,
        "version": VERSION,
    }
}

impl Specification {
    fn options(&self) -> CollatorOptions {
        let mut options = CollatorOptions::default();
        options.strength = self.strength;
        options.alternate_handling = self.alternate;
        options.max_variable = self.max_variable;
        options.case_level = self.case_level;
        options
    }
}

#[cfg(test)]
mod tests;
