//! The effects of storing and removing an item on a write batch: its record, all of its entries, the history, and the partition's counters.

use bolide_model::RequestUnits;
use bolide_model::epk::Epk;
use bolide_storage::Key;
use bytes::Bytes;

use crate::change_log::{self as history, Change};
use crate::container::ContainerState;
use crate::format::entries::{self, Entry};
use crate::format::keys::{self, LogPosition};
use crate::format::record::Record;
use crate::index::PropertyIndexes;
use crate::partition::visibility::{GhostCause, StoredVersion};
use crate::partition::write_batch::WriteBatch;

/// Returns the resource number of the `counter`-th item of a range.
pub(crate) fn number_in_range(range: u32, counter: u64) -> u64 {
    (u64::from(range) << 40) | counter
}

/// Adds a record with all its entries; returns its key.
pub(crate) fn add(batch: &mut WriteBatch<'_>, indexes: &PropertyIndexes, epk: &Epk, record: &Record) -> Bytes {
    let key = keys::item(epk, record.number());
    let has_texts = indexes.has_full_text();
    for entry in entries::of(indexes, &key.bytes, record) {
        let value = entry.value();
        if has_texts {
            batch.texts.note(indexes, &key.bytes, true, &entry);
        }
        if let Some((index, words)) = counted_words(batch, indexes, &key.bytes, &entry) {
            batch.state.added_words(index, &key.bytes, words);
        }
        batch.put(entry.key, value);
    }
    let item_key = key.bytes.clone();
    batch.put(key, record.bytes().clone());
    batch.state.added(&item_key, record);
    item_key
}

/// Removes a record with all its entries (TTL-267).
pub(crate) fn remove(batch: &mut WriteBatch<'_>, indexes: &PropertyIndexes, key: &Key, record: &Record) {
    let has_texts = indexes.has_full_text();
    for entry in entries::of(indexes, &key.bytes, record) {
        if has_texts {
            batch.texts.note(indexes, &key.bytes, false, &entry);
        }
        if let Some((index, words)) = counted_words(batch, indexes, &key.bytes, &entry) {
            batch.state.removed_words(index, &key.bytes, words);
        }
        batch.delete(entry.key);
    }
    batch.delete(key.clone());
    batch.state.removed(&key.bytes, record);
}

/// Returns the index and the words of the entry of an item's text, if the counters have the item's texts in this index.
fn counted_words(
    batch: &WriteBatch<'_>,
    indexes: &PropertyIndexes,
    item_key: &[u8],
    entry: &Entry<'_>,
) -> Option<(u32, u64)> {
    let (id, words) = entry.words()?;
    let index = indexes.list.iter().find(|index| index.id == id)?;
    batch.state.texts.counts(index, item_key).then_some((id, words))
}

/// Removes a ghost in the write at `position`. Returns the cost, which is charged to the purge and not to a writer (TTL-255).
pub(crate) fn remove_ghost(
    batch: &mut WriteBatch<'_>,
    state: &ContainerState,
    position: LogPosition,
    ghost: &StoredVersion,
) -> RequestUnits {
    match GhostCause::of(&batch.state.tombstones, &ghost.key.bytes, &ghost.record) {
        GhostCause::PartitionKeyDeleted => remove_deleted(batch, state, position, ghost),
        GhostCause::Expired => remove_expired(batch, state, position, ghost),
    }
}

fn remove_expired(
    batch: &mut WriteBatch<'_>,
    state: &ContainerState,
    position: LogPosition,
    ghost: &StoredVersion,
) -> RequestUnits {
    // The end of a document that change streams were told already is not told again.
    let is_told = batch.state.has_told_end(&ghost.record);
    let ended = (!is_told).then(|| Change::ended(&ghost.key.bytes, &ghost.record));
    let cost = remove_as(ended, batch, state, position, ghost);
    batch.state.purged_total += 1;
    batch.state.spent_total += cost;
    if state.pacing.is_billed() {
        batch.state.billed_total += cost;
    }
    cost
}

/// Removes an item that was deleted with its partition key, in the write at `position`: a client's delete that is carried out only now. Returns the
/// cost, as [`remove_ghost`] does.
pub(crate) fn remove_deleted(
    batch: &mut WriteBatch<'_>,
    state: &ContainerState,
    position: LogPosition,
    ghost: &StoredVersion,
) -> RequestUnits {
    let deleted = Change::deleted(&ghost.key.bytes, &ghost.record);
    remove_as(Some(deleted), batch, state, position, ghost)
}

/// Removes a ghost, adds its change to the history, if there is one, and charges the cost to the purge.
fn remove_as(
    change: Option<Change<'_>>,
    batch: &mut WriteBatch<'_>,
    state: &ContainerState,
    position: LogPosition,
    ghost: &StoredVersion,
) -> RequestUnits {
    let StoredVersion { key, record } = ghost;
    remove(batch, &state.indexes, key, record);
    if let Some(change) = change {
        history::log(batch, state.keeping(), position, change);
    }
    let cost = state.pacing.purge_cost(record.size());
    batch.after.spend_on_purge(cost);
    cost
}
