//! Writes of documents, decided in the partition's worker.

use std::borrow::Cow;
use std::sync::Arc;

use super::{DocumentDraft, DocumentId, StoredDocument, description};
use crate::change_log::{self as history, Change};
use crate::container::{Container, ContainerState};
use crate::format::etag::Etag;
use crate::format::keys;
use crate::format::record::{Content, Parts, Record};
use crate::items::{Kind, add, number_in_range, remove, remove_ghost};
use crate::partition::Partition;
use crate::partition::visibility::{Slot, StoredVersion};
use crate::partition::write_batch::{Decision, Stop, WriteBatch};
use crate::response::{ChargedResult, Refusal, Response};
use crate::runtime::{RequestContext, Runtime};
use bolide_model::epk::Epk;
use bolide_model::ttl::Stamp;
use bolide_model::{Error, RequestUnits, UnixMillis, charge};
use bolide_mql::update::FieldChanges;
use bolide_storage::{Key, Space};
use bytes::Bytes;

/// Why a decision on documents is not made yet: rows must be read first. Return it with `?`; the decision is then made again, from the start.
#[derive(Debug)]
pub struct Undecided(Stop);

impl Undecided {
    pub(super) fn into_stop(self) -> Stop {
        self.0
    }
}

impl From<Stop> for Undecided {
    fn from(stop: Stop) -> Undecided {
        Undecided(stop)
    }
}

impl From<Error> for Undecided {
    /// Refuses the whole decision: nothing of it is written.
    fn from(error: Error) -> Undecided {
        Undecided(Stop::Refused(error))
    }
}

/// A live document has the `_id` or a unique key already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// The index, by its id; 0 is the one on `_id`.
    pub index: u32,
}

/// The documents of one place of a collection as a decision sees them, changes before it in the same commit included. All changes of a decision are one
/// commit.
///
/// A decision may be made any number of times, so it must have no effects but on the batch.
pub struct DocumentBatch<'d, 'b> {
    state: &'d ContainerState,
    partition: &'d Partition,
    /// Where all of its documents are.
    place: Epk,
    batch: &'d mut WriteBatch<'b>,
    charge: RequestUnits,
    /// The changes so far, if a transaction is to repeat them.
    journal: Option<&'d mut Journal>,
}

/// The changes of a decision, in their order.
pub(super) type Journal = Vec<JournalEntry>;

/// One change of a decision.
pub(super) enum JournalEntry {
    Inserted { number: u64, draft: DocumentDraft },
    Replaced { base: StoredDocument, draft: DocumentDraft },
    Deleted { base: StoredDocument },
}

impl JournalEntry {
    /// Returns the size of the documents before and after it, which a transaction keeps, in bytes.
    pub fn size(&self) -> usize {
        match self {
            JournalEntry::Inserted { draft, .. } => draft.document().as_bytes().len(),
            JournalEntry::Replaced { base, draft } => base.record().size() + draft.document().as_bytes().len(),
            JournalEntry::Deleted { base } => base.record().size(),
        }
    }
}

impl<'d, 'b> DocumentBatch<'d, 'b> {
    pub(super) fn new(
        state: &'d ContainerState,
        (partition, place): (&'d Partition, Epk),
        batch: &'d mut WriteBatch<'b>,
    ) -> DocumentBatch<'d, 'b> {
        DocumentBatch {
            state,
            partition,
            place,
            batch,
            charge: RequestUnits::ZERO,
            journal: None,
        }
    }

    pub(super) fn with_journal(self, journal: &'d mut Journal) -> DocumentBatch<'d, 'b> {
        DocumentBatch {
            journal: Some(journal),
            ..self
        }
    }

    pub(super) fn batch(&mut self) -> &mut WriteBatch<'b> {
        self.batch
    }

    fn note(&mut self, entry: impl FnOnce() -> JournalEntry) {
        if let Some(journal) = &mut self.journal {
            journal.push(entry());
        }
    }
}

impl DocumentBatch<'_, '_> {
    /// Returns server time: everything that the decision writes is written at this time.
    pub fn now(&self) -> UnixMillis {
        self.batch.now
    }

    /// Finds a live document by its `_id`.
    ///
    /// # Errors
    /// [`Undecided`].
    pub fn find(&mut self, id: &DocumentId) -> Result<Option<StoredDocument>, Undecided> {
        Ok(self.slot_of(id)?.live().map(stored))
    }

