//! Pipelines over stored documents: what they read, command by command.
//!
//! A pipeline is opened once and pulled from by several commands, each at its own time. What it reads comes through [`Reads`], which each command
//! sets up for its batch: its scope, its thread, and what ends it.

use std::sync::Arc;

use bolide_core::{Container, Lifetime as StoredLifetime, ReadScope, Task};
use bolide_mql::aggregation::{
    BoxSource, Collections, Document, Documents, Lifetime, Namespace, Passed, Pipeline, PipelineOptions, Source,
    SourceStage,
};
use bolide_mql::collation::Collation;
use bolide_mql::context::Interrupt;
use bolide_mql::expression::ParseScope;
use bolide_mql::filter::Filter;
use bolide_mql::index::{self, Kind};
use bolide_mql::{Code, Context, Error, Result};
use bson::RawArray;
use parking_lot::Mutex;

use super::find::Matches;
use super::in_order::InOrder;
use super::language::Hinted;
use super::order::Order;
use super::tasks;
use super::views::{self, View};
use crate::codes;
use crate::state::MongoState;

/// What the pipeline's sources use in the command that runs now.
pub struct Reads {
    state: Arc<MongoState>,
    /// Without the interrupt of one command.
    language: Context,
    current: Mutex<Option<Current>>,
    /// What the input has read in the order of an index, if it was.
    in_order: Mutex<Option<ReadInOrder>>,
}

/// What was read of a collection whose documents came in the order of an index.
#[derive(Debug, Clone, Copy)]
pub struct ReadInOrder {
    /// Documents that were compared with the filter.
    pub documents: u64,
    /// Keys of the index, and of others.
    pub keys: u64,
    /// Whether they were sorted in the end.
    pub has_sorted: bool,
}

#[derive(Clone)]
struct Current {
    task: Task,
    scope: Arc<ReadScope>,
    interrupt: Arc<dyn Interrupt>,
    /// Counts the commands: sources judge kept documents again in each.
    command: u64,
}

/// An input, and the pipeline for it if that is another one.
type OpenedInput = (BoxSource, Option<Pipeline>);

/// A pipeline between batches.
pub struct OpenPipeline {
    reads: Arc<Reads>,
    source: BoxSource,
    commands: u64,
}

impl OpenPipeline {
    /// Opens a pipeline over a collection, over other documents, or over nothing.
    ///
    /// # Errors
    /// Those of the stages.
    pub fn open(state: Arc<MongoState>, pipeline: &Pipeline, input: Input, language: Context) -> Result<OpenPipeline> {
        let (reads, (input, rest), language) = OpenPipeline::prepare(state, pipeline, input, language)?;
        let pipeline = rest.as_ref().unwrap_or(pipeline);
        let source = pipeline.open(input, language, Arc::new(CollectionsOf(reads.clone(), 0)))?;
        Ok(OpenPipeline::of(reads, source))
    }

    /// As [`OpenPipeline::open`]; also counts the documents that pass between the stages.
    ///
    /// # Errors
    /// As there.
    pub fn open_counted(
        state: Arc<MongoState>,
        pipeline: &Pipeline,
        input: Input,
        language: Context,
    ) -> Result<(OpenPipeline, Passed)> {
        let (reads, (input, rest), language) = OpenPipeline::prepare(state, pipeline, input, language)?;
        let pipeline = rest.as_ref().unwrap_or(pipeline);
        let (source, passed) = pipeline.open_counted(input, language, Arc::new(CollectionsOf(reads.clone(), 0)))?;
        Ok((OpenPipeline::of(reads, source), passed))
    }

