//! `$out` and `$merge`: where the caller writes the documents of a pipeline.

use std::collections::HashSet;
use std::sync::Arc;

use bson::raw::{RawArrayBuf, RawBson, RawBsonRef, RawDocument};

use super::namespace::Namespace;
use super::options::Options;
use super::parser::{Parsed, Parser};
use super::stages::nested;
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::expression::{Expression, Scope};
use crate::path::field::FieldPath;
use crate::value::{text, types};

/// The end of a pipeline that writes.
#[derive(Debug, Clone)]
pub enum Sink {
    /// `$out`
    Out(Out),
    /// `$merge`
    Merge(Arc<Merge>),
}

/// `$out`: the documents become the collection, in the place of all that was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Out {
    /// The collection.
    pub into: Namespace,
}

/// `$merge`: each document is merged into the collection.
#[derive(Debug)]
pub struct Merge {
    /// The collection.
    pub into: Namespace,
    /// The fields that find the document to merge with; together they need a unique index. `None` stands for `_id` and the shard key.
    pub on: Option<Vec<FieldPath>>,
    /// What happens to a document that is found.
    pub when_matched: WhenMatched,
    /// What happens without one.
    pub when_not_matched: WhenNotMatched,
    variables: Vec<(String, Expression)>,
}

/// `whenMatched`
#[derive(Debug, Clone, PartialEq)]
pub enum WhenMatched {
    /// The new document replaces the old one.
    Replace,
    /// The old document stays.
    KeepExisting,
    /// Fields of the new document are set in the old one.
    Merge,
    /// An error, `DuplicateKey`.
    Fail,
    /// An update with this pipeline, which sees [`Merge::variables`].
    Pipeline(RawArrayBuf),
}

/// `whenNotMatched`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenNotMatched {
    /// The new document is inserted.
    Insert,
    /// Nothing.
    Discard,
    /// An error, 13113.
    Fail,
}

/// Parses `$out`.
pub(super) fn parse_out(_: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    let into = match spec {
        RawBsonRef::String(collection) => Namespace::new(parser.namespace.database.clone(), collection),
        RawBsonRef::Document(_) => {
            let wrong = |_: &'static str| Error::new(16990, "$out only supports a string or object argument");
            let options = Options::parse("$out", spec, &["db", "coll", "timeseries"], wrong)?;
            if options.get("timeseries")?.is_some() {
                let text = "time-series collections are not implemented, so $out cannot write to one";
                return Err(Error::new(Code::NOT_IMPLEMENTED, text));
            }
            let text = |name: &str| {
                let value = options.required(name)?;
                value.as_str().ok_or_else(|| options.wrong_type(name, value, "string"))
            };
            Namespace::new(text("db")?, text("coll")?)
        }
        other => {
            let found = types::name(other);
            let text = format!("$out only supports a string or object argument, but found {found}");
            return Err(Error::new(16990, text));
        }
    };
    Ok(Parsed::Sink(Sink::Out(Out { into: into.checked()? })))
}

const MERGE_OPTIONS: &[&str] = &["into", "on", "let", "whenMatched", "whenNotMatched"];

/// Parses `$merge`.
pub(super) fn parse_merge(_: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    if let RawBsonRef::String(collection) = spec {
        let into = Namespace::new(parser.namespace.database.clone(), collection);
        return Ok(merge(Merge {
            into: into.checked()?,
            on: None,
            when_matched: WhenMatched::Merge,
            when_not_matched: WhenNotMatched::Insert,
            variables: Vec::new(),
        }));
    }
    let wrong = |found: &'static str| {
        let text = format!("$merge requires a string or object argument, but found {found}");
        Error::new(51182, text)
    };
    let options = Options::parse("$merge", spec, MERGE_OPTIONS, wrong)?;
    let when_matched = match options.get("whenMatched")? {
        Some(value) => parse_when_matched(&options, value)?,
        None => WhenMatched::Merge,
    };
    let when_not_matched = match options.string("whenNotMatched")? {
        None | Some("insert") => WhenNotMatched::Insert,
        Some("discard") => WhenNotMatched::Discard,
        Some("fail") => WhenNotMatched::Fail,
        Some(other) => return Err(not_a_value("whenNotMatched", other)),
    };
    check_modes(&when_matched, when_not_matched)?;
    Ok(merge(Merge {
        into: parse_into(options.required("into")?, parser)?.checked()?,
        on: options.get("on")?.map(parse_on).transpose()?,
        variables: parse_variables(&options, &when_matched, parser)?,
        when_matched,
        when_not_matched,
    }))
}

fn merge(merge: Merge) -> Parsed {
    Parsed::Sink(Sink::Merge(Arc::new(merge)))
}

fn parse_into(into: RawBsonRef<'_>, parser: &Parser) -> Result<Namespace> {
    let database = parser.namespace.database.clone();
    match into {
        RawBsonRef::String(collection) => Ok(Namespace::new(database, collection)),
        RawBsonRef::Document(_) => {
            let wrong = |_: &'static str| Error::new(51178, "$merge 'into' field must be either a string or an object");
            let options = Options::parse("$merge.into", into, &["db", "coll"], wrong)?;
            let collection = options.required("coll")?;
            let Some(collection) = collection.as_str() else {
                return Err(options.wrong_type("coll", collection, "string"));
            };
            let database = options.string("db")?.map_or(database, str::to_owned);
            Ok(Namespace::new(database, collection))
        }
        other => {
            let found = types::name(other);
            let text = format!("$merge 'into' field  must be either a string or an object, but found {found}");
            Err(Error::new(51178, text))
        }
    }
}

