//! Transactions over the unsharded collections of one database (mongo.md §7, extensions.md §2).
//!
//! A transaction reads a held snapshot of the database's home, judged at the time of its first command by the settings of that time (TTL-292); its own
//! writes lie over it. Nothing is locked: what another open transaction has written, or others have committed since, is a write conflict at once, after
//! which the transaction can only be ended ([`super::conflicts`]). The commit compares every document that was written with the one that is stored now, and writes all or nothing
//! at one time: a document that others have changed, or that has ended since the transaction began, is a write conflict, whether it is purged or not.

mod creation;
mod written;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bolide_model::epk::Epk;
use bolide_model::rid::ContainerRid;
use bolide_model::{Error, ErrorKind, Reason, RequestUnits, Result, UnixMillis, charge};
use bolide_storage::{HeldSnapshot, HoldError, HomeId, ReadRequest};
use bytes::Bytes;

use super::conflicts::{Claimed, Intent};
use super::scan::Place;
use super::write::{Journal, JournalEntry};
use super::{DocumentBatch, DocumentId, SessionRecord, StoredDocument, Undecided};
use crate::catalog::Catalog;
use crate::catalog::unpublished::UnpublishedCollection;
use crate::container::{Container, ContainerState};
use crate::format::etag::Etag;
use crate::format::keys;
use crate::items::Admission;
use crate::partition::exclusive::{ExclusiveEnd, ExclusiveTransaction, hold_error};
use crate::partition::state::PartitionState;
use crate::partition::write_batch::WriteBatch;
use crate::partition::{JointDecision, Partition, commit_jointly};
use crate::runtime::Runtime;
use written::{Written, apply, updated_twice};

/// Maximum size of the documents that a transaction writes, in bytes.
const WRITTEN_BYTES: usize = 64 * 1024 * 1024;

/// A transaction that has begun; see the module.
pub struct DocumentTransaction {
    started: UnixMillis,
    home: HomeId,
    held: Arc<dyn HeldSnapshot>,
    collections: HashMap<ContainerRid, Part>,
    /// The collections that it has created.
    created: Vec<UnpublishedCollection>,
    written_bytes: usize,
    /// Whether its commands are refused while throughput is used up.
    enforces_throughput: bool,
    /// Present if it is no transaction but only reads, at a time.
    pub(super) snapshot: Option<SnapshotTerms>,
    claimed: Claimed,
    /// Whether a write met a conflict.
    is_conflicted: bool,
}

/// What a snapshot of one time must find in each collection, so that it shows what was visible then.
pub struct SnapshotTerms {
    /// The time, if it is past: no collection was written to since.
    pub not_written_since: Option<UnixMillis>,
    /// The definitions of then.
    pub definitions: HashMap<ContainerRid, Etag>,
}

/// The transaction in one collection.
struct Part {
    container: Arc<Container>,
    state: Arc<ContainerState>,
    partition: Arc<Partition>,
    view: ExclusiveTransaction,
    /// The written documents by their number, which is provisional for new ones.
    written: BTreeMap<u64, Written>,
    /// The row that commits the collection, if the transaction has created it.
    publication: Option<Bytes>,
}

impl DocumentTransaction {
    /// Returns the time at which it judges documents.
    pub fn started(&self) -> UnixMillis {
        self.started
    }

    /// Finds a document by its `_id`.
    ///
    /// # Errors
    /// `Unavailable` with [`Reason::SnapshotEnded`] if the transaction lasted too long; from the engine.
    pub async fn find(&mut self, container: &Arc<Container>, id: &DocumentId) -> Result<Option<StoredDocument>> {
        let id = id.clone();
        self.decide(container, move |batch| batch.find(&id)).await
    }

