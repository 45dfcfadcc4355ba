//! `$bucketAuto`

use std::sync::Arc;

use bson::raw::{CString, RawBson, RawBsonRef, RawDocument, RawDocumentBuf, cstr};

use super::bucket::{parse_group_by, parse_output};
use super::granularity::Granularity;
use crate::aggregation::accumulator::{Accumulator, State};
use crate::aggregation::document::Document;
use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::BoxSource;
use crate::aggregation::stage::{Blocking, Output, Run, Stage};
use crate::context::memory::StageMemory;
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::projection::check_depth;
use crate::sort::Sorter;
use crate::value::number::Number;
use crate::value::{compare_with, key, text, types};

#[derive(Debug)]
struct BucketAuto {
    group_by: Expression,
    buckets: usize,
    granularity: Option<Granularity>,
    fields: Vec<(CString, Accumulator)>,
}

const OPTIONS: &[&str] = &["groupBy", "buckets", "output", "granularity"];

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    let RawBsonRef::Document(options) = spec else {
        let found = types::name(spec);
        let text = format!("The argument to $bucketAuto must be an object, but found type: {found}");
        return Err(Error::new(40240, text));
    };
    for option in options {
        let (name, _) = option?;
        if !OPTIONS.contains(&name.as_str()) {
            return Err(Error::new(40245, format!("Unrecognized option to $bucketAuto: {name}")));
        }
    }
    let (Some(group_by), Some(buckets)) = (options.get("groupBy")?, options.get("buckets")?) else {
        let text = "$bucketAuto requires 'groupBy' and 'buckets' to be specified";
        return Err(Error::new(40246, text));
    };
    Ok(Parsed::stage(BucketAuto {
        group_by: parse_group_by("$bucketAuto", 40239, group_by, &mut parser.scope)?,
        buckets: parse_buckets(buckets)?,
        granularity: parse_granularity(options)?,
        fields: parse_output("$bucketAuto", 40244, options, &mut parser.scope)?,
    }))
}

fn parse_buckets(buckets: RawBsonRef<'_>) -> Result<usize> {
    let Some(number) = Number::of(buckets) else {
        let found = types::name(buckets);
        let text = format!("The $bucketAuto 'buckets' field must be a numeric value, but found type: {found}");
        return Err(Error::new(40241, text));
    };
    let shown = text::render(buckets);
    let Some(count) = number.whole().and_then(|count| i32::try_from(count).ok()) else {
        let text =
            format!("The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found {shown}");
        return Err(Error::new(40242, text));
    };
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => {
            let text = format!("The $bucketAuto 'buckets' field must be greater than 0, but found: {shown}");
            Err(Error::new(40243, text))
        }
    }
}

fn parse_granularity(options: &RawDocument) -> Result<Option<Granularity>> {
    match options.get("granularity")? {
        None => Ok(None),
        Some(RawBsonRef::String(name)) => Granularity::parse(name).map(Some),
        Some(other) => {
            let found = types::name(other);
            let text = format!("The $bucketAuto 'granularity' field must be a string, but found type: {found}");
            Err(Error::new(40261, text))
        }
    }
}

impl Stage for BucketAuto {
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        let run = Arc::clone(run);
        Ok(Blocking::source(move || self.collect(input, &run)))
    }
}

/// A value to group by, and its document.
type Entry = (RawBson, Document);

/// A bucket while it is filled.
struct Filling {
    low: RawBson,
    high: RawBson,
    count: usize,
    states: Vec<State>,
}

impl BucketAuto {
    fn collect(&self, mut input: BoxSource, run: &Run) -> Result<Output> {
        let mut sorter = Sorter::new(None, StageMemory::new("$bucketAuto"));
        let mut count = 0usize;
        while let Some(document) = input.next()? {
            let value = self
                .group_by
                .evaluate(&document.scope(&run.context))?
                .unwrap_or(RawBson::Null);
            if self.granularity.is_some() {
                check_granular(value.as_raw_bson_ref())?;
            }
            count += 1;
            let key = key::of(value.as_raw_bson_ref(), run.collation());
            let bytes = document.memory() + key.len();
            sorter.push(key, (value, document), bytes)?;
        }
        let entries: Vec<Entry> = sorter.finish().collect();
        let buckets = self.fill(&entries, count, run)?;
        let mut documents = Vec::with_capacity(buckets.len());
        for bucket in buckets {
            documents.push(self.document(&bucket)?);
        }
        Ok(Box::new(documents.into_iter()))
    }

