//! Reads the lists of words of a full-text index: which texts have them, how often, and the statistics of all texts (cosmos-sql §14).
//!
//! Everything of one partition is read at one snapshot. Ghosts are in no figure: their number and their words are subtracted, and they are left out of lists.
//! All partitions are read as of one time, which is also that of the items that are fetched afterwards.

use std::collections::HashSet;

use bolide_model::{Error, UnixMillis};
use bolide_query::Item;
use bolide_query::index::{KEY_OF_MANY_TERMS, TextIndex, TextStatistics, key_of_term};
use bolide_storage::{Key, Page, ReadRequest, Space};
use bytes::Bytes;

use super::page::PageRun;
use super::text_candidates::list;
use crate::content::StoredItem;
use crate::format::keys::{self, PropertyEntry};
use crate::format::text_entries::{Posting, TextEntry};
use crate::memory::MemoryShare;
use crate::partition::{AsOf, IndexInterval, TextSnapshot};
use crate::scan::{ItemScan, Slice};
use crate::sql::query_error;

/// Maximum number of entries of a list in the first read, and at most.
const LIST_ROWS: [usize; 2] = [4_096, 400_000];
/// Memory for an entry in addition to its key and its value, in bytes.
const ROW_BYTES: usize = 160;
/// Maximum number of texts with too many words for entries of their own, and of the bytes of their records: they are read.
const MANY_TEXTS: usize = 64;
const MANY_BYTES: usize = 8 * 1024 * 1024;

/// Why lists were not read.
pub(super) enum Halt {
    /// A scan is better, or the only way.
    Scan,
    /// Something has changed meanwhile: begin again.
    Changed,
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Halt {
        Halt::Failed(error)
    }
}

/// The lists of some terms in a full-text index.
pub(super) struct TextLists<'a> {
    pub run: &'a PageRun<'a>,
    pub index: u32,
    pub text: &'a TextIndex,
    /// One word each; `None` for a term that no text has.
    pub terms: &'a [Option<String>],
    /// Whether the texts with the terms are wanted, not only the statistics.
    pub keeps_texts: bool,
}

/// A text with at least one of the terms.
pub(super) struct Match {
    /// Resource number of its item.
    pub number: u64,
    /// The index of its slice.
    pub slice: usize,
    entry: Bytes,
    pub words: u64,
}

/// What was read.
#[derive(Default)]
pub(super) struct Texts {
    pub statistics: TextStatistics,
    pub matches: Vec<Match>,
    /// How often each term occurs, for one match after the other.
    hits: Vec<u64>,
    terms: usize,
    memory: MemoryShare,
}

impl Match {
    /// Returns the key of its item.
    pub fn item_key(&self) -> Bytes {
        PropertyEntry::parse(&self.entry).map_or_else(Bytes::new, |entry| entry.item_key())
    }
}

impl Texts {
    /// Returns how often each term occurs in a match.
    pub fn hits(&self, at: usize) -> &[u64] {
        &self.hits[at * self.terms..][..self.terms]
    }

    fn add(&mut self, keeps: bool, text: Match, hits: impl Iterator<Item = u64> + Clone) {
        let is_match = hits.clone().any(|hits| hits > 0);
        for (total, hits) in self.statistics.hits.iter_mut().zip(hits.clone()) {
            *total += u64::from(hits > 0);
        }
        if keeps && is_match {
            self.hits.extend(hits);
            self.matches.push(text);
        }
    }
}

