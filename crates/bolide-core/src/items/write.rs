//! Writes: what a create, upsert, replace, patch or delete comes to, decided by the partition's worker.
//!
//! A decision first looks everything up and checks, then adds its effects: the ghosts in its way are purged (TTL-255), the old version's
//! entries go, the new version's entries come. Every effect of one write is in one commit.

use std::sync::Arc;

use super::condition::{self, Judged};
use bolide_model::document::{Document, Patch};
use bolide_model::epk::Epk;
use bolide_model::partition_key::{PartitionKey, PartitionKeyDefinition};
use bolide_model::ttl::{Horizon, Own, Stamp};
use bolide_model::{Error, ErrorKind, Lsn, RequestUnits, Result, charge};
use bolide_storage::Key;
use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::ahead::Ahead;
use super::read::decode_number;
use super::{
    CreateItem, DeleteItem, ItemTarget, ItemWritten, PatchItem, ReplaceItem, UpsertItem, item_not_found,
    precondition_failed,
};
use crate::account::{Account, RequestContext};
use crate::answer::{Answer, Answered, Refusal};
use crate::change_log::{self as history, Change};
use crate::container::{Container, ContainerState, Visit};
use crate::content::StoredItem;
use crate::content::logical;
use crate::format::etag::Etag;
use crate::format::keys::{self, DIGEST_BYTES, LogPosition, UniqueDigest};
use crate::format::record::{ExpiryEntry, LogEntry, Parts, Record};
use crate::partition::Partition;
use crate::partition::round::{Round, Step, Stop};

