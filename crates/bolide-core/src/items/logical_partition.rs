//! One logical partition as a decision sees it: decides create, upsert, replace, patch and delete.
//!
//! A decision first reads and checks everything, and then adds its effects: ghosts that hold the id or a unique key are purged (TTL-255), the old
//! version's entries are removed, and the new version's entries are added. All effects of one write are in one commit.

use std::sync::Arc;

use bolide_model::document::Patch;
use bolide_model::epk::Epk;
use bolide_model::ttl::{Horizon, Stamp};
use bolide_model::{Reason, charge};
use bolide_storage::Key;
use bytes::Bytes;

use super::ahead::Ahead;
use super::condition::Judged;
use super::effects::{add, number_in_range, remove, remove_ghost};
use super::prepare::PreparedItem;
use super::read::decode_number;
use super::write::Written;
use super::{ItemTarget, ItemWritten};
use crate::change_log::{self as history, Change};
use crate::container::{Container, ContainerState};
use crate::content::StoredItem;
use crate::format::etag::Etag;
use crate::format::keys::{self, UniqueKey};
use crate::format::record::{Content, Parts, Record};
use crate::partition::Partition;
use crate::partition::visibility::{Slot, StoredVersion};
use crate::partition::write_batch::{Decision, WriteBatch};

/// A logical partition as a decision sees it.
pub(crate) struct LogicalPartition {
    pub container: Arc<Container>,
    state: Arc<ContainerState>,
    partition: Arc<Partition>,
    epk: Epk,
}

impl LogicalPartition {
    pub fn new(
        container: Arc<Container>,
        state: Arc<ContainerState>,
        partition: Arc<Partition>,
        epk: Epk,
    ) -> LogicalPartition {
        LogicalPartition {
            container,
            state,
            partition,
            epk,
        }
    }

    pub fn create(&self, batch: &mut WriteBatch<'_>, draft: &PreparedItem) -> Decision<Written<ItemWritten>> {
        let number = batch.new_entry(&self.id_entry(&draft.id))?;
        let ghost = must_be_free(self.find_by_number(batch, number)?)?;
        let mut ghosts = self.holders(batch, draft, None)?;
        add_ghost(&mut ghosts, ghost);
        let number = self.next_number(batch);
        batch.note_new_item(|| keys::item(&self.epk, number));
        self.store(batch, number, draft, None, ghosts)
    }

    pub fn upsert(
        &self,
        batch: &mut WriteBatch<'_>,
        draft: &PreparedItem,
        if_match: Option<&str>,
    ) -> Decision<Written<ItemWritten>> {
        match self.find_by_id(batch, &draft.id)? {
            Slot::Live(existing) => {
                existing.record.etag().check(if_match)?;
                let ghosts = self.holders(batch, draft, Some(&existing))?;
                self.store(batch, existing.record.number(), draft, Some(existing), ghosts)
            }
            // TTL-240: over a ghost, an upsert is a create.
            Slot::Free | Slot::Ghost(_) => self.create(batch, draft),
        }
    }

    pub fn replace(
        &self,
        batch: &mut WriteBatch<'_>,
        target: &ItemTarget,
        draft: &PreparedItem,
        if_match: Option<&str>,
    ) -> Decision<Written<ItemWritten>> {
        let existing = self.find_live(batch, target)?;
        existing.record.etag().check(if_match)?;
        self.overwrite(batch, existing, draft)
    }

    pub fn patch(
        &self,
        batch: &mut WriteBatch<'_>,
        target: &ItemTarget,
        patch: &Patch,
        (condition, ahead): (Option<&Judged>, Option<&Ahead>),
        if_match: Option<&str>,
    ) -> Decision<Written<ItemWritten>> {
        let existing = self.find_live(batch, target)?;
        existing.record.etag().check(if_match)?;
        if let Some(condition) = condition
            && !condition.holds(self.container.rid(), &existing.record, batch.now)?
        {
            return Err(Reason::PatchConditionFalse.into());
        }
        let made = ahead.map(|ahead| ahead.of(&existing.record)).transpose()?.flatten();
        match made {
            Some(draft) => self.overwrite(batch, existing, &draft),
            None => {
                let draft = PreparedItem::patched(&existing.record, patch, &self.state)?;
                self.overwrite(batch, existing, &draft)
            }
        }
    }

