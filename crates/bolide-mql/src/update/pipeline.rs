//! Updates with a pipeline of stages that make one document of one.

use bson::{RawArray, RawDocument, RawDocumentBuf};

use super::replacement::with_old_id;
use crate::aggregation::{length_of, stage_of};
use crate::context::Context;
use crate::error::{Code, Error, Result};
use crate::expression::{ParseScope, Scope};
use crate::projection::ShapeStage;

/// The stages of an update.
#[derive(Debug)]
pub(super) struct Pipeline {
    stages: Vec<ShapeStage>,
}

impl Pipeline {
    /// Parses the stages.
    ///
    /// # Errors
    /// - `TypeMismatch`: an element is not a document; 40323: it has not exactly one field.
    /// - 40324: an unknown stage; `InvalidOptions`: one that updates do not have.
    /// - 7749501: too many stages. Those of the stages.
    pub(super) fn parse(stages: &RawArray, ctx: &Context) -> Result<Pipeline> {
        length_of(stages)?;
        let mut parsed = Vec::new();
        for stage in stages {
            let (name, specification) = stage_of(stage?)?;
            let stage = ShapeStage::parse(name, specification, &mut ParseScope::new(ctx).deferring_errors())?
                .ok_or_else(|| {
                    Error::new(
                        Code::INVALID_OPTIONS,
                        format!("{name} is not allowed to be used within an update"),
                    )
                })?;
            parsed.push(stage);
        }
        Ok(Pipeline { stages: parsed })
    }

    /// Returns the new document, with the `_id` of the old one.
    ///
    /// # Errors
    /// Those of the stages; `ImmutableField`: they gave the document another `_id`.
    pub(super) fn apply(&self, old: &RawDocument, ctx: &Context) -> Result<RawDocumentBuf> {
        let mut document = old.to_owned();
        for stage in &self.stages {
            document = stage.apply(&document, &Scope::new(ctx, &document))?;
        }
        with_old_id(old, &document)
    }
}
