//! A walk through the live items of a scope.

use std::collections::VecDeque;

use bolide_model::ttl::{Horizon, Settings};
use bolide_model::{Lsn, RequestUnits, Result, UnixMillis};
use bolide_storage::{Ask, Scan, Space};
use bytes::Bytes;

use super::Slice;
use crate::answer::RangePosition;
use crate::container::{Container, Reading, Visit};
use crate::items::{StoredItem, judged_at};
use crate::keys;
use crate::record::Record;

/// Rows and bytes read at once. Large enough that reads are few, small enough that memory stays small.
const PAGE_ROWS: usize = 1_000;
const PAGE_BYTES: usize = 2 * 1024 * 1024;

/// Goes through the live items of some slices in the order of their keys, all judged at one time (TTL-211).
pub(crate) struct ItemWalk<'a> {
    container: &'a Container,
    settings: Settings,
    slices: VecDeque<Slice>,
    now: UnixMillis,
    horizon: Option<Horizon>,
    touched: Vec<RangePosition>,
    /// Keeps the purge from removing what is still live at the time of the walk.
    _reading: Reading<'a>,
}

/// A live item, and its key: where a continuation goes on behind it.
pub(crate) struct WalkedItem {
    /// The range it is in.
    pub range: u32,
    pub key: Bytes,
    pub item: StoredItem,
}

impl<'a> ItemWalk<'a> {
    /// A walk at server time `now` or a little later. `after`: only items behind this key.
    pub fn new(
        container: &'a Container,
        visit: &Visit<'_>,
        slices: Vec<Slice>,
        now: UnixMillis,
        after: Option<&[u8]>,
    ) -> Self {
        let mut slices = VecDeque::from(slices);
        if let Some(after) = after {
            let from = keys::after(after);
            slices.retain(|slice| slice.to.as_ref().is_none_or(|to| from < *to) && !is_before(slice, &from));
            for slice in &mut slices {
                slice.from = slice.from.clone().max(from.clone());
            }
        }
        ItemWalk {
            container,
            settings: visit.state.settings,
            slices,
            now,
            horizon: None,
            touched: Vec::new(),
            _reading: container.reading_at(now.seconds()),
        }
    }

    /// The next live items; an empty page may come before the end. `None` at the end.
    pub async fn next_page(&mut self) -> Result<Option<Vec<WalkedItem>>> {
        let Some(slice) = self.slices.front_mut() else {
            return Ok(None);
        };
        if self.horizon.is_none() {
            // The purge respects this walk from its registration on; what it removed before was due by now, if not when the request
            // began.
            self.now = self.now.max(slice.partition.now().await?);
        }
        let scan = Scan {
            space: Space::Item,
            from: slice.from.clone(),
            to: slice.to.clone(),
            reverse: false,
            max_rows: PAGE_ROWS,
            max_bytes: PAGE_BYTES,
            keys_only: false,
        };
        let partition = slice.partition.clone();
        let mut reply = partition
            .read(Ask {
                gets: vec![],
                scans: vec![scan],
            })
            .await?;
        let page = reply.pages.pop().unwrap_or_default();
        touch(&mut self.touched, slice.partition.range, reply.head.lsn);
        match page.rows.last() {
            Some((key, _)) if page.more => slice.from = keys::after(key),
            _ => {
                self.slices.pop_front();
            }
        }
        // The first snapshot settles the time of the walk.
        let (settings, now) = (self.settings, self.now);
        let horizon = *self
            .horizon
            .get_or_insert_with(|| settings.horizon(judged_at(now, reply.head).seconds()));
        let mut items = Vec::with_capacity(page.rows.len());
        for (key, value) in page.rows {
            let record = Record::decode(value)?;
            if record.stamp().is_live(horizon) && !partition.hides(&key, &record) {
                items.push(WalkedItem {
                    range: partition.range,
                    key,
                    item: StoredItem::new(self.container.rid(), record),
                });
            }
        }
        Ok(Some(items))
    }

    /// How many slices are not yet at their end.
    pub fn ranges_left(&self) -> usize {
        self.slices.len()
    }

    /// The ranges touched so far.
    pub fn touched(&self) -> &[RangePosition] {
        &self.touched
    }
}

/// Whether a slice's partition ends before `key`.
fn is_before(slice: &Slice, key: &[u8]) -> bool {
    slice.partition.epk.max.as_bytes() <= key
}

/// Notes how far a range had come; the first note of a range counts.
pub(crate) fn touch(touched: &mut Vec<RangePosition>, range: u32, lsn: Lsn) {
    if touched.iter().all(|position| position.range != range) {
        touched.push(RangePosition {
            range,
            lsn,
            charge: RequestUnits::ZERO,
        });
    }
}

/// Counts what was done in a range that was touched.
pub(crate) fn bear(touched: &mut [RangePosition], range: u32, units: RequestUnits) {
    if let Some(position) = touched.iter_mut().find(|position| position.range == range) {
        position.charge += units;
    }
}
