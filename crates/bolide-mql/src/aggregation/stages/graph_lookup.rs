//! `$graphLookup`

use std::collections::HashSet;
use std::sync::Arc;

use bson::raw::{RawArrayBuf, RawBson, RawBsonRef, RawDocument};

use super::foreign::{Foreign, join_values};
use super::matching::parse_filter;
use super::nested;
use crate::aggregation::document::Document;
use crate::aggregation::namespace::Namespace;
use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::{BoxSource, Source};
use crate::aggregation::stage::{Run, Stage};
use crate::context::memory::StageMemory;
use crate::error::{Code, Error, Result};
use crate::expression::Expression;
use crate::filter::Filter;
use crate::path::field::FieldPath;
use crate::projection::check_depth;
use crate::value::number::Number;
use crate::value::{key, text, types};

#[derive(Debug)]
struct GraphLookup {
    from: Namespace,
    into: FieldPath,
    connect_from: FieldPath,
    connect_to: FieldPath,
    start_with: Expression,
    max_depth: Option<i64>,
    depth_field: Option<FieldPath>,
    restriction: Option<Filter>,
}

/// The options, as they are found.
#[derive(Default)]
struct Found {
    from: Option<Namespace>,
    into: Option<FieldPath>,
    connect_from: Option<FieldPath>,
    connect_to: Option<FieldPath>,
    start_with: Option<Expression>,
    max_depth: Option<i64>,
    depth_field: Option<FieldPath>,
    restriction: Option<Filter>,
}

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    let RawBsonRef::Document(options) = spec else {
        let found = types::name(spec);
        let text = format!("the $graphLookup stage specification must be an object, but found {found}");
        return Err(Error::new(Code::FAILED_TO_PARSE, text));
    };
    let mut found = Found::default();
    for option in options {
        let (name, value) = option?;
        found.option(name.as_str(), value, parser)?;
    }
    let missing = || {
        let text = "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified.";
        Error::new(40105, text)
    };
    Ok(Parsed::stage(GraphLookup {
        from: found.from.ok_or_else(missing)?,
        into: found.into.ok_or_else(missing)?,
        connect_from: found.connect_from.ok_or_else(missing)?,
        connect_to: found.connect_to.ok_or_else(missing)?,
        start_with: found.start_with.ok_or_else(missing)?,
        max_depth: found.max_depth,
        depth_field: found.depth_field,
        restriction: found.restriction,
    }))
}

impl Found {
    fn option(&mut self, name: &str, value: RawBsonRef<'_>, parser: &mut Parser) -> Result<()> {
        let string = || {
            value.as_str().ok_or_else(|| {
                let found = types::name(value);
                Error::new(40103, format!("expected string as argument for {name}, found: {found}"))
            })
        };
        match name {
            "startWith" => self.start_with = Some(Expression::parse(value, &mut parser.scope)?),
            "maxDepth" => self.max_depth = Some(parse_max_depth(value)?),
            "restrictSearchWithMatch" => {
                let RawBsonRef::Document(filter) = value else {
                    let found = types::name(value);
                    let text = format!("restrictSearchWithMatch must be an object, found {found}");
                    return Err(Error::new(40185, text));
                };
                self.restriction = Some(parse_filter(filter, &parser.scope)?);
            }
            "from" => {
                let database = parser.namespace.database.clone();
                self.from = Some(Namespace::new(database, string()?).checked()?);
            }
            "as" => self.into = Some(FieldPath::parse(string()?)?),
            "connectFromField" => self.connect_from = Some(FieldPath::parse(string()?)?),
            "connectToField" => self.connect_to = Some(FieldPath::parse(string()?)?),
            "depthField" => self.depth_field = Some(FieldPath::parse(string()?)?),
            _ => return Err(Error::new(40104, format!("Unknown argument to $graphLookup: {name}"))),
        }
        Ok(())
    }
}

