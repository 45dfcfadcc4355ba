//! How a compaction holds back while others read and write, and how it is ended.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bolide_storage::Space;
use fjall::Keyspace;
use fjall::compaction::filter::{CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict};

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
    static PACE: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// What a merge of such a thread looks at.
#[derive(Clone)]
struct Held {
    pace: Arc<Pace>,
    spaces: [Keyspace; Space::ALL.len()],
}

/// See the module.
pub(super) struct Pace {
    views: Arc<Views>,
    /// How much had been read and written when it was last looked.
    seen: AtomicU64,
    stopped: AtomicBool,
    free_bytes: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// As long as it lives, merges of this thread keep to its pace.
pub(super) struct Paced;

impl Drop for Paced {
    fn drop(&mut self) {
        PACE.set(None);
    }
}

impl Pace {
    pub(super) fn new(views: Arc<Views>, free_bytes: Box<dyn Fn() -> u64 + Send + Sync>) -> Pace {
        Pace {
            views,
            seen: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            free_bytes,
        }
    }

    /// Whether the disk has room for so many bytes once more, with as much to spare.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        (self.free_bytes)() / 2 >= bytes
    }

    pub(super) fn enter(self: &Arc<Pace>, store: &Store) -> Paced {
        PACE.set(Some(Held {
            pace: self.clone(),
            spaces: store.spaces.clone(),
        }));
        Paced
    }

    pub(super) fn stop(&self, is_stopped: bool) {
        self.stopped.store(is_stopped, Ordering::Relaxed);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// The number of the store's writes up to which no reader needs what later ones hide.
    pub(super) fn watermark(&self) -> u64 {
        self.views.oldest().saturating_sub(1)
    }

    /// Rests after a merge, if others were there meanwhile: its tables are on their way to the disk.
    pub(super) fn rest(&self) {
        let is_urgent = PACE.with_borrow(|held| held.as_ref().is_some_and(|held| held.rests() < RESTS));
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

impl Held {
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
}

struct Filters;

impl Factory for Filters {
    fn name(&self) -> &'static str {
        "pace"
    }

    fn make_filter(&self, _: &Context) -> Box<dyn CompactionFilter> {
        Box::new(Filter {
            held: PACE.with_borrow(Clone::clone),
            bytes: 0,
            since: Instant::now(),
        })
    }
}

struct Filter {
    held: Option<Held>,
    bytes: usize,
    since: Instant,
}

impl CompactionFilter for Filter {
    fn filter_item(&mut self, item: ItemAccessor<'_>, _: &Context) -> CompactionFilterResult {
        let Some(held) = &self.held else {
            return Ok(Verdict::Keep);
        };
        self.bytes += item.key().len() + item.value()?.len();
        if self.bytes >= PIECE_BYTES {
            if held.pace.is_stopped() {
                return Err(fjall::LsmError::Io(io::ErrorKind::Interrupted.into()));
            }
            if held.pace.has_company() {
                std::thread::sleep((self.since.elapsed() * held.rests()).min(LONGEST_REST));
            }
            (self.bytes, self.since) = (0, Instant::now());
        }
        Ok(Verdict::Keep)
    }
}
