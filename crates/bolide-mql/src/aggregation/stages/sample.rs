//! `$sample`

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use bson::raw::RawBsonRef;

use crate::aggregation::document::Document;
use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::BoxSource;
use crate::aggregation::stage::{Blocking, Output, Run, Stage};
use crate::context::memory::StageMemory;
use crate::error::{Error, Result};
use crate::value::number::Number;

#[derive(Debug)]
struct Sample {
    size: usize,
}

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, _: &mut Parser) -> Result<Parsed> {
    let RawBsonRef::Document(spec) = spec else {
        return Err(Error::new(28745, "the $sample stage specification must be an object"));
    };
    let mut size = None;
    for element in spec {
        let (name, value) = element?;
        if name.as_str() != "size" {
            return Err(Error::new(28748, format!("unrecognized option to $sample: {name}")));
        }
        let Some(number) = Number::of(value) else {
            return Err(Error::new(28746, "size argument to $sample must be a number"));
        };
        let count = number.truncated().and_then(|count| usize::try_from(count).ok());
        match count {
            Some(count) if count > 0 => size = Some(count),
            _ => return Err(Error::new(28747, "size argument to $sample must be a positive integer")),
        }
    }
    let size = size.ok_or_else(|| Error::new(28749, "$sample stage must specify a size"))?;
    Ok(Parsed::stage(Sample { size }))
}

impl Stage for Sample {
    fn open(self: Arc<Self>, input: BoxSource, _: &Arc<Run>) -> Result<BoxSource> {
        Ok(Blocking::source(move || choose(input, self.size)))
    }
}

/// Keeps `size` documents, each set of that size with the same probability, in random order.
fn choose(mut input: BoxSource, size: usize) -> Result<Output> {
    // Its keys are random.
    let mut random = fastrand::Rng::with_seed(RandomState::new().hash_one(size));
    let mut memory = StageMemory::new("$sample");
    let mut chosen: Vec<Document> = Vec::new();
    let mut seen = 0usize;
    while let Some(document) = input.next()? {
        seen += 1;
        if chosen.len() < size {
            memory.add(document.memory())?;
            chosen.push(document);
        } else if let Some(replaced) = chosen.get_mut(random.usize(0..seen)) {
            memory.release(replaced.memory());
            memory.add(document.memory())?;
            *replaced = document;
        }
    }
    random.shuffle(&mut chosen);
    Ok(Box::new(chosen.into_iter()))
}