    /// Opens the input. If it comes in an order, also returns the pipeline for it, without a `$sort` at its start.
    fn prepare(
        state: Arc<MongoState>,
        pipeline: &Pipeline,
        input: Input,
        language: Context,
    ) -> Result<(Arc<Reads>, OpenedInput, Context)> {
        let reads = Arc::new(Reads {
            state,
            language: language.clone(),
            current: Mutex::default(),
            in_order: Mutex::default(),
        });
        let language = Context {
            interrupt: Arc::new(OfCommand(reads.clone())),
            ..language
        };
        let input: OpenedInput = match input {
            Input::Documents(documents) => {
                let documents = documents.into_iter().map(Document::new).collect::<Vec<_>>();
                (Box::new(Documents::new(documents)), None)
            }
            Input::Collection(_, None, _) => (Box::new(Documents::new(Vec::new())), None),
            Input::Collection(namespace, Some(container), hinted) => {
                match reads.in_order(&namespace.database, (&container, &hinted), pipeline)? {
                    Some((input, rest)) => (input, Some(rest)),
                    None => {
                        let read = (container, pipeline.leading_filter(), hinted);
                        (reads.open(&namespace.database, read, 0)?, None)
                    }
                }
            }
        };
        Ok((reads, input, language))
    }

    fn of(reads: Arc<Reads>, source: BoxSource) -> OpenPipeline {
        OpenPipeline {
            reads,
            source,
            commands: 0,
        }
    }

    /// Begins to pull in a command.
    pub fn enter(&mut self, task: &Task, scope: Arc<ReadScope>, interrupt: Arc<dyn Interrupt>) {
        self.commands += 1;
        *self.reads.current.lock() = Some(Current {
            task: task.clone(),
            scope,
            interrupt: tasks::interrupt(task, interrupt),
            command: self.commands,
        });
    }

    /// Ends pulling in a command, so that its collections can be changed.
    pub fn leave(&self) {
        *self.reads.current.lock() = None;
    }

    /// Returns the next document; must be inside a command.
    ///
    /// # Errors
    /// Those of the stages and of the storage.
    pub fn pull(&mut self) -> Result<Option<Document>> {
        self.source.next()
    }

    /// Returns what was read in the order of an index, if the input was.
    pub fn read_in_order(&self) -> Option<ReadInOrder> {
        *self.reads.in_order.lock()
    }

    /// Whether a document that was kept since an earlier command is still to be returned.
    ///
    /// # Errors
    /// `NamespaceNotFound` if its collection was removed.
    pub fn is_live(&self, document: &Document) -> Result<bool> {
        match &document.lifetime {
            Some(lifetime) => self.reads.is_live(lifetime),
            None => Ok(true),
        }
    }
}

/// Parses the pipeline of a collection.
///
/// # Errors
/// Those of the stages.
pub fn parse(
    stages: &RawArray,
    namespace: &crate::namespace::Namespace,
    container: Option<&Container>,
    scope: ParseScope,
) -> Result<Pipeline> {
    let definition = container.and_then(Container::collection);
    let indexes = definition.iter().flat_map(|definition| &definition.indexes);
    let fields = |wanted: Kind| {
        let indexes = indexes.clone().filter(move |index| index.definition.kind() == wanted);
        let fields = indexes.flat_map(|index| index.definition.key().fields());
        let special = fields.filter(|field| field.order == index::Order::Special);
        special.map(|field| field.name.to_string()).collect::<Vec<_>>()
    };
    // As in MongoDB, a 2d index is chosen before one of the other kind.
    let mut geo_fields = fields(Kind::Plane);
    if geo_fields.is_empty() {
        geo_fields = fields(Kind::Sphere);
    }
    let options = PipelineOptions {
        namespace: Namespace::new(namespace.database.clone(), namespace.collection.clone()),
        scope,
        geo_fields,
    };
    Pipeline::parse(stages, &options)
}

/// What a pipeline reads.
pub enum Input {
    /// The documents of a collection or view, read as a hint says; `None`: it does not exist.
    Collection(crate::namespace::Namespace, Option<Arc<Container>>, Hinted),
    /// These.
    Documents(Vec<bson::RawDocumentBuf>),
}

/// Until when a stored document lives, and where it is stored.
struct StoredIn {
    container: Arc<Container>,
    lifetime: StoredLifetime,
}

impl Reads {
    fn current(&self) -> Result<Current> {
        let current = self.current.lock().clone();
        current.ok_or_else(|| Error::new(Code::INTERNAL_ERROR, "a pipeline is used outside of a command"))
    }

