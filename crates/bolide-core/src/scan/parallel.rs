//! Reads a large slice on several threads: that of the scan, and helpers.
//!
//! ```text
//!   slice ─▶ parts of about one read, by their shares of the hashes
//!   helper, scan: next part ─▶ its rows ─▶ visible items ─▶ those that may have a row ─┐
//!   scan:         what was read, in the order of the parts  ◀──────────────────────────┘
//! ```
//!
//! While a helper reads the part that comes next, the scan reads later ones. A part that could not be read so, for want of memory or because a helper had to end, is
//! read by the scan as if it were alone. So helpers change nothing but the time, and there may be any number of them, or none.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bolide_model::Result;
use bolide_model::epk::{Epk, EpkRange};
use bolide_model::partition_key::PartitionKeyDefinition;
use bolide_model::rid::ContainerRid;
use bolide_model::ttl::Horizon;
use bytes::Bytes;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Slice;
use super::scanned_items::{ROW_BYTES, ScannedItems, WALK_BYTES, read_of, visible_items};
use crate::content::StoredItem;
use crate::executor::{Ending, Executor, Helper, Watch};
use crate::memory::MemoryBudget;
use crate::partition::AsOf;

/// Expected number of items in a part: fewer than one read returns, so that most parts take one read.
const PART_ITEMS: f64 = 700.0;
/// Parts from which on helpers are worth their start.
const MIN_PARTS: u32 = 8;
/// Maximum number of helpers of a scan: their reads take memory that requests share, a few MB for each.
const MAX_HELPERS: usize = 7;
/// Number of helpers that a test demands.
const FORCED: usize = 2;
const MAX_PARTS: f64 = 1_000_000.0;
/// Maximum number of parts that are begun before the scan takes them, in addition to one for each helper.
const PARTS_AHEAD: usize = 4;
/// Maximum number of reads of one part, and bytes after which no other follows. The scan reads the rest of the part: many items of one logical partition.
const READS_OF_PART: usize = 16;
const BYTES_OF_PART: usize = WALK_BYTES / 2;
/// What a row that is kept may keep in memory beside itself: the block of a table that it is a part of.
const BLOCK_BYTES: usize = 16 * 1024;

/// Judges an item: `None` if it may have a row, otherwise its size in bytes.
pub(crate) type ItemTest = Box<dyn FnMut(&StoredItem) -> Option<u64> + Send>;

/// Makes the test of a task.
type MakeTest = dyn Fn(&Arc<Watch>) -> ItemTest + Send + Sync;

/// Where a scan gets helpers from, and what they do.
pub(crate) struct Helpers {
    pub executor: Arc<Executor>,
    /// When they must end, like the scan.
    pub limit: Duration,
    pub ending: Ending,
    /// The task of the scan.
    pub watch: Arc<Watch>,
    pub definition: PartitionKeyDefinition,
    /// Two for a slice of any size, for tests. Otherwise one for each free processor, and for large slices.
    pub is_forced: bool,
    /// Makes the test of the items that a task reads.
    pub test: Arc<MakeTest>,
}

/// What comes next in a slice that is read in parts.
pub(super) enum Next {
    /// Items up to the end of a part, or to a key before it.
    Read { read: ScannedItems, rest: Option<Slice> },
    /// A part that could not be read.
    Unread(Slice),
}

/// A slice that is read in parts, and its helpers.
pub(super) struct ParallelScan {
    shared: Arc<Shared>,
    watch: Arc<Watch>,
    test: ItemTest,
    _helpers: Vec<Helper>,
}

