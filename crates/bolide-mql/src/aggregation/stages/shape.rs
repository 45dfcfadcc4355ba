//! `$project`, `$addFields`, `$set`, `$unset`, `$replaceRoot`, `$replaceWith`.

use std::sync::Arc;

use bson::raw::RawBsonRef;

use crate::aggregation::parser::{Parsed, Parser};
use crate::aggregation::source::BoxSource;
use crate::aggregation::stage::{Each, Run, Stage};
use crate::error::{Code, Error, Result};
use crate::projection::ShapeStage;

#[derive(Debug)]
struct Shape {
    stage: ShapeStage,
}

/// Parses one of the stages.
pub(in crate::aggregation) fn parse(name: &'static str, spec: RawBsonRef<'_>, parser: &mut Parser) -> Result<Parsed> {
    let unknown = || Error::new(Code::INTERNAL_ERROR, format!("{name} is no stage of one document"));
    let stage = ShapeStage::parse(name, spec, &mut parser.scope)?.ok_or_else(unknown)?;
    Ok(Parsed::stage(Shape { stage }))
}

impl Stage for Shape {
    fn open(self: Arc<Self>, input: BoxSource, run: &Arc<Run>) -> Result<BoxSource> {
        let run = Arc::clone(run);
        Ok(Each::source(input, move |document| {
            let changed = self.stage.apply(&document.bytes, &document.scope(&run.context))?;
            Ok(Some(document.with_bytes(changed)))
        }))
    }
}