    /// Returns the next documents of a scan, and where it goes on.
    ///
    /// # Errors
    /// As [`DocumentTransaction::find`].
    pub(super) async fn page(
        &mut self,
        container: &Arc<Container>,
        place: &Place,
        (rows, bytes): (usize, usize),
    ) -> Result<(Vec<StoredDocument>, Option<Place>)> {
        let part = self.part(container).await?;
        let settings = &part.state.settings;
        let (items, next) = match place {
            Place::From(from) => {
                let page = part.view.items(settings, from, None, rows, bytes).await;
                let page = page.map_err(refusal)?;
                (page.items, page.next.map(Place::From))
            }
            Place::Before(to) => {
                let page = part.view.items_before(settings, to.as_ref(), rows, bytes).await;
                let page = page.map_err(refusal)?;
                (page.items, page.next.map(|key| Place::Before(Some(key))))
            }
        };
        let documents = items.into_iter().map(|(key, record)| StoredDocument::new(key, record));
        Ok((documents.collect(), next))
    }

    /// Decides writes on the snapshot and the transaction's earlier writes. If it is refused, it has written nothing.
    ///
    /// # Errors
    /// The error with which `decide` refused; `TooLarge` if the transaction writes too much; [`Reason::WriteConflict`], after which it can only be ended; as
    /// [`DocumentTransaction::find`].
    pub async fn write<T>(
        &mut self,
        container: &Arc<Container>,
        decide: impl FnMut(&mut DocumentBatch<'_, '_>) -> Result<T, Undecided>,
    ) -> Result<T> {
        if self.snapshot.is_some() {
            return Err(Error::internal("a snapshot is only read"));
        }
        if self.is_conflicted {
            return Err(Reason::WriteConflict.into());
        }
        if self.written_bytes > WRITTEN_BYTES {
            return Err(Reason::TransactionTooLarge.into());
        }
        self.decide(container, decide).await
    }

    async fn decide<T>(
        &mut self,
        container: &Arc<Container>,
        mut decide: impl FnMut(&mut DocumentBatch<'_, '_>) -> Result<T, Undecided>,
    ) -> Result<T> {
        let part = self.part(container).await?;
        let (state, partition) = (part.state.clone(), part.partition.clone());
        let mut journal = Journal::default();
        let decided = part.view.decide(|batch| {
            journal.clear();
            batch.keeping_writes(|batch| {
                let mut documents =
                    DocumentBatch::new(&state, (&partition, Epk::start()), batch).with_journal(&mut journal);
                decide(&mut documents).map_err(Undecided::into_stop)
            })
        });
        let value = decided.await.map_err(refusal)?;
        let intent = part.intent(&journal);
        let written = journal.iter().map(JournalEntry::size).sum::<usize>();
        for entry in journal.drain(..) {
            part.note(entry);
        }
        self.written_bytes += written;
        if !intent.is_empty() {
            let is_free = self.claimed.claim(&partition.claims, &intent.keys())
                && intent.is_free(&partition, &state.settings).await?;
            if !is_free {
                self.is_conflicted = true;
                return Err(Reason::WriteConflict.into());
            }
        }
        Ok(value)
    }

    async fn part(&mut self, container: &Arc<Container>) -> Result<&mut Part> {
        let rid = container.rid();
        if !self.collections.contains_key(&rid) {
            let part = self.enter(container).await?;
            self.collections.insert(rid, part);
        }
        let part = self.collections.get_mut(&rid);
        let part = part.ok_or_else(|| Error::internal("a collection was just entered"))?;
        if self.enforces_throughput {
            let now = part.partition.now().await?;
            Admission::of_user(now).admit(&part.partition, &part.state)?;
        }
        Ok(part)
    }

    async fn enter(&self, container: &Arc<Container>) -> Result<Part> {
        let guard = container.enter().await?;
        let partition = guard.state.layout.partition_of(&Epk::start())?.clone();
        if partition.id.home() != self.home {
            return Err(Reason::OtherDatabase.into());
        }
        let definition = self
            .snapshot
            .as_ref()
            .map(|terms| terms.definitions.get(&container.rid()));
        if definition.is_some_and(|definition| definition != Some(&guard.state.etag)) {
            return Err(Reason::SnapshotUnavailable.into());
        }
        partition.show_exactly(&guard.state.settings, self.started).await;
        let request = ReadRequest::of_keys(vec![keys::state()]);
        let (head, state) = match self.held.read(partition.id, request).await {
            Ok(mut reply) => (reply.head, PartitionState::of_row(reply.gets.pop().flatten())?),
            // It was created after the transaction began, so for the transaction it is empty.
            Err(HoldError::Engine(bolide_storage::EngineError::NoPartition(_))) => {
                let view = ExclusiveTransaction::over_nothing(partition.id, self.started);
                return Ok(Part::new(container, guard.state.clone(), partition, view));
            }
            Err(error) => return Err(hold_error(error)),
        };
        if partition.is_ahead(head) {
            // Another server has changed the collection since the transaction began, and the snapshot is behind that.
            return Err(Reason::WriteConflict.into());
        }
        let since = self.snapshot.as_ref().and_then(|terms| terms.not_written_since);
        if since.is_some_and(|since| head.stamp > since) {
            return Err(Reason::SnapshotTooOld.into());
        }
        let view = ExclusiveTransaction::over(self.held.clone(), partition.id, head, self.started, state);
        Ok(Part::new(container, guard.state.clone(), partition, view))
    }

