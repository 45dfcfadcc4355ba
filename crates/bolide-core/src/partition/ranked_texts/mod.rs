//! Lists of the best texts with some words, kept in memory, so that rankings by frequent words do not read the entries of all texts that have them.
//!
//! ```text
//!   query ──begin──▶ reads all entries at one version ──finish──▶ list of that version
//!   worker ──commit──▶ texts that it stored and removed ──apply──▶ list of the next version
//!   query ──find──▶ a list of exactly the version at which it has read everything else, or none
//! ```
//!
//! A list is made when a ranking has read many entries, and follows every commit of the partition's worker. The version of a list is the LSN of the partition: a
//! commit that others made, or whose outcome was unknown, leaves a gap, and the list is dropped. Nothing of it is stored.

mod list;
mod memory;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bolide_model::Lsn;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::text_changes::TextChange;
use crate::format::keys;
pub(crate) use list::{Group, RankedList, RankedText, order_of_ties};
pub(crate) use memory::ListMemory;

/// Maximum number of lists of a partition.
const MAX_LISTS: usize = 64;
/// Maximum number of lists that are made at the same time, besides these.
const MAX_MAKING: usize = 64;
/// Maximum number of texts that may change while a list is made.
const MAX_PENDING: usize = 20_000;
/// How long a reader waits until the worker has applied a commit that the reader has seen. It does so when it learns of its commit.
const LAG: Duration = Duration::from_millis(10);

/// Which texts a list has, and in which order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ListId {
    pub index: u32,
    /// The words, sorted, each once.
    pub words: Vec<String>,
    /// Equal scores come by resource number, the highest first.
    pub ties_descend: bool,
}

/// What is known of a list.
pub(crate) enum Ranked {
    /// There is none.
    Missing,
    /// It is of a later version than the one that was read.
    Later,
    Found(Arc<RankedList>),
}

/// The lists of a partition. See the module.
pub(crate) struct RankedTexts {
    slots: Mutex<HashMap<ListId, Slot>>,
    /// Told after each commit.
    applied: Notify,
    memory: Arc<ListMemory>,
}

#[derive(Default)]
struct Slot {
    /// With its version.
    list: Option<(Lsn, Arc<RankedList>)>,
    /// The memory of the list that is counted.
    bytes: usize,
    /// When it was used the last time, in calls of [`ListMemory::tick`].
    used: u64,
    being_made: Option<BeingMade>,
}

/// A list that is being made.
#[derive(Default)]
struct BeingMade {
    /// Commits since it was begun.
    commits: Vec<Commit>,
    texts: usize,
}

#[derive(Clone)]
struct Commit {
    before: Lsn,
    after: Lsn,
    texts: Arc<Vec<TextChange>>,
}

impl RankedTexts {
    pub fn new(memory: Arc<ListMemory>) -> Arc<RankedTexts> {
        let lists = Arc::new(RankedTexts {
            slots: Mutex::default(),
            applied: Notify::new(),
            memory,
        });
        lists.memory.register(&lists);
        lists
    }

    /// Returns whether there is a list, of whatever version.
    pub fn has(&self, id: &ListId) -> bool {
        self.slots.lock().get(id).is_some_and(|slot| slot.list.is_some())
    }

    /// Returns whether a request makes a list.
    pub fn is_being_made(&self, id: &ListId) -> bool {
        self.slots.lock().get(id).is_some_and(|slot| slot.being_made.is_some())
    }

    /// Returns a list as of a version that was read. If the worker has not applied its commit yet, waits for it a little; a list that does not become one of the version
    /// is dropped.
    pub async fn find(&self, id: &ListId, lsn: Lsn) -> Ranked {
        let look = async {
            loop {
                // Begun before the look, so that no commit between is missed.
                let applied = self.applied.notified();
                match self.look(id, lsn) {
                    Some(ranked) => return ranked,
                    None => applied.await,
                }
            }
        };
        let found = tokio::time::timeout(LAG, look).await;
        found.unwrap_or_else(|_| {
            self.forget(id);
            Ranked::Missing
        })
    }

    /// Returns a list as of a version; `None` if it is of an earlier one.
    fn look(&self, id: &ListId, lsn: Lsn) -> Option<Ranked> {
        let mut slots = self.slots.lock();
        let slot = slots.get_mut(id);
        let Some((version, list)) = slot.as_ref().and_then(|slot| slot.list.as_ref()) else {
            return Some(Ranked::Missing);
        };
        let found = match version.cmp(&lsn) {
            Ordering::Less => None,
            Ordering::Equal => Some(Ranked::Found(list.clone())),
            Ordering::Greater => Some(Ranked::Later),
        };
        if let Some(slot) = slot {
            slot.used = self.memory.tick();
        }
        found
    }

    /// Begins to make a list, before its entries are read. `None` if there is a good one of this version or a later one, or another request makes it.
    pub fn begin(self: &Arc<Self>, id: &ListId, lsn: Lsn) -> Option<Making> {
        let mut slots = self.slots.lock();
        let is_good = |slot: &Slot| {
            let list = slot.list.as_ref();
            slot.being_made.is_some() || list.is_some_and(|(version, list)| *version >= lsn && !list.is_worn())
        };
        if slots.get(id).is_some_and(is_good) {
            return None;
        }
        if slots.len() >= MAX_LISTS + MAX_MAKING && !slots.contains_key(id) {
            return None;
        }
        let slot = slots.entry(id.clone()).or_default();
        slot.being_made = Some(BeingMade::default());
        slot.used = self.memory.tick();
        Some(Making {
            lists: self.clone(),
            id: id.clone(),
        })
    }