    /// Reads a document again that was read before. Returns `None` if it was deleted or has ended.
    ///
    /// # Errors
    /// [`Undecided`].
    pub fn again(&mut self, known: &StoredDocument) -> Result<Option<StoredDocument>, Undecided> {
        self.check_place(keys::epk_of_item(known.key()))?;
        let key = Key::new(Space::Item, known.key().clone());
        Ok(self.batch.slot(key, &self.state.settings)?.live().map(stored))
    }

    /// Inserts a document, in place of ghosts that have its `_id` or unique keys (TTL-286).
    ///
    /// # Errors
    /// [`Undecided`].
    pub fn insert(&mut self, draft: &DocumentDraft) -> Result<Result<(), Duplicate>, Undecided> {
        self.check_place(draft.place.as_bytes())?;
        let draft = &*self.in_force(draft)?;
        let mut ghosts = Vec::new();
        let number = self.batch.new_entry(&self.id_entry(&draft.id))?;
        match self.slot_at(number)? {
            Slot::Live(_) => return Ok(Err(Duplicate { index: 0 })),
            slot => ghosts.extend(slot.ghost()),
        }
        match self.unique_ghosts(draft, None)? {
            Ok(more) => merge(&mut ghosts, more),
            Err(duplicate) => return Ok(Err(duplicate)),
        }
        self.batch.state.next_number += 1;
        let number = number_in_range(self.partition.range, self.batch.state.next_number);
        self.batch.note_new_item(|| keys::item(&self.place, number));
        self.store(number, draft, None, ghosts);
        self.note(|| JournalEntry::Inserted {
            number,
            draft: draft.clone(),
        });
        Ok(Ok(()))
    }

    /// Replaces a live document, as this batch sees it, by a version with the same `_id`.
    ///
    /// # Errors
    /// [`Undecided`].
    pub fn replace(
        &mut self,
        replaced: &StoredDocument,
        draft: &DocumentDraft,
    ) -> Result<Result<(), Duplicate>, Undecided> {
        self.check_place(draft.place.as_bytes())?;
        let draft = &*self.in_force(draft)?;
        let ghosts = match self.unique_ghosts(draft, Some(replaced))? {
            Ok(ghosts) => ghosts,
            Err(duplicate) => return Ok(Err(duplicate)),
        };
        self.store(replaced.number(), draft, Some(replaced), ghosts);
        self.note(|| JournalEntry::Replaced {
            base: replaced.clone(),
            draft: draft.clone(),
        });
        Ok(Ok(()))
    }

    /// Replaces several live documents, among which unique keys may move in any way.
    ///
    /// # Errors
    /// [`Undecided`].
    pub(super) fn replace_all(
        &mut self,
        replaced: &[(&StoredDocument, &DocumentDraft)],
    ) -> Result<Result<(), Duplicate>, Undecided> {
        let mut current = Vec::with_capacity(replaced.len());
        for (stored, draft) in replaced {
            current.push((*stored, self.in_force(draft)?));
        }
        let replaced = &current[..];
        let mut ghosts = Vec::with_capacity(replaced.len());
        for (_, draft) in replaced {
            let of_draft =
                self.unique_holders(draft, |holder| replaced.iter().any(|(other, _)| other.key() == holder))?;
            match of_draft {
                Ok(more) => ghosts.push(more),
                Err(duplicate) => return Ok(Err(duplicate)),
            }
        }
        let mut held: Vec<_> = replaced.iter().flat_map(|(_, draft)| &draft.unique).collect();
        held.sort_unstable();
        if let Some(twice) = held.windows(2).find(|pair| pair[0] == pair[1]) {
            return Ok(Err(Duplicate { index: twice[0].index }));
        }
        for (stored, _) in replaced {
            remove(
                self.batch,
                &self.state.indexes,
                &Key::new(Space::Item, stored.key().clone()),
                stored.record(),
            );
        }
        let mut removed: Vec<Bytes> = Vec::new();
        for ((stored, draft), ghosts) in replaced.iter().zip(ghosts) {
            let mut ghosts = ghosts;
            ghosts.retain(|ghost| !removed.contains(&ghost.key.bytes));
            removed.extend(ghosts.iter().map(|ghost| ghost.key.bytes.clone()));
            self.store_over(stored.number(), draft, Some(stored), ghosts);
        }
        Ok(Ok(()))
    }

