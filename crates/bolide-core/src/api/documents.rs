//! Documents of MongoDB collections: writes, and tasks that read many of them.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::epk::Epk;
use bolide_model::ttl::Policy;
use bolide_model::{Result, UnixMillis};

use super::Account;
use crate::background::BuildFailure;
use crate::catalog::Waits;
use crate::catalog::unpublished::NewCollection;
use crate::container::{CollectionDefinition, Container};
use crate::documents::{
    DocumentBatch, DocumentTransaction, DraftOptions, OpenTransaction, ReadScope, SessionRecord, SnapshotTerms,
    Undecided,
};
use crate::executor::Watch;
use crate::index::PropertyIndexes;
use crate::items::Kind;
use crate::response::ChargedResult;
use crate::runtime::RequestContext;

#[derive(Clone)]
/// A task's thread: it may wait for reads, and must ask often whether it is to end.
pub struct Task {
    watch: Arc<Watch>,
    requests: tokio::runtime::Handle,
}

impl Task {
    /// Waits for a read.
    pub fn wait<T>(&self, read: impl Future<Output = T>) -> T {
        self.requests.block_on(read)
    }

    /// Lets other tasks run, and tells whether this one must end.
    ///
    /// # Errors
    /// `Timeout`, `Unavailable` and others that end the task.
    pub fn check(&self) -> Result<()> {
        self.watch.check()
    }
}

/// Operations on documents.
impl Account {
    /// Returns what this account makes of documents that are written now.
    pub fn draft_options(&self) -> DraftOptions {
        DraftOptions {
            reads_own_ttl: self.mongo_document_ttl(),
            ttl_mode: self.runtime().options().mongo_ttl_mode,
        }
    }

    /// Begins the reads of a user's command. They consume request units.
    pub fn read_scope(&self, ctx: &RequestContext) -> ReadScope {
        ReadScope::of_request(self.runtime(), self.catalog(), ctx)
    }