    /// Returns the number of documents that it has written.
    pub fn written(&self) -> usize {
        self.collections.values().map(|part| part.written.len()).sum()
    }
}

impl Part {
    fn new(
        container: &Arc<Container>,
        state: Arc<ContainerState>,
        partition: Arc<Partition>,
        view: ExclusiveTransaction,
    ) -> Part {
        Part {
            container: container.clone(),
            state,
            partition,
            view,
            written: BTreeMap::new(),
            publication: None,
        }
    }

    fn intent(&self, journal: &[JournalEntry]) -> Intent {
        let bases = self.written.values().filter_map(|written| written.base.as_ref());
        let own = bases.map(|base| base.key().clone()).collect();
        Intent::of(journal, |number| self.written.contains_key(&number), own)
    }

    fn note(&mut self, entry: JournalEntry) {
        match entry {
            JournalEntry::Inserted { number, draft } => {
                let draft = Some(draft);
                self.written.insert(number, Written { base: None, draft });
            }
            JournalEntry::Replaced { base, draft } => {
                let number = base.number();
                let written = self.written.entry(number).or_insert(Written {
                    base: Some(base),
                    draft: None,
                });
                written.draft = Some(match (&written.base, written.draft.take()) {
                    (Some(base), Some(before)) => updated_twice(base, &before, draft),
                    _ => draft,
                });
            }
            JournalEntry::Deleted { base } => {
                let number = base.number();
                let written = self.written.entry(number).or_insert(Written {
                    base: Some(base),
                    draft: None,
                });
                written.draft = None;
                if written.base.is_none() {
                    self.written.remove(&number);
                }
            }
        }
    }

    /// Returns what the writes cost.
    fn charge(&self) -> RequestUnits {
        let size = |written: &Written| match (&written.draft, &written.base) {
            (Some(draft), _) => draft.document().as_bytes().len(),
            (None, base) => base.as_ref().map_or(0, |base| base.record().size()),
        };
        self.written.values().map(|written| charge::write(size(written))).sum()
    }

    /// Returns the decision that writes everything over what is stored at the commit, and the record of a session.
    fn commit(self, record: Option<SessionRecord>) -> (Arc<Partition>, JointDecision) {
        let Part {
            state,
            partition,
            written,
            publication,
            ..
        } = self;
        let deciding = partition.clone();
        let decide = move |batch: &mut WriteBatch<'_>| {
            batch.keeping_writes(|batch| {
                if let Some(publication) = &publication {
                    batch.put(keys::publication(), publication.clone());
                }
                let mut documents = DocumentBatch::new(&state, (&deciding, Epk::start()), batch);
                let applied = apply(&mut documents, &written).and_then(|()| match &record {
                    Some(record) => documents.note_commit(record),
                    None => Ok(()),
                });
                applied.map_err(Undecided::into_stop)
            })
        };
        (partition, Box::new(decide))
    }
}

fn refusal(end: ExclusiveEnd) -> Error {
    match end {
        ExclusiveEnd::Refused(error) => error,
        ExclusiveEnd::Stale => Reason::SnapshotEnded.into(),
    }
}

