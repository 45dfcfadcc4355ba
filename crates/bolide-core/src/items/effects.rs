//! What storing and removing an item adds to a batch: its record, all of its entries, the history, and the figures of the partition.

use bolide_model::RequestUnits;
use bolide_model::epk::Epk;
use bolide_storage::Key;
use bytes::Bytes;

use crate::change_log::{self as history, Change};
use crate::container::ContainerState;
use crate::format::entries;
use crate::format::keys::{self, LogPosition};
use crate::format::record::Record;
use crate::partition::visibility::{GhostCause, StoredVersion};
use crate::partition::write_batch::WriteBatch;

/// The resource number of the `counter`-th item of a range.
pub(crate) fn number_in_range(range: u32, counter: u64) -> u64 {
    (u64::from(range) << 40) | counter
}

/// Adds a record with all its entries; returns its key.
pub(crate) fn add(round: &mut WriteBatch<'_>, epk: &Epk, record: &Record) -> Bytes {
    let key = keys::item(epk, record.number());
    for entry in entries::of(&key.bytes, record) {
        let value = entry.value();
        round.put(entry.key, value);
    }
    let item_key = key.bytes.clone();
    round.put(key, record.bytes().clone());
    round.state.added(&item_key, record);
    item_key
}

/// Removes a record with all its entries (TTL-267).
pub(crate) fn remove(round: &mut WriteBatch<'_>, key: &Key, record: &Record) {
    for entry in entries::of(&key.bytes, record) {
        round.delete(entry.key);
    }
    round.delete(key.clone());
    round.state.removed(&key.bytes, record);
}

/// Removes a ghost in the write at `place`. Returns what it costs, which the purge spends, and no writer is charged for (TTL-255).
pub(crate) fn remove_ghost(
    round: &mut WriteBatch<'_>,
    state: &ContainerState,
    place: LogPosition,
    ghost: &StoredVersion,
) -> RequestUnits {
    match GhostCause::of(&round.state.tombstones, &ghost.key.bytes, &ghost.record) {
        GhostCause::PartitionKeyDeleted => remove_deleted(round, state, place, ghost),
        GhostCause::Expired => remove_expired(round, state, place, ghost),
    }
}

fn remove_expired(
    round: &mut WriteBatch<'_>,
    state: &ContainerState,
    place: LogPosition,
    ghost: &StoredVersion,
) -> RequestUnits {
    let purged = Change::purged(&ghost.key.bytes, &ghost.record);
    let cost = remove_as(purged, round, state, place, ghost);
    round.state.purged_total += 1;
    round.state.spent_total += cost;
    if state.pacing.is_billed() {
        round.state.billed_total += cost;
    }
    cost
}

/// Removes an item that was deleted with its partition key, in the write at `place`: a delete by a client that is carried out only now.
/// Returns what it costs, as [`remove_ghost`].
pub(crate) fn remove_deleted(
    round: &mut WriteBatch<'_>,
    state: &ContainerState,
    place: LogPosition,
    ghost: &StoredVersion,
) -> RequestUnits {
    let deleted = Change::deleted(&ghost.key.bytes, &ghost.record);
    remove_as(deleted, round, state, place, ghost)
}

/// Removes a ghost with the change it stands for in the log, and spends what it costs from the purge's request units.
fn remove_as(
    change: Change<'_>,
    round: &mut WriteBatch<'_>,
    state: &ContainerState,
    place: LogPosition,
    ghost: &StoredVersion,
) -> RequestUnits {
    let StoredVersion { key, record } = ghost;
    remove(round, key, record);
    history::log(round, state.retention(), place, change);
    let cost = state.pacing.purge_cost(record.size());
    round.after.spend_on_purge(cost);
    cost
}
