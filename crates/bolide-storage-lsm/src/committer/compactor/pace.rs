//! How a compaction holds back while others read and write, and how it is ended: when the store closes, and when the disk fills up.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bolide_model::time::Monotonic;
use bolide_storage::Space;
use fjall::compaction::filter::{CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict};
use fjall::{Database, Keyspace};

use crate::store::Store;
use crate::view::Views;

/// What is merged between two looks, about a millisecond's worth.
const PIECE_BYTES: usize = 256 << 10;
/// Beside others, so many times as long as a piece took is rested after it.
const RESTS: u32 = 4;
/// The longest rest.
const LONGEST_REST: Duration = Duration::from_millis(500);

thread_local! {
    /// Of a thread that compacts in the background: the store's own compactions are not held back.
    static PACE: RefCell<Option<Pacing>> = const { RefCell::new(None) };
}

/// What a merge of such a thread looks at.
#[derive(Clone)]
struct Pacing {
    pace: Arc<Pace>,
    db: Database,
    spaces: [Keyspace; Space::ALL.len()],
    /// Whether the merge ends when others become urgent.
    gives_way: bool,
}

/// See the module.
pub(super) struct Pace {
    views: Arc<Views>,
    pub(super) monotonic: Monotonic,
    /// How much had been read and written when it was last looked.
    seen: AtomicU64,
    stopped: AtomicBool,
    /// Whether a merge ended because it gave way.
    gave_way: AtomicBool,
    /// Whether the merge that was begun last has read all of its tables: what it wrote may be part of the store from then on.
    has_read_all: AtomicBool,
    spare_bytes: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// As long as it lives, merges of this thread keep to its pace.
pub(super) struct Paced;

impl Drop for Paced {
    fn drop(&mut self) {
        PACE.set(None);
    }
}

impl Pace {
    pub(super) fn new(
        views: Arc<Views>,
        monotonic: Monotonic,
        spare_bytes: Box<dyn Fn() -> u64 + Send + Sync>,
    ) -> Pace {
        Pace {
            views,
            monotonic,
            seen: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            gave_way: AtomicBool::new(false),
            has_read_all: AtomicBool::new(false),
            spare_bytes,
        }
    }

    /// Whether the disk has room for so many bytes once more, with as much to spare.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        (self.spare_bytes)() / 2 >= bytes
    }

    pub(super) fn enter(self: &Arc<Pace>, store: &Store) -> Paced {
        PACE.set(Some(Pacing {
            pace: self.clone(),
            db: store.db.clone(),
            spaces: store.spaces.clone(),
            gives_way: false,
        }));
        Paced
    }

    /// From now on, merges of this thread end when others become urgent, or do not.
    pub(super) fn give_way(&self, gives_way: bool) {
        PACE.with_borrow_mut(|pacing| {
            if let Some(pacing) = pacing {
                pacing.gives_way = gives_way;
            }
        });
    }

    /// Whether a merge gave way since this was last asked.
    pub(super) fn gave_way(&self) -> bool {
        self.gave_way.swap(false, Ordering::Relaxed)
    }

    /// Whether what the merge that was begun last has written is certainly no part of the store, if it failed.
    pub(super) fn is_cut_short(&self) -> bool {
        !self.has_read_all.load(Ordering::Relaxed)
    }

    /// A merge begins.
    pub(super) fn begin(&self) {
        self.has_read_all.store(false, Ordering::Relaxed);
    }

    pub(super) fn stop(&self, is_stopped: bool) {
        self.stopped.store(is_stopped, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The number of the store's writes up to which no reader needs what later ones hide.
    pub(super) fn gc_watermark(&self) -> u64 {
        self.views.oldest().saturating_sub(1)
    }

    /// Rests after a merge, if others were there meanwhile: its tables are on their way to the disk.
    pub(super) fn rest(&self) {
        let is_urgent = PACE.with_borrow(|pacing| pacing.as_ref().is_some_and(|pacing| pacing.rests() < RESTS));
        if !is_urgent && self.has_company() {
            std::thread::sleep(LONGEST_REST);
        }
    }

    /// Whether others have read or written since this was last asked.
    fn has_company(&self) -> bool {
        let calls = self.views.calls();
        self.seen.swap(calls, Ordering::Relaxed) != calls
    }
}

/// The filter that all merges of the store go through. It keeps every row; on a compactor's thread it holds the merge back.
pub(crate) fn filter_of(_space: &str) -> Option<Arc<dyn Factory>> {
    Some(Arc::new(Filters))
}

impl Pacing {
    /// How many times as long as a piece took is to be rested: the more tables wait to be merged, the less. The store lets writes wait when they are
    /// thirty.
    fn rests(&self) -> u32 {
        let tables = self.spaces.iter().map(Keyspace::l0_table_count).max();
        match tables.unwrap_or_default() {
            0..8 => RESTS,
            8..14 => 1,
            _ => 0,
        }
    }

    /// Whether the merge may go on.
    fn check(&self) -> io::Result<()> {
        if self.pace.is_stopped() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.gives_way && self.rests() == 0 {
            self.pace.gave_way.store(true, Ordering::Relaxed);
            return Err(io::ErrorKind::Interrupted.into());
        }
        // What is in memtables needs room as tables; and where there is none, the store fails.
        if (self.pace.spare_bytes)() <= self.db.write_buffer_size() {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "the disk has too little space to merge tables",
            ));
        }
        Ok(())
    }
}

struct Filters;

impl Factory for Filters {
    fn name(&self) -> &'static str {
        "pace"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(Filter {
            piece: PACE.with_borrow(Clone::clone).map(Piece::begin),
        })
    }
}

struct Filter {
    /// `None` on threads whose merges are not held back.
    piece: Option<Piece>,
}

/// What was merged since it was last looked.
struct Piece {
    pacing: Pacing,
    bytes: usize,
    since: Instant,
}

impl Piece {
    fn begin(pacing: Pacing) -> Piece {
        let since = pacing.pace.monotonic.now();
        Piece {
            pacing,
            bytes: 0,
            since,
        }
    }

    /// Rests if the piece is large enough, and begins the next.
    fn add(&mut self, bytes: usize) -> io::Result<()> {
        self.bytes += bytes;
        if self.bytes < PIECE_BYTES {
            return Ok(());
        }
        self.pacing.check()?;
        let pace = &self.pacing.pace;
        if pace.has_company() {
            std::thread::sleep((pace.monotonic.since(self.since) * self.pacing.rests()).min(LONGEST_REST));
        }
        (self.bytes, self.since) = (0, pace.monotonic.now());
        Ok(())
    }
}

impl CompactionFilter for Filter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        if let Some(piece) = &mut self.piece {
            let bytes = item.key().len() + item.value()?.len();
            piece.add(bytes).map_err(fjall::LsmError::Io)?;
        }
        Ok(Verdict::Keep)
    }

    fn finish(self: Box<Self>) {
        if let Some(piece) = self.piece {
            piece.pacing.pace.has_read_all.store(true, Ordering::Relaxed);
        }
    }
}
