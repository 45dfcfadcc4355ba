//! `$bucket`

use std::cmp::Ordering;
use std::sync::Arc;

use bolide_model::UnixMillis;
use bson::raw::{CString, RawArray, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, cstr};

use super::group::{Groups, parse_field};
use crate::aggregation::accumulator::Accumulator;
use crate::aggregation::document::Document;
use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::BoxSource;
use crate::aggregation::stage::{Blocking, Output, Run, Stage};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::{Expression, ParseScope, Scope};
use crate::sort::Sort;
use crate::value::order::type_rank;
use crate::value::{compare_with, key, text, types};

#[derive(Debug)]
struct Bucket {
    group_by: Expression,
    boundaries: Vec<RawBson>,
    default: Option<RawBson>,
    fields: Vec<(CString, Accumulator)>,
    /// The order of the result, by `_id`.
    order: Sort,
}

const OPTIONS: &[&str] = &["groupBy", "boundaries", "default", "output"];

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    let RawBsonRef::Document(options) = spec else {
        let found = types::name(spec);
        let text = format!("Argument to $bucket stage must be an object, but found type: {found}.");
        return Err(Error::new(40201, text));
    };
    for option in options {
        let (name, _) = option?;
        if !OPTIONS.contains(&name.as_str()) {
            return Err(Error::new(40197, format!("Unrecognized option to $bucket: {name}.")));
        }
    }
    let (Some(group_by), Some(boundaries)) = (options.get("groupBy")?, options.get("boundaries")?) else {
        let text = "$bucket requires 'groupBy' and 'boundaries' to be specified.";
        return Err(Error::new(40198, text));
    };
    let scope = &mut parser.scope;
    let RawBsonRef::Array(boundaries) = boundaries else {
        let found = types::name(boundaries);
        let text = format!("The $bucket 'boundaries' field must be an array, but found type: {found}.");
        return Err(Error::new(40200, text));
    };
    let boundaries = parse_boundaries(boundaries, scope)?;
    let default = match options.get("default")? {
        Some(default) => Some(constant(default, scope)?.ok_or_else(|| {
            let shown = text::render(default);
            let text = format!("The $bucket 'default' field must be a constant expression, but found: {shown}.");
            Error::new(40195, text)
        })?),
        None => None,
    };
    check_default(default.as_ref(), &boundaries)?;
    let mut order = RawDocumentBuf::new();
    order.append(cstr!("_id"), 1i32);
    Ok(Parsed::stage(Bucket {
        group_by: parse_group_by("$bucket", 40202, group_by, scope)?,
        boundaries,
        default,
        fields: parse_output("$bucket", 40196, options, scope)?,
        order: Sort::parse(&order)?,
    }))
}

/// Parses `groupBy`: a path with `$`, or an expression in an object.
pub(super) fn parse_group_by(
    stage: &str,
    code: i32,
    group_by: RawBsonRef<'_>,
    scope: &mut ParseScope,
) -> Result<Expression> {
    match group_by {
        RawBsonRef::String(path) if path.starts_with('$') => Expression::parse(group_by, scope),
        RawBsonRef::Document(_) => Expression::parse(group_by, scope),
        other => {
            let shown = text::render(other);
            let text = format!(
                "The {stage} 'groupBy' field must be defined as a $-prefixed path or an expression, but found: {shown}."
            );
            Err(Error::new(code, text))
        }
    }
}

/// Parses `output`; without one, documents are counted.
pub(super) fn parse_output(
    stage: &str,
    code: i32,
    options: &RawDocument,
    scope: &mut ParseScope,
) -> Result<Vec<(CString, Accumulator)>> {
    let output = match options.get("output")? {
        None => return Ok(vec![(CString::from(cstr!("count")), Accumulator::count())]),
        Some(RawBsonRef::Document(output)) => output,
        Some(other) => {
            let found = types::name(other);
            let text = format!("The {stage} 'output' field must be an object, but found type: {found}.");
            return Err(Error::new(code, text));
        }
    };
    let mut fields = Vec::new();
    for field in output {
        let (name, value) = field?;
        fields.push(parse_field(name.as_str(), value, scope)?);
    }
    Ok(fields)
}

/// Returns the value of a constant expression; `None` if it depends on the document.
fn constant(value: RawBsonRef<'_>, scope: &mut ParseScope) -> Result<Option<RawBson>> {
    let expression = Expression::parse(value, scope)?;
    if !expression.is_constant() {
        return Ok(None);
    }
    let (nothing, context) = (RawDocumentBuf::new(), Context::new(UnixMillis(0)));
    let value = expression.evaluate(&Scope::new(&context, &nothing))?;
    Ok(Some(value.unwrap_or(RawBson::Null)))
}

