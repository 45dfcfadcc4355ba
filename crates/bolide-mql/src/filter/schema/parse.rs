//! The parser of schemas.

use bson::{RawBsonRef, RawDocument};

use super::keywords::Keyword;
use super::{ArrayRule, NumberRule, ObjectRule, Rule, Schema, TextRule, unordered};
use crate::error::{Code, Error, Result};
use crate::filter::parse::DEPTH_LIMIT;
use crate::filter::pattern::Pattern;
use crate::value::types::TypeSet;

/// The names of types in JSON Schema.
const JSON_TYPES: [(&str, &str); 6] = [
    ("object", "object"),
    ("array", "array"),
    ("number", "number"),
    ("boolean", "bool"),
    ("string", "string"),
    ("null", "null"),
];

/// Keywords of JSON Schema that MongoDB does not have.
const UNSUPPORTED: [&str; 6] = ["$ref", "$schema", "default", "definitions", "format", "id"];

/// Parses a schema.
///
/// # Errors
/// `FailedToParse` and `TypeMismatch`, as MongoDB.
pub(in crate::filter) fn parse(document: &RawDocument) -> Result<Schema> {
    schema(document, 0)
}

fn schema(document: &RawDocument, depth: usize) -> Result<Schema> {
    if depth > DEPTH_LIMIT {
        return Err(Error::bad_value("exceeded maximum query tree depth"));
    }
    let mut parser = Parser {
        document,
        depth,
        rules: Vec::new(),
    };
    for element in document {
        let (name, operand) = element.map_err(Error::malformed)?;
        let keyword = Keyword {
            name: name.as_str(),
            operand,
        };
        parser.keyword(keyword)?;
    }
    parser.items()?;
    parser.properties()?;
    Ok(Schema { rules: parser.rules })
}

struct Parser<'s> {
    document: &'s RawDocument,
    depth: usize,
    rules: Vec<Rule>,
}

impl<'s> Parser<'s> {
    fn keyword(&mut self, keyword: Keyword<'s>) -> Result<()> {
        let rule = match keyword.name {
            "type" | "bsonType" => self.types(keyword)?,
            "enum" => enumeration(keyword)?,
            "allOf" => Rule::AllOf(self.schemas(keyword)?),
            "anyOf" => Rule::AnyOf(self.schemas(keyword)?),
            "oneOf" => Rule::OneOf(self.schemas(keyword)?),
            "not" => Rule::Not(self.nested(keyword.document()?)?),
            "minimum" | "maximum" => self.limit(keyword)?,
            "exclusiveMinimum" | "exclusiveMaximum" => return self.check_exclusive(keyword),
            "multipleOf" => multiple_of(keyword)?,
            "minLength" => Rule::Text(TextRule::MinLength(keyword.length()?)),
            "maxLength" => Rule::Text(TextRule::MaxLength(keyword.length()?)),
            "pattern" => Rule::Text(TextRule::Pattern(Box::new(Pattern::compile(keyword.string()?, "")?))),
            "minItems" => Rule::Array(ArrayRule::MinItems(keyword.length()?)),
            "maxItems" => Rule::Array(ArrayRule::MaxItems(keyword.length()?)),
            "uniqueItems" if keyword.boolean()? => Rule::Array(ArrayRule::UniqueItems),
            "uniqueItems" => return Ok(()),
            "required" => Rule::Object(ObjectRule::Required(keyword.unique_strings()?)),
            "minProperties" => Rule::Object(ObjectRule::MinProperties(keyword.length()?)),
            "maxProperties" => Rule::Object(ObjectRule::MaxProperties(keyword.length()?)),
            "dependencies" => return self.dependencies(keyword),
            // Those that belong together are parsed together.
            "items" | "additionalItems" | "properties" | "patternProperties" | "additionalProperties" => return Ok(()),
            "title" | "description" => return keyword.string().map(drop),
            name if UNSUPPORTED.contains(&name) => return Err(keyword.failed("is not currently supported")),
            "encrypt" | "encryptMetadata" => {
                let text = format!("$jsonSchema keyword '{}' is not supported", keyword.name);
                return Err(Error::new(Code::NOT_IMPLEMENTED, text));
            }
            name => {
                let text = format!("Unknown $jsonSchema keyword: {name}");
                return Err(Error::new(Code::FAILED_TO_PARSE, text));
            }
        };
        self.rules.push(rule);
        Ok(())
    }