    /// Deletes a live document, as this batch sees it.
    pub fn delete(&mut self, deleted: &StoredDocument) {
        let version = self.batch.next_version();
        let (key, record) = (Key::new(Space::Item, deleted.key().clone()), deleted.record());
        self.charge += charge::write(record.size());
        remove(self.batch, &self.state.indexes, &key, record);
        let change = Change::deleted(&key.bytes, record);
        history::log(self.batch, self.state.keeping(), version, change);
        self.note(|| JournalEntry::Deleted { base: deleted.clone() });
    }

    /// Requests what the insertion of several documents needs, so that it is read at once.
    ///
    /// # Errors
    /// [`Undecided`].
    pub fn foresee_all<'f>(&mut self, drafts: impl IntoIterator<Item = &'f DocumentDraft>) -> Result<(), Undecided> {
        let mut keys: Vec<Key> = Vec::new();
        for draft in drafts {
            let draft = self.in_force(draft)?;
            keys.push(self.id_entry(&draft.id));
            let unique = draft.unique.iter();
            keys.extend(unique.map(|unique| keys::unique_index(self.place.as_bytes(), Content::Bson, unique)));
        }
        Ok(self.batch.foresee(&keys)?)
    }

    /// Returns a draft as it is by the definition in force.
    fn in_force<'r>(&self, draft: &'r DocumentDraft) -> Result<Cow<'r, DocumentDraft>, Undecided> {
        match &self.state.collection {
            Some(collection) => Ok(draft
                .by(collection)
                .map_err(|error| Error::bad_request(error.to_string()))?),
            None => Ok(Cow::Borrowed(draft)),
        }
    }

    /// Refuses what would be written to or read from a partition that does not have it.
    fn check_place(&self, place: &[u8]) -> Result<(), Undecided> {
        match place == self.place.as_bytes() {
            true => Ok(()),
            false => Err(Error::internal("a document of another place than its commit").into()),
        }
    }

    fn slot_of(&mut self, id: &DocumentId) -> Decision<Slot> {
        let number = self.batch.entry(&self.id_entry(id))?;
        self.slot_at(number)
    }

    fn id_entry(&self, id: &DocumentId) -> Key {
        keys::id_index(self.place.as_bytes(), &id.0)
    }

    /// Returns what is stored under the number in an entry of the index of ids.
    fn slot_at(&mut self, number: Option<Bytes>) -> Decision<Slot> {
        match number.and_then(|value| value[..].try_into().ok()) {
            Some(number) => {
                let key = keys::item(&self.place, u64::from_be_bytes(number));
                self.batch.slot(key, &self.state.settings)
            }
            None => Ok(Slot::Free),
        }
    }

    /// Returns the ghosts that hold unique keys of a draft, which may be held by the version that it replaces.
    fn unique_ghosts(
        &mut self,
        draft: &DocumentDraft,
        replaced: Option<&StoredDocument>,
    ) -> Decision<Result<Vec<StoredVersion>, Duplicate>> {
        self.unique_holders(draft, |holder| {
            replaced.is_some_and(|replaced| replaced.key() == holder)
        })
    }

    /// Like [`DocumentBatch::unique_ghosts`], without holders that will be gone.
    fn unique_holders(
        &mut self,
        draft: &DocumentDraft,
        is_replaced: impl Fn(&Bytes) -> bool,
    ) -> Decision<Result<Vec<StoredVersion>, Duplicate>> {
        let entries: Vec<Key> = draft
            .unique
            .iter()
            .map(|unique| keys::unique_index(self.place.as_bytes(), Content::Bson, unique))
            .collect();
        let holders = self.batch.entries(&entries)?;
        let mut ghosts = Vec::new();
        for (unique, holder) in draft.unique.iter().zip(holders) {
            let Some(holder) = holder else { continue };
            if is_replaced(&holder) {
                continue;
            }
            match self.batch.slot(Key::new(Space::Item, holder), &self.state.settings)? {
                Slot::Live(_) => return Ok(Err(Duplicate { index: unique.index })),
                slot => merge(&mut ghosts, slot.ghost()),
            }
        }
        Ok(Ok(ghosts))
    }

    /// Adds the effects of a write: the removal of ghosts, that of the version it replaces, and the new version.
    fn store(
        &mut self,
        number: u64,
        draft: &DocumentDraft,
        replaced: Option<&StoredDocument>,
        ghosts: Vec<StoredVersion>,
    ) {
        if let Some(replaced) = replaced {
            let key = Key::new(Space::Item, replaced.key().clone());
            remove(self.batch, &self.state.indexes, &key, replaced.record());
        }
        self.store_over(number, draft, replaced, ghosts);
    }

    /// Like [`DocumentBatch::store`], if the version that is replaced was removed already.
    fn store_over(
        &mut self,
        number: u64,
        draft: &DocumentDraft,
        replaced: Option<&StoredDocument>,
        ghosts: Vec<StoredVersion>,
    ) {
        for ghost in &ghosts {
            let version = self.batch.next_version();
            remove_ghost(self.batch, self.state, version, ghost);
        }
        let version = self.batch.next_version();
        let last_modified = self.batch.seconds();
        let record = Record::new(&Parts {
            version,
            last_modified,
            stamp: Stamp::new(last_modified, draft.own),
            etag: Etag::of_write(u64::from(self.partition.id.number()), version.lsn, version.seq),
            number,
            id: &draft.id.0,
            deadlines: &draft.deadlines,
            unique: &draft.unique,
            content: Content::Bson,
            document: draft.document.as_bytes(),
        });
        let replaced = replaced.map(StoredDocument::record);
        let before = (replaced, draft.changes.as_deref());
        add_version(self.batch, self.state, &self.place, &record, before);
        self.charge += charge::write(record.size());
    }
}

