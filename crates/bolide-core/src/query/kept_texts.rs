//! Lists of the best texts with some words, which partitions keep in memory: when they are used, and how they are made.
//!
//! A list is made of the entries that a query has read anyway. If there are too many of them to be held, they are read for the list alone, a part at a time from
//! one snapshot, and the query uses the list.

use std::collections::VecDeque;
use std::time::Duration;

use bolide_model::Lsn;
use bytes::Bytes;

use super::text_lists::{Halt, KeptList, TextLists, Texts, Wanted, words_of_terms};
use crate::format::keys;
use crate::format::text_entries::Posting;
use crate::partition::{EntryRead, HeldIndex, IndexInterval, ListId, Making, Ranked, RankedList};
use crate::scan::{ItemScan, Slice};

/// Number of entries in a partition from which on a list is kept in memory, and number of texts of each of its groups.
const MANY_ENTRIES: usize = 256;
const KEPT: usize = 256;
/// The same if indexes are used wherever they can be: so small that every part of it is used by few items.
const FEW_KEPT: usize = 4;
/// Maximum memory of all lists of an account, in bytes, and the part of the memory for requests that it must not exceed.
const MAX_KEPT_BYTES: usize = 64 * 1024 * 1024;
const KEPT_PART: usize = 8;
/// How often a partition is read until its version is that of a list in memory.
const TRIES_OF_KEPT: usize = 8;
/// Maximum number of entries of ghosts that are read for a list in memory.
const MANY_GHOSTS: usize = 20_000;

/// A read of entries that are not held.
const PART: EntryRead = EntryRead {
    descending: false,
    rows: 16_384,
    bytes: 2 * 1024 * 1024,
    keys_only: false,
};
/// How often a query looks whether another one has made a list, while it waits for it.
const LOOK: Duration = Duration::from_millis(10);

