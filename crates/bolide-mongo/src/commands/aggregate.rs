//! `aggregate`.

mod sources;

use std::sync::Arc;

use bolide_core::{Container, Task};
use bolide_mql::aggregation::{Document, Pipeline, Sink};
use bolide_mql::expression::ParseScope;
use bolide_mql::{Code, Context, Error, Result};
use bson::RawDocumentBuf;
use bson::raw::{RawArray, RawBsonRef};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::arguments::{Arguments, wrong_type};
use super::change_stream;
use super::concerns::ReadConcernLevel;
use super::context::{CommandContext, Reply};
use super::cursor::{self, FirstBatch};
use super::data::language::{Hinted, LanguageArguments, check_hint, read_hint};
use super::data::pipeline::{Input, OpenPipeline, parse};
use super::data::views::View;
use super::data::writer::DataContext;
use super::data::{sink, tasks};
use super::explain;
use super::table::Rights;
use crate::cursors::{Batch, BatchRequest, CursorSource};
use crate::namespace::Namespace;
use crate::state::MongoState;

/// `{aggregate: collection | 1, pipeline, cursor: {batchSize?}, let?, collation?, hint?, …}` → a cursor.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let read = PipelineArguments::read(context, &mut arguments)?;
    let explains = arguments.boolean("explain")? == Some(true);
    arguments.finish()?;
    if explains {
        return explain::of_pipeline(context, &read).await;
    }
    if !read.has_cursor {
        let text = "The 'cursor' option is required, except for aggregate with the explain argument";
        return Err(Error::new(Code::FAILED_TO_PARSE, text));
    }
    let data = DataContext::begin(context).await?;
    let (now, snapshot) = (data.request, data.snapshot_time());
    let parsed = read.parse(context, &data)?;
    if let Some(stage) = parsed
        .pipeline
        .source()
        .filter(|stage| stage.name == change_stream::STAGE)
    {
        let opening = change_stream::Opening {
            is_on_database: read.namespace.collection == DATABASE,
            namespace: read.namespace,
            stages: read.stages,
            specification: stage.spec.clone(),
            pipeline: parsed.pipeline,
            language: parsed.language,
            first: read.first,
        };
        return change_stream::open(context, now, opening).await;
    }
    let (pipeline, input, language) = read.with_input(context, &data, parsed).await?;
    let open = OpenPipeline::open(context.state.clone(), &pipeline, input, language.clone())?;
    let mut source = PipelineCursor::new(context.state.clone(), data, open);
    let namespace = read.namespace;
    let first = FirstBatch {
        snapshot,
        keeps_time_limit: pipeline.source().is_none(),
        ..read.first
    };
    if let Some(sink) = pipeline.sink() {
        let writes = sink::Writes {
            context,
            language,
            bypasses_validation: read.bypasses_validation,
        };
        writes.all(sink, &mut source).await?;
        let nothing = Box::new(cursor::Known::new(Vec::new()));
        let reply = cursor::first(context, now, namespace, nothing, first).await?;
        return Ok(Reply {
            has_written: true,
            ..reply
        });
    }
    cursor::first(context, now, namespace, Box::new(source), first).await
}

/// The arguments of `aggregate` that say what is read and computed.
pub struct PipelineArguments<'a> {
    /// The collection, or the name that stands for the database.
    pub namespace: Namespace,
    /// The stages.
    pub stages: &'a RawArray,
    /// `collation` and `let`.
    pub language: LanguageArguments<'a>,
    /// `hint`.
    pub hint: Option<RawBsonRef<'a>>,
    has_cursor: bool,
    first: FirstBatch,
    bypasses_validation: bool,
}