    fn sibling(&self, name: &'static str) -> Result<Option<Keyword<'s>>> {
        let operand = self.document.get(name).map_err(Error::malformed)?;
        Ok(operand.map(|operand| Keyword { name, operand }))
    }

    fn nested(&self, document: &RawDocument) -> Result<Schema> {
        schema(document, self.depth + 1)
    }

    /// Parses a schema, or a boolean for all or nothing.
    fn nested_or_boolean(&self, keyword: Keyword<'s>) -> Result<Schema> {
        match keyword.operand {
            RawBsonRef::Boolean(satisfied) => Ok(Schema::constant(satisfied)),
            RawBsonRef::Document(document) => self.nested(document),
            _ => Err(keyword.wrong_type("either an object or a boolean")),
        }
    }

    fn schemas(&self, keyword: Keyword<'s>) -> Result<Vec<Schema>> {
        let nested = |item: RawBsonRef<'s>| match item {
            RawBsonRef::Document(document) => self.nested(document),
            _ => Err(keyword.wrong_type("an array of objects")),
        };
        keyword.nonempty()?.into_iter().map(nested).collect()
    }

    fn types(&self, keyword: Keyword<'s>) -> Result<Rule> {
        if keyword.name == "type" && self.sibling("bsonType")?.is_some() {
            let text = "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'";
            return Err(Error::new(Code::FAILED_TO_PARSE, text));
        }
        let aliases = match keyword.operand {
            RawBsonRef::String(alias) => vec![alias.to_owned()],
            RawBsonRef::Array(_) => keyword.unique_strings()?,
            _ => return Err(keyword.wrong_type("either a string or an array of strings")),
        };
        let mut all: Option<TypeSet> = None;
        for alias in &aliases {
            let types = type_set(keyword.name, alias)?;
            all = Some(all.map_or(types, |all| all.union(types)));
        }
        all.map(Rule::Type)
            .ok_or_else(|| keyword.failed("must match at least one type"))
    }

    fn limit(&self, keyword: Keyword<'s>) -> Result<Rule> {
        let limit = keyword.number()?;
        let is_minimum = keyword.name == "minimum";
        let exclusive = self.sibling(if is_minimum {
            "exclusiveMinimum"
        } else {
            "exclusiveMaximum"
        })?;
        let exclusive = exclusive.map_or(Ok(false), |keyword| keyword.boolean())?;
        Ok(Rule::Numeric(match is_minimum {
            true => NumberRule::Minimum { limit, exclusive },
            false => NumberRule::Maximum { limit, exclusive },
        }))
    }

    fn check_exclusive(&self, keyword: Keyword<'s>) -> Result<()> {
        keyword.boolean()?;
        let limit = if keyword.name == "exclusiveMinimum" {
            "minimum"
        } else {
            "maximum"
        };
        match self.sibling(limit)? {
            Some(_) => Ok(()),
            None => {
                let text = format!(
                    "$jsonSchema keyword '{limit}' must be a present if {} is present",
                    keyword.name
                );
                Err(Error::new(Code::FAILED_TO_PARSE, text))
            }
        }
    }

    fn items(&mut self) -> Result<()> {
        let rest = match self.sibling("additionalItems")? {
            Some(keyword) => self.nested_or_boolean(keyword)?,
            None => Schema::default(),
        };
        let Some(keyword) = self.sibling("items")? else {
            return Ok(());
        };
        let (first, rest) = match keyword.operand {
            RawBsonRef::Document(document) => (Vec::new(), self.nested(document)?),
            RawBsonRef::Array(array) if array.is_empty() => (Vec::new(), rest),
            RawBsonRef::Array(_) => (self.schemas(keyword)?, rest),
            _ => return Err(keyword.wrong_type("either an array or an object")),
        };
        self.rules.push(Rule::Array(ArrayRule::Items { first, rest }));
        Ok(())
    }