impl ParallelScan {
    /// Begins to read a slice as of the horizon of the scan; `None` if it is too small, or cannot be cut, or if there are no helpers now.
    pub fn begin(
        slice: &Slice,
        rid: ContainerRid,
        horizon: &Horizon,
        memory: &MemoryBudget,
        helpers: &Helpers,
    ) -> Option<ParallelScan> {
        let starts = helpers.needs_more(0).then(|| part_starts(slice, helpers))??;
        let shared = Arc::new(Shared {
            reader: PartReader {
                slice: slice.clone(),
                rid,
                horizon: horizon.clone(),
                memory: memory.clone(),
            },
            starts,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let mut started = Vec::new();
        while helpers.needs_more(started.len()) {
            let (shared, executor, memory) = (shared.clone(), helpers.executor.clone(), memory.clone());
            let (test, is_forced) = (helpers.test.clone(), helpers.is_forced);
            let help = async move |watch: Arc<Watch>| {
                let goes_on = || is_forced || !(executor.is_crowded() || memory.is_short());
                shared.help(&watch, test(&watch), goes_on).await;
            };
            match helpers.executor.help(helpers.limit, helpers.ending.clone(), help) {
                Some(helper) => started.push(helper),
                None => break,
            }
        }
        shared.state.lock().ahead = started.len() + PARTS_AHEAD;
        (!started.is_empty()).then(|| ParallelScan {
            shared,
            watch: helpers.watch.clone(),
            test: (helpers.test)(&helpers.watch),
            _helpers: started,
        })
    }

    /// Returns what comes next, and where the slice goes on behind it. `None` at the end.
    pub async fn next(&mut self) -> Option<(Next, Option<Bytes>)> {
        let number = self.shared.take()?;
        let read = loop {
            match self.shared.turn(number, &self.watch) {
                Turn::Finished(read) => break read,
                Turn::Begin(part) => self.shared.read(part, &mut self.test, &self.watch).await,
            };
        };
        let part = self.shared.part(number);
        let goes_on_at = self.shared.starts.get(number + 1).cloned();
        let next = match read {
            Some(PartRead { items, rest }) => Next::Read {
                read: items,
                rest: rest.map(|from| Slice { from, ..part }),
            },
            None => Next::Unread(part),
        };
        Some((next, goes_on_at))
    }
}

impl Drop for ParallelScan {
    fn drop(&mut self) {
        self.shared.state.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

impl Helpers {
    fn needs_more(&self, started: usize) -> bool {
        match self.is_forced {
            true => started < FORCED,
            false => started < MAX_HELPERS && self.executor.has_free_processor(),
        }
    }
}

/// Returns where the parts of a slice begin; `None` if there would be too few.
fn part_starts(slice: &Slice, helpers: &Helpers) -> Option<Vec<Bytes>> {
    let whole = &slice.partition.epk;
    let min = whole.min.as_bytes().max(&slice.from);
    let max = slice
        .to
        .as_deref()
        .unwrap_or(whole.max.as_bytes())
        .min(whole.max.as_bytes());
    let range = EpkRange::new(Epk::from_bytes(min), Epk::from_bytes(max));
    let items = slice.partition.stored_items() as f64 * range.share_of(&helpers.definition, whole)?;
    let parts = match helpers.is_forced {
        true => MIN_PARTS,
        false => (items / PART_ITEMS).min(MAX_PARTS) as u32,
    };
    if parts < MIN_PARTS {
        return None;
    }
    let cuts = range.cuts(&helpers.definition, parts);
    let starts = cuts.iter().map(|cut| Bytes::copy_from_slice(cut.as_bytes()));
    (!cuts.is_empty()).then(|| std::iter::once(slice.from.clone()).chain(starts).collect())
}

/// What the scan and its helpers share.
struct Shared {
    reader: PartReader,
    /// The first keys of all parts.
    starts: Vec<Bytes>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of parts that were begun, by whomever.
    begun: usize,
    /// Number of parts that the scan has taken.
    taken: usize,
    /// Maximum number of parts that are begun before the scan takes them.
    ahead: usize,
    /// The parts that are finished; `None` for those that could not be read.
    finished: HashMap<usize, Option<PartRead>>,
    is_closed: bool,
}

/// What was read of a part.
struct PartRead {
    items: ScannedItems,
    /// The key from which on nothing was read.
    rest: Option<Bytes>,
}

impl Shared {
    fn part(&self, number: usize) -> Slice {
        let end = self.starts.get(number + 1).cloned();
        Slice {
            from: self.starts[number].clone(),
            to: end.or_else(|| self.reader.slice.to.clone()),
            ..self.reader.slice.clone()
        }
    }

    /// Returns the number of the part that the scan takes now; `None` at the end.
    fn take(&self) -> Option<usize> {
        let mut state = self.state.lock();
        let number = state.taken;
        if number == self.starts.len() {
            return None;
        }
        state.taken += 1;
        self.changed.notify_all();
        Some(number)
    }

    /// Returns what the scan does for a part that it has taken: it reads others while a helper reads this one.
    fn turn(&self, number: usize, watch: &Watch) -> Turn<'_> {
        let turn = self.wait(watch, |state| match state.finished.remove(&number) {
            Some(read) => Some(Turn::Finished(read)),
            None => self.next_part(state).map(Turn::Begin),
        });
        turn.unwrap_or(Turn::Finished(None))
    }

    /// Begins the next part for a helper; `None` if it must end, or if no part is left.
    fn begin(&self, watch: &Watch) -> Option<BegunPart<'_>> {
        let part = self.wait(watch, |state| match state.begun == self.starts.len() {
            true => Some(None),
            false => self.next_part(state).map(Some),
        });
        part.flatten()
    }

    /// Begins the next part, unless it is too far ahead of the scan.
    fn next_part(&self, state: &mut State) -> Option<BegunPart<'_>> {
        let number = state.begun;
        let begins = number < self.starts.len() && number < state.taken + state.ahead;
        state.begun += usize::from(begins);
        begins.then(|| BegunPart {
            shared: self,
            number,
            read: None,
        })
    }

    /// Waits until there is a result, the scan has ended, or no part is left to begin; other tasks run meanwhile.
    fn wait<T>(&self, watch: &Watch, mut result: impl FnMut(&mut State) -> Option<T>) -> Option<T> {
        let mut try_now = |state: &mut MutexGuard<'_, State>| match result(state) {
            Some(done) => Some(Some(done)),
            None if state.is_closed => Some(None),
            None => None,
        };
        if let Some(done) = try_now(&mut self.state.lock()) {
            return done;
        }
        watch.aside(|| {
            let mut state = self.state.lock();
            loop {
                match try_now(&mut state) {
                    Some(done) => return done,
                    None => self.changed.wait(&mut state),
                }
            }
        })
    }