impl TextLists<'_> {
    /// Reads a partition without the entries of words, if there is a list in memory. Returns whether there is one.
    pub(super) async fn read_kept(
        &self,
        (at, slice): (usize, &Slice),
        walk: &mut ItemScan<'_>,
        (words, lists): (&[&String], &[IndexInterval]),
        texts: &mut Texts,
    ) -> Result<bool, Halt> {
        if let Wanted::Texts { from_memory: false, .. } = self.wanted {
            return Ok(false);
        }
        let kept = slice.partition.ranked_texts();
        let Some(id) = self.kept_ids(words).into_iter().find(|id| kept.has(id)) else {
            return Ok(false);
        };
        for _ in 0..TRIES_OF_KEPT {
            self.run.check()?;
            let live = self.lists(slice, walk, &lists[..1], texts).await?.ok_or(Halt::Scan)?;
            let list = match kept.find(&id, live.lsn).await {
                Ranked::Found(list) => list,
                Ranked::Missing => return Ok(false),
                Ranked::Later => continue,
            };
            if live.ghosts() * words.len() > MANY_GHOSTS {
                return Ok(false);
            }
            let Some(figures) = slice.partition.live_figures(self.index, &live, words).await? else {
                continue;
            };
            self.add_figures((at, slice), &live, &figures, texts).await?;
            let of_terms = words_of_terms(self.terms, words);
            for (total, word) in texts.statistics.hits.iter_mut().zip(&of_terms) {
                let live = |word: usize| list.counts()[word].saturating_sub(figures.ghosts_with[word]);
                *total += word.map_or(0, live);
            }
            texts.kept.push(KeptList {
                slice: at,
                range: slice.partition.range,
                list,
                live,
                of_terms,
            });
            return Ok(true);
        }
        Ok(false)
    }

    /// The lists that have what is wanted; the last one is made if there is none.
    fn kept_ids(&self, words: &[&String]) -> Vec<ListId> {
        let id = |ties_descend| ListId {
            index: self.index,
            words: words.iter().map(|word| (*word).clone()).collect(),
            ties_descend,
        };
        match self.wanted {
            _ if words.is_empty() => Vec::new(),
            // A ranking by given statistics usually follows.
            Wanted::Statistics => vec![id(false), id(true)],
            Wanted::Texts { ties_descend, .. } => vec![id(ties_descend)],
        }
    }

    /// Begins a list of some words, if there is none.
    pub(super) fn begin_list(&self, slice: &Slice, words: &[&String]) -> Option<Making> {
        let id = self.kept_ids(words).pop()?;
        slice.partition.ranked_texts().begin(&id, slice.partition.lsn())
    }

    /// Number of entries from which on a list is kept.
    pub(super) fn fewest_kept(&self) -> usize {
        match self.run.indexes.index_use.is_forced() {
            true => 1,
            false => MANY_ENTRIES,
        }
    }

    pub(super) fn empty_list(&self, making: &Making, words: &[&String]) -> RankedList {
        let keep = match self.run.indexes.index_use.is_forced() {
            true => FEW_KEPT,
            false => KEPT,
        };
        RankedList::new(words.len(), making.id().ties_descend, keep)
    }

    /// Keeps a list of all texts of a version.
    pub(super) fn keep(&self, making: Making, list: RankedList, lsn: Lsn) {
        let limit = MAX_KEPT_BYTES.min(self.run.memory.limit_bytes() / KEPT_PART);
        making.finish(list, lsn, limit);
    }

    /// Reads a partition whose entries are too many to be held.
    pub(super) async fn read_long(
        &self,
        place: (usize, &Slice),
        walk: &mut ItemScan<'_>,
        (words, lists): (&[&String], &[IndexInterval]),
        making: Option<Making>,
        texts: &mut Texts,
    ) -> Result<(), Halt> {
        if let Wanted::Texts { from_memory: false, .. } = self.wanted {
            return Err(Halt::Scan);
        }
        let kept = place.1.partition.ranked_texts();
        match making {
            Some(making) => {
                let entries = self.make_long(place.1, walk, (words, &lists[1..]), making).await?;
                texts.charge_for(place.1, entries);
            }
            None => {
                let ids = self.kept_ids(words);
                while ids.iter().any(|id| kept.is_being_made(id)) {
                    self.run.check()?;
                    tokio::time::sleep(LOOK).await;
                }
            }
        }
        match self.read_kept(place, walk, (words, lists), texts).await? {
            true => Ok(()),
            false => Err(Halt::Scan),
        }
    }

    /// Makes a list of entries that are not held. Returns their number.
    async fn make_long(
        &self,
        slice: &Slice,
        walk: &mut ItemScan<'_>,
        (words, lists): (&[&String], &[IndexInterval]),
        making: Making,
    ) -> Result<u64, Halt> {
        let memory = self.run.memory.try_take(lists.len() * PART.bytes);
        let _memory = memory.map_err(|_| Halt::Scan)?;
        let held = walk.hold_live_index(&slice.partition).await?.ok_or(Halt::Scan)?;
        let mut list = self.empty_list(&making, words);
        let mut parts: Vec<Entries> = lists.iter().map(Entries::of).collect();
        let (mut times, mut entries) = (vec![0; words.len()], 0);
        loop {
            self.run.check()?;
            for part in &mut parts {
                part.fill(&held).await?;
            }
            // Until one of them has to be read on.
            while parts.iter().all(|part| part.is_at_end() || !part.rows.is_empty()) {
                let Some(first) = parts.iter().filter_map(Entries::place).min().cloned() else {
                    self.keep(making, list, held.live.lsn);
                    return Ok(entries);
                };
                let mut words = 0;
                for (part, times) in parts.iter_mut().zip(&mut times) {
                    let posting = part.take_if(&first)?;
                    *times = posting.map_or(0, |posting| posting.times);
                    entries += u64::from(posting.is_some());
                    words = posting.map_or(words, |posting| posting.words);
                }
                let (number, epk) = keys::place_in_index(&first).ok_or(Halt::Scan)?;
                if !list.add(&times, words, number, epk) {
                    return Err(Halt::Scan);
                }
            }
        }
    }
}

/// The entries of a word, read a part at a time.
struct Entries {
    /// Length of what their keys begin with.
    prefix: usize,
    unread: Option<IndexInterval>,
    /// The place of each item, which follows the word in the key, and the value.
    rows: VecDeque<(Bytes, Bytes)>,
}

impl Entries {
    fn of(all: &IndexInterval) -> Entries {
        Entries {
            prefix: all.from.len(),
            unread: Some(all.clone()),
            rows: VecDeque::new(),
        }
    }

    fn is_at_end(&self) -> bool {
        self.unread.is_none() && self.rows.is_empty()
    }

    async fn fill(&mut self, held: &HeldIndex) -> Result<(), Halt> {
        let Some(unread) = self.unread.as_mut().filter(|_| self.rows.is_empty()) else {
            return Ok(());
        };
        let page = held.read(unread, PART).await?.ok_or(Halt::Scan)?;
        match page.rows.last().filter(|_| page.more) {
            None => self.unread = None,
            Some((last, _)) => unread.from = keys::after(last),
        }
        let prefix = self.prefix;
        let rows = page.rows.into_iter();
        self.rows
            .extend(rows.map(|(key, value)| (key.slice(prefix.min(key.len())..), value)));
        Ok(())
    }

    /// The place of the next item.
    fn place(&self) -> Option<&Bytes> {
        self.rows.front().map(|(place, _)| place)
    }

    /// Takes the next entry, if it is that of an item.
    fn take_if(&mut self, place: &Bytes) -> Result<Option<Posting>, Halt> {
        if self.place() != Some(place) {
            return Ok(None);
        }
        let posting = self.rows.pop_front().and_then(|(_, value)| Posting::decode(&value));
        posting.ok_or(Halt::Scan).map(Some)
    }
}
