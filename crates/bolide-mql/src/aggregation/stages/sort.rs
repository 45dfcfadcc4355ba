//! `$sort`

use std::sync::Arc;

use bson::raw::RawBsonRef;

use crate::aggregation::document::Document;
use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::BoxSource;
use crate::aggregation::stage::{Blocking, Output, Run, Stage};
use crate::context::memory::StageMemory;
use crate::error::{Error, Result};
use crate::sort::{Sort, Sorter};

/// The stage.
#[derive(Debug)]
pub(super) struct SortStage {
    /// The order.
    pub(super) sort: Sort,
    /// How many documents are taken from it.
    pub(super) limit: Option<usize>,
}

/// Parses the stage.
pub(in crate::aggregation) fn parse(_: &'static str, spec: RawBsonRef<'_>, _: &mut Parser) -> Result<Parsed> {
    let RawBsonRef::Document(spec) = spec else {
        return Err(Error::new(15973, "the $sort key specification must be an object"));
    };
    let sort = Sort::parse(spec)?;
    if sort.is_empty() {
        return Err(Error::new(15976, "$sort stage must have at least one sort key"));
    }
    Ok(Parsed::stage(SortStage { sort, limit: None }))
}

impl Stage for SortStage {
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        let run = Arc::clone(run);
        Ok(Blocking::source(move || {
            let sorter = sort_all(input, &self.sort, self.limit, StageMemory::new("$sort"), &run)?;
            let output: Output = Box::new(sorter.finish());
            Ok(output)
        }))
    }

    fn sort(&self) -> Option<&Sort> {
        Some(&self.sort)
    }

    fn with_limit(&self, limit: u64) -> Option<Arc<dyn Stage>> {
        Some(Arc::new(SortStage {
            sort: self.sort.clone(),
            limit: usize::try_from(limit).ok(),
        }))
    }
}

/// Takes all documents of `input`.
fn sort_all(
    mut input: BoxSource,
    sort: &Sort,
    limit: Option<usize>,
    memory: StageMemory,
    run: &Run,
) -> Result<Sorter<Document>> {
    let mut sorter = Sorter::new(limit, memory);
    while let Some(document) = input.next()? {
        let key = sort.key_with(&document.bytes, document.metadata.as_deref(), run.collation())?;
        let bytes = document.memory();
        sorter.push(key, document, bytes)?;
    }
    Ok(sorter)
}
