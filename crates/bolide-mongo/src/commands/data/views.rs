//! Views: collections whose documents are the results of a pipeline over another collection or view.
//!
//! A view is stored as a collection whose options have `viewOn` and `pipeline`, and which has no documents of its own. A command that reads it reads
//! through its pipeline; see [`super::pipeline`]. No command writes it.
//!
//! Source: mongo.md §6.

use bolide_core::{CollectionDefinition, Container};
use bolide_mql::expression::ParseScope;
use bolide_mql::{Code, Context, Error, Result};
use bson::{RawArray, RawArrayBuf, RawDocument};

use super::super::aggregate::PipelineCursor;
use super::super::context::CommandContext;
use super::collections;
use super::language::Hinted;
use super::pipeline::{Input, OpenPipeline, parse};
use super::writer::DataContext;
use crate::namespace::Namespace;
use crate::state::MongoState;

/// How many views may stand on each other, as in MongoDB.
pub const MAX_DEPTH: usize = 20;

/// The definition of a view.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// What it reads.
    pub on: Namespace,
    /// The stages.
    pub pipeline: RawArrayBuf,
}

impl View {
    /// Returns the definition of a view in this database; `None` for a collection.
    pub fn of(container: &Container, database: &str) -> Option<View> {
        View::of_options(&container.collection()?.options, database)
    }

    /// Returns the view that these options of a collection define.
    pub fn of_options(options: &RawDocument, database: &str) -> Option<View> {
        let on = options.get_str("viewOn").ok()?;
        let pipeline = options
            .get_array("pipeline")
            .map_or_else(|_| RawArrayBuf::new(), ToOwned::to_owned);
        Some(View {
            on: Namespace {
                database: database.to_owned(),
                collection: on.to_owned(),
            },
            pipeline,
        })
    }

    /// Checks the definition of a new or changed view.
    ///
    /// # Errors
    /// Those of the pipeline; `OptionNotSupportedOnView` if it writes; `GraphContainsCycle` if the view would read itself; `ViewDepthLimitExceeded`.
    pub fn check(&self, context: &CommandContext<'_>, name: &Namespace, language: &Context) -> Result<()> {
        Namespace::new(&self.on.database, &self.on.collection)?;
        let parsed = parse(&self.pipeline, &self.on, None, ParseScope::new(language))?;
        if parsed.sink().is_some() {
            let text = format!("$out and $merge cannot be used in the view definition of {name}: they write");
            return Err(Error::new(Code::OPTION_NOT_SUPPORTED_ON_VIEW, text));
        }
        let mut on = self.on.clone();
        for _ in 0..MAX_DEPTH {
            if on == *name {
                let text = format!("View cycle detected: {name} reads itself");
                return Err(Error::new(Code::GRAPH_CONTAINS_CYCLE, text));
            }
            let next = collections::find(context, &on).and_then(|container| View::of(&container, &on.database));
            match next {
                Some(next) => on = next.on,
                None => return Ok(()),
            }
        }
        Err(too_deep())
    }
}

/// The error for a view on too many views.
pub fn too_deep() -> Error {
    let text = format!("View depth too deep or view cycle detected; maximum depth is {MAX_DEPTH}");
    Error::new(Code::VIEW_DEPTH_LIMIT_EXCEEDED, text)
}

/// Whether a collection is a view.
pub fn is_view(definition: &CollectionDefinition) -> bool {
    definition.option("viewOn").is_some()
}

/// Refuses a command that works on collections only.
///
/// # Errors
/// `CommandNotSupportedOnView`.
pub fn refuse(state: &MongoState, database: &str, collection: &str) -> Result<()> {
    let found = state.account.find_collection(database, collection);
    match found.and_then(|container| container.collection()) {
        Some(definition) if is_view(&definition) => Err(not_a_collection(database, collection)),
        _ => Ok(()),
    }
}

/// The error for a command that works on collections only.
pub fn not_a_collection(database: &str, collection: &str) -> Error {
    let text = format!("Namespace {database}.{collection} is a view, not a collection");
    Error::new(Code::COMMAND_NOT_SUPPORTED_ON_VIEW, text)
}

/// Opens the results of more stages over a view.
///
/// # Errors
/// Those of the stages.
pub fn open(
    context: &CommandContext<'_>,
    namespace: &Namespace,
    stages: &RawArray,
    language: Context,
    data: DataContext,
) -> Result<PipelineCursor> {
    let container = collections::find(context, namespace);
    let pipeline = parse(stages, namespace, None, ParseScope::new(&language))?;
    let input = Input::Collection(namespace.clone(), container, Hinted::default());
    let open = OpenPipeline::open(context.state.clone(), &pipeline, input, language)?;
    Ok(PipelineCursor::new(context.state.clone(), data, open))
}

#[cfg(test)]
mod tests;
