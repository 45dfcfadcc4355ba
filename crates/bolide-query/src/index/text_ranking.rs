//! Queries whose result follows from the words of texts: those ranked by one full-text score, and those that count texts and words.

use super::conditions::path_of;
use super::text::TextIndex;
use super::text_conditions::{of, text_of, words_of};
use crate::aggregate::AggregateKind;
use crate::bind::Bound;
use crate::functions::bm25;
use crate::program::{Aggregate, Input, Ordering, Projection, RankComponent, Scalar, Select, SortKey, Source};
use crate::value::{Item, Value};

/// Maximum number of terms of a score.
const MAX_SCORE_TERMS: usize = 32;

/// What a score needs to know of all items.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextStatistics {
    /// Number of items, those without a text included.
    pub documents: u64,
    /// Number of words of all texts.
    pub words: u64,
    /// Number of texts that contain each term.
    pub hits: Vec<u64>,
}

/// A query whose rows come by one full-text score, the highest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextRanking {
    /// The text.
    pub text: TextIndex,
    /// One word each; `None` for a term that no text has.
    pub terms: Vec<Option<String>>,
    /// The statistics, if the query gives them; otherwise they are those of the items that it reads.
    pub given: Option<TextStatistics>,
    /// Items with equal scores come by resource id, the highest first.
    pub ties_descend: bool,
    /// Number of rows that TOP or OFFSET LIMIT need, those that are skipped included.
    pub wanted: u64,
    /// Only texts with at least one of the terms pass the filter.
    pub requires_term: bool,
}

impl TextRanking {
    /// The score of a text of `words` words in which the terms occur `hits` times.
    pub fn score(&self, words: u64, hits: &[u64], statistics: &TextStatistics) -> f64 {
        bm25(words, hits, statistics.documents, statistics.words, &statistics.hits)
    }

    /// The score of an item; `None` if it has no text.
    pub fn score_of(&self, item: &Item<'_>, statistics: &TextStatistics) -> Option<f64> {
        let (words, hits) = self.text.hits(item, &self.terms)?;
        Some(self.score(words, &hits, statistics))
    }
}

/// An aggregate that follows from statistics of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextAggregate {
    /// The number of items.
    Documents,
    /// The number of words of all texts.
    Words(TextIndex),
    /// The number of texts with a word; `None`: with a term that no text has.
    Hits(TextIndex, Option<String>),
}

/// See [`crate::Query::text_ranking`].
pub(crate) fn text_ranking(bound: &Bound) -> Option<TextRanking> {
    let select = &bound.select;
    if !is_over_items_only(select) || select.grouping.is_some() || select.distinct {
        return None;
    }
    let mut ranking = match &select.ordering {
        Ordering::Rank(ranking) => match ranking.components.as_slice() {
            [RankComponent::FullText { text, terms, language }] => by_rank(bound, text, terms, language)?,
            _ => return None,
        },
        Ordering::Keys(keys) => match keys.as_slice() {
            // A list has a row for each item.
            [key] if key.descending && matches!(select.projection, Projection::List(_)) => by_given_score(bound, key)?,
            _ => return None,
        },
        Ordering::None => return None,
    };
    ranking.wanted = select.take?.saturating_add(select.skip);
    let filter = select.filter.iter();
    let mut conditions = filter.flat_map(|filter| of(bound, filter));
    ranking.requires_term = conditions.any(|condition| {
        let has_term = |words: &Vec<String>| words.iter().any(|word| ranking.terms.contains(&Some(word.clone())));
        condition.text == ranking.text && condition.any_of.iter().all(has_term)
    });
    Some(ranking)
}

fn is_over_items_only(select: &Select) -> bool {
    let is_item = |input: &Input| matches!(input.source, Source::Item);
    matches!(select.inputs.as_slice(), [input] if is_item(input))
}

