//! `$jsonSchema`: JSON Schema draft 4 with MongoDB's changes (`bsonType`; no `$ref`, `format`, `default`, `definitions`, `integer`).
//!
//! A keyword for one type of values says nothing about values of other types, and a keyword for a field nothing about a document without it.

mod keywords;
mod parse;
mod unordered;

use bson::{RawArray, RawBsonRef, RawDocument};

use super::node::Evaluation;
use super::pattern::Pattern;
use crate::error::Result;
use crate::value::number::Number;
use crate::value::types::TypeSet;

pub(super) use parse::parse;

/// A parsed schema: a value is valid if all rules hold.
#[derive(Debug, Clone, Default)]
pub(super) struct Schema {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
enum Rule {
    Type(TypeSet),
    /// Keys of the values; see [`unordered::key`].
    Enumeration(Vec<Vec<u8>>),
    AllOf(Vec<Schema>),
    AnyOf(Vec<Schema>),
    OneOf(Vec<Schema>),
    Not(Schema),
    Numeric(NumberRule),
    Text(TextRule),
    Array(ArrayRule),
    Object(ObjectRule),
}

#[derive(Debug, Clone)]
enum NumberRule {
    Minimum { limit: Number, exclusive: bool },
    Maximum { limit: Number, exclusive: bool },
    MultipleOf(Number),
}

#[derive(Debug, Clone)]
enum TextRule {
    /// In characters.
    MinLength(u64),
    MaxLength(u64),
    Pattern(Box<Pattern>),
}

#[derive(Debug, Clone)]
enum ArrayRule {
    MinItems(u64),
    MaxItems(u64),
    UniqueItems,
    /// Schemas of the first elements, and of the rest.
    Items {
        first: Vec<Schema>,
        rest: Schema,
    },
}

#[derive(Debug, Clone)]
enum ObjectRule {
    Required(Vec<String>),
    MinProperties(u64),
    MaxProperties(u64),
    /// Schemas by name, by pattern of the name, and of all other fields.
    Properties {
        named: Vec<(String, Schema)>,
        patterns: Vec<(Pattern, Schema)>,
        rest: Schema,
    },
    /// What else is required if a field is present.
    Dependency {
        field: String,
        schema: Schema,
    },
}

impl Schema {
    /// Returns the schema that every value satisfies, or none does.
    fn constant(satisfied: bool) -> Schema {
        let nothing = Rule::AnyOf(Vec::new());
        Schema {
            rules: if satisfied { Vec::new() } else { vec![nothing] },
        }
    }

