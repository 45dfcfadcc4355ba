//! The texts with terms in the order of their scores: those whose entries were read, merged with the groups of lists that are kept in memory.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashSet, btree_set};
use std::iter::Peekable;

use bolide_query::index::{TextRanking, TextStatistics};
use bytes::Bytes;

use super::counting::Counting;
use super::text_lists::{Halt, KeptList, Match, Texts};
use crate::partition::{Group, RankedText, order_of_ties};

/// An item to fetch, with the score that it must have; `None` if it has no text.
pub(super) struct Fetched {
    pub slice: usize,
    pub key: Bytes,
    pub score: Option<f64>,
}

/// See the module.
pub(super) struct BestTexts<'a> {
    ranking: &'a TextRanking,
    texts: &'a Texts,
    /// Scores and indexes of the texts whose entries were read and that are left. The first `sorted` are the best of them, in order.
    left: Vec<(f64, usize)>,
    at: usize,
    sorted: usize,
    sources: Vec<Source<'a>>,
    heads: BinaryHeap<Head<'a>>,
    /// The ranges whose kept texts were taken since the last charge.
    taken: Vec<u32>,
}

/// The texts of a group, in order.
struct Source<'a> {
    list: &'a KeptList,
    group: &'a Group,
    /// How often each term occurs.
    hits: Vec<u64>,
    statistics: &'a TextStatistics,
    texts: Peekable<btree_set::Iter<'a, RankedText>>,
    /// The number of words of the texts that come next, and their score.
    run: Option<(u64, f64)>,
    /// Texts of different lengths with the same score, the last one first.
    tied: Vec<(f64, &'a RankedText)>,
}

/// The next text of a source.
struct Head<'a> {
    score: f64,
    /// `None`: it may be a text that the list does not have.
    text: Option<&'a RankedText>,
    source: usize,
}

impl Head<'_> {
    /// What is not known comes first: it may be any text with the score.
    fn place(&self) -> Place {
        (self.score, Reverse(self.text.map(|text| text.order)))
    }
}

/// A score, and the order of ties.
type Place = (f64, Reverse<Option<u64>>);

fn compare((a, x): &Place, (b, y): &Place) -> Ordering {
    a.total_cmp(b).then_with(|| x.cmp(y))
}

impl Ord for Head<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.place(), &other.place())
    }
}

impl PartialOrd for Head<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head<'_> {}

