//! Checks items: each has its entries, lies in its range, and is counted correctly.

use bolide_storage::{Key, Space};
use bytes::Bytes;

use super::{VerifyReport, documents, is_inside, scan};
use crate::container::ContainerState;
use crate::format::entries::{self, Entry};
use crate::format::keys;
use crate::format::record::{Content, Record};
use crate::index::{IndexKind, PropertyIndexes};
use crate::partition::state::Tally;
use crate::partition::write_batch::{Decision, WriteBatch};
use crate::partition::{Partition, ghosts};

/// Maximum number of entries of each queue in which ghosts are counted before a page. Usually there are none.
const GHOST_ROWS: usize = 16;

/// The result of a page.
pub(super) enum Checked {
    /// The page was checked; the next one begins at `next`.
    Page { found: VerifyReport, next: Option<Bytes> },
    /// There are more uncounted ghosts than a page counts: count them, then check the page again.
    Uncounted,
    /// The worker no longer has the tally of the previous pages.
    Forgotten,
}

/// Checks the items from a key on, or from the first one. After the last items, checks the counters.
pub(super) fn check(
    batch: &mut WriteBatch<'_>,
    state: &ContainerState,
    partition: &Partition,
    from: Option<&Bytes>,
) -> Decision<Checked> {
    let from_key = from.cloned().unwrap_or_default();
    let page = batch.scan_raw(&[scan(Space::Item, from_key, None)])?;
    let page = page.into_iter().next().unwrap_or_default();
    let mut items = Vec::with_capacity(page.rows.len());
    for (key, value) in page.rows {
        items.push((key, Record::decode(value)?));
    }
    // An index that is being built may lack entries.
    let indexes = state.indexes.ready();
    let wanted: Vec<Entry<'_>> = items
        .iter()
        .flat_map(|(key, record)| entries::of(&indexes, key, record))
        .collect();
    let entries: Vec<Key> = wanted.iter().map(|entry| entry.key.clone()).collect();
    let stored = batch.get_all_raw(&entries)?;
    if !ghosts::count_some(batch, &state.settings, GHOST_ROWS)? {
        return Ok(Checked::Uncounted);
    }
    let mut tally = match (batch.state.tally.take(), from) {
        (_, None) => Tally {
            words: complete_texts(&indexes),
            ..Tally::default()
        },
        (Some(tally), Some(from)) if tally.upto == *from => tally,
        _ => return Ok(Checked::Forgotten),
    };

    let mut found = VerifyReport::default();
    for (index, words) in wanted.iter().filter_map(Entry::words) {
        tally.add_words(index, words);
    }
    check_entries(&wanted, stored, &mut found);
    for (key, record) in &items {
        check_item(batch, state, partition, (key, record), &mut found);
        tally.stored.add(record.size());
        if batch.state.is_counted_ghost(key, record) {
            tally.ghosts.add(record.size());
        }
    }
    let next = items.last().filter(|_| page.more).map(|(key, _)| keys::after(key));
    match &next {
        Some(next) => {
            tally.upto = next.clone();
            batch.state.tally = Some(tally);
        }
        None => check_counters(batch, state, &tally, &mut found),
    }
    Ok(Checked::Page { found, next })
}

fn check_entries(wanted: &[Entry<'_>], stored: Vec<Option<Bytes>>, found: &mut VerifyReport) {
    for (wanted, stored) in wanted.iter().zip(stored) {
        let Key { space, bytes: key } = &wanted.key;
        match stored {
            Some(stored) if wanted.admits(&stored) => {}
            Some(_) => found.problem(|| format!("an entry of {space:?} does not fit its item: {key:?}")),
            None => found.problem(|| format!("an item has no entry in {space:?}: {key:?}")),
        }
    }
}

fn check_item(
    batch: &WriteBatch<'_>,
    state: &ContainerState,
    partition: &Partition,
    (key, record): (&Bytes, &Record),
    found: &mut VerifyReport,
) {
    let is_expired = !record.is_live(&batch.horizon(&state.settings));
    let is_hidden = batch.state.tombstones.hides(key, record);
    found.stored += 1;
    found.live += u64::from(batch.visibility(&state.settings).shows(key, record));
    if keys::number_of_item(key) != record.number() {
        found.problem(|| format!("{} is stored under another number", named(record)));
    }
    if !is_inside(partition, key) {
        found.problem(|| format!("{} is outside its range", named(record)));
    }
    match &state.collection {
        // Ghosts need no keys of indexes that were created after they had ended.
        Some(collection) if !is_expired => documents::check(collection, key, record, found),
        Some(_) => {}
        None if record.unique().count() == state.properties.unique_keys.len() => {}
        None => found.problem(|| format!("{} has not all unique keys", named(record))),
    }
    if batch.state.is_counted_ghost(key, record) != (is_expired && !is_hidden) {
        let what = match () {
            () if is_hidden => "deleted with its key, and",
            () if is_expired => "expired, and not",
            () => "live, and",
        };
        found.problem(|| format!("{} is {what} counted as a ghost", named(record)));
    }
}

/// Names an item in a problem.
pub(super) fn named(record: &Record) -> String {
    match record.content() {
        Content::Json => format!("item '{}'", record.id()),
        Content::Bson => format!("document number {}", record.number()),
    }
}

/// Returns the ids of full-text indexes, without any words yet.
fn complete_texts(indexes: &PropertyIndexes) -> Vec<(u32, u64)> {
    let texts = indexes
        .list
        .iter()
        .filter(|index| matches!(index.kind, IndexKind::FullText(_)));
    texts.map(|index| (index.id, 0)).collect()
}

fn check_counters(batch: &WriteBatch<'_>, state: &ContainerState, tally: &Tally, found: &mut VerifyReport) {
    let (stored, ghosts) = (batch.state.stored, batch.state.ghosts.amount());
    for (name, counted, there) in [
        ("stored items", stored.items, tally.stored.items),
        ("stored bytes", stored.bytes, tally.stored.bytes),
        ("ghosts", ghosts.items, tally.ghosts.items),
        ("bytes of ghosts", ghosts.bytes, tally.ghosts.bytes),
    ] {
        if counted != there {
            found.problem(|| format!("the counter of {name} says {counted}, found {there}"));
        }
    }
    for (index, there) in &tally.words {
        let counted = batch.state.texts.words(*index);
        // An index that was dropped meanwhile has no counter any more.
        let is_dropped = state.indexes.with_id(*index).is_empty();
        if counted != *there && !is_dropped {
            found.problem(|| format!("the counter of words of index {index} says {counted}, found {there}"));
        }
    }
}
