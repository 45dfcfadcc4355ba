//! `$match`

use std::sync::Arc;

use bson::raw::{RawBsonRef, RawDocument};

use crate::aggregation::document::Document;
use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::BoxSource;
use crate::aggregation::stage::{Each, Run, Stage};
use crate::error::{Error, Result};
use crate::expression::ParseScope;
use crate::filter::Filter;

#[derive(Debug)]
struct Match {
    filter: Filter,
}

/// Parses a filter of a stage. What would need an order of its own is refused.
///
/// # Errors
/// 5626500 for `$near`, and those of [`Filter::parse_in`].
pub(super) fn parse_filter(filter: &RawDocument, scope: &ParseScope) -> Result<Filter> {
    let filter = Filter::parse_in(filter, scope)?;
    if filter.has_near() {
        let text = "$geoNear, $near, and $nearSphere are not allowed in this context, as these operators require sorting geospatial data. \
                    If you do not need sort, consider using $geoWithin instead.";
        return Err(Error::new(5626500, text));
    }
    Ok(filter)
}

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    let RawBsonRef::Document(filter) = spec else {
        return Err(Error::new(15959, "the match filter must be an expression in an object"));
    };
    let filter = parse_filter(filter, &parser.scope)?;
    if filter.has_text() && !parser.is_at_start_of_command() {
        let text = "$match with $text is only allowed as the first pipeline stage";
        return Err(Error::new(17313, text));
    }
    Ok(Parsed::stage(Match { filter }))
}

impl Stage for Match {
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        let run = Arc::clone(run);
        Ok(Each::source(input, move |document| {
            if !self.filter.matches(&document.bytes, &run.context)? {
                return Ok(None);
            }
            let metadata = self.filter.metadata(&document.bytes, &run.context);
            Ok(Some(match metadata {
                Some(metadata) => Document {
                    metadata: Some(Arc::new(metadata)),
                    ..document
                },
                None => document,
            }))
        }))
    }

    fn filter(&self) -> Option<&Filter> {
        Some(&self.filter)
    }
}