impl<'a> BestTexts<'a> {
    pub fn of(texts: &'a Texts, ranking: &'a TextRanking, statistics: &'a TextStatistics) -> BestTexts<'a> {
        let matches = texts.matches.iter().enumerate();
        let score = |(at, text): (usize, &Match)| (ranking.score(text.words, texts.hits(at), statistics), at);
        let sources = texts.kept.iter().flat_map(|list| {
            list.list.groups().map(move |(times, group)| Source {
                list,
                group,
                hits: list
                    .of_terms
                    .iter()
                    .map(|word| word.map_or(0, |word| times[word]))
                    .collect(),
                statistics,
                texts: group.best().iter().peekable(),
                run: None,
                tied: Vec::new(),
            })
        });
        let mut best = BestTexts {
            ranking,
            texts,
            left: matches.map(score).collect(),
            at: 0,
            sorted: 0,
            sources: sources.collect(),
            heads: BinaryHeap::new(),
            taken: Vec::new(),
        };
        for source in 0..best.sources.len() {
            best.advance(source);
        }
        best
    }

    /// Returns the next texts.
    ///
    /// # Errors
    /// `Deeper` if it may be one that no list has.
    pub fn take(&mut self, count: usize) -> Result<Vec<Fetched>, Halt> {
        let mut next = Vec::with_capacity(count);
        while next.len() < count {
            let read = self.first_read(count - next.len());
            let is_read = match (&read, self.heads.peek()) {
                (None, None) => break,
                (Some(read), Some(head)) => compare(read, &head.place()).is_gt(),
                (read, _) => read.is_some(),
            };
            if is_read {
                let (score, at) = self.left[self.at];
                let text = &self.texts.matches[at];
                self.at += 1;
                next.push(Fetched {
                    slice: text.slice,
                    key: text.item_key(),
                    score: Some(score),
                });
            } else if let Some(head) = self.heads.pop() {
                let text = head.text.ok_or(Halt::Deeper)?;
                let list = self.sources[head.source].list;
                self.taken.push(list.range);
                next.push(Fetched {
                    slice: list.slice,
                    key: text.item_key(self.ranking.ties_descend),
                    score: Some(head.score),
                });
                self.advance(head.source);
            }
        }
        Ok(next)
    }

    /// Charges the page for the texts of lists that were taken.
    pub fn charge(&mut self, execution: &mut Counting) {
        for range in self.taken.drain(..) {
            execution.enter(range);
            execution.count_index_entries(1);
        }
    }

    /// Returns the resource numbers of all texts, once all were taken.
    pub fn numbers(&self) -> HashSet<u64> {
        let kept = self.sources.iter().flat_map(|source| source.group.best());
        let kept = kept.map(|text| text.number(self.ranking.ties_descend));
        let read = self.texts.matches.iter().map(|text| text.number);
        read.chain(kept).collect()
    }

    /// Takes the next text of a source, if it has one.
    fn advance(&mut self, source: usize) {
        let ties_descend = self.ranking.ties_descend;
        let own = &mut self.sources[source];
        while let Some((score, text)) = own.next(self.ranking) {
            let is_shown = |text: &RankedText| own.list.live.shows(&text.item_key(ties_descend));
            if own.list.live.ghosts() == 0 || text.is_none_or(is_shown) {
                self.heads.push(Head { score, text, source });
                return;
            }
        }
    }

    /// Returns the place of the first text whose entry was read; `count` of them may be needed.
    fn first_read(&mut self, count: usize) -> Option<Place> {
        if self.at >= self.sorted {
            self.sort(self.at.saturating_add(count).min(self.left.len()));
        }
        let (score, at) = *self.left.get(self.at)?;
        let number = self.texts.matches[at].number;
        Some((score, Reverse(Some(order_of_ties(number, self.ranking.ties_descend)))))
    }

    /// Sorts at least up to a place, without sorting all.
    fn sort(&mut self, end: usize) {
        let (matches, ties_descend) = (&self.texts.matches, self.ranking.ties_descend);
        let compare = |(a, x): &(f64, usize), (b, y): &(f64, usize)| {
            let order = |at: usize| order_of_ties(matches[at].number, ties_descend);
            b.total_cmp(a).then_with(|| order(*x).cmp(&order(*y)))
        };
        let unsorted = &mut self.left[self.sorted..];
        // Twice as many each time.
        let more = (end - self.sorted).max(self.sorted).min(unsorted.len());
        if more < unsorted.len() {
            unsorted.select_nth_unstable_by(more, compare);
        }
        unsorted[..more].sort_unstable_by(compare);
        self.sorted += more;
    }
}

impl<'a> Source<'a> {
    /// Returns the next text and its score; no text if it may be one that the list does not have, with this score at most.
    fn next(&mut self, ranking: &TextRanking) -> Option<(f64, Option<&'a RankedText>)> {
        let (hits, statistics) = (&self.hits, self.statistics);
        let score_of = |words| ranking.score(words, hits, statistics);
        if let Some((score, text)) = self.tied.pop() {
            return Some((score, Some(text)));
        }
        let Some(first) = self.texts.peek() else {
            return self.group.bound().map(|words| (score_of(words), None));
        };
        let (words, score) = match self.run {
            Some((words, score)) if words == first.words => (words, score),
            _ => (first.words, score_of(first.words)),
        };
        self.run = Some((words, score));
        // Longer texts may have the same score: without an average length, or by rounding. They come in the order of ties.
        if score_of(words.saturating_add(1)) < score {
            return self.texts.next().map(|text| (score, Some(text)));
        }
        if self.group.bound().is_some() {
            return Some((score, None));
        }
        while let Some(text) = self.texts.next_if(|text| score_of(text.words) == score) {
            self.tied.push((score, text));
        }
        self.tied.sort_unstable_by_key(|(_, text)| Reverse(text.order));
        self.tied.pop().map(|(score, text)| (score, Some(text)))
    }
}