fn parse_boundaries(array: &RawArray, scope: &mut ParseScope) -> Result<Vec<RawBson>> {
    let mut boundaries: Vec<RawBson> = Vec::new();
    for element in array {
        let element = element?;
        let boundary = constant(element, scope)?.ok_or_else(|| {
            let shown = text::render(element);
            let text = format!(
                "The $bucket 'boundaries' field must be an array of constant values, but found value: {shown}."
            );
            Error::new(40191, text)
        })?;
        boundaries.push(boundary);
    }
    if boundaries.len() < 2 {
        let count = boundaries.len();
        let text = format!("The $bucket 'boundaries' field must have at least 2 values, but found {count} value(s).");
        return Err(Error::new(40192, text));
    }
    for (index, (low, high)) in boundaries.iter().zip(boundaries.iter().skip(1)).enumerate() {
        check_order(index, low.as_raw_bson_ref(), high.as_raw_bson_ref())?;
    }
    Ok(boundaries)
}

fn check_order(index: usize, low: RawBsonRef<'_>, high: RawBsonRef<'_>) -> Result<()> {
    if type_rank(low) != type_rank(high) {
        let (low, high) = (types::name(low), types::name(high));
        let text = format!(
            "All values in the the 'boundaries' option to $bucket must have the same type. Found conflicting types {low} and {high}."
        );
        return Err(Error::new(40193, text));
    }
    if compare_with(low, high, None) == Ordering::Less {
        return Ok(());
    }
    let (next, low, high) = (index + 1, text::render(low), text::render(high));
    let text = format!(
        "The 'boundaries' option to $bucket must be sorted, but elements {index} and {next} are not in ascending order ({low} is not less \
         than {high})."
    );
    Err(Error::new(40194, text))
}

fn check_default(default: Option<&RawBson>, boundaries: &[RawBson]) -> Result<()> {
    let (Some(default), Some(first), Some(last)) = (default, boundaries.first(), boundaries.last()) else {
        return Ok(());
    };
    let default = default.as_raw_bson_ref();
    let is_inside = type_rank(default) == type_rank(first.as_raw_bson_ref())
        && compare_with(default, first.as_raw_bson_ref(), None).is_ge()
        && compare_with(default, last.as_raw_bson_ref(), None).is_lt();
    if is_inside {
        let text = "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the highest boundary.";
        return Err(Error::new(40199, text));
    }
    Ok(())
}

impl Stage for Bucket {
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        let run = Arc::clone(run);
        Ok(Blocking::source(move || self.collect(input, &run)))
    }
}

impl Bucket {
    fn collect(&self, mut input: BoxSource, run: &Run) -> Result<Output> {
        let mut groups = Groups::new("$bucket");
        while let Some(document) = input.next()? {
            let value = self
                .group_by
                .evaluate(&document.scope(&run.context))?
                .unwrap_or(RawBson::Null);
            let id = self.bucket(value.as_raw_bson_ref(), run)?;
            let key = key::of(id.as_raw_bson_ref(), run.collation());
            groups.add(key, id.clone(), &self.fields, &document, run)?;
        }
        let mut sorted = Vec::new();
        for document in groups.finish(&self.fields)? {
            sorted.push((self.order.key(&document.bytes, run.collation())?, document));
        }
        sorted.sort_by(|a: &(Vec<u8>, Document), b| a.0.cmp(&b.0));
        Ok(Box::new(sorted.into_iter().map(|(_, document)| document)))
    }

    /// Returns the lower boundary of the bucket that holds the value, or the default.
    fn bucket(&self, value: RawBsonRef<'_>, run: &Run) -> Result<&RawBson> {
        let is_at_or_below =
            |boundary: &RawBson| compare_with(boundary.as_raw_bson_ref(), value, run.collation()) != Ordering::Greater;
        let above = self.boundaries.partition_point(is_at_or_below);
        let bucket = match above {
            0 => None,
            _ if above == self.boundaries.len() => None,
            _ => self.boundaries.get(above - 1),
        };
        bucket.or(self.default.as_ref()).ok_or_else(|| {
            let text = "$switch could not find a matching branch for an input, and no default was specified.";
            Error::new(40066, text)
        })
    }
}
