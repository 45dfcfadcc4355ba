//! `$count` and `$sortByCount`

use std::sync::Arc;

use bson::raw::{CString, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, cstr};

use super::group::Group;
use super::sort::SortStage;
use crate::aggregation::accumulator::Accumulator;
use crate::aggregation::document::Document;
use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::BoxSource;
use crate::aggregation::stage::{Blocking, Output, Run, Stage};
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::path::field::parse_name;
use crate::sort::Sort;

#[derive(Debug)]
struct Count {
    field: CString,
}

/// Parses `$count`.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, _: &mut Parser) -> Result<Parsed> {
    let RawBsonRef::String(field) = spec else {
        return Err(Error::new(40156, "the count field must be a non-empty string"));
    };
    if field.is_empty() {
        return Err(Error::new(40157, "the count field must be a non-empty string"));
    }
    if field.starts_with('$') {
        return Err(Error::new(40158, "the count field cannot be a $-prefixed path"));
    }
    if field.contains('\0') {
        return Err(Error::new(40159, "the count field cannot contain a null byte"));
    }
    if field.contains('.') {
        return Err(Error::new(40160, "the count field cannot contain '.'"));
    }
    if field == "_id" {
        return Err(Error::new(9039800, "the count field cannot be '_id'"));
    }
    Ok(Parsed::stage(Count {
        field: parse_name(field)?,
    }))
}

impl Stage for Count {
    fn open(self: Arc<Self>, mut input: BoxSource, _: &Arc<Run>) -> Result<BoxSource> {
        Ok(Blocking::source(move || {
            let mut count = 0i64;
            while input.next()?.is_some() {
                count += 1;
            }
            let mut result = RawDocumentBuf::new();
            result.append(&self.field, integer(count));
            let output: Output = Box::new((count > 0).then(|| Document::new(result)).into_iter());
            Ok(output)
        }))
    }
}

/// Returns a count as the smallest type that holds it.
pub(in crate::aggregation) fn integer(count: i64) -> RawBson {
    i32::try_from(count).map_or(RawBson::Int64(count), RawBson::Int32)
}

/// Parses `$sortByCount`.
pub(in crate::aggregation) fn parse_sort_by_count(
    _: &'static str,
    spec: RawBsonRef<'_>,
    parser: &mut Parser,
) -> Result<Parsed> {
    match spec {
        RawBsonRef::String(path) if path.starts_with('$') => {}
        RawBsonRef::String(_) => {
            let text = "the sortByCount field must be defined as a $-prefixed path or an expression inside an object";
            return Err(Error::new(40148, text));
        }
        RawBsonRef::Document(object) if is_operator(object)? => {}
        RawBsonRef::Document(_) => {
            let text = "the sortByCount field must be defined as a $-prefixed path or an expression inside an object";
            return Err(Error::new(40147, text));
        }
        _ => {
            let text = "the sortByCount field must be specified as a string or as an object";
            return Err(Error::new(40149, text));
        }
    }
    let id = Expression::parse(spec, &mut parser.scope)?;
    let field = CString::from(cstr!("count"));
    let group = Group::new(id, vec![(field, Accumulator::count())]);
    let mut order = RawDocumentBuf::new();
    order.append(cstr!("count"), -1i32);
    let sort = SortStage {
        sort: Sort::parse(&order)?,
        limit: None,
    };
    Ok(Parsed::Stages(vec![Arc::new(group), Arc::new(sort)]))
}

fn is_operator(object: &RawDocument) -> Result<bool> {
    let first = object.iter().next().transpose()?;
    Ok(first.is_some_and(|(name, _)| name.as_str().starts_with('$')))
}
