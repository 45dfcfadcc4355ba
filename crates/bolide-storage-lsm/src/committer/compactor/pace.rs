//! How a compaction slows down while requests read and write, and how it ends: when the store closes, and when the disk fills up.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bolide_model::time::{Activity, Monotonic};
use bolide_storage::Space;
use fjall::compaction::filter::{CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict};
use fjall::{Database, Keyspace};
use parking_lot::Mutex;

use crate::store::Store;
use crate::view::Views;

/// Bytes merged between two checks, about a millisecond of work.
const PIECE_BYTES: usize = 256 << 10;
/// While there are requests, the pause after a piece is this many times as long as the piece took.
const PAUSE_FACTOR: u32 = 4;
/// The longest pause between two pieces.
const MAX_PAUSE: Duration = Duration::from_millis(500);
/// The pause after a merge while there are requests.
const REST: Duration = Duration::from_secs(2);
/// How long there is a load after a read or a write: a piece takes less time than passes between two requests of a busy user.
const LOAD_STAYS_FOR: Duration = Duration::from_millis(250);

thread_local! {
    /// Set on a thread that compacts in the background; the store's own compactions are not slowed down.
    static PACE: RefCell<Option<Pacing>> = const { RefCell::new(None) };
}

/// What a merge on such a thread checks.
#[derive(Clone)]
struct Pacing {
    pace: Arc<Pace>,
    db: Database,
    spaces: [Keyspace; Space::ALL.len()],
    /// Whether the merge ends when other merges become urgent.
    gives_way: bool,
}

/// See the module.
pub(super) struct Pace {
    views: Arc<Views>,
    pub(super) monotonic: Monotonic,
    /// Reads and writes.
    foreground: Mutex<Activity>,
    stopped: AtomicBool,
    /// Whether a merge ended because others were urgent.
    gave_way: AtomicBool,
    /// Whether the current merge has read all of its tables: from then on its output may be part of the store.
    has_read_all: AtomicBool,
    spare_bytes: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// While it lives, merges of this thread keep to its pace.
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
            foreground: Mutex::new(Activity::new(0, LOAD_STAYS_FOR)),
            stopped: AtomicBool::new(false),
            gave_way: AtomicBool::new(false),
            has_read_all: AtomicBool::new(false),
            spare_bytes,
        }
    }

    /// Whether the disk has space for `bytes` once more, with as much to spare.
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

    /// Sets whether merges of this thread end when others become urgent.
    pub(super) fn give_way(&self, gives_way: bool) {
        PACE.with_borrow_mut(|pacing| {
            if let Some(pacing) = pacing {
                pacing.gives_way = gives_way;
            }
        });
    }

    /// Whether a merge ended for an urgent one since the last call.
    pub(super) fn gave_way(&self) -> bool {
        self.gave_way.swap(false, Ordering::Relaxed)
    }

    /// Whether the output of the last merge, if it failed, is certainly not part of the store.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.has_read_all.load(Ordering::Relaxed)
    }

    /// Called when a merge begins.
    pub(super) fn begin(&self) {
        self.has_read_all.store(false, Ordering::Relaxed);
    }

    pub(super) fn stop(&self, is_stopped: bool) {
        self.stopped.store(is_stopped, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The store's write number up to which no reader needs rows hidden by later ones.
    pub(super) fn gc_watermark(&self) -> u64 {
        self.views.oldest().saturating_sub(1)
    }

    /// Pauses after a merge while there are requests, unless other merges become urgent.
    ///
    /// At its end a merge stops all reads and writes of its key space for some milliseconds: the store syncs its list of tables under a lock that each of
    /// them takes. Two merges a second are one request in a hundred that waits for that.
    pub(super) fn rest(&self) {
        let is_urgent = || {
            PACE.with_borrow(|pacing| {
                pacing
                    .as_ref()
                    .is_some_and(|pacing| pacing.pause_factor() < PAUSE_FACTOR)
            })
        };
        let mut left = REST;
        while !left.is_zero() && !self.is_stopped() && !is_urgent() && self.has_foreground_load() {
            let pause = left.min(MAX_PAUSE);
            std::thread::sleep(pause);
            left -= pause;
        }
    }

    /// Whether there were reads or writes a short time ago.
    pub(super) fn has_foreground_load(&self) -> bool {
        let now = self.monotonic.now();
        let mut foreground = self.foreground.lock();
        foreground.look(self.views.calls(), now);
        foreground.is_recent(now)
    }
}

/// The filter of all merges of the store. It keeps every row; on a compactor's thread it slows the merge down.
pub(crate) fn filter_of(_space: &str) -> Option<Arc<dyn Factory>> {
    Some(Arc::new(Filters))
}

impl Pacing {
    /// Length of the pause, as a multiple of the time the piece took: the more tables wait to be merged, the shorter. The store makes writes wait at
    /// thirty tables.
    fn pause_factor(&self) -> u32 {
        let tables = self.spaces.iter().map(Keyspace::l0_table_count).max();
        match tables.unwrap_or_default() {
            0..8 => PAUSE_FACTOR,
            8..14 => 1,
            _ => 0,
        }
    }

    /// Whether the merge may continue.
    fn check(&self) -> io::Result<()> {
        if self.pace.is_stopped() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if self.gives_way && self.pause_factor() == 0 {
            self.pace.gave_way.store(true, Ordering::Relaxed);
            return Err(io::ErrorKind::Interrupted.into());
        }
        // The content of memtables needs space as tables; without space the store fails.
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
    /// `None` on threads whose merges are not slowed down.
    piece: Option<Piece>,
}

/// What was merged since the last check.
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

    /// Pauses if the piece is large enough, and begins the next.
    fn add(&mut self, bytes: usize) -> io::Result<()> {
        self.bytes += bytes;
        if self.bytes < PIECE_BYTES {
            return Ok(());
        }
        self.pacing.check()?;
        let pace = &self.pacing.pace;
        if pace.has_foreground_load() {
            std::thread::sleep((pace.monotonic.since(self.since) * self.pacing.pause_factor()).min(MAX_PAUSE));
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