impl Account {
    /// Creates an item.
    ///
    /// # Errors
    /// - `Conflict`: a live item has this id in the partition. An expired one does not count (TTL-241).
    /// - `UniqueKeyConflict`: a live item holds one of its unique keys (TTL-251).
    /// - `BadRequest`, `PartitionKeyMismatch`, `TooLarge`: as the message says; nothing was changed (TTL-218).
    pub async fn create_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        create: CreateItem,
    ) -> Answered<ItemWritten> {
        let visit = container.enter().await?;
        let epk = epk_of_document(&visit.state, &create.document, create.partition_key.as_ref())?;
        let draft = Draft::new(create.document, &visit.state)?;
        self.write(ctx, container, &visit, epk, move |item, round| {
            item.create(round, &draft)
        })
        .await
    }

    /// Creates an item, or replaces the live one with its id.
    ///
    /// # Errors
    /// As [`Account::create_item`] without `Conflict`; `PreconditionFailed` if a live item is another version.
    pub async fn upsert_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        upsert: UpsertItem,
    ) -> Answered<ItemWritten> {
        let visit = container.enter().await?;
        let epk = epk_of_document(&visit.state, &upsert.document, upsert.partition_key.as_ref())?;
        let draft = Draft::new(upsert.document, &visit.state)?;
        let if_match = upsert.if_match;
        self.write(ctx, container, &visit, epk, move |item, round| {
            item.upsert(round, &draft, if_match.as_deref())
        })
        .await
    }

    /// Replaces a live item.
    ///
    /// # Errors
    /// - `NotFound`: no live item has this name; wins over a condition that does not hold (TTL-242).
    /// - `PreconditionFailed`: it is another version.
    /// - `Conflict`: the document has another id, and a live item has that one.
    /// - otherwise as [`Account::create_item`].
    pub async fn replace_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        replace: ReplaceItem,
    ) -> Answered<ItemWritten> {
        let visit = container.enter().await?;
        let epk = epk_of_document(&visit.state, &replace.document, Some(&replace.partition_key))?;
        let draft = Draft::new(replace.document, &visit.state)?;
        let (target, if_match) = (replace.target, replace.if_match);
        self.write(ctx, container, &visit, epk, move |item, round| {
            item.replace(round, &target, &draft, if_match.as_deref())
        })
        .await
    }

    /// Changes parts of a live item.
    ///
    /// # Errors
    /// - `PatchConditionFailed`: the patch's condition is false.
    /// - `BadRequest`: an operation cannot be applied; the message has its number.
    /// - otherwise as [`Account::replace_item`].
    pub async fn patch_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        patch: PatchItem,
    ) -> Answered<ItemWritten> {
        let visit = match &patch.patch.condition {
            Some(_) => container.enter_uninterruptible().await?,
            None => container.enter().await?,
        };
        let epk = epk_of_key(&visit.state, &patch.partition_key)?;
        let mut judged = match patch.patch.condition.as_deref() {
            Some(text) => Some(Judged::one_of(1, self.compile_condition(text).await?)),
            None => None,
        };
        let (patch, mut ahead) = (Arc::new(patch), Ahead::default());
        for _ in condition::tries() {
            let prepared = (judged.clone(), ahead.clone());
            let done = self
                .patch_once(ctx, container, &visit, epk.clone(), patch.clone(), prepared)
                .await;
            let partition = visit.state.layout.partition_of(&epk)?;
            let unjudged = judged.as_mut().filter(|judged| judged.take_need());
            let (is_judged, is_made) = (unjudged.is_none(), !ahead.take_need());
            if let Some(judged) = unjudged {
                self.judge(container.rid(), partition, &epk, &patch.target, judged)
                    .await?;
            }
            if !is_made {
                let place = (&epk, &patch.target);
                self.patch_ahead(&visit.state, partition, place, &patch.patch, &mut ahead)
                    .await?;
            }
            if is_judged && is_made {
                return done;
            }
        }
        self.patch_once(ctx, container, &visit, epk, patch, (judged, ahead))
            .await
    }

    async fn patch_once(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        visit: &Visit<'_>,
        epk: Epk,
        patch: Arc<PatchItem>,
        (condition, ahead): (Option<Judged>, Ahead),
    ) -> Answered<ItemWritten> {
        self.write(ctx, container, visit, epk, move |item, round| {
            let PatchItem {
                target,
                patch,
                if_match,
                ..
            } = &*patch;
            item.patch(
                round,
                target,
                patch,
                (condition.as_ref(), Some(&ahead)),
                if_match.as_deref(),
            )
        })
        .await
    }

    /// Deletes a live item.
    ///
    /// # Errors
    /// `NotFound` and `PreconditionFailed` as [`Account::replace_item`].
    pub async fn delete_item(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        delete: DeleteItem,
    ) -> Answered<()> {
        let visit = container.enter().await?;
        let epk = epk_of_key(&visit.state, &delete.partition_key)?;
        let (target, if_match) = (delete.target, delete.if_match);
        self.write(ctx, container, &visit, epk, move |item, round| {
            item.delete(round, &target, if_match.as_deref())
        })
        .await
    }

    /// Carries a decision on one item out in the partition of `epk`, and accounts for what it took.
    pub(super) async fn write<T, F>(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        visit: &Visit<'_>,
        epk: Epk,
        decide: F,
    ) -> Answered<T>
    where
        T: Send + 'static,
        F: FnMut(&Logical, &mut Round<'_>) -> Step<Written<T>> + Send + 'static,
    {
        self.write_as(Kind::Single, ctx, container, visit, epk, decide).await
    }

    /// As [`Account::write`], for a decision on one item or on many.
    pub(super) async fn write_as<T, F>(
        &self,
        kind: Kind,
        ctx: &RequestContext,
        container: &Arc<Container>,
        visit: &Visit<'_>,
        epk: Epk,
        mut decide: F,
    ) -> Answered<T>
    where
        T: Send + 'static,
        F: FnMut(&Logical, &mut Round<'_>) -> Step<Written<T>> + Send + 'static,
    {
        let partition = visit.state.layout.partition_of(&epk)?.clone();
        self.admit(ctx, &partition, visit)?;
        let logical = Logical::new(container.clone(), visit.state.clone(), partition.clone(), epk);
        let decide = move |round: &mut Round<'_>| decide(&logical, round);
        let outcome = match kind {
            Kind::Single => partition.write(decide).await,
            Kind::Batch => partition.write_batch(decide).await,
        };
        match outcome {
            Ok(Written {
                value,
                lsn,
                charge,
                owed,
            }) => {
                partition.meter().lock().spend(ctx.now.seconds(), owed);
                let work = self.charge(ctx, &partition, visit, charge, lsn);
                Ok(Answer { value, work })
            }
            Err(error) => {
                // A refused write costs what a read that finds nothing costs.
                let work = self.charge(ctx, &partition, visit, charge::point_read(0), partition.lsn());
                Err(Refusal { error, work })
            }
        }
    }
}

/// How much a decision is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Single,
    Batch,
}

