//! `aggregate`.

use std::sync::Arc;

use bolide_core::Task;
use bolide_mql::aggregation::{Document, Pipeline, PipelineOptions, Sink, SourceStage};
use bolide_mql::expression::ParseScope;
use bolide_mql::index::{Kind, Order};
use bolide_mql::{Code, Error, Result};
use bson::RawDocumentBuf;
use bson::raw::{RawArray, RawBsonRef};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::arguments::{Arguments, wrong_type};
use super::context::{CommandContext, Reply};
use super::cursor::{self, FirstBatch};
use super::data::language::{LanguageArguments, check_hint, read_hint};
use super::data::pipeline::{Input, OpenPipeline};
use super::data::writer::DataContext;
use super::data::{collections, sink, tasks};
use super::table::Rights;
use crate::cursors::{Batch, BatchRequest, CursorSource};
use crate::namespace::Namespace;
use crate::state::MongoState;

/// `{aggregate: collection | 1, pipeline, cursor: {batchSize?}, let?, collation?, hint?, …}` → a cursor.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = read_namespace(context, &arguments)?;
    let stages = arguments.array("pipeline")?;
    let stages = arguments.required("pipeline", stages)?;
    let language = LanguageArguments::read(&mut arguments)?;
    let hint = read_hint(&mut arguments)?;
    let has_cursor = arguments.document("cursor")?.is_some();
    let first = FirstBatch::read_options(&mut arguments)?;
    if arguments.boolean("explain")? == Some(true) {
        return Err(Error::new(
            Code::NOT_IMPLEMENTED,
            "the option 'explain' of aggregate is not supported; use the command",
        ));
    }
    if !has_cursor {
        let text = "The 'cursor' option is required, except for aggregate with the explain argument";
        return Err(Error::new(Code::FAILED_TO_PARSE, text));
    }
    let bypasses_validation = arguments.boolean("bypassDocumentValidation")?.unwrap_or(false);
    // Nothing is written to the disk.
    arguments.ignore(&["allowDiskUse", "isMapReduceCommand", "needsMerge", "fromMongos"]);
    arguments.finish()?;
    let data = DataContext::begin(context).await?;
    let container = collections::find(context, &namespace);
    if let Some(container) = &container {
        check_hint(container, hint)?;
    }
    let language = language.context(context, &data.request, container.as_ref())?;
    let pipeline = parse(stages, &namespace, container.as_deref(), ParseScope::new(&language))?;
    let now = data.request;
    let input = match pipeline.source() {
        Some(stage) => source_documents(context, &namespace, stage)?,
        None if namespace.collection == DATABASE && pipeline.reads_input() => {
            let text = "{aggregate: 1} is not valid for a pipeline that reads a collection";
            return Err(Error::new(Code::INVALID_NAMESPACE, text));
        }
        None => Input::Collection(container),
    };
    let open = OpenPipeline::open(context.state.clone(), &pipeline, input, language.clone())?;
    let mut source = PipelineCursor::new(context.state.clone(), data, open);
    if let Some(sink) = pipeline.sink() {
        let into = match sink {
            Sink::Out(out) => &out.into,
            Sink::Merge(merge) => &merge.into,
        };
        context.require_on(Rights::Write, &into.database)?;
        if Namespace::new(&into.database, &into.collection)?.is_of_users() {
            return Err(context.unauthorized(&into.database));
        }
        let writes = sink::Writes {
            context,
            language,
            bypasses_validation,
        };
        writes.all(sink, &mut source).await?;
        return cursor::first(context, now, namespace, Box::new(cursor::Known::new(Vec::new())), first).await;
    }
    cursor::first(context, now, namespace, Box::new(source), first).await
}

/// The collection that stands for a database in replies.
const DATABASE: &str = "$cmd.aggregate";

/// Reads the collection, or 1 for the database.
fn read_namespace(context: &CommandContext<'_>, arguments: &Arguments<'_>) -> Result<Namespace> {
    match arguments.first() {
        Some(RawBsonRef::String(_)) => arguments.collection(context.database),
        Some(value) if bolide_mql::value::number::whole(value) == Some(1) => Namespace::new(context.database, DATABASE),
        other => Err(wrong_type(
            "aggregate.aggregate",
            other.unwrap_or(RawBsonRef::Null),
            "types '[string, int]'",
        )),
    }
}

