//! ORDER BY RANK: scores, reciprocal rank fusion (cosmos-sql §14).
//!
//! BM25 needs statistics over all items, so scores are computed after the last item; until then each candidate keeps the counts of its terms.

use super::emitted_rows;
use super::output::{Offer, Output, Written};
use crate::error::Result;
use crate::eval::Row;
use crate::fuel::Fuel;
use crate::functions::{Analyzer, Term, bm25, term_hits};
use crate::index::TextStatistics;
use crate::memory::ALLOCATION_BYTES;
use crate::program::{RankComponent, Ranking};
use crate::value::Value;

/// The constant of reciprocal rank fusion.
const RRF_K: f64 = 60.0;

/// The score of a value that is not a vector, has other dimensions, or is not a text.
const NO_DISTANCE: f64 = f64::NEG_INFINITY;
const NO_TEXT: f64 = -1.0;

/// Statistics over all items for one full-text component.
#[derive(Debug, Default, Clone)]
struct Statistics {
    words: u64,
    /// Number of items that contain each term.
    hits: Vec<u64>,
}

/// The data of one candidate for one component.
#[derive(Debug, Clone)]
enum ComponentData {
    /// The number of words and how often each term occurs; `None` for a value that is not a text.
    Text(Option<(u64, Vec<u64>)>),
    /// The distance or similarity.
    Vector(Option<f64>),
}

impl ComponentData {
    fn bytes(&self) -> usize {
        let hits = match self {
            ComponentData::Text(Some((_, hits))) => size_of_val(&hits[..]) + ALLOCATION_BYTES,
            ComponentData::Text(None) | ComponentData::Vector(_) => 0,
        };
        size_of::<ComponentData>() + hits
    }
}

#[derive(Debug)]
struct Candidate {
    rid: u64,
    evidence: Vec<ComponentData>,
    row: Box<[u8]>,
    hash: u64,
}

/// The candidates and statistics so far.
#[derive(Debug)]
pub(super) struct Ranker {
    documents: u64,
    statistics: Vec<Statistics>,
    analyzers: Vec<Option<(Analyzer, Option<Vec<Term>>)>>,
    candidates: Vec<Candidate>,
    /// The data of the current item.
    current: Vec<ComponentData>,
    /// The statistics are given, so that items do not add to them.
    is_fixed: bool,
}

impl Ranker {
    pub fn new(ranking: &Ranking) -> Ranker {
        let analyzers = ranking.components.iter().map(|component| match component {
            RankComponent::FullText { language, .. } => Some((Analyzer::new(language), None)),
            RankComponent::Vector { .. } => None,
        });
        Ranker {
            documents: 0,
            statistics: vec![Statistics::default(); ranking.components.len()],
            analyzers: analyzers.collect(),
            candidates: Vec::new(),
            current: Vec::new(),
            is_fixed: false,
        }
    }

    /// Takes the statistics of the only component, which is a full-text score.
    pub fn fix(&mut self, statistics: &TextStatistics) {
        self.is_fixed = true;
        self.documents = statistics.documents;
        self.statistics = vec![Statistics {
            words: statistics.words,
            hits: statistics.hits.clone(),
        }];
    }

    /// Number of candidates so far.
    pub fn candidates(&self) -> u64 {
        self.candidates.len() as u64
    }

