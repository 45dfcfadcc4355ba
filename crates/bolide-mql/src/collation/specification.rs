//! The fields of a collation, as the client sends them.

use bson::{RawBsonRef, RawDocument};
use icu_collator::options::{AlternateHandling, CaseLevel, MaxVariable, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};

use super::VERSION;
use crate::error::{Code, Error, Result};
use crate::value::number::{Number, whole};
use crate::value::{text, types};

/// The fields; `None` leaves the choice to the rules of the locale.
#[derive(Default)]
pub(super) struct Specification {
    pub(super) locale: String,
    pub(super) case_level: Option<CaseLevel>,
    pub(super) case_first: Option<CollationCaseFirst>,
    pub(super) strength: Option<Strength>,
    pub(super) numeric_ordering: Option<CollationNumericOrdering>,
    pub(super) alternate: Option<AlternateHandling>,
    pub(super) max_variable: Option<MaxVariable>,
    pub(super) normalization: bool,
    pub(super) backwards: Option<bool>,
}

impl Specification {
    pub(super) fn parse(document: &RawDocument) -> Result<Specification> {
        let mut found = Specification::default();
        let mut has_locale = false;
        for element in document {
            let (name, value) = element.map_err(Error::malformed)?;
            // A field that is null counts as missing.
            if value == RawBsonRef::Null {
                continue;
            }
            has_locale |= name.as_str() == "locale";
            found.set(name.as_str(), value)?;
        }
        if has_locale {
            return Ok(found);
        }
        let message = "BSON field 'collation.locale' is missing but a required field";
        Err(Error::new(40414, message))
    }

    fn set(&mut self, name: &str, value: RawBsonRef<'_>) -> Result<()> {
        match name {
            "locale" => string(name, value)?.clone_into(&mut self.locale),
            "caseLevel" => {
                let on = boolean(name, value)?;
                self.case_level = Some(if on { CaseLevel::On } else { CaseLevel::Off });
            }
            "caseFirst" => {
                let choices = [
                    ("upper", CollationCaseFirst::Upper),
                    ("lower", CollationCaseFirst::Lower),
                    ("off", CollationCaseFirst::False),
                ];
                self.case_first = Some(choice(name, value, choices)?);
            }
            "strength" => self.strength = Some(strength(name, value)?),
            "numericOrdering" => {
                let on = boolean(name, value)?;
                self.numeric_ordering = Some(if on {
                    CollationNumericOrdering::True
                } else {
                    CollationNumericOrdering::False
                });
            }
            "alternate" => {
                let choices = [
                    ("non-ignorable", AlternateHandling::NonIgnorable),
                    ("shifted", AlternateHandling::Shifted),
                ];
                self.alternate = Some(choice(name, value, choices)?);
            }
            "maxVariable" => {
                let choices = [("punct", MaxVariable::Punctuation), ("space", MaxVariable::Space)];
                self.max_variable = Some(choice(name, value, choices)?);
            }
            "normalization" => self.normalization = boolean(name, value)?,
            "backwards" => self.backwards = Some(boolean(name, value)?),
            "version" => check_version(string(name, value)?)?,
            _ => {
                return Err(Error::new(
                    40415,
                    format!("BSON field 'collation.{name}' is an unknown field."),
                ));
            }
        }
        Ok(())
    }
}

fn check_version(version: &str) -> Result<()> {
    if version == VERSION {
        return Ok(());
    }
    Err(Error::new(
        Code::INCOMPATIBLE_COLLATION_VERSION,
        format!("Requested collation version \"{version}\", but the only available collator version is \"{VERSION}\""),
    ))
}

fn wrong_type(name: &str, value: RawBsonRef<'_>, expected: &str) -> Error {
    let found = types::name(value);
    let message = format!("BSON field 'collation.{name}' is the wrong type '{found}', expected {expected}");
    Error::new(Code::TYPE_MISMATCH, message)
}

fn boolean(name: &str, value: RawBsonRef<'_>) -> Result<bool> {
    value.as_bool().ok_or_else(|| wrong_type(name, value, "type 'bool'"))
}

fn string<'a>(name: &str, value: RawBsonRef<'a>) -> Result<&'a str> {
    value.as_str().ok_or_else(|| wrong_type(name, value, "type 'string'"))
}

fn choice<T, const N: usize>(name: &str, value: RawBsonRef<'_>, choices: [(&str, T); N]) -> Result<T> {
    let text = string(name, value)?;
    let found = choices.into_iter().find(|(choice, _)| *choice == text);
    found.map(|(_, value)| value).ok_or_else(|| not_a_choice(name, text))
}

fn strength(name: &str, value: RawBsonRef<'_>) -> Result<Strength> {
    if Number::of(value).is_none() {
        return Err(wrong_type(name, value, "types '[long, int, decimal, double']"));
    }
    match whole(value) {
        Some(1) => Ok(Strength::Primary),
        Some(2) => Ok(Strength::Secondary),
        Some(3) => Ok(Strength::Tertiary),
        Some(4) => Ok(Strength::Quaternary),
        Some(5) => Ok(Strength::Identical),
        _ => Err(not_a_choice(name, &text::render(value))),
    }
}

fn not_a_choice(name: &str, value: &str) -> Error {
    Error::bad_value(format!(
        "Enumeration value '{value}' for field 'collation.{name}' is not a valid value."
    ))
}