    /// Tells whether a value is valid.
    pub(super) fn validates(&self, value: RawBsonRef<'_>, evaluation: &Evaluation<'_>) -> Result<bool> {
        for rule in &self.rules {
            if !rule.holds(value, evaluation)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Rule {
    fn holds(&self, value: RawBsonRef<'_>, evaluation: &Evaluation<'_>) -> Result<bool> {
        match (self, value) {
            (Rule::Type(types), value) => Ok(types.matches(value)),
            (Rule::Enumeration(keys), value) => Ok(keys.contains(&unordered::key(value))),
            (Rule::AllOf(schemas), value) => Ok(count_valid(schemas, value, evaluation)? == schemas.len()),
            (Rule::AnyOf(schemas), value) => Ok(count_valid(schemas, value, evaluation)? > 0),
            (Rule::OneOf(schemas), value) => Ok(count_valid(schemas, value, evaluation)? == 1),
            (Rule::Not(schema), value) => Ok(!schema.validates(value, evaluation)?),
            (Rule::Numeric(rule), value) => Ok(Number::of(value).is_none_or(|number| rule.holds(number))),
            (Rule::Text(rule), RawBsonRef::String(text)) => rule.holds(text),
            (Rule::Array(rule), RawBsonRef::Array(array)) => rule.holds(array, evaluation),
            (Rule::Object(rule), RawBsonRef::Document(document)) => rule.holds(document, evaluation),
            (Rule::Text(_) | Rule::Array(_) | Rule::Object(_), _) => Ok(true),
        }
    }
}

fn count_valid(schemas: &[Schema], value: RawBsonRef<'_>, evaluation: &Evaluation<'_>) -> Result<usize> {
    let mut count = 0;
    for schema in schemas {
        count += usize::from(schema.validates(value, evaluation)?);
    }
    Ok(count)
}

impl NumberRule {
    fn holds(&self, number: Number) -> bool {
        match self {
            NumberRule::Minimum { limit, exclusive } => {
                let order = number.compare(*limit);
                order.is_gt() || order.is_eq() && !exclusive
            }
            NumberRule::Maximum { limit, exclusive } => {
                let order = number.compare(*limit);
                order.is_lt() || order.is_eq() && !exclusive
            }
            NumberRule::MultipleOf(divisor) => number.to_decimal().rem(divisor.to_decimal()).is_zero(),
        }
    }
}

impl TextRule {
    fn holds(&self, text: &str) -> Result<bool> {
        let characters = || text.chars().count() as u64;
        Ok(match self {
            TextRule::MinLength(limit) => characters() >= *limit,
            TextRule::MaxLength(limit) => characters() <= *limit,
            TextRule::Pattern(pattern) => return pattern.is_match(text),
        })
    }
}

impl ArrayRule {
    fn holds(&self, array: &RawArray, evaluation: &Evaluation<'_>) -> Result<bool> {
        let elements = || array.into_iter().map_while(Result::ok);
        Ok(match self {
            ArrayRule::MinItems(limit) => elements().count() as u64 >= *limit,
            ArrayRule::MaxItems(limit) => elements().count() as u64 <= *limit,
            ArrayRule::UniqueItems => unordered::all_differ(elements()),
            ArrayRule::Items { first, rest } => {
                let mut steps = 0;
                for (index, element) in elements().enumerate() {
                    evaluation.step(&mut steps)?;
                    if !first.get(index).unwrap_or(rest).validates(element, evaluation)? {
                        return Ok(false);
                    }
                }
                true
            }
        })
    }
}

impl ObjectRule {
    fn holds(&self, document: &RawDocument, evaluation: &Evaluation<'_>) -> Result<bool> {
        let has = |name: &str| document.get(name).is_ok_and(|value| value.is_some());
        Ok(match self {
            ObjectRule::Required(names) => names.iter().all(|name| has(name)),
            ObjectRule::MinProperties(limit) => document.iter_elements().count() as u64 >= *limit,
            ObjectRule::MaxProperties(limit) => document.iter_elements().count() as u64 <= *limit,
            ObjectRule::Dependency { field, schema } => {
                !has(field) || schema.validates(RawBsonRef::Document(document), evaluation)?
            }
            ObjectRule::Properties { named, patterns, rest } => {
                let mut steps = 0;
                for (name, value) in document.iter().map_while(Result::ok) {
                    evaluation.step(&mut steps)?;
                    if !is_valid_property(name.as_str(), value, (named, patterns, rest), evaluation)? {
                        return Ok(false);
                    }
                }
                true
            }
        })
    }
}

type Properties<'s> = (&'s [(String, Schema)], &'s [(Pattern, Schema)], &'s Schema);

fn is_valid_property(
    name: &str,
    value: RawBsonRef<'_>,
    (named, patterns, rest): Properties<'_>,
    evaluation: &Evaluation<'_>,
) -> Result<bool> {
    let mut is_known = false;
    // In the order of names.
    if let Ok(index) = named.binary_search_by(|(own, _)| own.as_str().cmp(name)) {
        is_known = true;
        if !named[index].1.validates(value, evaluation)? {
            return Ok(false);
        }
    }
    for (pattern, schema) in patterns {
        if pattern.is_match(name)? {
            is_known = true;
            if !schema.validates(value, evaluation)? {
                return Ok(false);
            }
        }
    }
    if is_known {
        Ok(true)
    } else {
        rest.validates(value, evaluation)
    }
}