/// What a decided write gives back.
pub(crate) struct Written<T> {
    pub value: T,
    pub lsn: Lsn,
    pub charge: RequestUnits,
    /// What the ghosts that were in the way cost: owed by the purge.
    pub owed: RequestUnits,
}

/// A document on its way in, checked as far as it can be without looking at others.
pub(crate) struct Draft {
    pub id: String,
    own: Own,
    text: Vec<u8>,
    unique: Vec<UniqueDigest>,
}

impl Draft {
    pub fn new(document: Document, state: &ContainerState) -> Result<Draft> {
        let id = document.id()?.to_owned();
        let own = document.own_ttl()?;
        let text = document.to_stored_text()?.into_bytes();
        let unique = unique_digests(&document, state);
        Ok(Draft { id, own, text, unique })
    }
}

/// Digests of an item's values at the paths of each unique key constraint.
pub(crate) fn unique_digests(document: &Document, state: &ContainerState) -> Vec<UniqueDigest> {
    let digest = |paths| {
        let mut hash = Sha256::new();
        for value in document.unique_key_values(paths) {
            hash.update(value.to_json().to_string());
            // No JSON text holds a raw control character, so values cannot run into each other.
            hash.update([0]);
        }
        let hash = hash.finalize();
        let mut digest = [0; DIGEST_BYTES];
        digest.copy_from_slice(&hash[..DIGEST_BYTES]);
        digest
    };
    state.properties.unique_keys.iter().map(|paths| digest(paths)).collect()
}

pub(crate) fn epk_of_key(state: &ContainerState, key: &PartitionKey) -> Result<Epk> {
    let definition = &state.properties.partition_key;
    definition.check_full(key)?;
    Ok(logical::of(definition, key))
}

/// The place of a document; the key the caller gave must be the document's own.
fn epk_of_document(state: &ContainerState, document: &Document, given: Option<&PartitionKey>) -> Result<Epk> {
    let own = own_key(state, document, given)?;
    Ok(logical::of(&state.properties.partition_key, &own))
}

/// The key of a document; the one the caller gave must be it.
pub(crate) fn own_key(
    state: &ContainerState,
    document: &Document,
    given: Option<&PartitionKey>,
) -> Result<PartitionKey> {
    let definition: &PartitionKeyDefinition = &state.properties.partition_key;
    let own = document.partition_key(definition);
    if let Some(given) = given {
        definition.check_full(given)?;
        if *given != own {
            return Err(bolide_model::partition_key::mismatch());
        }
    }
    definition.check_full(&own)?;
    Ok(own)
}

/// A logical partition as a decision sees it.
pub(crate) struct Logical {
    pub container: Arc<Container>,
    state: Arc<ContainerState>,
    partition: Arc<Partition>,
    epk: Epk,
}

/// A stored version and where it is.
pub(crate) struct Existing {
    key: Key,
    pub record: Record,
}

impl Logical {
    pub fn new(container: Arc<Container>, state: Arc<ContainerState>, partition: Arc<Partition>, epk: Epk) -> Logical {
        Logical {
            container,
            state,
            partition,
            epk,
        }
    }

    pub fn create(&self, round: &mut Round<'_>, draft: &Draft) -> Step<Written<ItemWritten>> {
        let by_id = self.find_by_id(round, &draft.id)?;
        let ghost = self.must_be_free(round, by_id)?;
        let mut ghosts = self.holders(round, draft, None)?;
        add_ghost(&mut ghosts, ghost);
        let number = self.next_number(round);
        self.store(round, number, draft, None, ghosts)
    }

    pub fn upsert(&self, round: &mut Round<'_>, draft: &Draft, if_match: Option<&str>) -> Step<Written<ItemWritten>> {
        match self.find_by_id(round, &draft.id)? {
            Some(existing) if self.is_live(round, &existing) => {
                check_match(&existing, if_match)?;
                let ghosts = self.holders(round, draft, Some(&existing))?;
                self.store(round, existing.record.number(), draft, Some(existing), ghosts)
            }
            // TTL-240: over a ghost, an upsert is a create.
            _ => self.create(round, draft),
        }
    }

    pub fn replace(
        &self,
        round: &mut Round<'_>,
        target: &ItemTarget,
        draft: &Draft,
        if_match: Option<&str>,
    ) -> Step<Written<ItemWritten>> {
        let existing = self.find_live(round, target)?;
        check_match(&existing, if_match)?;
        self.overwrite(round, existing, draft)
    }

