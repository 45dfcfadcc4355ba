//! The items that one read of a scan returns.

use bolide_model::Result;
use bolide_model::rid::ContainerRid;
use bolide_storage::{ReadRequest, Scan, Space};
use bytes::Bytes;

use crate::content::StoredItem;
use crate::memory::{MemoryBudget, MemoryShare};
use crate::partition::{Snapshot, StoredRow};

/// Maximum number of rows, and of bytes, in one read. Large enough that reads are few, small enough that memory stays small.
pub(super) const WALK_ROWS: usize = 1_000;
pub(crate) const WALK_BYTES: usize = 2 * 1024 * 1024;
/// Memory for a row in addition to its key and its value, in bytes.
pub(super) const ROW_BYTES: usize = 256;

/// The first key, inclusive, and the end, exclusive; `None` is the end of all items.
pub(super) type KeyRange = (Bytes, Option<Bytes>);

/// Asks for the items of ranges, which together give at most about `bytes` bytes.
pub(super) fn read_of(ranges: &[KeyRange], bytes: usize) -> ReadRequest {
    let scan = |(from, to): &KeyRange| Scan {
        space: Space::Item,
        from: from.clone(),
        to: to.clone(),
        reverse: false,
        max_rows: WALK_ROWS.div_ceil(ranges.len()),
        max_bytes: bytes.div_ceil(ranges.len()),
        keys_only: false,
    };
    ReadRequest {
        scans: ranges.iter().map(scan).collect(),
        max_bytes: bytes,
        ..ReadRequest::default()
    }
}

/// A live item, and its key: a continuation starts after it.
pub(crate) struct ScannedItem {
    /// The range it is in.
    pub range: u32,
    pub key: Bytes,
    pub item: StoredItem,
}

/// Live items, and their memory share: a caller may hold them while it waits for other tasks.
#[derive(Default)]
pub(crate) struct ScannedItems {
    pub items: Vec<ScannedItem>,
    /// What helpers have left out between the items, in order.
    pub left_out: Vec<LeftOut>,
    pub memory: MemoryShare,
}

/// Items of a read that were left out.
pub(crate) struct LeftOut {
    /// The range they are in.
    pub range: u32,
    /// The index of the item that follows them.
    pub before: usize,
    pub items: u64,
    pub bytes: u64,
    /// The key of the last one.
    pub last: Bytes,
}

impl ScannedItems {
    /// Appends other items.
    pub fn append(&mut self, mut others: ScannedItems) {
        debug_assert!(others.left_out.is_empty(), "helpers come after the first reads");
        self.items.append(&mut others.items);
        self.memory.merge(others.memory);
    }

    /// Sorts the items by creation, which is the order of their resource ids.
    pub fn sort_by_creation(&mut self) {
        self.items.sort_unstable_by_key(|scanned| scanned.item.rid().number);
    }

    /// Keeps the items that were created first: at least one, at most `max`, and no more than up to the one that reaches `bytes` bytes. Returns
    /// whether all items were kept.
    pub fn keep_oldest(&mut self, max: usize, bytes: usize) -> bool {
        self.sort_by_creation();
        let mut kept_bytes = 0;
        let kept = self.items.iter().take(max).take_while(|scanned| {
            let fits = kept_bytes < bytes;
            kept_bytes += if fits { scanned.memory_bytes() } else { 0 };
            fits
        });
        let kept = kept.count();
        let is_all = kept == self.items.len();
        self.items.truncate(kept);
        self.memory.shrink_to(kept_bytes);
        is_all
    }

    /// Leaves out an item of so many bytes.
    pub(super) fn leave_out(&mut self, scanned: ScannedItem, bytes: u64) {
        let before = self.items.len();
        match self.left_out.last_mut().filter(|others| others.before == before) {
            Some(others) => {
                others.items += 1;
                others.bytes += bytes;
                others.last = scanned.key;
            }
            None => self.left_out.push(LeftOut {
                range: scanned.range,
                before,
                items: 1,
                bytes,
                last: scanned.key,
            }),
        }
    }
}

impl ScannedItem {
    pub(super) fn memory_bytes(&self) -> usize {
        self.key.len() + self.item.record().bytes().len() + self.item.view_bytes() + ROW_BYTES
    }
}

/// Returns the items of some rows of a range that are visible, with the memory for all of them.
pub(super) fn visible_items(
    snapshot: &Snapshot,
    rows: Vec<StoredRow>,
    (range, container): (u32, ContainerRid),
    (budget, mut memory): (&MemoryBudget, MemoryShare),
) -> Result<ScannedItems> {
    let mut items = Vec::with_capacity(rows.len());
    for row in rows {
        if let Some((key, record)) = snapshot.visible(row)? {
            let item = StoredItem::new(container, record);
            match item.view_bytes() {
                0 => {}
                bytes => budget.try_grow(&mut memory, bytes)?,
            }
            items.push(ScannedItem { range, key, item });
        }
    }
    Ok(ScannedItems {
        items,
        memory,
        ..ScannedItems::default()
    })
}