impl TextLists<'_> {
    /// Reads all partitions.
    pub async fn read(&self, walk: &mut ItemScan<'_>, now: UnixMillis) -> Result<Texts, Halt> {
        let mut words: Vec<&String> = self.terms.iter().flatten().collect();
        words.sort_unstable();
        words.dedup();
        let lists = words.iter().map(|word| list(self.index, &key_of_term(word)));
        let lists: Vec<IndexInterval> = std::iter::once(list(self.index, KEY_OF_MANY_TERMS)).chain(lists).collect();
        let mut texts = Texts {
            terms: self.terms.len(),
            ..Texts::default()
        };
        texts.statistics.hits = vec![0; self.terms.len()];
        let mut horizon = None;
        for (at, slice) in self.run.slices.iter().enumerate() {
            self.run.check()?;
            let as_of = match &horizon {
                Some(horizon) => AsOf::Horizon(horizon),
                None => AsOf::Time {
                    settings: &self.run.state.settings,
                    now,
                },
            };
            let snapshot = self.snapshot(slice, &lists, as_of, &mut texts.memory).await?;
            walk.record_read(slice.partition.range, snapshot.head.lsn);
            walk.set_horizon(snapshot.horizon.clone());
            self.count(slice, &snapshot, &mut texts.statistics).await?;
            let ghosts: HashSet<&Bytes> = snapshot.ghosts.iter().map(|(key, _)| key).collect();
            self.add_long_texts((at, slice), &snapshot, &ghosts, &mut texts).await?;
            let postings = Postings::of(self.terms, &words, &snapshot.lists[1..]);
            postings.add_all(at, &ghosts, self.keeps_texts, &mut texts)?;
            horizon.get_or_insert(snapshot.horizon);
        }
        Ok(texts)
    }

    /// Reads the lists of a partition.
    async fn snapshot(
        &self,
        slice: &Slice,
        lists: &[IndexInterval],
        as_of: AsOf<'_>,
        memory: &mut MemoryShare,
    ) -> Result<TextSnapshot, Halt> {
        for rows in LIST_ROWS {
            let read = slice.partition.read_texts(lists, rows, as_of).await?;
            let snapshot = read.ok_or(Halt::Scan)?;
            let of_page = |page: &Page| page.bytes() + page.rows.len() * ROW_BYTES;
            let bytes = snapshot.lists.iter().map(of_page).sum();
            self.run.memory.try_grow(memory, bytes).map_err(|_| Halt::Scan)?;
            if snapshot.lists.iter().all(|page| !page.more) {
                return Ok(snapshot);
            }
            self.run.check()?;
        }
        Err(Halt::Scan)
    }

    /// Adds the items and words of a partition to statistics.
    async fn count(
        &self,
        slice: &Slice,
        snapshot: &TextSnapshot,
        statistics: &mut TextStatistics,
    ) -> Result<(), Halt> {
        let words = slice.partition.words_of_ghosts(self.index, &snapshot.ghosts).await?;
        let of_ghosts = words.ok_or(Halt::Changed)?;
        let state = &snapshot.state;
        statistics.documents += state.stored.items.saturating_sub(snapshot.ghosts.len() as u64);
        statistics.words += state.texts.words(self.index).saturating_sub(of_ghosts);
        Ok(())
    }

    /// Reads the texts that have too many words for entries of their own.
    async fn add_long_texts(
        &self,
        (at, slice): (usize, &Slice),
        snapshot: &TextSnapshot,
        ghosts: &HashSet<&Bytes>,
        texts: &mut Texts,
    ) -> Result<(), Halt> {
        let mut long = Vec::new();
        for (key, value) in &snapshot.lists[0].rows {
            let entry = PropertyEntry::parse(key).zip(TextEntry::decode(value));
            let (entry, text) = entry.ok_or(Halt::Scan)?;
            let item_key = entry.item_key();
            if !ghosts.contains(&item_key) {
                long.push((item_key, key, text));
            }
        }
        if long.is_empty() {
            return Ok(());
        }
        if long.len() > MANY_TEXTS {
            return Err(Halt::Scan);
        }
        let request = || ReadRequest {
            gets: long.iter().map(|(key, ..)| Key::new(Space::Item, key.clone())).collect(),
            max_bytes: MANY_BYTES,
            ..ReadRequest::default()
        };
        let _memory = self.run.memory.try_take(MANY_BYTES).map_err(|_| Halt::Scan)?;
        let mut read = slice.partition.snapshot(request, AsOf::Horizon(&snapshot.horizon)).await?;
        for (n, (item_key, entry, text)) in long.into_iter().enumerate() {
            self.run.check()?;
            let record = read.record(n, &item_key)?.filter(|record| record.version() == text.version);
            let stored = StoredItem::new(self.run.container.rid(), record.ok_or(Halt::Changed)?);
            let item = Item::stored(stored.document_json(), &stored).map_err(query_error)?;
            let (words, hits) = self.text.hits(&item, self.terms).ok_or(Halt::Changed)?;
            let found = Match {
                number: keys::number_of_item(&item_key),
                slice: at,
                entry: entry.clone(),
                words,
            };
            texts.add(self.keeps_texts, found, hits.into_iter());
        }
        Ok(())
    }
}

/// The lists of words in one partition.
struct Postings<'a> {
    /// Each with the length of what its keys begin with.
    lists: Vec<(&'a Page, usize)>,
    /// The list of each term.
    of_terms: Vec<Option<usize>>,
}

impl<'a> Postings<'a> {
    fn of(terms: &[Option<String>], words: &[&String], pages: &'a [Page]) -> Postings<'a> {
        let prefix_bytes = |word: &String| keys::property_prefix(0).len() + key_of_term(word).len();
        let list_of = |term: &Option<String>| words.binary_search(&term.as_ref()?).ok();
        Postings {
            lists: pages.iter().zip(words.iter().map(|word| prefix_bytes(word))).collect(),
            of_terms: terms.iter().map(list_of).collect(),
        }
    }

    /// Adds the texts of all lists, each once.
    fn add_all(&self, slice: usize, ghosts: &HashSet<&Bytes>, keeps: bool, texts: &mut Texts) -> Result<(), Halt> {
        // All lists are in the order of what follows the word: the number of the item, and its place.
        let mut places = vec![0; self.lists.len()];
        let mut times = vec![0; self.lists.len()];
        loop {
            let rest = |list: usize, places: &[usize]| {
                let (page, prefix) = self.lists[list];
                page.rows.get(places[list]).map(|(key, _)| &key[prefix..])
            };
            let Some(first) = (0..self.lists.len()).filter_map(|list| rest(list, &places)).min() else {
                return Ok(());
            };
            let mut found = None;
            for list in 0..self.lists.len() {
                times[list] = 0;
                if rest(list, &places) == Some(first) {
                    let (key, value) = &self.lists[list].0.rows[places[list]];
                    let posting = Posting::decode(value).ok_or(Halt::Scan)?;
                    times[list] = posting.times;
                    found = Some((key, posting.words));
                    places[list] += 1;
                }
            }
            let Some((entry, words)) = found else { return Ok(()) };
            let parsed = PropertyEntry::parse(entry).ok_or(Halt::Scan)?;
            if !ghosts.is_empty() && ghosts.contains(&parsed.item_key()) {
                continue;
            }
            let text = Match {
                number: parsed.number(),
                slice,
                entry: entry.clone(),
                words,
            };
            let hits = self.of_terms.iter().map(|list| list.map_or(0, |list| times[list]));
            texts.add(keeps, text, hits);
        }
    }
}