/// Adds a new document that is no write of a user.
pub(crate) fn add_document(batch: &mut WriteBatch<'_>, state: &ContainerState, epk: &Epk, record: &Record) {
    add_version(batch, state, epk, record, (None, None));
}

/// Adds a version of a document: its record with all entries, its change in the history, and its end for the purge and for change streams. `replaced`:
/// the version before it, and `changes`: what an update changed in that.
fn add_version(
    batch: &mut WriteBatch<'_>,
    state: &ContainerState,
    epk: &Epk,
    record: &Record,
    (replaced, changes): (Option<&Record>, Option<&FieldChanges>),
) {
    let key = add(batch, &state.indexes, epk, record);
    let keeping = state.keeping();
    if keeping.is_some() {
        let description = changes.map(description::encode).unwrap_or_default();
        let change = Change::written(&key, record, replaced);
        history::log(batch, keeping.clone(), record.version(), change.described(description));
        // A date that lies behind those that were told already will not be found any more.
        if batch.state.has_told_end(record) {
            let ended = batch.next_version();
            history::log(batch, keeping, ended, Change::ended(&key, record));
        }
    }
    if let Some(end) = state.settings.ends_at(record.stamp(), record.deadlines()) {
        // The purge counts in seconds, and must not come too early.
        batch.after.expect_expiry(end.seconds_up().0);
        batch.after.expect_ending(end);
    }
}

fn stored(version: StoredVersion) -> StoredDocument {
    StoredDocument::new(version.key.bytes, version.record)
}

fn merge(ghosts: &mut Vec<StoredVersion>, more: impl IntoIterator<Item = StoredVersion>) {
    for ghost in more {
        if ghosts.iter().all(|known| known.key != ghost.key) {
            ghosts.push(ghost);
        }
    }
}

impl Runtime {
    /// See `Account::write_documents`.
    pub(crate) async fn write_documents<T, F>(
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
        let guard = container.enter().await?;
        let partition = guard.state.layout.partition_of(&place)?.clone();
        self.admit(ctx, &partition, &guard)?;
        let (state, deciding, place, mut decide) = (guard.state.clone(), partition.clone(), place, decide);
        let decide = move |batch: &mut WriteBatch<'_>| {
            batch.batch(|batch| {
                let mut documents = DocumentBatch::new(&state, (&deciding, place.clone()), batch);
                let value = decide(&mut documents).map_err(|undecided| undecided.0)?;
                let charge = documents.charge;
                Ok((value, charge, batch.head(), batch.now))
            })
        };
        let outcome = match kind {
            Kind::Single => partition.write(decide).await,
            Kind::Batch => partition.write_batch(decide).await,
        };
        match outcome {
            Ok((value, charge, lsn, now)) => {
                // A decision that writes nothing shows what has ended, too.
                partition.show_exactly(&guard.state.settings, now).await;
                let cost = self.charge(
                    ctx,
                    &partition,
                    &guard,
                    RequestUnits(charge.0.max(charge::point_read(0).0)),
                    lsn,
                );
                Ok(Response { value, cost })
            }
            Err(error) => {
                let cost = self.charge(ctx, &partition, &guard, charge::point_read(0), partition.lsn());
                Err(Refusal { error, cost })
            }
        }
    }
}