    /// Puts the sorted values into buckets of about the same size. Equal values are in one bucket, and the upper boundary of a bucket is the
    /// lower one of the next; that of the last is its largest value.
    fn fill(&self, entries: &[Entry], count: usize, run: &Run) -> Result<Vec<Filling>> {
        // Half a document more rounds up.
        let size = ((count + self.buckets / 2) / self.buckets).max(1);
        let mut memory = StageMemory::new("$bucketAuto");
        let mut buckets: Vec<Filling> = Vec::new();
        let mut rest = entries.iter().peekable();
        while let Some((value, document)) = rest.next() {
            let mut bucket = self.start(value, run)?;
            let is_last = buckets.len() + 1 == self.buckets;
            self.add(&mut bucket, value, document, run, &mut memory)?;
            let mut bound = self.granularity.and_then(|granularity| rounded_up(granularity, value));
            while let Some((value, document)) = rest.peek() {
                let is_equal = is_equal(value, &bucket.high, run);
                let is_below = bound.as_ref().is_some_and(|bound| is_less(value, bound, run));
                if bucket.count >= size && !is_equal && !is_below && !is_last {
                    break;
                }
                self.add(&mut bucket, value, document, run, &mut memory)?;
                rest.next();
                if bucket.count <= size || is_last {
                    bound = self
                        .granularity
                        .and_then(|granularity| rounded_up(granularity, &bucket.high));
                }
            }
            if let (Some(granularity), true) = (self.granularity, buckets.is_empty())
                && let Some(low) = Number::of(bucket.low.as_raw_bson_ref())
            {
                bucket.low = granularity.round_down(low).into();
            }
            if let Some(bound) = bound {
                bucket.high = bound;
            }
            buckets.push(bucket);
        }
        join(&mut buckets, self.granularity.is_some());
        Ok(buckets)
    }

    fn start(&self, value: &RawBson, run: &Run) -> Result<Filling> {
        let start = |(_, accumulator): &(CString, Accumulator)| accumulator.start(RawBsonRef::Null, &run.context);
        Ok(Filling {
            low: value.clone(),
            high: value.clone(),
            count: 0,
            states: self.fields.iter().map(start).collect::<Result<_>>()?,
        })
    }

    fn add(
        &self,
        bucket: &mut Filling,
        value: &RawBson,
        document: &Document,
        run: &Run,
        memory: &mut StageMemory,
    ) -> Result<()> {
        let scope = document.scope(&run.context);
        for ((_, accumulator), state) in self.fields.iter().zip(&mut bucket.states) {
            accumulator.add(state, &scope, memory)?;
        }
        bucket.count += 1;
        bucket.high = value.clone();
        Ok(())
    }

    fn document(&self, bucket: &Filling) -> Result<Document> {
        let mut id = RawDocumentBuf::new();
        id.append(cstr!("min"), &bucket.low);
        id.append(cstr!("max"), &bucket.high);
        let mut result = RawDocumentBuf::new();
        result.append(cstr!("_id"), RawBson::Document(id));
        for ((name, _), state) in self.fields.iter().zip(&bucket.states) {
            result.append(name, state.result());
        }
        check_depth(&result)?;
        Ok(Document::new(result))
    }
}

/// Makes neighbours share a boundary.
fn join(buckets: &mut [Filling], is_granular: bool) {
    for index in 1..buckets.len() {
        let (before, after) = buckets.split_at_mut(index);
        let (Some(before), Some(after)) = (before.last_mut(), after.first_mut()) else {
            continue;
        };
        if is_granular {
            after.low = before.high.clone();
        } else {
            before.high = after.low.clone();
        }
    }
}

fn rounded_up(granularity: Granularity, value: &RawBson) -> Option<RawBson> {
    Number::of(value.as_raw_bson_ref()).map(|number| granularity.round_up(number).into())
}

fn is_equal(a: &RawBson, b: &RawBson, run: &Run) -> bool {
    compare_with(a.as_raw_bson_ref(), b.as_raw_bson_ref(), run.collation()).is_eq()
}

fn is_less(a: &RawBson, b: &RawBson, run: &Run) -> bool {
    compare_with(a.as_raw_bson_ref(), b.as_raw_bson_ref(), run.collation()).is_lt()
}

/// Checks a value that a granularity rounds.
fn check_granular(value: RawBsonRef<'_>) -> Result<()> {
    let Some(number) = Number::of(value) else {
        let found = types::name(value);
        let text = format!(
            "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value with type: {found}"
        );
        return Err(Error::new(40258, text));
    };
    if number.is_nan() {
        let text = "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN";
        return Err(Error::new(40259, text));
    }
    if number.to_f64() < 0.0 {
        let text =
            "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a negative number";
        return Err(Error::new(40260, text));
    }
    Ok(())
}
