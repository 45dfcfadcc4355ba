//! Reads the lists of words of a full-text index: which texts have them, how often, and the statistics of all texts (cosmos-sql §14).
//!
//! Everything of one partition is read at one snapshot. Ghosts are in no figure: their number and their words are subtracted, and they are left out of lists.
//! All partitions are read as of one time, which is also that of the items that are fetched afterwards.

use std::sync::Arc;

use bolide_model::Error;
use bolide_query::Item;
use bolide_query::index::{KEY_OF_MANY_TERMS, TextIndex, TextStatistics, key_of_term};
use bolide_storage::{Key, Page, ReadRequest, Space};
use bytes::Bytes;

use super::counting::Counting;
use super::page::PageRun;
use super::text_candidates::list;
use crate::content::StoredItem;
use crate::format::keys::{self, PropertyEntry};
use crate::format::text_entries::{Posting, TextEntry};
use crate::memory::MemoryShare;
use crate::partition::{AsOf, EntryRead, IndexInterval, LiveFigures, LiveIndex, RankedList};
use crate::scan::{ItemScan, Slice};
use crate::sql::query_error;

/// The first read, and the largest.
const READS: [EntryRead; 2] = [
    EntryRead {
        descending: false,
        rows: 4_096,
        bytes: 1024 * 1024,
        keys_only: false,
    },
    EntryRead {
        descending: false,
        rows: 400_000,
        bytes: 24 * 1024 * 1024,
        keys_only: false,
    },
];
/// Maximum number of entries of a read if indexes are used wherever they can be: so small that few items have more.
const FEW_ROWS: usize = 64;
/// Memory for an entry in addition to its key and its value, in bytes: the row, a match and its score.
const ROW_BYTES: usize = 96 + size_of::<Match>() + size_of::<(f64, usize)>();
/// Maximum number of texts with too many words for entries of their own, and of the bytes of their records: they are read.
const MANY_TEXTS: usize = 64;
const MANY_BYTES: usize = 8 * 1024 * 1024;

/// Why lists were not read.
pub(super) enum Halt {
    /// A scan is better, or the only way.
    Scan,
    /// Something has changed meanwhile: begin again.
    Changed,
    /// The lists in memory have too few texts: begin again without them.
    Deeper,
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
    pub wanted: Wanted,
}

/// What lists are read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// How many texts have each term.
    Statistics,
    /// Also the texts. `from_memory`: the best of them do.
    Texts { ties_descend: bool, from_memory: bool },
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
    /// The lists of the ranges of which the best texts are known.
    pub kept: Vec<KeptList>,
    /// Number of entries that were read in each range.
    entries: Vec<(u32, u64)>,
    memory: MemoryShare,
    bytes: usize,
}

/// A list that is kept in memory, as of what was read.
pub(super) struct KeptList {
    /// The index of its slice, and the range.
    pub slice: usize,
    pub range: u32,
    pub list: Arc<RankedList>,
    pub live: LiveIndex,
    /// The word of each term.
    pub of_terms: Vec<Option<usize>>,
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

    /// Notes that entries of a partition were read.
    pub fn charge_for(&mut self, slice: &Slice, entries: u64) {
        self.entries.push((slice.partition.range, entries));
    }