    /// Reads one part after the other.
    async fn help(&self, watch: &Watch, mut test: ItemTest, goes_on: impl Fn() -> bool) {
        while goes_on() {
            let Some(part) = self.begin(watch) else { return };
            if !self.read(part, &mut test, watch).await {
                return;
            }
        }
    }

    /// Reads a part that was begun; returns whether it could.
    async fn read(&self, mut part: BegunPart<'_>, test: &mut ItemTest, watch: &Watch) -> bool {
        let read = self.reader.read(&self.part(part.number), test, watch).await;
        part.read = read.ok();
        part.read.is_some()
    }
}

/// What the scan does next.
enum Turn<'s> {
    /// It takes the part that was read, or reads it otherwise.
    Finished(Option<PartRead>),
    /// It reads a part.
    Begin(BegunPart<'s>),
}

/// A part that someone has begun; finished when this is dropped, read or not.
struct BegunPart<'s> {
    shared: &'s Shared,
    number: usize,
    read: Option<PartRead>,
}

impl Drop for BegunPart<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.finished.insert(self.number, self.read.take());
        self.shared.changed.notify_all();
    }
}

/// Reads parts of a slice.
struct PartReader {
    slice: Slice,
    rid: ContainerRid,
    horizon: Horizon,
    memory: MemoryBudget,
}

impl PartReader {
    async fn read(&self, part: &Slice, test: &mut ItemTest, watch: &Watch) -> Result<PartRead> {
        let mut read = PartRead {
            items: ScannedItems::default(),
            rest: Some(part.from.clone()),
        };
        for _ in 0..READS_OF_PART {
            let Some(from) = read.rest.take_if(|_| read.items.memory.bytes() < BYTES_OF_PART) else {
                break;
            };
            watch.check()?;
            read.rest = self.read_once(&mut read.items, from, part, test).await?;
        }
        Ok(read)
    }

    /// Adds the items of one read; returns the key from which on nothing was read.
    async fn read_once(
        &self,
        items: &mut ScannedItems,
        from: Bytes,
        part: &Slice,
        test: &mut ItemTest,
    ) -> Result<Option<Bytes>> {
        let range = [(from, part.to.clone())];
        let (request, as_of) = (|| read_of(&range, WALK_BYTES), AsOf::Horizon(&self.horizon));
        let mut snapshot = part.partition.snapshot(request, as_of).await?;
        let memory = self.memory.try_take(snapshot.row_bytes(ROW_BYTES))?;
        let (mut rows, mut rest) = (Vec::new(), None);
        for page in snapshot.take_pages() {
            rest = page.resumes_at();
            rows.extend(page.rows.into_iter().filter(|row| part.has_prefix(row.key())));
        }
        let read = visible_items(
            &snapshot,
            rows,
            (part.partition.range, self.rid),
            (&self.memory, memory),
        )?;
        items.add_tested(read, test);
        Ok(rest)
    }
}

impl ScannedItems {
    /// Appends the items of another read that may have a row.
    fn add_tested(&mut self, mut read: ScannedItems, test: &mut ItemTest) {
        let (before, mut bytes) = (self.items.len() + self.left_out.len(), 0);
        for scanned in read.items {
            match test(&scanned.item) {
                None => {
                    bytes += scanned.memory_bytes();
                    self.items.push(scanned);
                }
                Some(bytes) => self.leave_out(scanned, bytes),
            }
        }
        let kept = self.items.len() + self.left_out.len() - before;
        read.memory.shrink_to(bytes + kept * BLOCK_BYTES);
        self.memory.merge(read.memory);
    }
}