    pub fn delete(
        &self,
        batch: &mut WriteBatch<'_>,
        target: &ItemTarget,
        if_match: Option<&str>,
    ) -> Decision<Written<()>> {
        let existing = self.find_live(batch, target)?;
        existing.record.etag().check(if_match)?;
        let version = batch.next_version();
        let charge = charge::write(existing.record.size());
        remove(batch, &self.state.indexes, &existing.key, &existing.record);
        let change = Change::deleted(&existing.key.bytes, &existing.record);
        history::log(batch, self.state.keeping(), version, change);
        Ok(Written {
            value: (),
            lsn: version.lsn,
            charge,
        })
    }

    /// Replaces a live version by a new one, under its own or another id.
    fn overwrite(
        &self,
        batch: &mut WriteBatch<'_>,
        existing: StoredVersion,
        draft: &PreparedItem,
    ) -> Decision<Written<ItemWritten>> {
        let mut ghosts = self.holders(batch, draft, Some(&existing))?;
        if existing.record.id() != draft.id {
            let ghost = must_be_free(self.find_by_id(batch, &draft.id)?)?;
            add_ghost(&mut ghosts, ghost);
        }
        self.store(batch, existing.record.number(), draft, Some(existing), ghosts)
    }

    /// Requests several items, and the holders of the unique keys of several drafts, so that they are read at once unless they are too many. A
    /// decision that finds one after the other to be missing would be started again for each.
    pub fn foresee<'d>(
        &self,
        batch: &mut WriteBatch<'_>,
        ids: impl Iterator<Item = &'d str>,
        drafts: impl Iterator<Item = &'d PreparedItem>,
    ) -> Decision<()> {
        let ids = ids.map(|id| self.id_entry(id));
        let numbers = batch.entries(&ids.collect::<Vec<_>>());
        let mut entries = Vec::new();
        for draft in drafts {
            entries.extend(self.unique_entries(&draft.unique));
        }
        let holders = batch.entries(&entries);
        let numbers = numbers?.into_iter().flatten();
        let items = numbers.filter_map(|number| Some(keys::item(&self.epk, decode_number(&number)?)));
        let holders = holders?.into_iter().flatten();
        let holders = holders.map(|item_key| Key::new(bolide_storage::Space::Item, item_key));
        let items: Vec<Key> = items.collect();
        batch.foresee(&items.iter().cloned().chain(holders).collect::<Vec<_>>())?;
        // The unique keys that a patch does not change are checked again.
        let mut entries = Vec::new();
        for record in items.iter().filter_map(|key| batch.loaded(key)) {
            let unique: Vec<UniqueKey> = Record::decode(record)?.unique().collect();
            entries.extend(self.unique_entries(&unique));
        }
        batch.foresee(&entries)
    }

    /// Notes several items that were not read yet as missing. The read itself limits how many of them it returns.
    pub fn read_on<'d>(&self, batch: &mut WriteBatch<'_>, ids: impl Iterator<Item = &'d str>) {
        for id in ids {
            // An error here occurs again when the decision comes to that item.
            let _ = self.find_by_id(batch, id);
        }
    }

    pub fn find_live(&self, batch: &mut WriteBatch<'_>, target: &ItemTarget) -> Decision<StoredVersion> {
        let found = match target {
            ItemTarget::Id(id) => self.find_by_id(batch, id)?,
            ItemTarget::Rid(number) => self.slot(batch, keys::item(&self.epk, *number))?,
        };
        found.live().ok_or_else(|| Reason::ItemMissing.into())
    }

    fn find_by_id(&self, batch: &mut WriteBatch<'_>, id: &str) -> Decision<Slot> {
        let number = batch.entry(&self.id_entry(id))?;
        self.find_by_number(batch, number)
    }

    fn id_entry(&self, id: &str) -> Key {
        keys::id_index(self.epk.as_bytes(), id.as_bytes())
    }

    /// Returns what is stored under the number in an entry of the index of ids.
    fn find_by_number(&self, batch: &mut WriteBatch<'_>, number: Option<Bytes>) -> Decision<Slot> {
        match number.as_deref().and_then(decode_number) {
            None => Ok(Slot::Free),
            Some(number) => self.slot(batch, keys::item(&self.epk, number)),
        }
    }

    fn slot(&self, batch: &mut WriteBatch<'_>, key: Key) -> Decision<Slot> {
        batch.slot(key, &self.state.settings)
    }

    pub fn horizon(&self, batch: &WriteBatch<'_>) -> Horizon {
        batch.horizon(&self.state.settings)
    }

    pub fn epk_bytes(&self) -> Bytes {
        Bytes::copy_from_slice(self.epk.as_bytes())
    }

    /// Returns the ghosts that hold unique keys which the draft needs (TTL-251). `itself` is the version that the draft replaces.
    fn holders(
        &self,
        batch: &mut WriteBatch<'_>,
        draft: &PreparedItem,
        itself: Option<&StoredVersion>,
    ) -> Decision<Vec<StoredVersion>> {
        let entries: Vec<Key> = self.unique_entries(&draft.unique).collect();
        let holders = match itself {
            None => batch.new_entries(&entries)?,
            Some(_) => batch.entries(&entries)?,
        };
        let mut ghosts = Vec::new();
        for item_key in holders.into_iter().flatten() {
            let key = Key::new(bolide_storage::Space::Item, item_key);
            if itself.is_some_and(|existing| existing.key == key) {
                continue;
            }
            match self.slot(batch, key)? {
                Slot::Live(_) => {
                    return Err(Reason::UniqueKeyTaken.into());
                }
                slot => add_ghost(&mut ghosts, slot.ghost()),
            }
        }
        Ok(ghosts)
    }

    fn unique_entries<'a>(&'a self, unique: &'a [UniqueKey]) -> impl Iterator<Item = Key> + 'a {
        unique
            .iter()
            .map(|unique| keys::unique_index(self.epk.as_bytes(), Content::Json, unique))
    }

    /// Takes the next item's number. The range is in its high bytes, so that numbers are unique in the container.
    fn next_number(&self, batch: &mut WriteBatch<'_>) -> u64 {
        batch.state.next_number += 1;
        number_in_range(self.partition.range, batch.state.next_number)
    }

    /// Adds the effects of a write: first the removal of the ghosts it displaces, which precede it in the log, then that of the version it replaces,
    /// then the new version.
    fn store(
        &self,
        batch: &mut WriteBatch<'_>,
        number: u64,
        draft: &PreparedItem,
        replaced: Option<StoredVersion>,
        ghosts: Vec<StoredVersion>,
    ) -> Decision<Written<ItemWritten>> {
        for ghost in &ghosts {
            let version = batch.next_version();
            remove_ghost(batch, &self.state, version, ghost);
        }
        let version = batch.next_version();
        if let Some(replaced) = &replaced {
            remove(batch, &self.state.indexes, &replaced.key, &replaced.record);
        }
        let last_modified = batch.seconds();
        let record = Record::new(&Parts {
            version,
            last_modified,
            stamp: Stamp::new(last_modified, draft.own),
            etag: Etag::of_write(self.partition.id.0, version.lsn, version.seq),
            number,
            id: draft.id.as_bytes(),
            deadlines: &[],
            unique: &draft.unique,
            content: Content::Json,
            document: &draft.text,
        });
        let key = add(batch, &self.state.indexes, &self.epk, &record);
        let change = Change::written(&key, &record, replaced.as_ref().map(|replaced| &replaced.record));
        history::log(batch, self.state.keeping(), version, change);
        // Tells the purge when this version expires.
        if let Some(end) = record.stamp().ends_at(self.state.settings.policy) {
            batch.after.expect_expiry(end);
        }
        let charge = charge::write(record.size());
        let created = replaced.is_none();
        let item = StoredItem::new(self.container.rid(), record);
        Ok(Written {
            value: ItemWritten { item, created },
            lsn: version.lsn,
            charge,
        })
    }
}

/// Returns the ghost in a slot, to be removed; refuses a slot with a live item.
fn must_be_free(slot: Slot) -> Decision<Option<StoredVersion>> {
    match slot {
        Slot::Live(_) => Err(Reason::ItemExists.into()),
        slot => Ok(slot.ghost()),
    }
}

fn add_ghost(ghosts: &mut Vec<StoredVersion>, ghost: Option<StoredVersion>) {
    if let Some(ghost) = ghost
        && ghosts.iter().all(|known| known.key != ghost.key)
    {
        ghosts.push(ghost);
    }
}