impl Runtime {
    /// See `Account::begin_transaction`.
    pub(crate) async fn begin_transaction(
        &self,
        container: &Arc<Container>,
        now: UnixMillis,
        until: UnixMillis,
    ) -> Result<DocumentTransaction> {
        let guard = container.enter().await?;
        let partition = guard.state.layout.partition_of(&Epk::start())?;
        let home = partition.id.home();
        let held = self.engine().hold(home, until).await;
        let held = held.map_err(crate::partition::engine_error)?;
        Ok(DocumentTransaction {
            started: now,
            home,
            held,
            collections: HashMap::new(),
            created: Vec::new(),
            written_bytes: 0,
            enforces_throughput: self.enforces_throughput(),
            snapshot: None,
            claimed: Claimed::default(),
            is_conflicted: false,
        })
    }

    /// See `Account::begin_snapshot`.
    pub(crate) async fn begin_snapshot(
        &self,
        container: &Arc<Container>,
        now: UnixMillis,
        until: UnixMillis,
        terms: SnapshotTerms,
    ) -> Result<DocumentTransaction> {
        let transaction = self.begin_transaction(container, now, until).await?;
        Ok(DocumentTransaction {
            snapshot: Some(terms),
            ..transaction
        })
    }

    /// See `Account::commit_transaction`.
    pub(crate) async fn commit_transaction(
        &self,
        catalog: &Arc<Catalog>,
        transaction: DocumentTransaction,
        record: Option<SessionRecord>,
    ) -> Result<()> {
        let engine = self.shared_engine();
        if !transaction.created.is_empty() {
            let commit = |catalog| creation::commit(engine, catalog, transaction, record);
            return catalog.carry_out(commit).await;
        }
        // To its end, even if the request is dropped: the workers wait for the outcome.
        let commit = tokio::spawn(async move { commit(engine, transaction, record).await });
        commit
            .await
            .unwrap_or_else(|_| Err(Error::internal("a commit of a transaction panicked")))
    }
}

/// Documents that were drafted for other settings are a conflict, so that drivers begin the transaction again.
pub(super) fn conflict_of_settings(error: Error) -> Error {
    match error.is_of_changed_settings() {
        true => Reason::WriteConflict.into(),
        false => error,
    }
}

async fn commit(
    engine: Arc<dyn bolide_storage::Engine>,
    transaction: DocumentTransaction,
    mut record: Option<SessionRecord>,
) -> Result<()> {
    let DocumentTransaction {
        held,
        collections,
        claimed: _claimed,
        is_conflicted,
        ..
    } = transaction;
    drop(held);
    if is_conflicted {
        return Err(Reason::WriteConflict.into());
    }
    let mut parts: Vec<Part> = collections
        .into_values()
        .filter(|part| !part.written.is_empty() || part.publication.is_some())
        .collect();
    // In one order everywhere, so that no two transactions wait for each other.
    parts.sort_by_key(|part| part.partition.id);
    let containers: Vec<Arc<Container>> = parts.iter().map(|part| part.container.clone()).collect();
    let mut guards = Vec::with_capacity(containers.len());
    for (container, part) in containers.iter().zip(&mut parts) {
        let entered = container.enter().await;
        let guard = entered.map_err(|error| match error.kind {
            ErrorKind::NotFound => Error::from(Reason::WriteConflict),
            _ => error,
        })?;
        // The documents were drafted for these indexes.
        if guard.state.etag != part.state.etag {
            return Err(Reason::WriteConflict.into());
        }
        // It may keep its history since.
        part.state = guard.state.clone();
        guards.push(guard);
    }
    let charged = parts.iter().filter(|part| !part.state.pacing.count_only_load);
    let charged: Vec<_> = charged.map(|part| (part.partition.clone(), part.charge())).collect();
    // One of the partitions has the record: they are committed together.
    let decisions: Vec<(Arc<Partition>, JointDecision)> =
        parts.into_iter().map(|part| part.commit(record.take())).collect();
    if decisions.is_empty() {
        return Ok(());
    }
    let now = engine.time().lo.seconds();
    let committed = commit_jointly(engine, decisions).await;
    let committed = committed.map_err(conflict_of_settings);
    for (partition, units) in charged {
        let units = match committed {
            Ok(()) => units,
            Err(_) => charge::point_read(0),
        };
        partition.meter().lock().consume(now, units);
    }
    committed
}