fn parse_on(on: RawBsonRef<'_>) -> Result<Vec<FieldPath>> {
    let mut paths = Vec::new();
    let mut texts = HashSet::new();
    match on {
        RawBsonRef::String(path) => paths.push(FieldPath::parse(path)?),
        RawBsonRef::Array(array) => {
            for element in array {
                let element = element?;
                let RawBsonRef::String(path) = element else {
                    let found = types::name(element);
                    let text = format!("$merge 'on' array elements must be strings, but found {found}");
                    return Err(Error::new(51134, text));
                };
                let path = FieldPath::parse(path)?;
                if !texts.insert(path.text()) {
                    let text = format!("Found a duplicate field '{}'", path.text());
                    return Err(Error::new(31465, text));
                }
                paths.push(path);
            }
        }
        other => {
            let found = types::name(other);
            let text = format!("$merge 'on' field  must be either a string or an array of strings, but found {found}");
            return Err(Error::new(51186, text));
        }
    }
    if paths.is_empty() {
        let text = "If explicitly specifying $merge 'on', must include at least one field";
        return Err(Error::new(51187, text));
    }
    Ok(paths)
}

fn parse_when_matched(options: &Options<'_>, value: RawBsonRef<'_>) -> Result<WhenMatched> {
    match value {
        RawBsonRef::String("replace") => Ok(WhenMatched::Replace),
        RawBsonRef::String("keepExisting") => Ok(WhenMatched::KeepExisting),
        RawBsonRef::String("merge") => Ok(WhenMatched::Merge),
        RawBsonRef::String("fail") => Ok(WhenMatched::Fail),
        RawBsonRef::String(other) => Err(not_a_value("whenMatched", other)),
        RawBsonRef::Array(pipeline) => Ok(WhenMatched::Pipeline(pipeline.to_owned())),
        other => Err(options.wrong_type("whenMatched", other, "string or array")),
    }
}

fn not_a_value(option: &str, value: &str) -> Error {
    Error::bad_value(format!(
        "Enumeration value '{value}' for field '$merge.{option}' is not a valid value."
    ))
}

fn check_modes(when_matched: &WhenMatched, when_not_matched: WhenNotMatched) -> Result<()> {
    let needs_insert = matches!(when_matched, WhenMatched::KeepExisting | WhenMatched::Fail);
    if !needs_insert || when_not_matched == WhenNotMatched::Insert {
        return Ok(());
    }
    let matched = if *when_matched == WhenMatched::Fail {
        "fail"
    } else {
        "keepExisting"
    };
    let not_matched = if when_not_matched == WhenNotMatched::Fail {
        "fail"
    } else {
        "discard"
    };
    let text = format!(
        "Combination of $merge modes 'whenMatched: {matched}' and 'whenNotMatched: {not_matched}' is not supported"
    );
    Err(Error::new(51181, text))
}

/// Parses `let`; without one, a pipeline sees the new document as `$$new`.
fn parse_variables(
    options: &Options<'_>,
    when_matched: &WhenMatched,
    parser: &mut Parser,
) -> Result<Vec<(String, Expression)>> {
    let has_pipeline = matches!(when_matched, WhenMatched::Pipeline(_));
    let Some(variables) = options.document("let")? else {
        let root = Expression::parse(RawBsonRef::String("$$ROOT"), &mut parser.scope)?;
        return Ok(if has_pipeline {
            vec![("new".to_owned(), root)]
        } else {
            Vec::new()
        });
    };
    if !has_pipeline {
        let text = "Cannot use 'let' variables with 'whenMatched' other than a pipeline";
        return Err(Error::new(51199, text));
    }
    let is_root = |new: RawBsonRef<'_>| new.as_str() == Some("$$ROOT");
    let new = variables.get("new")?;
    if new.is_some_and(|new| !is_root(new)) {
        let text = "'let' may not define a value for the reserved 'new' variable other than '$$ROOT'";
        return Err(Error::new(51273, text));
    }
    let mut parsed = nested::parse_variables(variables, &mut parser.scope)?;
    if new.is_none() {
        let root = Expression::parse(RawBsonRef::String("$$ROOT"), &mut parser.scope)?;
        parsed.push(("new".to_owned(), root));
    }
    Ok(parsed)
}

impl Merge {
    /// The names of the variables that the pipeline of [`WhenMatched::Pipeline`] may use, without `$$`.
    pub fn variable_names(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(|(name, _)| name.as_str())
    }

    /// Computes the variables for a document of the pipeline.
    ///
    /// # Errors
    /// Those of expressions.
    pub fn variables(&self, document: &RawDocument, context: &Context) -> Result<Vec<(String, RawBson)>> {
        let scope = Scope::new(context, document);
        let value = |(name, expression): &(String, Expression)| {
            let value = expression.evaluate(&scope)?.unwrap_or(RawBson::Undefined);
            Ok((name.clone(), value))
        };
        self.variables.iter().map(value).collect()
    }

    /// Returns the values of the fields of `on` in a document of the pipeline.
    ///
    /// # Errors
    /// 51132 if one is missing, null or an array.
    pub fn on_values<'d>(&self, document: &'d RawDocument, on: &[FieldPath]) -> Result<Vec<RawBsonRef<'d>>> {
        let value = |path: &FieldPath| match nested::get(document, path.names())? {
            None | Some(RawBsonRef::Null | RawBsonRef::Undefined | RawBsonRef::Array(_)) => {
                let shown = text::render(RawBsonRef::Document(document));
                let text = format!(
                    "$merge write error: 'on' field cannot be missing, null, undefined or an array; field '{}' of {shown}",
                    path.text()
                );
                Err(Error::new(51132, text))
            }
            Some(value) => Ok(value),
        };
        on.iter().map(value).collect()
    }
}