    /// Opens a collection or, through its pipeline, a view that `depth` other views read.
    fn open(
        self: &Arc<Self>,
        database: &str,
        (container, filter, hinted): (Arc<Container>, Option<&Filter>, Hinted),
        depth: usize,
    ) -> Result<BoxSource> {
        match View::of(&container, database) {
            Some(_) if depth == views::MAX_DEPTH => Err(views::too_deep()),
            Some(view) => {
                self.check_collation(&container)?;
                self.view(&view, depth + 1)
            }
            None => self.collection(container, filter, &hinted),
        }
    }

    /// Checks that a view has the collation of the command that reads it.
    fn check_collation(&self, view: &Container) -> Result<()> {
        let own = view.collection().and_then(|definition| definition.collation.clone());
        let (own, wanted) = (own.as_deref(), self.language.collation.as_deref());
        if own.map(Collation::to_document) == wanted.map(Collation::to_document) {
            return Ok(());
        }
        let text = format!(
            "Cannot read view {} with another collation than its own",
            view.properties().id
        );
        Err(Error::new(Code::OPTION_NOT_SUPPORTED_ON_VIEW, text))
    }

    fn view(self: &Arc<Self>, view: &View, depth: usize) -> Result<BoxSource> {
        // A view does not see the variables of the command.
        let language = Context {
            interrupt: Arc::new(OfCommand(self.clone())),
            variables: Arc::default(),
            ..self.language.clone()
        };
        let on = self
            .state
            .account
            .find_collection(&view.on.database, &view.on.collection);
        let pipeline = parse(&view.pipeline, &view.on, on.as_deref(), ParseScope::new(&language))?;
        let input = match on {
            Some(container) => self.open(
                &view.on.database,
                (container, pipeline.leading_filter(), Hinted::default()),
                depth,
            )?,
            None => Box::new(Documents::new(Vec::new())),
        };
        pipeline.open(input, language, Arc::new(CollectionsOf(self.clone(), depth)))
    }

    fn collection(
        self: &Arc<Self>,
        container: Arc<Container>,
        filter: Option<&Filter>,
        hinted: &Hinted,
    ) -> Result<BoxSource> {
        // The pipeline applies the filter itself.
        let filter = Arc::new(filter.cloned().unwrap_or_else(Filter::all));
        let mut matches = Matches::new(container.clone(), filter, &self.language)?;
        matches.follow(hinted);
        Ok(self.documents_of(container, matches))
    }

    /// Opens a collection in the order of the `$sort` that a pipeline begins with, or of the hint's index, if it can be read so. Also returns the pipeline for this
    /// input.
    fn in_order(
        self: &Arc<Self>,
        database: &str,
        (container, hinted): (&Arc<Container>, &Hinted),
        pipeline: &Pipeline,
    ) -> Result<Option<(BoxSource, Pipeline)>> {
        if View::of(container, database).is_some() {
            return Ok(None);
        }
        let (order, filter, wanted, rest) = match pipeline.leading_order() {
            Some(leading) => (
                Order::Keys(leading.sort.clone()),
                leading.filter,
                leading.limit,
                leading.rest,
            ),
            None if hinted.index.is_none() => return Ok(None),
            None => {
                let filter = pipeline.leading_filter().cloned().unwrap_or_else(Filter::all);
                (Order::Natural, filter, None, pipeline.clone())
            }
        };
        let mut matches = Matches::new(container.clone(), Arc::new(filter), &self.language)?;
        matches.follow(hinted);
        let documents = InOrder::new(matches, (order, hinted), None, wanted).by_hint(hinted);
        if !documents.has_index() {
            return Ok(None);
        }
        let source = CollectionSource {
            reads: self.clone(),
            container: container.clone(),
            documents,
            wanted,
            command: 0,
        };
        Ok(Some((Box::new(source), rest)))
    }

    fn documents_of(self: &Arc<Self>, container: Arc<Container>, mut matches: Matches) -> BoxSource {
        matches.return_all();
        let order = (Order::Natural, &Hinted::default());
        Box::new(CollectionSource {
            reads: self.clone(),
            container,
            documents: InOrder::new(matches, order, None, None),
            wanted: None,
            command: 0,
        })
    }

    fn is_live(&self, lifetime: &Lifetime) -> Result<bool> {
        let Some(stored) = lifetime.get::<StoredIn>() else {
            return Ok(true);
        };
        let current = self.current()?;
        let is_live = current
            .task
            .wait(current.scope.is_live(&stored.container, &stored.lifetime));
        is_live.map_err(|error| codes::error(&error))
    }
}