/// `ORDER BY RANK FullTextScore(text, term, …)`.
fn by_rank(bound: &Bound, text: &Scalar, terms: &[Scalar], language: &str) -> Option<TextRanking> {
    let text = TextIndex {
        path: path_of(bound, text).filter(|path| !path.is_of_elements())?,
        language: language.to_owned(),
    };
    // An argument may be a list of terms. What is no term is left out.
    let mut values = Vec::new();
    for term in terms {
        let term = term.as_const()?;
        match term.elements() {
            Some(list) => values.extend(list.iter().filter(|term| is_term(term)).cloned()),
            None => values.extend(Some(term.clone()).filter(is_term)),
        }
    }
    ranking(text, &values, None, false)
}

fn is_term(value: &Value<'_>) -> bool {
    value.as_str().is_some() || value.member("term").as_str().is_some()
}

/// `ORDER BY _FullTextScore(text, [term, …], documents, words, [hits, …]) DESC`.
fn by_given_score(bound: &Bound, key: &SortKey) -> Option<TextRanking> {
    let Scalar::Call(function, args) = &key.value else {
        return None;
    };
    let ("_FullTextScore", [text, terms, documents, words, hits, language]) = (function.name, args.as_slice()) else {
        return None;
    };
    let text = text_of(bound, text, language)?;
    let number = |value: &Value<'_>| value.as_i64().and_then(|number| u64::try_from(number).ok());
    let hits = hits.as_const()?.elements()?.iter().map(number).collect::<Option<_>>()?;
    let statistics = TextStatistics {
        documents: number(documents.as_const()?)?,
        words: number(words.as_const()?)?,
        hits,
    };
    let terms = terms.as_const()?.elements()?;
    // Otherwise a text with a term might not come before one without.
    let is_sound =
        terms.len() == statistics.hits.len() && statistics.hits.iter().all(|hits| *hits <= statistics.documents);
    is_sound.then(|| ranking(text, &terms, Some(statistics), key.descending))?
}

fn ranking(
    text: TextIndex,
    terms: &[Value<'_>],
    given: Option<TextStatistics>,
    ties_descend: bool,
) -> Option<TextRanking> {
    let analyzer = text.analyzer();
    if terms.is_empty() || terms.len() > MAX_SCORE_TERMS {
        return None;
    }
    let word = |term: &Value<'_>| single(words_of(&analyzer, term)?);
    Some(TextRanking {
        terms: terms.iter().map(word).collect::<Option<_>>()?,
        text,
        given,
        ties_descend,
        wanted: 0,
        requires_term: false,
    })
}

/// The only word of a term, if it has one; `None` for a phrase, whose words must follow each other.
fn single(mut words: Vec<String>) -> Option<Option<String>> {
    (words.len() <= 1).then(|| words.pop())
}

/// See [`crate::Query::text_aggregates`].
pub(crate) fn text_aggregates(bound: &Bound) -> Option<Vec<TextAggregate>> {
    let select = &bound.select;
    let grouping = select.grouping.as_ref().filter(|grouping| !grouping.explicit)?;
    if !is_over_items_only(select) || select.filter.is_some() || select.skip > 0 || select.take.is_some() {
        return None;
    }
    let aggregates = grouping.aggregates.iter();
    let list: Vec<_> = aggregates
        .map(|aggregate| text_aggregate(bound, aggregate))
        .collect::<Option<_>>()?;
    // A plain count needs no index.
    let is_of_texts = list.iter().any(|aggregate| *aggregate != TextAggregate::Documents);
    is_of_texts.then_some(list)
}

fn text_aggregate(bound: &Bound, aggregate: &Aggregate) -> Option<TextAggregate> {
    match (aggregate.kind, &aggregate.argument) {
        (AggregateKind::Count, Scalar::Const(value)) if value.is_defined() => Some(TextAggregate::Documents),
        (AggregateKind::Sum, Scalar::Call(function, args)) if function.name == "_FullTextWordCount" => {
            let [text, language] = args.as_slice() else {
                return None;
            };
            text_of(bound, text, language).map(TextAggregate::Words)
        }
        (AggregateKind::CountIf, Scalar::Call(function, args)) if function.name == "FullTextContains" => {
            let [text, term, language] = args.as_slice() else {
                return None;
            };
            let text = text_of(bound, text, language)?;
            let word = single(words_of(&text.analyzer(), term.as_const()?)?)?;
            Some(TextAggregate::Hits(text, word))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