    /// Adds an item to the statistics, whether or not it passes the filter.
    pub fn count<'a>(&mut self, row: &mut Row<'a>, ranking: &'a Ranking) -> Result<()> {
        self.documents += u64::from(!self.is_fixed);
        self.current.clear();
        for (n, component) in ranking.components.iter().enumerate() {
            let evidence = match component {
                RankComponent::Vector { score, .. } => ComponentData::Vector(score.eval(row)?.as_f64()),
                RankComponent::FullText { text, terms, .. } => {
                    let text = text.eval(row)?;
                    let terms = terms.iter().map(|term| term.eval(row)).collect::<Result<Vec<_>>>()?;
                    ComponentData::Text(self.component_data(n, &text, &terms, &row.session.fuel))
                }
            };
            self.current.push(evidence);
        }
        Ok(())
    }

    fn component_data(
        &mut self,
        component: usize,
        text: &Value<'_>,
        terms: &[Value<'_>],
        fuel: &Fuel,
    ) -> Option<(u64, Vec<u64>)> {
        let (analyzer, analyzed) = self.analyzers[component].as_mut()?;
        let analyzed_all = || {
            terms
                .iter()
                .flat_map(|term| analyzed_terms(analyzer, term, fuel))
                .collect()
        };
        let terms = analyzed.get_or_insert_with(analyzed_all);
        let words = analyzer.words(text.as_str()?, fuel);
        let hits: Vec<u64> = terms.iter().map(|term| term_hits(&words, term, fuel)).collect();
        if self.is_fixed {
            return Some((words.len() as u64, hits));
        }
        let statistics = &mut self.statistics[component];
        statistics.words += words.len() as u64;
        statistics.hits.resize(hits.len(), 0);
        for (total, hits) in statistics.hits.iter_mut().zip(&hits) {
            *total += u64::from(*hits > 0);
        }
        Some((words.len() as u64, hits))
    }

    /// Keeps a row of the current item as a candidate; `ordinal` is its number within the item.
    pub fn add<'a>(
        &mut self,
        ranking: &'a Ranking,
        row: &mut Row<'a>,
        ordinal: u64,
        write: impl FnOnce(&mut Row<'a>, &mut Vec<u8>) -> Result<Written>,
    ) -> Result<()> {
        row.session.fuel.check()?;
        let mut out = Vec::new();
        let hash = match write(row, &mut out)? {
            Written::Nothing => return Ok(()),
            Written::Row => emitted_rows::hash_of_row(row.rid, ordinal),
            Written::Named(hash) => hash,
        };
        let evidence: usize = self.current.iter().map(ComponentData::bytes).sum();
        // Lists grow by doubling, and scores are computed in addition to the candidates.
        let scores = ranking.components.len() * size_of::<(f64, usize)>();
        let candidate = size_of::<Candidate>() * 3 / 2 + 2 * ALLOCATION_BYTES;
        row.session.memory.take(candidate + out.len() + evidence + scores)?;
        self.candidates.push(Candidate {
            rid: row.rid,
            evidence: self.current.clone(),
            row: out.into(),
            hash,
        });
        Ok(())
    }

    /// Returns the candidates, best first, until the page refuses one.
    pub fn emit(&mut self, ranking: &Ranking, output: &mut Output) -> Result<()> {
        let mut scored = self.scored(ranking);
        scored.sort_by(|(a, x), (b, y)| {
            b.total_cmp(a)
                .then_with(|| self.candidates[*x].rid.cmp(&self.candidates[*y].rid))
        });
        for (_, candidate) in scored {
            let Candidate { row, hash, .. } = &self.candidates[candidate];
            let offer = output.offer(|out| {
                out.extend_from_slice(row);
                Ok(Written::Named(*hash))
            })?;
            if offer == Offer::Refused {
                break;
            }
        }
        Ok(())
    }

    /// The score of every candidate; a higher score is better.
    fn scored(&self, ranking: &Ranking) -> Vec<(f64, usize)> {
        let mut per_component = ranking
            .components
            .iter()
            .enumerate()
            .map(|(n, component)| self.component_scores(n, component));
        if ranking.components.len() == 1 {
            let scores = per_component.next().unwrap_or_default();
            return scores.into_iter().enumerate().map(|(n, score)| (score, n)).collect();
        }
        let mut fused = vec![0.0; self.candidates.len()];
        // A negative weight reverses the order of its component, and counts as much as the positive one.
        for (mut scores, weight) in per_component.zip(&ranking.weights) {
            if *weight < 0.0 {
                // Items without a distance stay last.
                scores
                    .iter_mut()
                    .filter(|score| **score != NO_DISTANCE)
                    .for_each(|score| *score = -*score);
            }
            for (total, rank) in fused.iter_mut().zip(dense_ranks(&scores)) {
                *total += weight.abs() / (RRF_K + rank as f64);
            }
        }
        fused.into_iter().enumerate().map(|(n, score)| (score, n)).collect()
    }

    fn component_scores(&self, n: usize, component: &RankComponent) -> Vec<f64> {
        let ascending = matches!(component, RankComponent::Vector { ascending: true, .. });
        let score = |candidate: &Candidate| match &candidate.evidence[n] {
            ComponentData::Vector(Some(score)) if ascending => -score,
            ComponentData::Vector(Some(score)) => *score,
            ComponentData::Text(Some((words, hits))) => {
                let Statistics {
                    words: total,
                    hits: totals,
                } = &self.statistics[n];
                bm25(*words, hits, self.documents, *total, totals)
            }
            ComponentData::Vector(None) => NO_DISTANCE,
            ComponentData::Text(None) => NO_TEXT,
        };
        self.candidates.iter().map(score).collect()
    }
}

/// The terms of one argument, which may also be a list of terms.
fn analyzed_terms(analyzer: &Analyzer, term: &Value<'_>, fuel: &Fuel) -> Vec<Term> {
    match term.elements() {
        Some(list) => list.iter().filter_map(|term| analyzer.term(term, fuel)).collect(),
        None => analyzer.term(term, fuel).into_iter().collect(),
    }
}

/// Ranks from 1, best first; equal scores share a rank and the next score gets the next number.
fn dense_ranks(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let mut ranks = vec![0; scores.len()];
    let mut rank = 0;
    let mut last = None;
    for at in order {
        if last != Some(scores[at]) {
            rank += 1;
            last = Some(scores[at]);
        }
        ranks[at] = rank;
    }
    ranks
}