/// Parses the pipeline of a collection.
fn parse(
    stages: &RawArray,
    namespace: &Namespace,
    container: Option<&bolide_core::Container>,
    scope: ParseScope,
) -> Result<Pipeline> {
    let definition = container.and_then(bolide_core::Container::collection);
    let indexes = definition.iter().flat_map(|definition| &definition.indexes);
    let is_geo = |kind| matches!(kind, Kind::Sphere | Kind::Plane);
    let of_places = indexes.filter(|index| is_geo(index.definition.kind()));
    let fields = of_places.flat_map(|index| index.definition.key().fields());
    let geo_fields = fields
        .filter(|field| field.order == Order::Special)
        .map(|field| field.name.to_string())
        .collect();
    let options = PipelineOptions {
        namespace: bolide_mql::aggregation::Namespace::new(namespace.database.clone(), namespace.collection.clone()),
        scope,
        geo_fields,
    };
    Pipeline::parse(stages, &options)
}

/// Returns the documents of a stage that does not read the collection.
fn source_documents(_: &CommandContext<'_>, _: &Namespace, stage: &SourceStage) -> Result<Input> {
    let text = format!("{} is not supported yet", stage.name);
    Err(Error::new(Code::NOT_IMPLEMENTED, text))
}

/// The results of a pipeline.
pub struct PipelineCursor {
    state: Arc<MongoState>,
    data: DataContext,
    /// `None` while a batch is made, and after an error.
    open: Mutex<Option<OpenPipeline>>,
    /// A document that did not fit into the last batch.
    kept: Option<Document>,
    has_begun: bool,
}

impl PipelineCursor {
    fn new(state: Arc<MongoState>, data: DataContext, open: OpenPipeline) -> PipelineCursor {
        PipelineCursor {
            state,
            data,
            open: Mutex::new(Some(open)),
            kept: None,
            has_begun: false,
        }
    }
}

impl CursorSource for PipelineCursor {
    fn next_batch<'a>(&'a mut self, request: &'a BatchRequest) -> BoxFuture<'a, Result<Batch>> {
        Box::pin(async move {
            let lost = || Error::new(Code::CURSOR_NOT_FOUND, "the cursor failed before");
            let mut open = self.open.get_mut().take().ok_or_else(lost)?;
            if self.has_begun {
                self.data.request = request.now;
            }
            self.has_begun = true;
            let (scope, interrupt) = (Arc::new(self.data.scope()), request.interrupt.clone());
            let (max_documents, max_bytes) = (request.max_documents.unwrap_or(usize::MAX), request.max_bytes);
            let kept = self.kept.take();
            let work = move |task: &Task| {
                open.enter(task, scope, interrupt);
                let made = batch(&mut open, kept, max_documents, max_bytes);
                open.leave();
                let (batch, kept) = made?;
                Ok((open, batch, kept))
            };
            let (open, batch, kept) = tasks::run(&self.state, work).await?;
            *self.open.get_mut() = Some(open);
            self.kept = kept;
            Ok(batch)
        })
    }
}

/// Makes a batch. Returns it with the document that did not fit.
fn batch(
    open: &mut OpenPipeline,
    mut kept: Option<Document>,
    max_documents: usize,
    max_bytes: usize,
) -> Result<(Batch, Option<Document>)> {
    let mut batch = Batch::default();
    let mut bytes = 0_usize;
    while batch.documents.len() < max_documents {
        let next = match kept.take() {
            Some(document) if open.is_live(&document)? => Some(document),
            _ => open.pull()?,
        };
        let Some(document) = next else {
            batch.is_last = true;
            break;
        };
        bytes = bytes.saturating_add(document.bytes.as_bytes().len());
        if bytes > max_bytes && !batch.documents.is_empty() {
            return Ok((batch, Some(document)));
        }
        batch.documents.push(document.bytes);
    }
    Ok((batch, None))
}

/// Returns all documents of a cursor in batches, for `$out` and `$merge`.
///
/// # Errors
/// Those of the pipeline.
pub async fn next_documents(
    context: &CommandContext<'_>,
    source: &mut PipelineCursor,
) -> Result<(Vec<RawDocumentBuf>, bool)> {
    let request = BatchRequest {
        now: source.data.request,
        max_documents: Some(1_000),
        max_bytes: 4 * 1024 * 1024,
        max_wait: None,
        interrupt: context.interrupt(),
    };
    // All of them are read at the time of one command.
    source.has_begun = false;
    let batch = source.next_batch(&request).await?;
    Ok((batch.documents, batch.is_last))
}
