//! `$unwind`

use std::collections::VecDeque;
use std::sync::Arc;

use bson::raw::{RawBson, RawBsonRef, RawDocument};

use super::nested;
use crate::aggregation::document::Document;
use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::{BoxSource, Source};
use crate::aggregation::stage::{Run, Stage};
use crate::error::{Error, Result};
use crate::path::field::FieldPath;
use crate::projection::check_depth;
use crate::value::types;

#[derive(Debug)]
struct Unwind {
    path: FieldPath,
    index: Option<FieldPath>,
    keeps_empty: bool,
}

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, _: &mut Parser) -> Result<Parsed> {
    let (path, index, keeps_empty) = match spec {
        RawBsonRef::String(path) => (path, None, false),
        RawBsonRef::Document(options) => parse_options(options)?,
        other => {
            let found = types::name(other);
            let text = format!("expected either a string or an object as specification for $unwind stage, got {found}");
            return Err(Error::new(15981, text));
        }
    };
    if path.is_empty() {
        return Err(Error::new(28812, "no path specified to $unwind stage"));
    }
    let Some(path) = path.strip_prefix('$') else {
        let text = format!("path option to $unwind stage should be prefixed with a '$': {path}");
        return Err(Error::new(28818, text));
    };
    Ok(Parsed::stage(Unwind {
        path: FieldPath::parse(path)?,
        index: index.map(FieldPath::parse).transpose()?,
        keeps_empty,
    }))
}

fn parse_options(options: &RawDocument) -> Result<(&str, Option<&str>, bool)> {
    let (mut path, mut index, mut keeps_empty) = ("", None, false);
    for option in options {
        let (name, value) = option?;
        let wrong = |code, expected: &str| {
            let found = types::name(value);
            Err(Error::new(
                code,
                format!("expected {expected} to $unwind stage, got {found}"),
            ))
        };
        match (name.as_str(), value) {
            ("path", RawBsonRef::String(text)) => path = text,
            ("path", other) => {
                let found = types::name(other);
                let text = format!("expected a string as the path for $unwind stage, got {found}");
                return Err(Error::new(28808, text));
            }
            ("preserveNullAndEmptyArrays", RawBsonRef::Boolean(keeps)) => keeps_empty = keeps,
            ("preserveNullAndEmptyArrays", _) => {
                return wrong(28809, "a boolean for the preserveNullAndEmptyArrays option");
            }
            ("includeArrayIndex", RawBsonRef::String(text)) if text.starts_with('$') => {
                let text =
                    format!("includeArrayIndex option to $unwind stage should not be prefixed with a '$': {text}");
                return Err(Error::new(28822, text));
            }
            ("includeArrayIndex", RawBsonRef::String(text)) if !text.is_empty() => index = Some(text),
            ("includeArrayIndex", _) => {
                return wrong(28810, "a non-empty string for the includeArrayIndex option");
            }
            (other, _) => {
                return Err(Error::new(
                    28811,
                    format!("unrecognized option to $unwind stage: {other}"),
                ));
            }
        }
    }
    Ok((path, index, keeps_empty))
}

impl Stage for Unwind {
    fn open(self: Arc<Self>, input: BoxSource, _: &Arc<Run>) -> Result<BoxSource> {
        Ok(Box::new(Unwound {
            stage: self,
            input,
            document: None,
            elements: VecDeque::new(),
            index: 0,
        }))
    }
}

struct Unwound {
    stage: Arc<Unwind>,
    input: BoxSource,
    /// The document whose elements are given, without its array.
    document: Option<Document>,
    elements: VecDeque<RawBson>,
    index: i64,
}

impl Source for Unwound {
    fn next(&mut self) -> Result<Option<Document>> {
        loop {
            if let (Some(element), Some(document)) = (self.elements.pop_front(), &self.document) {
                let index = self.index;
                self.index += 1;
                let unwound = self
                    .stage
                    .unwound(document, Some(element.as_raw_bson_ref()), Some(index))?;
                return Ok(Some(unwound));
            }
            let Some(document) = self.input.next()? else {
                self.document = None;
                return Ok(None);
            };
            if let Some(unwound) = self.start(document)? {
                return Ok(Some(unwound));
            }
        }
    }
}

impl Unwound {
    /// Begins with a document; returns it if it has no array to unwind.
    fn start(&mut self, document: Document) -> Result<Option<Document>> {
        let stage = &self.stage;
        let value = nested::get(&document.bytes, stage.path.names())?;
        match value {
            Some(RawBsonRef::Array(array)) => {
                let mut elements = VecDeque::new();
                for element in array {
                    elements.push_back(RawBson::from(element?));
                }
                if elements.is_empty() {
                    return match stage.keeps_empty {
                        true => stage.unwound(&document, None, None).map(Some),
                        false => Ok(None),
                    };
                }
                // Each element becomes a document: without the array in it, that is not a copy of the array each time.
                let rest = nested::set(&document.bytes, stage.path.names(), Some(RawBsonRef::Null))?;
                self.elements = elements;
                self.index = 0;
                self.document = Some(document.with_bytes(rest));
                Ok(None)
            }
            None | Some(RawBsonRef::Null | RawBsonRef::Undefined) => match (stage.keeps_empty, &stage.index) {
                (false, _) => Ok(None),
                (true, None) => Ok(Some(document)),
                (true, Some(_)) => stage.with_index(document, None).map(Some),
            },
            Some(_) => stage.with_index(document, None).map(Some),
        }
    }
}

impl Unwind {
    /// Returns the document with an element in the place of the array.
    fn unwound(&self, document: &Document, element: Option<RawBsonRef<'_>>, index: Option<i64>) -> Result<Document> {
        let bytes = nested::set(&document.bytes, self.path.names(), element)?;
        self.with_index(document.successor(bytes), index)
    }

    fn with_index(&self, document: Document, index: Option<i64>) -> Result<Document> {
        let Some(path) = &self.index else {
            return Ok(document);
        };
        let index = index.map_or(RawBsonRef::Null, RawBsonRef::Int64);
        let bytes = nested::set(&document.bytes, path.names(), Some(index))?;
        check_depth(&bytes)?;
        Ok(document.with_bytes(bytes))
    }
}