    /// Decides and commits a write of one document, or a few, all at one place of a collection. See [`DocumentBatch`].
    ///
    /// # Errors
    /// The error with which `decide` refused, or the reason why nothing could be committed.
    pub async fn write_document<T, F>(
        &self,
        ctx: &RequestContext,
        target: (&Arc<Container>, Epk),
        decide: F,
    ) -> ChargedResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut DocumentBatch<'_, '_>) -> Result<T, Undecided> + Send + 'static,
    {
        self.decide_documents(ctx, target, Kind::Single, decide).await
    }

    /// Like [`Account::write_document`], for many documents: writes of single documents do not wait for all of them.
    ///
    /// # Errors
    /// As [`Account::write_document`].
    pub async fn write_documents<T, F>(
        &self,
        ctx: &RequestContext,
        target: (&Arc<Container>, Epk),
        decide: F,
    ) -> ChargedResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut DocumentBatch<'_, '_>) -> Result<T, Undecided> + Send + 'static,
    {
        self.decide_documents(ctx, target, Kind::Batch, decide).await
    }

    async fn decide_documents<T, F>(
        &self,
        ctx: &RequestContext,
        (container, place): (&Arc<Container>, Epk),
        kind: Kind,
        decide: F,
    ) -> ChargedResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut DocumentBatch<'_, '_>) -> Result<T, Undecided> + Send + 'static,
    {
        if !self.has_shared_store() {
            return self
                .runtime()
                .write_documents(ctx, (container, place), kind, decide)
                .await;
        }
        let decide = Arc::new(parking_lot::Mutex::new(decide));
        let write = |place| {
            let decide = decide.clone();
            let decide = move |batch: &mut DocumentBatch<'_, '_>| (decide.lock())(batch);
            self.runtime().write_documents(ctx, (container, place), kind, decide)
        };
        self.by_current_settings(container, place, write).await
    }

    /// Gives the documents of a collection the keys, deadlines and entries of indexes that are being built. Afterwards these can be put into force.
    ///
    /// # Errors
    /// From the engine; `NotFound` if the collection was removed.
    pub async fn build_indexes(&self, container: &Arc<Container>) -> Result<Result<(), BuildFailure>> {
        let before = container.state();
        let built = self.runtime().build_indexes(container, self.draft_options()).await?;
        let unbuilt = before.indexes.list.iter().filter(|index| !index.is_ready);
        let unbuilt: Vec<u32> = unbuilt.map(|index| index.id).collect();
        if built.is_ok() && !unbuilt.is_empty() {
            let put_into_use = move |indexes: &mut PropertyIndexes| {
                for index in indexes.list.iter_mut().filter(|index| unbuilt.contains(&index.id)) {
                    index.is_ready = true;
                }
            };
            // If ranges were split meanwhile, some may lack entries: the background task goes through all again.
            let condition = (Waits::Writers, Some(before.layout.version));
            self.catalog()
                .change_indexes(container, condition, put_into_use)
                .await?;
            self.index_signal().notify_one();
        }
        Ok(built)
    }

    /// Begins a transaction on the collections of the database of `container`, which is judged at `now` and lasts until server time `until`, at most for
    /// a minute.
    ///
    /// # Errors
    /// `Unavailable` if too many transactions are open.
    pub async fn begin_transaction(
        &self,
        container: &Arc<Container>,
        now: UnixMillis,
        until: UnixMillis,
    ) -> Result<DocumentTransaction> {
        // It is judged by the settings of the time at which it begins.
        self.refresh_if_shared().await?;
        self.runtime().begin_transaction(container, now, until).await
    }

    /// Begins a transaction as [`Account::begin_transaction`] does, in the database of a collection that it creates.
    ///
    /// # Errors
    /// As [`Account::begin_transaction`] and [`Account::create_collection_in`].
    pub async fn begin_transaction_with(
        &self,
        (database, name): (&str, &str),
        definition: (CollectionDefinition, Policy),
        now: UnixMillis,
        until: UnixMillis,
    ) -> Result<(DocumentTransaction, Arc<Container>)> {
        let new = new_collection((database, name), definition);
        self.runtime()
            .begin_transaction_with(self.catalog(), new, now, until)
            .await
    }

    /// Creates a collection, and its database if there is none, in a transaction: until it commits, nobody else sees it, and nothing is left of it if it
    /// does not. The commit is a write conflict if others have taken the name meanwhile.
    ///
    /// # Errors
    /// `Conflict` if the database has a collection or a container with this name; [`Reason::OtherDatabase`](bolide_model::Reason); `Unavailable` if open
    /// transactions have created too many.
    pub async fn create_collection_in(
        &self,
        transaction: &OpenTransaction,
        name: (&str, &str),
        definition: (CollectionDefinition, Policy),
    ) -> Result<Arc<Container>> {
        let new = new_collection(name, definition);
        transaction.create_collection(self.catalog(), new).await
    }

    /// Waits until the transactions that are just being committed show all that they have written, collections included. A front end that calls it when
    /// a request begins never shows a part of them.
    pub async fn settled(&self) {
        self.catalog().settled().await;
    }

    /// Begins reads of the collections of the database of `container` as they were at one time, which last until server time `until`, at most for a minute.
    /// `now` is the time at which documents are judged. With `is_past` it is a time before this request: a collection that was written to since cannot
    /// be read ([`Reason::SnapshotTooOld`](bolide_model::Reason)), nor one that was defined since ([`Reason::SnapshotUnavailable`](bolide_model::Reason)).
    ///
    /// # Errors
    /// `Unavailable` if too many snapshots are held.
    pub async fn begin_snapshot(
        &self,
        container: &Arc<Container>,
        (now, is_past): (UnixMillis, bool),
        until: UnixMillis,
    ) -> Result<DocumentTransaction> {
        self.refresh_if_shared().await?;
        let collections = self.catalog().list_containers(container.info().database_rid)?;
        let infos = collections.iter().map(|collection| collection.info());
        // Definitions have the second of their last change, so a change in the second of the snapshot may be a later one.
        let as_then = infos.filter(|info| !is_past || info.last_modified < now.seconds());
        let terms = SnapshotTerms {
            not_written_since: is_past.then_some(now),
            definitions: as_then.map(|info| (info.rid, info.etag)).collect(),
        };
        self.runtime().begin_snapshot(container, now, until, terms).await
    }

    /// Commits a transaction: all of its writes and the record of its session, or none. A transaction that has written nothing leaves no record.
    ///
    /// # Errors
    /// `Conflict` with [`Reason::WriteConflict`](bolide_model::Reason) if others have changed a document that it wrote, or if such a document has ended;
    /// `Timeout` if the outcome is unknown. After all other errors nothing was written.
    pub async fn commit_transaction(
        &self,
        transaction: DocumentTransaction,
        record: Option<SessionRecord>,
    ) -> Result<()> {
        self.runtime()
            .commit_transaction(self.catalog(), transaction, record)
            .await
    }

    /// Runs work that may take long on the threads for queries, for at most `limit`. Dropping the future ends it.
    ///
    /// # Errors
    /// `Throttled` if too many tasks are running already; `Unavailable` when the account closes; the errors of the work itself.
    pub async fn run_task<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce(&Task) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.runtime().executor().run_blocking(limit, work_of(work)).await
    }
}

fn new_collection(
    (database, name): (&str, &str),
    (definition, policy): (CollectionDefinition, Policy),
) -> NewCollection {
    NewCollection {
        database: database.to_owned(),
        name: name.to_owned(),
        definition: Arc::new(definition),
        policy,
    }
}

fn work_of<T>(
    work: impl FnOnce(&Task) -> Result<T> + Send + 'static,
) -> impl FnOnce(Arc<Watch>, tokio::runtime::Handle) -> Result<T> + Send + 'static {
    move |watch, requests| work(&Task { watch, requests })
}