impl<'a> PipelineArguments<'a> {
    /// Reads them. Whether the command explains is left to the caller.
    ///
    /// # Errors
    /// Of their types and names.
    pub fn read(context: &CommandContext<'_>, arguments: &mut Arguments<'a>) -> Result<PipelineArguments<'a>> {
        let namespace = read_namespace(context, arguments)?;
        let stages = arguments.array("pipeline")?;
        let stages = arguments.required("pipeline", stages)?;
        let language = LanguageArguments::read(arguments)?;
        let hint = read_hint(arguments)?;
        let has_cursor = match arguments.value("cursor") {
            None => false,
            Some(RawBsonRef::Document(_)) => true,
            Some(_) => {
                let text = "cursor field must be missing or an object";
                return Err(Error::new(Code::TYPE_MISMATCH, text));
            }
        };
        let first = FirstBatch::read_options(arguments)?;
        let bypasses_validation = arguments.boolean("bypassDocumentValidation")?.unwrap_or(false);
        // Nothing is written to the disk.
        arguments.strict_boolean("allowDiskUse")?;
        arguments.ignore(&["isMapReduceCommand", "needsMerge", "fromMongos"]);
        Ok(PipelineArguments {
            namespace,
            stages,
            language,
            hint,
            has_cursor,
            first,
            bypasses_validation,
        })
    }

    /// Parses the pipeline, checks the rights that its stages need, and returns it with what it reads.
    ///
    /// # Errors
    /// Those of the stages; `BadValue` for a hint without an index; `Unauthorized`.
    pub async fn prepare(
        &self,
        context: &CommandContext<'_>,
        data: &DataContext,
    ) -> Result<(Pipeline, Input, Context)> {
        let parsed = self.parse(context, data)?;
        self.with_input(context, data, parsed).await
    }

    fn parse(&self, context: &CommandContext<'_>, data: &DataContext) -> Result<Parsed> {
        let namespace = &self.namespace;
        let container = data.find(context, namespace)?;
        let mut hinted = Hinted::default();
        if let Some(container) = &container
            && View::of(container, context.database).is_none()
        {
            hinted = check_hint(container, self.hint)?;
        }
        let language = self.language.context(context, &data.request, container.as_ref())?;
        let pipeline = parse(self.stages, namespace, container.as_deref(), ParseScope::new(&language))?;
        if let Some(sink) = pipeline.sink() {
            check_sink(context, sink)?;
        }
        let reads = pipeline.source().is_none_or(|stage| stage.name == change_stream::STAGE);
        if reads || !pipeline.namespaces().is_empty() {
            // Who may only see statistics reaches here, too.
            context.require(Rights::Read)?;
        }
        Ok(Parsed {
            container,
            hinted,
            pipeline,
            language,
        })
    }

    async fn with_input(
        &self,
        context: &CommandContext<'_>,
        data: &DataContext,
        parsed: Parsed,
    ) -> Result<(Pipeline, Input, Context)> {
        let namespace = &self.namespace;
        let input = match parsed.pipeline.source() {
            Some(stage) => Input::Documents(sources::documents(context, namespace, stage, data).await?),
            None if namespace.collection == DATABASE && parsed.pipeline.reads_input() => {
                let text = "{aggregate: 1} is not valid for a pipeline that reads a collection";
                return Err(Error::new(Code::INVALID_NAMESPACE, text));
            }
            None => Input::Collection(namespace.clone(), parsed.container, parsed.hinted),
        };
        Ok((parsed.pipeline, input, parsed.language))
    }
}

/// A pipeline with the collection on which it is run, if that exists.
struct Parsed {
    container: Option<Arc<Container>>,
    hinted: Hinted,
    pipeline: Pipeline,
    language: Context,
}

/// Checks that the sender may write where the pipeline does.
fn check_sink(context: &CommandContext<'_>, sink: &Sink) -> Result<()> {
    let (stage, into) = match sink {
        Sink::Out(out) => ("$out", &out.into),
        Sink::Merge(merge) => ("$merge", &merge.into),
    };
    if context.global.read_concern.level == ReadConcernLevel::Linearizable {
        let text = format!("{stage} cannot be used with a 'linearizable' read concern level");
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    context.require_on(Rights::Write, &into.database)?;
    if Namespace::new(&into.database, &into.collection)?.is_of_users() {
        return Err(context.unauthorized(&into.database));
    }
    Ok(())
}

/// The collection that stands for a database in replies.
pub const DATABASE: &str = "$cmd.aggregate";

/// Reads the collection, or 1 for the database.
fn read_namespace(context: &CommandContext<'_>, arguments: &Arguments<'_>) -> Result<Namespace> {
    match arguments.first() {
        Some(RawBsonRef::String(_)) => arguments.collection(context.database),
        Some(value) if bolide_mql::value::number::whole(value) == Some(1) => Namespace::new(context.database, DATABASE),
        other => Err(wrong_type(
            "aggregate.aggregate",
            other.unwrap_or(RawBsonRef::Null),
            "types '[string, int']",
        )),
    }
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
    /// Returns a cursor over an open pipeline.
    pub fn new(state: Arc<MongoState>, data: DataContext, open: OpenPipeline) -> PipelineCursor {
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
                self.data.consumed = request.consumed.clone();
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
        consumed: context.consumed.clone(),
    };
    // All of them are read at the time of one command.
    source.has_begun = false;
    let batch = source.next_batch(&request).await?;
    Ok((batch.documents, batch.is_last))
}

#[cfg(test)]
mod tests;
