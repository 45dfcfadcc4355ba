//! A walk through the live items of a scope.

use std::collections::VecDeque;

use bolide_model::ttl::{Horizon, Settings};
use bolide_model::{Error, Lsn, RequestUnits, Result, UnixMillis};
use bolide_storage::{Ask, Head, Page, Scan, Space};
use bytes::Bytes;

use super::Slice;
use crate::answer::RangePosition;
use crate::container::{Container, ContainerState, Reading};
use crate::items::{StoredItem, judged_at};
use crate::keys;
use crate::partition::Partition;
use crate::record::Record;

/// Rows and bytes read at once. Large enough that reads are few, small enough that memory stays small.
const PAGE_ROWS: usize = 1_000;
const PAGE_BYTES: usize = 2 * 1024 * 1024;

/// Slices that are read at once: at first, and at most. Many are those of single keys with an item or two.
const FIRST_SLICES: usize = 16;
const MOST_SLICES: usize = 256;

/// From this many slices of a partition on it is worth asking how many items it has.
const MANY_SLICES: usize = 64;

/// Going through so many items costs less than finding one by its key.
const ITEMS_PER_SLICE: u64 = 8;

/// Goes through the live items of some slices in the order of their keys, all judged at one time (TTL-211).
pub(crate) struct ItemWalk<'a> {
    container: &'a Container,
    settings: Settings,
    slices: VecDeque<Slice>,
    now: UnixMillis,
    horizon: Option<Horizon>,
    touched: Vec<RangePosition>,
    /// How many slices the next read takes.
    slices_at_once: usize,
    /// The partition that is gone through as a whole, or not, because its slices are many.
    is_whole: Option<(u32, bool)>,
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
        state: &ContainerState,
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
            settings: state.settings,
            slices,
            now,
            horizon: None,
            touched: Vec::new(),
            slices_at_once: FIRST_SLICES,
            is_whole: None,
            _reading: container.reading_at(now.seconds()),
        }
    }

    /// The next live items, all of one partition; an empty page may come before the end. `None` at the end.
    pub async fn next_page(&mut self) -> Result<Option<Vec<WalkedItem>>> {
        let Some(slice) = self.slices.front() else {
            return Ok(None);
        };
        let partition = slice.partition.clone();
        if self.horizon.is_none() {
            // The purge respects this walk from its registration on; what it removed before was due by now, if not when the request
            // began.
            self.now = self.now.max(partition.now().await?);
        }
        let alike = self
            .slices
            .iter()
            .take_while(|slice| slice.partition.range == partition.range);
        let alike = alike.count();
        let (head, rows) = if self.reads_whole(&partition, alike).await? {
            self.next_of_whole(&partition, alike).await?
        } else {
            self.next_of_slices(&partition, alike).await?
        };
        touch(&mut self.touched, partition.range, head.lsn);
        // The first snapshot settles the time of the walk.
        let (settings, now) = (self.settings, self.now);
        let horizon = *self
            .horizon
            .get_or_insert_with(|| settings.horizon(judged_at(now, head).seconds()));
        let hiding = partition.hiding();
        let mut items = Vec::with_capacity(rows.len());
        for (key, value) in rows {
            let record = Record::decode(value)?;
            if record.stamp().is_live(horizon) && !hiding.hides(&key, &record) {
                items.push(WalkedItem {
                    range: partition.range,
                    key,
                    item: StoredItem::new(self.container.rid(), record),
                });
            }
        }
        Ok(Some(items))
    }

    /// Whether to go through the items between slices, too, since they are few.
    async fn reads_whole(&mut self, partition: &Partition, slices: usize) -> Result<bool> {
        match self.is_whole {
            Some((range, is_whole)) if range == partition.range => return Ok(is_whole),
            _ if slices < MANY_SLICES => return Ok(false),
            _ => {}
        }
        let is_whole = partition.stored_items().await? <= ITEMS_PER_SLICE * slices as u64;
        self.is_whole = Some((partition.range, is_whole));
        Ok(is_whole)
    }

    /// Reads from the first slice on, and leaves out what lies between slices.
    async fn next_of_whole(&mut self, partition: &Partition, alike: usize) -> Result<(Head, Rows)> {
        let (Some(first), Some(last)) = (self.slices.front(), self.slices.get(alike.saturating_sub(1))) else {
            return Err(Error::internal("there are slices to read"));
        };
        let scan = scan(first.from.clone(), last.to.clone(), 1);
        let (head, mut pages) = read(partition, vec![scan]).await?;
        let page = pages.pop().unwrap_or_default();
        let mut rows = Vec::new();
        let resumed = page.rows.last().filter(|_| page.more).map(|(key, _)| keys::after(key));
        for (key, value) in page.rows {
            self.drop_slices_before(partition, &key);
            match self.slices.front() {
                Some(slice) if slice.partition.range == partition.range && slice.contains(&key) => {
                    rows.push((key, value));
                }
                _ => {}
            }
        }
        match resumed {
            Some(from) => {
                self.drop_slices_before(partition, &from);
                if let Some(slice) = self
                    .slices
                    .front_mut()
                    .filter(|slice| slice.partition.range == partition.range)
                {
                    slice.from = slice.from.clone().max(from);
                }
            }
            None => self.slices.retain(|slice| slice.partition.range != partition.range),
        }
        Ok((head, rows))
    }

    /// Drops the slices of a partition that end before a key.
    fn drop_slices_before(&mut self, partition: &Partition, key: &[u8]) {
        let ends_before = |slice: &mut Slice| {
            slice.partition.range == partition.range && slice.to.as_ref().is_some_and(|to| &to[..] <= key)
        };
        while self.slices.pop_front_if(ends_before).is_some() {}
    }

    /// Reads several slices at once, up to the first that one read does not hold.
    async fn next_of_slices(&mut self, partition: &Partition, alike: usize) -> Result<(Head, Rows)> {
        let count = alike.min(self.slices_at_once);
        let of_slice = |slice: &Slice| scan(slice.from.clone(), slice.to.clone(), count);
        let scans = self.slices.iter().take(count).map(of_slice).collect();
        let (head, pages) = read(partition, scans).await?;
        self.slices_at_once = (2 * self.slices_at_once).min(MOST_SLICES);
        let mut rows = Vec::new();
        for page in pages {
            let last = page.rows.last().filter(|_| page.more).map(|(key, _)| keys::after(key));
            if let Some(slice) = self.slices.front() {
                rows.extend(page.rows.into_iter().filter(|(key, _)| slice.has_prefix(key)));
            }
            if let Some(from) = last {
                if let Some(slice) = self.slices.front_mut() {
                    slice.from = from;
                }
                self.slices_at_once = 1;
                break;
            }
            self.slices.pop_front();
        }
        Ok((head, rows))
    }

    /// The partition that comes next.
    pub fn next_range(&self) -> Option<u32> {
        self.slices.front().map(|slice| slice.partition.range)
    }

    /// How many slices are not yet at their end.
    pub fn slices_left(&self) -> usize {
        self.slices.len()
    }

    /// The ranges touched so far.
    pub fn touched(&self) -> &[RangePosition] {
        &self.touched
    }
}

type Rows = Vec<(Bytes, Bytes)>;

/// A read of one slice, of several that are read at once.
fn scan(from: Bytes, to: Option<Bytes>, at_once: usize) -> Scan {
    Scan {
        space: Space::Item,
        from,
        to,
        reverse: false,
        max_rows: PAGE_ROWS.div_ceil(at_once),
        max_bytes: PAGE_BYTES.div_ceil(at_once),
        keys_only: false,
    }
}

async fn read(partition: &Partition, scans: Vec<Scan>) -> Result<(Head, Vec<Page>)> {
    let reply = partition.read(Ask { gets: vec![], scans }).await?;
    Ok((reply.head, reply.pages))
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