    pub fn patch(
        &self,
        round: &mut Round<'_>,
        target: &ItemTarget,
        patch: &Patch,
        (condition, ahead): (Option<&Judged>, Option<&Ahead>),
        if_match: Option<&str>,
    ) -> Step<Written<ItemWritten>> {
        let existing = self.find_live(round, target)?;
        check_match(&existing, if_match)?;
        if let Some(condition) = condition
            && !condition.holds(self.container.rid(), &existing.record, round.now)?
        {
            return Err(Stop::Refused(Error::new(
                ErrorKind::PatchConditionFailed,
                "One of the specified pre-condition is not met: the condition of the patch does not hold.",
            )));
        }
        let made = ahead.map(|ahead| ahead.of(&existing.record)).transpose()?.flatten();
        match made {
            Some(draft) => self.overwrite(round, existing, &draft),
            None => {
                let draft = Draft::patched(&existing.record, patch, &self.state)?;
                self.overwrite(round, existing, &draft)
            }
        }
    }

    pub fn delete(&self, round: &mut Round<'_>, target: &ItemTarget, if_match: Option<&str>) -> Step<Written<()>> {
        let existing = self.find_live(round, target)?;
        check_match(&existing, if_match)?;
        let version = round.next_version();
        let charge = charge::write(existing.record.size());
        remove(round, &existing.key, &existing.record);
        let change = Change::deleted(&existing.key.bytes, &existing.record);
        history::log(round, &self.partition, &self.state, version, change);
        Ok(Written {
            value: (),
            lsn: version.lsn,
            charge,
            owed: RequestUnits::ZERO,
        })
    }

    /// Puts a new version in the place of a live one, under its own or another id.
    fn overwrite(&self, round: &mut Round<'_>, existing: Existing, draft: &Draft) -> Step<Written<ItemWritten>> {
        let mut ghosts = self.holders(round, draft, Some(&existing))?;
        if existing.record.id() != draft.id {
            let by_new_id = self.find_by_id(round, &draft.id)?;
            let ghost = self.must_be_free(round, by_new_id)?;
            add_ghost(&mut ghosts, ghost);
        }
        self.store(round, existing.record.number(), draft, Some(existing), ghosts)
    }

