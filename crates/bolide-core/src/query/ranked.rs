//! Answers a query from the lists of a full-text index: a ranking by one score reads only the items with the highest scores, and statistics of texts
//! read none.
//!
//! ```text
//!   lists of the terms ─▶ score of each text with one of them ─▶ the best are fetched and pushed, until enough rows pass the filter
//!   list of all texts, then of the items without one          ─▶ those that follow, if the query wants more rows
//! ```
//!
//! Items are pushed in the order of the result, so that the rows are those of a scan, ties included. Each item is scored again when it is fetched; if it has
//! changed since the lists were read, the page begins again.

use std::collections::HashMap;

use bolide_model::{Result, UnixMillis};
use bolide_query::Item;
use bolide_query::index::{KEY_OF_NO_TEXT, KEY_OF_TEXT, TextAggregate, TextIndex, TextRanking, TextStatistics};
use bytes::Bytes;

use super::access::Pushed;
use super::best_texts::{BestTexts, Fetched};
use super::candidates::{FEW_CANDIDATES, ITEMS_PER_CANDIDATE, IndexReader, MAX_CANDIDATES, point};
use super::counting::Counting;
use super::page::{PageRun, push};
use super::text_lists::{Halt, TextLists, Wanted};
use super::text_statistics;
use super::texts_in_order::TextsInOrder;
use crate::continuation::query::QueryPosition;
use crate::scan::{ItemScan, Slice};
use crate::sql::query_error;

/// Maximum number of rows that a query wants: TOP, or OFFSET and LIMIT together.
const MAX_WANTED: u64 = 4_096;
/// Number of items that are fetched at once beyond those that are wanted.
const SPARE: usize = 4;
/// Maximum number of items that are fetched at once.
const MAX_FETCHED: usize = 1_024;
/// How often a page begins because texts have changed meanwhile.
const TRIES: usize = 3;
/// Maximum number of rows for which lists in memory are used: they have a few hundred texts of each kind.
const MAX_FROM_MEMORY: u64 = 128;

/// How a query is answered from a full-text index.
pub(super) struct TextAccess {
    /// The id of the index; of one of them if there are several.
    pub index: u32,
    pub answer: TextAnswer,
    /// Maximum number of items that are fetched.
    max_items: usize,
}

pub(super) enum TextAnswer {
    Ranking(TextRanking),
    Aggregates(Vec<TextAggregate>),
}

impl IndexReader<'_> {
    /// Returns how the query is answered from a full-text index, if it is; a scan may turn out to be better.
    ///
    /// # Errors
    /// From the engine.
    pub async fn texts(&self) -> Result<Option<TextAccess>> {
        // The statistics are those of whole ranges.
        if !self.is_of_ranges || self.slices.is_empty() || !self.slices.iter().all(Slice::is_whole) {
            return Ok(None);
        }
        let query = self.query;
        let usable = |text: &TextIndex| self.state.indexes.usable_text(text).map(|index| index.id);
        let ranking = query.text_ranking().filter(|ranking| ranking.wanted <= MAX_WANTED);
        let found = match ranking {
            Some(ranking) => usable(&ranking.text).map(|index| (index, TextAnswer::Ranking(ranking))),
            None => query.text_aggregates().and_then(|aggregates| {
                let texts = aggregates.iter().filter_map(text_statistics::text_of);
                let indexes: Option<Vec<u32>> = texts.map(usable).collect();
                Some((*indexes?.first()?, TextAnswer::Aggregates(aggregates)))
            }),
        };
        let Some((index, answer)) = found else { return Ok(None) };
        let stored = self.stored_items();
        let max_items = match self.index_use.is_forced() {
            true => usize::MAX,
            // Also of few items: to analyse a text takes much longer than to read its entries.
            false => usize::try_from(stored / ITEMS_PER_CANDIDATE)
                .unwrap_or(usize::MAX)
                .clamp(FEW_CANDIDATES, MAX_CANDIDATES),
        };
        Ok(Some(TextAccess {
            index,
            answer,
            max_items,
        }))
    }
}