    /// Charges the page for the entries.
    pub fn charge(&self, execution: &mut Counting) {
        for (range, entries) in &self.entries {
            execution.enter(*range);
            execution.count_index_entries(*entries);
        }
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
    pub async fn read(&self, walk: &mut ItemScan<'_>) -> Result<Texts, Halt> {
        let mut words: Vec<&String> = self.terms.iter().flatten().collect();
        words.sort_unstable();
        words.dedup();
        let lists = words.iter().map(|word| list(self.index, &key_of_term(word)));
        let lists: Vec<IndexInterval> = std::iter::once(list(self.index, KEY_OF_MANY_TERMS))
            .chain(lists)
            .collect();
        let mut texts = Texts {
            terms: self.terms.len(),
            ..Texts::default()
        };
        texts.statistics.hits = vec![0; self.terms.len()];
        for (at, slice) in self.run.slices.iter().enumerate() {
            self.run.check()?;
            if !self.read_kept((at, slice), walk, (&words, &lists), &mut texts).await? {
                self.read_entries((at, slice), walk, (&words, &lists), &mut texts)
                    .await?;
            }
        }
        Ok(texts)
    }

    /// Reads a partition: all entries. Keeps a list of the best, if they are many.
    async fn read_entries(
        &self,
        (at, slice): (usize, &Slice),
        walk: &mut ItemScan<'_>,
        (words, lists): (&[&String], &[IndexInterval]),
        texts: &mut Texts,
    ) -> Result<(), Halt> {
        let making = self.begin_list(slice, words);
        let Some(live) = self.lists(slice, walk, lists, texts).await? else {
            return self.read_long((at, slice), walk, (words, lists), making, texts).await;
        };
        let figures = slice.partition.live_figures(self.index, &live, &[]).await?;
        self.add_figures((at, slice), &live, &figures.ok_or(Halt::Changed)?, texts)
            .await?;
        let entries: usize = live.pages[1..].iter().map(|page| page.rows.len()).sum();
        let making = making.filter(|_| entries >= self.fewest_kept());
        let mut list = making.as_ref().map(|making| self.empty_list(making, words));
        let postings = Postings::of(self.terms, words, &live.pages[1..]);
        postings.add_all(at, &live, self.wanted != Wanted::Statistics, texts, &mut list)?;
        if let Some((making, list)) = making.zip(list) {
            self.keep(making, list, live.lsn);
        }
        Ok(())
    }

    /// Adds what is known without the entries of words.
    pub(super) async fn add_figures(
        &self,
        (at, slice): (usize, &Slice),
        live: &LiveIndex,
        figures: &LiveFigures,
        texts: &mut Texts,
    ) -> Result<(), Halt> {
        texts.statistics.words += figures.words;
        texts.statistics.documents += live.items;
        let entries: usize = live.pages.iter().map(|page| page.rows.len()).sum();
        texts.charge_for(slice, entries as u64);
        self.add_long_texts((at, slice), live, texts).await
    }

    /// Reads the lists of a partition; `None` if they are too long.
    pub(super) async fn lists(
        &self,
        slice: &Slice,
        walk: &mut ItemScan<'_>,
        lists: &[IndexInterval],
        texts: &mut Texts,
    ) -> Result<Option<LiveIndex>, Halt> {
        for mut read in READS {
            if self.run.indexes.index_use.is_forced() {
                read.rows = FEW_ROWS;
            }
            let most = match read.bytes == READS[0].bytes {
                true => 0,
                false => read.bytes,
            };
            let _while_reading = self.run.memory.try_take(most).map_err(|_| Halt::Scan)?;
            let live = walk.read_live_index(&slice.partition, lists, read).await?;
            let live = live.ok_or(Halt::Scan)?;
            let row_bytes = ROW_BYTES + self.terms.len() * size_of::<u64>();
            let of_page = |page: &Page| page.bytes() + page.rows.len() * row_bytes;
            let bytes = texts.bytes + live.pages.iter().map(of_page).sum::<usize>();
            let grown = self.run.memory.try_grow(&mut texts.memory, bytes);
            grown.map_err(|_| Halt::Scan)?;
            if live.is_complete() {
                texts.bytes = bytes;
                return Ok(Some(live));
            }
            self.run.check()?;
        }
        Ok(None)
    }

    /// Reads the texts that have too many words for entries of their own.
    async fn add_long_texts(
        &self,
        (at, slice): (usize, &Slice),
        live: &LiveIndex,
        texts: &mut Texts,
    ) -> Result<(), Halt> {
        let mut long = Vec::new();
        for (key, value) in &live.pages[0].rows {
            let entry = PropertyEntry::parse(key).zip(TextEntry::decode(value));
            let (entry, text) = entry.ok_or(Halt::Scan)?;
            let item_key = entry.item_key();
            if live.shows(&item_key) {
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
            gets: long
                .iter()
                .map(|(key, ..)| Key::new(Space::Item, key.clone()))
                .collect(),
            max_bytes: MANY_BYTES,
            ..ReadRequest::default()
        };
        let _memory = self.run.memory.try_take(MANY_BYTES).map_err(|_| Halt::Scan)?;
        let mut read = slice.partition.snapshot(request, AsOf::Horizon(&live.horizon)).await?;
        for (n, (item_key, entry, text)) in long.into_iter().enumerate() {
            self.run.check()?;
            let record = read
                .record(n, &item_key)?
                .filter(|record| record.version() == text.version);
            let stored = StoredItem::new(self.run.container.rid(), record.ok_or(Halt::Changed)?);
            let item = Item::stored(stored.document_json(), &stored).map_err(query_error)?;
            let (words, hits) = self.text.hits(&item, self.terms).ok_or(Halt::Changed)?;
            let found = Match {
                number: keys::number_of_item(&item_key),
                slice: at,
                entry: entry.clone(),
                words,
            };
            texts.add(self.wanted != Wanted::Statistics, found, hits.into_iter());
        }
        Ok(())
    }
}

/// Returns the place of each term among the words.
pub(super) fn words_of_terms(terms: &[Option<String>], words: &[&String]) -> Vec<Option<usize>> {
    let place = |term: &Option<String>| words.binary_search(&term.as_ref()?).ok();
    terms.iter().map(place).collect()
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
        Postings {
            lists: pages.iter().zip(words.iter().map(|word| prefix_bytes(word))).collect(),
            of_terms: words_of_terms(terms, words),
        }
    }

    /// Adds the texts of all lists, each once. `kept` gets ghosts, too; it is dropped if it becomes too large.
    fn add_all(
        &self,
        slice: usize,
        live: &LiveIndex,
        keeps: bool,
        texts: &mut Texts,
        kept: &mut Option<RankedList>,
    ) -> Result<(), Halt> {
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
            kept.take_if(|kept| !kept.add(&times, words, parsed.number(), parsed.epk));
            if !live.shows_entry(&parsed) {
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
