//! Checks entries of indexes, log and queue: each belongs to an item that must have this entry.

use bolide_model::{Result, UnixSeconds};
use bolide_storage::{Key, Space};
use bytes::Bytes;

use super::{VerifyReport, look_up_some, scan};
use crate::container::ContainerState;
use crate::content::logical;
use crate::format::entries;
use crate::format::keys::{self, LogPosition, PropertyEntry};
use crate::format::record::{ExpiryEntry, LogEntry, Record};
use crate::index::PropertyIndexes;
use crate::partition::Partition;
use crate::partition::write_batch::{Decision, WriteBatch};

/// Where a page begins.
#[derive(Debug, Clone, Default)]
pub(super) struct PageStart {
    from: Bytes,
    /// `_ts` of the previous row, in the log.
    last_modified: Option<UnixSeconds>,
}

/// Checks the entries of a space from a position on. Returns where the next page begins.
pub(super) fn check(
    batch: &mut WriteBatch<'_>,
    state: &ContainerState,
    _partition: &Partition,
    space: Space,
    at: &PageStart,
) -> Decision<(VerifyReport, Option<PageStart>)> {
    let to = (space == Space::Log).then(keys::log_end);
    let page = batch.scan_raw(&[scan(space, at.from.clone(), to)])?;
    let page = page.into_iter().next().unwrap_or_default();
    let mut holders = Vec::with_capacity(page.rows.len());
    for (key, value) in &page.rows {
        holders.push(Key::new(Space::Item, holder(state, space, key, value)?));
    }
    let records = look_up_some(batch, &holders)?;

    let (mut found, mut next) = (VerifyReport::default(), at.clone());
    let checked = records.len();
    for (((key, value), holder), record) in page.rows.iter().zip(holders).zip(records) {
        let record = record.map(Record::decode).transpose()?;
        // Entries of a dropped index are removed in the background.
        let entry = (space == Space::Index).then(|| PropertyEntry::parse(key)).flatten();
        let is_dropped = entry.is_some_and(|entry| state.indexes.dropped.contains(&entry.index));
        let is_asked_for = record.is_some_and(|record| {
            // An item may have many entries in other indexes.
            let own = PropertyIndexes {
                list: entry.map_or_else(Vec::new, |entry| state.indexes.with_id(entry.index)),
                ..PropertyIndexes::default()
            };
            let mut entries = entries::of(&own, &holder.bytes, &record);
            entries.any(|entry| entry.key.space == space && entry.key.bytes == *key)
        });
        if !is_asked_for && !is_dropped {
            found.problem(|| format!("an entry of {space:?} has no item: {key:?}"));
        }
        if space == Space::Log {
            check_order(batch, (key, value), &mut next, &mut found)?;
        }
        next.from = keys::after(key);
    }
    let is_all = checked == page.rows.len() && !page.more;
    Ok((found, (!is_all).then_some(next)))
}

/// Returns the key of the item that an entry belongs to; a key of no item if the entry cannot be decoded.
fn holder(state: &ContainerState, space: Space, key: &Bytes, value: &Bytes) -> Result<Bytes> {
    match space {
        Space::Log => Ok(LogEntry::decode(value)?.item_key),
        Space::Expiry => Ok(ExpiryEntry::decode(value)?.item_key),
        Space::Index if let Some(entry) = PropertyEntry::parse(key) => Ok(entry.item_key()),
        _ => match keys::id_in_index(key) {
            None => Ok(value.clone()),
            // Documents of an unsharded collection have no effective partition key: the value is the whole item key.
            Some(_) if state.is_unsharded() => Ok(value.clone()),
            Some(epk_and_id) => {
                let epk = logical::length_in(&state.properties.partition_key, epk_and_id);
                Ok([&epk_and_id[..epk.unwrap_or(0)], value].concat().into())
            }
        },
    }
}

/// Checks that `_ts` never decreases along the log, and that no entry is newer than the head (TTL-208, P3).
fn check_order(
    batch: &WriteBatch<'_>,
    (key, value): (&Bytes, &Bytes),
    place: &mut PageStart,
    found: &mut VerifyReport,
) -> Result<()> {
    let last_modified = LogEntry::decode(value)?.last_modified;
    if place.last_modified.is_some_and(|before| last_modified < before) {
        found.problem(|| format!("_ts falls along the log at {key:?}"));
    }
    place.last_modified = Some(last_modified);
    let lsn = LogPosition::decode(key).map(|position| position.lsn);
    if let Some(lsn) = lsn.filter(|lsn| *lsn > batch.head()) {
        found.problem(|| format!("the log has lsn {lsn}, behind the head {}", batch.head()));
    }
    Ok(())
}