    /// Applies a commit of the worker to all lists.
    pub fn apply(&self, before: Lsn, after: Lsn, texts: Vec<TextChange>) {
        let mut slots = self.slots.lock();
        if slots.is_empty() {
            return;
        }
        let commit = Commit {
            before,
            after,
            texts: Arc::new(texts),
        };
        for (id, slot) in slots.iter_mut() {
            if let Some((version, list)) = slot.list.take()
                && let Some(list) = commit.applied(id, version, list)
            {
                self.count(slot, list.1.bytes());
                slot.list = Some(list);
            } else {
                self.count(slot, 0);
            }
            if let Some(being_made) = &mut slot.being_made {
                being_made.texts += commit.texts.len();
                // It is given up at the end, because of the gap.
                if being_made.texts <= MAX_PENDING {
                    being_made.commits.push(commit.clone());
                }
            }
        }
        slots.retain(|_, slot| slot.list.is_some() || slot.being_made.is_some());
        drop(slots);
        self.applied.notify_waiters();
    }

    /// Drops all lists: the partition has changed in an unknown way.
    pub fn forget_all(&self) {
        let mut slots = self.slots.lock();
        for slot in slots.values_mut() {
            slot.list = None;
            self.count(slot, 0);
        }
        slots.retain(|_, slot| slot.being_made.is_some());
        drop(slots);
        self.applied.notify_waiters();
    }

    /// Returns when the list that was not used for the longest time was used, and its id.
    fn least_used(&self) -> Option<(u64, ListId)> {
        let slots = self.slots.lock();
        let lists = slots.iter().filter(|(_, slot)| slot.list.is_some());
        lists
            .map(|(id, slot)| (slot.used, id))
            .min_by_key(|(used, _)| *used)
            .map(|(used, id)| (used, id.clone()))
    }

    /// Drops the lists that were not used for the longest time.
    fn keep_fewer_than(&self, lists: usize) {
        let is_full = || {
            let slots = self.slots.lock();
            slots.values().filter(|slot| slot.list.is_some()).count() >= lists
        };
        while is_full()
            && let Some((_, id)) = self.least_used()
        {
            self.forget(&id);
        }
    }

    /// Drops a list.
    fn forget(&self, id: &ListId) {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get_mut(id) {
            slot.list = None;
            self.count(slot, 0);
        }
        slots.retain(|_, slot| slot.list.is_some() || slot.being_made.is_some());
    }

    fn drop_slot(&self, slots: &mut HashMap<ListId, Slot>, id: &ListId) {
        if let Some(slot) = slots.remove(id) {
            self.memory.release(slot.bytes);
        }
    }

    fn count(&self, slot: &mut Slot, bytes: usize) {
        self.memory.take(bytes);
        self.memory.release(std::mem::replace(&mut slot.bytes, bytes));
    }
}

impl Drop for RankedTexts {
    fn drop(&mut self) {
        let bytes = self.slots.get_mut().values().map(|slot| slot.bytes).sum();
        self.memory.release(bytes);
    }
}

impl Commit {
    /// Returns a list after this commit; `None` if it cannot follow it.
    fn applied(&self, id: &ListId, version: Lsn, mut list: Arc<RankedList>) -> Option<(Lsn, Arc<RankedList>)> {
        if version >= self.after {
            return Some((version, list));
        }
        if version != self.before {
            return None;
        }
        for change in self.texts.iter().filter(|change| change.index == id.index) {
            let times: Vec<u64> = id.words.iter().map(|word| change.times(word)).collect();
            if times.iter().all(|times| *times == 0) {
                continue;
            }
            let (number, epk) = (change.number(), keys::epk_of_item(&change.item_key));
            let list = Arc::make_mut(&mut list);
            let is_right = match change.is_added {
                true => list.add(&times, change.words, number, epk),
                false => list.remove(&times, change.words, number, epk),
            };
            if !is_right {
                return None;
            }
        }
        Some((self.after, list))
    }
}

/// A list that is being made; it is given up when this is dropped.
pub(crate) struct Making {
    lists: Arc<RankedTexts>,
    id: ListId,
}

impl Making {
    pub fn id(&self) -> &ListId {
        &self.id
    }

    /// Keeps a list that has all texts of a version, which was read after the list was begun. All lists of the account then have at most `limit` bytes; they grow a little
    /// with writes.
    pub fn finish(self, list: RankedList, lsn: Lsn, limit: usize) {
        let bytes = list.bytes();
        if !self.lists.memory.make_room(bytes, limit) {
            return;
        }
        self.lists.keep_fewer_than(MAX_LISTS);
        let mut slots = self.lists.slots.lock();
        let Some(slot) = slots.get_mut(&self.id) else { return };
        let commits = slot.being_made.take().unwrap_or_default().commits;
        let mut made = Some((lsn, Arc::new(list)));
        for commit in commits {
            made = made.and_then(|(version, list)| commit.applied(&self.id, version, list));
        }
        if let Some(made) = made {
            self.lists.count(slot, made.1.bytes());
            slot.list = Some(made);
        }
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        let mut slots = self.lists.slots.lock();
        if let Some(slot) = slots.get_mut(&self.id) {
            slot.being_made = None;
            if slot.list.is_none() {
                self.lists.drop_slot(&mut slots, &self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests;