impl PageRun<'_> {
    /// Makes the page from the lists of a full-text index; `None` if a scan is needed after all.
    pub(super) async fn push_by_texts(
        &self,
        now: UnixMillis,
        position: &QueryPosition,
        texts: &TextAccess,
    ) -> Result<Option<Pushed<'_>>> {
        let is_aggregate = matches!(texts.answer, TextAnswer::Aggregates(_));
        if self.filter.is_some() || (is_aggregate && position.resume.is_some()) {
            return Ok(None);
        }
        let mut from_memory = true;
        for _ in 0..TRIES {
            let mut execution = Counting::of(self.execution(self.limit, position.resume.as_deref())?);
            let mut walk = self.walk_over(Vec::new(), now, None);
            let made = match &texts.answer {
                TextAnswer::Ranking(ranking) => {
                    let from_memory = from_memory && ranking.wanted <= MAX_FROM_MEMORY;
                    self.push_best(&mut execution, &mut walk, (texts, ranking), from_memory)
                        .await
                }
                TextAnswer::Aggregates(list) => self.set_aggregates(&mut execution, &mut walk, list).await,
            };
            match made {
                Ok(()) => return Ok(Some(Pushed::at_end(execution, walk))),
                Err(Halt::Scan) => return Ok(None),
                Err(Halt::Changed) => {}
                Err(Halt::Deeper) => from_memory = false,
                Err(Halt::Failed(error)) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Pushes the items with the highest scores, until enough rows pass the filter.
    async fn push_best(
        &self,
        execution: &mut Counting,
        walk: &mut ItemScan<'_>,
        (access, ranking): (&TextAccess, &TextRanking),
        from_memory: bool,
    ) -> Result<(), Halt> {
        let lists = TextLists {
            run: self,
            index: access.index,
            text: &ranking.text,
            terms: &ranking.terms,
            wanted: Wanted::Texts {
                ties_descend: ranking.ties_descend,
                from_memory,
            },
        };
        let texts = lists.read(walk).await?;
        texts.charge(execution);
        let statistics = ranking.given.as_ref().unwrap_or(&texts.statistics);
        if ranking.given.is_none() {
            execution.rank_by(statistics);
        }
        let mut fetch = Fetch {
            run: self,
            ranking,
            statistics,
            left: access.max_items,
        };
        let mut best = BestTexts::of(&texts, ranking, statistics);
        while execution.rows_ordered() < ranking.wanted {
            let next = best.take(fetch.batch(execution.rows_ordered()))?;
            best.charge(execution);
            if next.is_empty() {
                break;
            }
            fetch.push(execution, walk, next).await?;
        }
        if execution.rows_ordered() >= ranking.wanted || ranking.requires_term {
            return Ok(());
        }
        self.push_rest(execution, walk, (access, &best), fetch).await
    }

    /// Pushes the items whose texts have none of the terms, and then those without a text.
    async fn push_rest(
        &self,
        execution: &mut Counting,
        walk: &mut ItemScan<'_>,
        (access, best): (&TextAccess, &BestTexts<'_>),
        mut fetch: Fetch<'_>,
    ) -> Result<(), Halt> {
        let ranking = fetch.ranking;
        let matched = best.numbers();
        let without = vec![0; ranking.terms.len()];
        let lowest = ranking.score(1, &without, fetch.statistics);
        for (key, score) in [(KEY_OF_TEXT, Some(lowest)), (KEY_OF_NO_TEXT, None)] {
            let mut rest = TextsInOrder::new(self.slices, access.index, key, ranking.ties_descend);
            while execution.rows_ordered() < ranking.wanted {
                self.check()?;
                let next = rest.take(fetch.batch(execution.rows_ordered()), &matched).await?;
                if next.is_empty() {
                    break;
                }
                let next = next.into_iter().map(|(slice, key)| Fetched { slice, key, score });
                fetch.push(execution, walk, next.collect()).await?;
            }
        }
        Ok(())
    }
}

/// Fetches items and pushes them.
struct Fetch<'a> {
    run: &'a PageRun<'a>,
    ranking: &'a TextRanking,
    statistics: &'a TextStatistics,
    /// Number of items that may still be fetched.
    left: usize,
}

impl Fetch<'_> {
    /// Number of items to fetch next: if few pass the filter, more each time.
    fn batch(&self, rows: u64) -> usize {
        let missing = usize::try_from(self.ranking.wanted.saturating_sub(rows)).unwrap_or(usize::MAX);
        missing.saturating_add(SPARE).min(MAX_FETCHED)
    }

    async fn push(
        &mut self,
        execution: &mut Counting,
        walk: &mut ItemScan<'_>,
        mut items: Vec<Fetched>,
    ) -> Result<(), Halt> {
        self.left = self.left.checked_sub(items.len()).ok_or(Halt::Scan)?;
        let slices = self.run.slices;
        items.sort_unstable_by(|a, b| a.slice.cmp(&b.slice).then_with(|| a.key.cmp(&b.key)));
        let scores: HashMap<Bytes, Option<f64>> = items.iter().map(|item| (item.key.clone(), item.score)).collect();
        walk.continue_with(items.into_iter().map(|item| point(&slices[item.slice], item.key)));
        while let Some(read) = walk.next_page().await? {
            self.run.check()?;
            for scanned in read.items {
                let stored = &scanned.item;
                let item = Item::stored(stored.document_json(), stored).map_err(query_error)?;
                let score = self.ranking.score_of(&item, self.statistics);
                if scores.get(&scanned.key) != Some(&score) {
                    return Err(Halt::Changed);
                }
                execution.enter(scanned.range);
                push(execution, stored)?;
            }
        }
        Ok(())
    }
}
