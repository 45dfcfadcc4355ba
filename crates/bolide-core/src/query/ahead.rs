//! A cache of sorted rows that did not fit on a page, for the pages that follow, so that not every page sorts everything again.
//!
//! A result never depends on the cache: its rows are used only while the heads of all partitions that were read and the state of the container
//! are unchanged, and without the rows whose items have expired meanwhile. Otherwise the page reads and sorts as if there were no cache.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bolide_model::Lsn;
use bolide_model::time::Monotonic;
use bolide_query::Ahead;
use parking_lot::Mutex;
use serde_json::Value;
use sha2::Digest as _;

use super::QueryItems;
use crate::container::{Container, ContainerState};
use crate::format::digest;
use crate::memory::{MemoryBudget, MemoryShare};

/// Maximum size of all entries together: this many bytes, and at most one of `MEMORY_PART` parts of the memory for requests.
const BYTES: usize = 16 * 1024 * 1024;
const MEMORY_PART: usize = 16;

/// Maximum number of entries.
const ENTRIES: usize = 256;

/// How long an entry is kept. A client that requests the next page later pays for the sort again.
const KEPT: Duration = Duration::from_secs(30);

/// The heads of partitions, by their ranges.
pub(super) type Heads = Vec<(u32, Lsn)>;

/// The rows that follow pages, by the pages' continuations.
pub(crate) struct AheadCache {
    clock: Monotonic,
    memory: MemoryBudget,
    limit_bytes: usize,
    entries: Mutex<HashMap<Key, Entry>>,
}

type Key = [u8; 32];

struct Entry {
    ahead: Ahead,
    heads: Heads,
    state: Weak<ContainerState>,
    at: Instant,
    memory: MemoryShare,
}

/// The cached rows of one query.
pub(super) struct AheadOf<'a> {
    cache: &'a AheadCache,
    question: Key,
}

impl AheadCache {
    /// Creates a cache whose rows count against the memory for requests.
    pub fn new(memory: &MemoryBudget, clock: Monotonic) -> Arc<AheadCache> {
        Arc::new(AheadCache {
            clock,
            memory: memory.clone(),
            limit_bytes: BYTES.min(memory.limit_bytes() / MEMORY_PART),
            entries: Mutex::default(),
        })
    }

    pub(super) fn of(&self, container: &Container, query: &QueryItems) -> AheadOf<'_> {
        let parameters = serde_json::to_vec(&query.parameters).unwrap_or_default();
        let filter = query.resume_filter.as_ref().map(Value::to_string).unwrap_or_default();
        let rid = container.rid().bytes();
        let question = digest::of_parts(&[&rid, query.text.as_bytes(), &parameters, filter.as_bytes()]);
        AheadOf {
            cache: self,
            question: question.finalize().into(),
        }
    }

    fn is_kept(&self, entry: &Entry) -> bool {
        self.clock.since(entry.at) < KEPT
    }

    fn put(&self, key: Key, ahead: Ahead, heads: Heads, state: &Arc<ContainerState>) {
        let bytes = ahead.bytes();
        if ahead.is_empty() || bytes > self.limit_bytes {
            return;
        }
        let mut entries = self.entries.lock();
        // Requests that wait for memory need it more than this cache.
        if self.memory.is_short() {
            entries.clear();
            return;
        }
        entries.retain(|_, entry| self.is_kept(entry));
        let mut used: usize = entries.values().map(|entry| entry.memory.bytes()).sum();
        while entries.len() >= ENTRIES || used + bytes > self.limit_bytes {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.at).map(|(key, _)| *key);
            let Some(oldest) = oldest.and_then(|key| entries.remove(&key)) else {
                break;
            };
            used -= oldest.memory.bytes();
        }
        let Ok(memory) = self.memory.try_take(bytes) else {
            return;
        };
        let entry = Entry {
            ahead,
            heads,
            state: Arc::downgrade(state),
            at: self.clock.now(),
            memory,
        };
        entries.insert(key, entry);
    }
}

impl AheadOf<'_> {
    /// Removes and returns the rows that follow the page that ended with a continuation, if that page left any.
    pub fn take(&self, continuation: &str) -> Option<Kept> {
        let entry = self.cache.entries.lock().remove(&self.key(continuation))?;
        self.cache.is_kept(&entry).then_some(Kept(entry))
    }

    /// Keeps the rows that follow a page.
    pub fn put(&self, continuation: &str, ahead: Ahead, heads: Heads, state: &Arc<ContainerState>) {
        self.cache.put(self.key(continuation), ahead, heads, state);
    }

    fn key(&self, continuation: &str) -> Key {
        digest::of_parts(&[&self.question, continuation.as_bytes()])
            .finalize()
            .into()
    }
}

/// Cached rows of an earlier page.
pub(super) struct Kept(Entry);

impl Kept {
    /// Returns the rows and their memory share, if the partitions and the state of the container are unchanged.
    pub fn if_unchanged(self, heads: &Heads, state: &Arc<ContainerState>) -> Option<(Ahead, MemoryShare)> {
        let Kept(entry) = self;
        let is_same = entry.heads == *heads && std::ptr::eq(entry.state.as_ptr(), Arc::as_ptr(state));
        is_same.then_some((entry.ahead, entry.memory))
    }
}
