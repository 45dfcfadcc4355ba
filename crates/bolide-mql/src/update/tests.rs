//! Expected documents and errors are written from mongo.md §12 and §8.

mod delta;
mod elements;
mod errors;
mod hostile;
mod model;
mod operators;
mod paths;
mod pipeline;
mod push;
mod replacement;
mod upsert;

use bolide_model::UnixMillis;
use bson::{RawArrayBuf, RawBson, RawDocumentBuf};

use super::{ParseOptions, Update, Updated};
use crate::context::Context;
use crate::error::Result;
use crate::filter::{Filter, MatchDetails};

/// 2023-11-14T22:13:20.123Z.
const NOW_MS: i64 = 1_700_000_000_123;

fn context() -> Context {
    Context::new(UnixMillis(NOW_MS))
}

fn parse_with(update: RawBson, array_filters: Option<&RawArrayBuf>, options: ParseOptions) -> Result<Update> {
    let array_filters = array_filters.map(|filters| &**filters);
    Update::parse(update.as_raw_bson_ref(), array_filters, options, &context())
}

fn parse(update: &RawDocumentBuf) -> Result<Update> {
    parse_with(update.clone().into(), None, ParseOptions::default())
}

fn parse_filtered(update: &RawDocumentBuf, array_filters: &RawArrayBuf) -> Result<Update> {
    parse_with(update.clone().into(), Some(array_filters), ParseOptions::default())
}

fn updated(old: &RawDocumentBuf, update: &RawDocumentBuf) -> Result<Updated> {
    parse(update)?.apply(old, &MatchDetails::default(), &context())
}

fn apply(old: &RawDocumentBuf, update: &RawDocumentBuf) -> Result<RawDocumentBuf> {
    Ok(updated(old, update)?.document)
}

fn upsert(filter: &RawDocumentBuf, update: &RawDocumentBuf) -> Result<RawDocumentBuf> {
    parse(update)?.upsert(&Filter::parse(filter)?, &context())
}

/// Checks updates of one document: `(update, document after it)`.
fn check(old: RawDocumentBuf, cases: Vec<(RawDocumentBuf, RawDocumentBuf)>) {
    for (update, expected) in cases {
        let result = apply(&old, &update).map_err(|error| (error.code, error.message));
        assert_eq!(result, Ok(expected), "{old:?} {update:?}");
    }
}