fn parse_max_depth(value: RawBsonRef<'_>) -> Result<i64> {
    let Some(number) = Number::of(value) else {
        let found = types::name(value);
        let text = format!("maxDepth must be numeric, found type: {found}");
        return Err(Error::new(40100, text));
    };
    let shown = || text::render(value);
    match number.whole() {
        Some(depth) if depth >= 0 => Ok(depth),
        Some(_) => Err(Error::new(
            40101,
            format!("maxDepth requires a nonnegative argument, found: {}", shown()),
        )),
        None => Err(Error::new(
            40102,
            format!("maxDepth could not be represented as a long long: {}", shown()),
        )),
    }
}

impl Stage for GraphLookup {
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        let foreign = Foreign::new(run, self.from.clone(), Some(self.connect_to.clone()));
        Ok(Box::new(Search {
            stage: self,
            input,
            run: Arc::clone(run),
            foreign,
        }))
    }

    fn namespaces(&self, read: &mut Vec<Namespace>) {
        read.push(self.from.clone());
    }
}

struct Search {
    stage: Arc<GraphLookup>,
    input: BoxSource,
    run: Arc<Run>,
    foreign: Foreign,
}

impl Source for Search {
    fn next(&mut self) -> Result<Option<Document>> {
        let Some(document) = self.input.next()? else {
            return Ok(None);
        };
        let found = RawBson::Array(self.search(&document)?);
        let joined = nested::set(&document.bytes, self.stage.into.names(), Some(found.as_raw_bson_ref()))?;
        check_depth(&joined)?;
        Ok(Some(document.with_bytes(joined)))
    }
}

impl Search {
    /// Searches breadth first; a document is found once.
    fn search(&mut self, document: &Document) -> Result<RawArrayBuf> {
        let stage = Arc::clone(&self.stage);
        let mut memory = StageMemory::new("$graphLookup");
        let mut results = RawArrayBuf::new();
        let mut visited: HashSet<Vec<u8>> = HashSet::new();
        let mut asked: HashSet<Vec<u8>> = HashSet::new();
        let start = stage.start_with.evaluate(&document.scope(&self.run.context))?;
        let mut frontier = new_values(start_values(start)?, &mut asked, &self.run);
        let mut depth = 0i64;
        while !frontier.is_empty() && stage.max_depth.is_none_or(|max_depth| depth <= max_depth) {
            let mut next = Vec::new();
            let mut found = self.foreign.matching(&frontier)?;
            while let Some(found) = found.next()? {
                self.run.context.interrupt.check(1)?;
                if let Some(restriction) = &stage.restriction
                    && !restriction.matches(&found.bytes, &self.run.context)?
                {
                    continue;
                }
                let id = stage.id_key(&found.bytes)?;
                memory.add(id.len())?;
                if !visited.insert(id) {
                    continue;
                }
                next.extend(join_values(&found.bytes, stage.connect_from.names())?);
                let result = match &stage.depth_field {
                    Some(field) => nested::set(&found.bytes, field.names(), Some(RawBsonRef::Int64(depth)))?,
                    None => found.bytes,
                };
                memory.add(result.as_bytes().len())?;
                results.push(RawBson::Document(result));
            }
            frontier = new_values(next, &mut asked, &self.run);
            depth += 1;
        }
        Ok(results)
    }
}

impl GraphLookup {
    fn id_key(&self, document: &RawDocument) -> Result<Vec<u8>> {
        let id = document.get("_id")?.ok_or_else(|| {
            let text = format!(
                "Documents in the '{}' namespace must contain an _id for de-duplication in $graphLookup",
                self.from
            );
            Error::new(40271, text)
        })?;
        Ok(key::of(id, None))
    }
}

/// The values of `startWith`: those of an array each.
fn start_values(start: Option<RawBson>) -> Result<Vec<RawBson>> {
    match start {
        None => Ok(Vec::new()),
        Some(RawBson::Array(array)) => {
            let mut values = Vec::new();
            for element in &array {
                values.push(RawBson::from(element?));
            }
            Ok(values)
        }
        Some(value) => Ok(vec![value]),
    }
}

/// Returns the values that have not been searched for yet.
fn new_values(values: Vec<RawBson>, asked: &mut HashSet<Vec<u8>>, run: &Run) -> Vec<RawBson> {
    let is_new = |value: &RawBson| asked.insert(key::of(value.as_raw_bson_ref(), run.collation()));
    values.into_iter().filter(is_new).collect()
}