    /// Reads what is stored of several items, and who holds the unique keys of several drafts, all at once if that is not much: a decision
    /// that comes upon one after the other is begun anew for each.
    pub fn foresee<'d>(
        &self,
        round: &mut Round<'_>,
        ids: impl Iterator<Item = &'d str>,
        drafts: impl Iterator<Item = &'d Draft>,
    ) -> Step<()> {
        let ids = ids.map(|id| keys::id_index(self.epk.as_bytes(), id.as_bytes()));
        let numbers = round.get_all(&ids.collect::<Vec<_>>());
        let mut entries = Vec::new();
        for draft in drafts {
            entries.extend(self.unique_entries(&draft.unique));
        }
        let holders = round.get_all(&entries);
        let numbers = numbers?.into_iter().flatten();
        let items = numbers.filter_map(|number| Some(keys::item(&self.epk, decode_number(&number)?)));
        let holders = holders?.into_iter().flatten();
        let holders = holders.map(|item_key| Key::new(bolide_storage::Space::Item, item_key));
        let items: Vec<Key> = items.collect();
        round.foresee(&items.iter().cloned().chain(holders).collect::<Vec<_>>())?;
        // What a patch leaves of an item's unique keys is asked for again.
        let mut entries = Vec::new();
        for record in items.iter().filter_map(|key| round.loaded(key)) {
            let unique: Vec<UniqueDigest> = Record::decode(record)?.unique().collect();
            entries.extend(self.unique_entries(&unique));
        }
        round.foresee(&entries)
    }

    /// Notes what is stored of several items as missing, as far as it was not read. What is read of it at once has its bound.
    pub fn read_on<'d>(&self, round: &mut Round<'_>, ids: impl Iterator<Item = &'d str>) {
        for id in ids {
            // Whatever stops one stops the decision, too, when it comes to that one.
            let _ = self.find_by_id(round, id);
        }
    }

    pub fn find_live(&self, round: &mut Round<'_>, target: &ItemTarget) -> Step<Existing> {
        let found = match target {
            ItemTarget::Id(id) => self.find_by_id(round, id)?,
            ItemTarget::Rid(number) => self.find_by_key(round, keys::item(&self.epk, *number))?,
        };
        found
            .filter(|existing| self.is_live(round, existing))
            .ok_or_else(|| Stop::Refused(item_not_found()))
    }

    fn find_by_id(&self, round: &mut Round<'_>, id: &str) -> Step<Option<Existing>> {
        let number = round.get(&keys::id_index(self.epk.as_bytes(), id.as_bytes()))?;
        match number.as_deref().and_then(decode_number) {
            None => Ok(None),
            Some(number) => self.find_by_key(round, keys::item(&self.epk, number)),
        }
    }

    fn find_by_key(&self, round: &mut Round<'_>, key: Key) -> Step<Option<Existing>> {
        let record = round.get(&key)?.map(Record::decode).transpose()?;
        Ok(record.map(|record| Existing { key, record }))
    }

    pub fn horizon(&self, round: &Round<'_>) -> Horizon {
        round.horizon(&self.state.settings)
    }

    pub fn epk_bytes(&self) -> Bytes {
        Bytes::copy_from_slice(self.epk.as_bytes())
    }

    fn is_live(&self, round: &Round<'_>, existing: &Existing) -> bool {
        existing.record.stamp().is_live(self.horizon(round))
            && !round.state.drops.hides(&existing.key.bytes, &existing.record)
    }

    /// Whoever has an id must be a ghost, and is given back to be purged.
    fn must_be_free(&self, round: &Round<'_>, existing: Option<Existing>) -> Step<Option<Existing>> {
        match existing {
            Some(existing) if self.is_live(round, &existing) => Err(Stop::Refused(Error::conflict(
                "Resource with specified id, name, or unique index already exists.",
            ))),
            ghost => Ok(ghost),
        }
    }

    /// The ghosts that hold unique keys the draft needs (TTL-251). `itself` is the version the draft replaces.
    fn holders(&self, round: &mut Round<'_>, draft: &Draft, itself: Option<&Existing>) -> Step<Vec<Existing>> {
        let entries: Vec<Key> = self.unique_entries(&draft.unique).collect();
        let holders = round.get_all(&entries)?;
        let mut ghosts = Vec::new();
        for item_key in holders.into_iter().flatten() {
            let key = Key::new(bolide_storage::Space::Item, item_key);
            if itself.is_some_and(|existing| existing.key == key) {
                continue;
            }
            match self.find_by_key(round, key)? {
                Some(holder) if self.is_live(round, &holder) => {
                    return Err(Stop::Refused(Error::new(
                        ErrorKind::UniqueKeyConflict,
                        "Unique index constraint violation: Resource with specified id, name, or unique index already exists.",
                    )));
                }
                ghost => add_ghost(&mut ghosts, ghost),
            }
        }
        Ok(ghosts)
    }

    fn unique_entries<'a>(&'a self, digests: &'a [UniqueDigest]) -> impl Iterator<Item = Key> + 'a {
        digests
            .iter()
            .enumerate()
            .map(|(at, digest)| keys::unique_index(self.epk.as_bytes(), at, digest))
    }

    /// The next item's number: the range in the high bytes, so that numbers are unique in the container.
    fn next_number(&self, round: &mut Round<'_>) -> u64 {
        round.state.next_number += 1;
        number_in_range(self.partition.range, round.state.next_number)
    }

    /// Adds the effects of a write: ghosts in its way go first in the order of the log, then the version it replaces.
    fn store(
        &self,
        round: &mut Round<'_>,
        number: u64,
        draft: &Draft,
        replaced: Option<Existing>,
        ghosts: Vec<Existing>,
    ) -> Step<Written<ItemWritten>> {
        let mut owed = RequestUnits::ZERO;
        for ghost in &ghosts {
            let version = round.next_version();
            owed += remove_ghost(round, &self.partition, &self.state, version, &ghost.key, &ghost.record);
        }
        let version = round.next_version();
        if let Some(replaced) = &replaced {
            remove(round, &replaced.key, &replaced.record);
        }
        let last_modified = round.seconds();
        let record = Record::new(&Parts {
            version,
            last_modified,
            stamp: Stamp::new(last_modified, draft.own),
            etag: Etag::of_write(self.partition.id.0, version.lsn, version.seq),
            number,
            id: &draft.id,
            unique: &draft.unique,
            document: &draft.text,
        });
        let key = add(round, &self.epk, &record);
        let change = Change::written(&key, &record, replaced.as_ref().map(|replaced| &replaced.record));
        history::log(round, &self.partition, &self.state, version, change);
        self.expect_end(&record);
        let charge = charge::write(record.size());
        let created = replaced.is_none();
        let item = StoredItem::new(self.container.rid(), record);
        Ok(Written {
            value: ItemWritten { item, created },
            lsn: version.lsn,
            charge,
            owed,
        })
    }

    /// Lets the purge know when this version ends.
    fn expect_end(&self, record: &Record) {
        if let Some(end) = record.stamp().ends_at(self.state.settings.policy) {
            self.partition.expect_due(end);
        }
    }
}

