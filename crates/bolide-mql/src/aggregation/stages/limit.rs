//! `$limit` and `$skip`

use std::sync::Arc;

use bson::raw::RawBsonRef;

use crate::aggregation::document::Document;
use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::{BoxSource, Source};
use crate::aggregation::stage::{Run, Stage};
use crate::error::{Error, Result};
use crate::value::number::{Number, whole};
use crate::value::text;

#[derive(Debug)]
struct Limit {
    count: u64,
}

#[derive(Debug)]
struct Skip {
    count: u64,
}

/// Parses `$limit`.
pub(in crate::aggregation) fn parse_limit(name: &'static str, spec: RawBsonRef<'_>, _: &mut Parser) -> Result<Parsed> {
    let count = count(name, spec, 5107201)?;
    if count == 0 {
        return Err(Error::new(15958, "the limit must be positive"));
    }
    Ok(Parsed::stage(Limit { count }))
}

/// Parses `$skip`.
pub(in crate::aggregation) fn parse_skip(name: &'static str, spec: RawBsonRef<'_>, _: &mut Parser) -> Result<Parsed> {
    let count = count(name, spec, 5107200)?;
    Ok(Parsed::stage(Skip { count }))
}

fn count(name: &str, spec: RawBsonRef<'_>, code: i32) -> Result<u64> {
    let shown = || text::render(spec);
    let wrong = |expected: &str, shown: String| {
        let text = format!("invalid argument to {name} stage: Expected {expected} in: {name}: {shown}");
        Error::new(code, text)
    };
    match whole(spec) {
        Some(count) => u64::try_from(count).map_err(|_| wrong("a non-negative number", shown())),
        None if Number::of(spec).is_some() => Err(wrong("an integer", shown())),
        None => Err(wrong("a number", shown())),
    }
}

impl Stage for Limit {
    fn open(self: Arc<Self>, input: BoxSource, _: &Arc<Run>) -> Result<BoxSource> {
        Ok(Box::new(Limited {
            input,
            left: self.count,
        }))
    }

    fn limit(&self) -> Option<u64> {
        Some(self.count)
    }
}

impl Stage for Skip {
    fn open(self: Arc<Self>, input: BoxSource, _: &Arc<Run>) -> Result<BoxSource> {
        Ok(Box::new(Skipped {
            input,
            left: self.count,
        }))
    }

    fn skip(&self) -> Option<u64> {
        Some(self.count)
    }
}

struct Limited {
    input: BoxSource,
    left: u64,
}

impl Source for Limited {
    fn next(&mut self) -> Result<Option<Document>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.input.next()
    }
}

struct Skipped {
    input: BoxSource,
    left: u64,
}

impl Source for Skipped {
    fn next(&mut self) -> Result<Option<Document>> {
        while self.left > 0 {
            self.left -= 1;
            if self.input.next()?.is_none() {
                return Ok(None);
            }
        }
        self.input.next()
    }
}