    fn properties(&mut self) -> Result<()> {
        let mut named = Vec::new();
        for (name, nested) in self.nested_by_name("properties")? {
            named.push((name.to_owned(), nested));
        }
        named.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut patterns = Vec::new();
        for (pattern, nested) in self.nested_by_name("patternProperties")? {
            patterns.push((Pattern::compile(pattern, "")?, nested));
        }
        let rest = match self.sibling("additionalProperties")? {
            Some(keyword) => self.nested_or_boolean(keyword)?,
            None => Schema::default(),
        };
        let has_rules = !named.is_empty() || !patterns.is_empty() || !rest.rules.is_empty();
        let rule = Rule::Object(ObjectRule::Properties { named, patterns, rest });
        self.rules.extend(has_rules.then_some(rule));
        Ok(())
    }

    fn nested_by_name(&self, name: &'static str) -> Result<Vec<(&'s str, Schema)>> {
        let Some(keyword) = self.sibling(name)? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        for element in keyword.document()? {
            let (field, value) = element.map_err(Error::malformed)?;
            let Some(nested) = value.as_document() else {
                let text = format!("Nested schema for $jsonSchema property '{field}' must be an object");
                return Err(Error::new(Code::TYPE_MISMATCH, text));
            };
            found.push((field.as_str(), self.nested(nested)?));
        }
        Ok(found)
    }

    fn dependencies(&mut self, keyword: Keyword<'s>) -> Result<()> {
        for element in keyword.document()? {
            let (field, operand) = element.map_err(Error::malformed)?;
            let dependency = Keyword {
                name: keyword.name,
                operand,
            };
            let schema = match operand {
                RawBsonRef::Document(document) => self.nested(document)?,
                RawBsonRef::Array(_) => Schema {
                    rules: vec![Rule::Object(ObjectRule::Required(dependency.unique_strings()?))],
                },
                _ => return Err(keyword.wrong_type("an object whose fields are objects or arrays of strings")),
            };
            let field = field.as_str().to_owned();
            self.rules.push(Rule::Object(ObjectRule::Dependency { field, schema }));
        }
        Ok(())
    }
}

fn type_set(keyword: &str, alias: &str) -> Result<TypeSet> {
    let unknown = || Error::bad_value(format!("Unknown type name alias: {alias}"));
    if keyword == "bsonType" {
        return TypeSet::of_alias(alias).ok_or_else(unknown);
    }
    if alias == "integer" {
        let text = "$jsonSchema type 'integer' is not currently supported.";
        return Err(Error::new(Code::FAILED_TO_PARSE, text));
    }
    let known = JSON_TYPES.iter().find(|(json, _)| *json == alias);
    known
        .and_then(|(_, alias)| TypeSet::of_alias(alias))
        .ok_or_else(unknown)
}

fn enumeration(keyword: Keyword<'_>) -> Result<Rule> {
    let mut keys: Vec<_> = keyword.nonempty()?.into_iter().map(unordered::key).collect();
    keys.sort();
    match keys.windows(2).any(|pair| pair[0] == pair[1]) {
        true => Err(keyword.failed("array cannot contain duplicate values.")),
        false => Ok(Rule::Enumeration(keys)),
    }
}

fn multiple_of(keyword: Keyword<'_>) -> Result<Rule> {
    let divisor = keyword.number()?;
    let is_positive = divisor.is_finite() && divisor.compare(crate::value::number::Number::Int32(0)).is_gt();
    match is_positive {
        true => Ok(Rule::Numeric(NumberRule::MultipleOf(divisor))),
        false => Err(keyword.failed("must have a positive value")),
    }
}