/// The documents of a collection.
struct CollectionSource {
    reads: Arc<Reads>,
    container: Arc<Container>,
    documents: InOrder,
    /// How many documents the pipeline takes at most.
    wanted: Option<u64>,
    command: u64,
}

impl Source for CollectionSource {
    fn next(&mut self) -> Result<Option<Document>> {
        let current = self.reads.current()?;
        if self.command != 0 && self.command != current.command {
            self.documents.resume();
        }
        if self.command != current.command {
            self.documents.want(self.wanted);
        }
        self.command = current.command;
        let language = Context {
            interrupt: current.interrupt.clone(),
            ..self.reads.language.clone()
        };
        let next = current.task.wait(self.documents.next(&current.scope, &language))?;
        if self.documents.has_index() {
            *self.reads.in_order.lock() = Some(ReadInOrder {
                documents: self.documents.examined(),
                keys: self.documents.keys_examined(),
                has_sorted: self.documents.has_sorted(),
            });
        }
        Ok(next.map(|stored| Document {
            lifetime: Some(Lifetime::new(StoredIn {
                container: self.container.clone(),
                lifetime: stored.lifetime(),
            })),
            ..Document::new(stored.document().to_owned())
        }))
    }
}

/// The collections that stages such as `$lookup` read, in the pipeline of a view that so many views read.
struct CollectionsOf(Arc<Reads>, usize);

/// Scanning this many documents takes as long as looking for those with one value in an index, and reading them.
const DOCUMENTS_PER_LOOKUP: u64 = 16;

impl CollectionsOf {
    /// Returns a collection, if pipelines may read it.
    fn find(&self, namespace: &Namespace) -> Option<Arc<Container>> {
        let (database, collection) = (&namespace.database, &namespace.collection);
        let is_of_users = crate::namespace::Namespace::new(database, collection).is_ok_and(|name| name.is_of_users());
        let found = self.0.state.account.find_collection(database, collection);
        found.filter(|_| !is_of_users)
    }
}

impl Collections for CollectionsOf {
    fn open(&self, namespace: &Namespace, filter: Option<&Filter>) -> Result<BoxSource> {
        match self.find(namespace) {
            Some(container) => self
                .0
                .open(&namespace.database, (container, filter, Hinted::default()), self.1),
            None => Ok(Box::new(Documents::new(Vec::new()))),
        }
    }

    fn open_by_index(&self, namespace: &Namespace, filter: &Filter, lookups: u64) -> Result<Option<BoxSource>> {
        let reads = &self.0;
        let Some(container) = self.find(namespace) else {
            return Ok(None);
        };
        if View::of(&container, &namespace.database).is_some() {
            return Ok(None);
        }
        let current = reads.current()?;
        let stored = current.task.wait(current.scope.stored_documents(&container));
        let stored = stored.map_err(|error| codes::error(&error))?;
        if lookups.saturating_mul(DOCUMENTS_PER_LOOKUP) > stored {
            return Ok(None);
        }
        let mut matches = Matches::new(container.clone(), Arc::new(filter.clone()), &reads.language)?;
        current.task.wait(matches.prepare(&current.scope))?;
        let is_served = !matches.plan().is_empty();
        Ok(is_served.then(|| reads.documents_of(container, matches)))
    }

    fn open_stage(&self, _: &Namespace, stage: &SourceStage) -> Result<BoxSource> {
        let text = format!("{} is not supported inside of other stages", stage.name);
        Err(Error::new(Code::NOT_IMPLEMENTED, text))
    }

    fn is_live(&self, lifetime: &Lifetime) -> bool {
        // An error shows when the collection is read next.
        self.0.is_live(lifetime).unwrap_or(true)
    }
}

/// Ends the work of the command that pulls now.
struct OfCommand(Arc<Reads>);

impl Interrupt for OfCommand {
    fn check(&self, steps: u64) -> Result<()> {
        let current = self.0.current.lock().as_ref().map(|current| current.interrupt.clone());
        current.map_or(Ok(()), |interrupt| interrupt.check(steps))
    }
}