/// The resource number of the `counter`-th item of a range.
pub(crate) fn number_in_range(range: u32, counter: u64) -> u64 {
    (u64::from(range) << 40) | counter
}

fn add_ghost(ghosts: &mut Vec<Existing>, ghost: Option<Existing>) {
    if let Some(ghost) = ghost
        && ghosts.iter().all(|known| known.key != ghost.key)
    {
        ghosts.push(ghost);
    }
}

fn check_match(existing: &Existing, if_match: Option<&str>) -> Result<()> {
    match if_match {
        Some(header) if !existing.record.etag().matches(header) => Err(precondition_failed()),
        _ => Ok(()),
    }
}

/// Adds a record with all its entries; returns its key.
pub(crate) fn add(round: &mut Round<'_>, epk: &Epk, record: &Record) -> Bytes {
    let key = keys::item(epk, record.number());
    let size = u32::try_from(record.size()).expect("limits::ITEM_BYTES fits");
    let number = Bytes::copy_from_slice(&record.number().to_be_bytes());
    round.put(keys::id_index(epk.as_bytes(), record.id().as_bytes()), number);
    for (at, digest) in record.unique().enumerate() {
        round.put(keys::unique_index(epk.as_bytes(), at, &digest), key.bytes.clone());
    }
    let entry = LogEntry {
        class: record.stamp().class,
        last_modified: record.last_modified(),
        size,
        item_key: key.bytes.clone(),
    };
    round.put(record.version().key(), entry.encode());
    if let Some(position) = record.expiry_position() {
        round.put(
            position.key(),
            ExpiryEntry {
                size,
                item_key: key.bytes.clone(),
            }
            .encode(),
        );
    }
    let item_key = key.bytes.clone();
    round.put(key, record.bytes().clone());
    round.state.added(&item_key, record);
    item_key
}

/// Removes a record with all its entries (TTL-267).
pub(crate) fn remove(round: &mut Round<'_>, key: &Key, record: &Record) {
    let epk = keys::epk_of_item(&key.bytes);
    round.delete(keys::id_index(epk, record.id().as_bytes()));
    for (at, digest) in record.unique().enumerate() {
        round.delete(keys::unique_index(epk, at, &digest));
    }
    round.delete(record.version().key());
    if let Some(position) = record.expiry_position() {
        round.delete(position.key());
    }
    round.delete(key.clone());
    round.state.removed(&key.bytes, record);
}

/// Removes a ghost in the write at `version`: what it costs is owed by the purge, never charged to a writer (TTL-255).
pub(crate) fn remove_ghost(
    round: &mut Round<'_>,
    partition: &Partition,
    state: &ContainerState,
    version: LogPosition,
    key: &Key,
    record: &Record,
) -> RequestUnits {
    if round.state.drops.hides(&key.bytes, record) {
        return remove_dropped(round, partition, state, version, key, record);
    }
    remove(round, key, record);
    history::log(round, partition, state, version, Change::purged(&key.bytes, record));
    let cost = state.pacing.purge_cost(record.size());
    round.state.purged_total += 1;
    round.state.spent_total += cost;
    if partition.meter().lock().is_billed() {
        round.state.billed_total += cost;
    }
    cost
}

/// Removes an item of a deleted logical partition, in the write at `version`: a delete by a client that is carried out only now. What it
/// costs is owed by the purge too.
pub(crate) fn remove_dropped(
    round: &mut Round<'_>,
    partition: &Partition,
    state: &ContainerState,
    version: LogPosition,
    key: &Key,
    record: &Record,
) -> RequestUnits {
    remove(round, key, record);
    history::log(round, partition, state, version, Change::deleted(&key.bytes, record));
    state.pacing.purge_cost(record.size())
}
