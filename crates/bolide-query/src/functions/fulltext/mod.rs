//! Full-text functions (cosmos-sql §18.9). The binder adds the language of the path as a last argument.

mod analyzer;
mod stopwords;

use super::{Call, Function};
use crate::value::Value;

pub use analyzer::{Analyzer, Term, term_hits};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::strict("FullTextContains", 2, 2, |c| contains(c, false)),
    Function::strict("FullTextContainsAll", 2, 2, |c| contains(c, false)).any_number(),
    Function::strict("FullTextContainsAny", 2, 2, |c| contains(c, true)).any_number(),
    Function::strict("_FullTextWordCount", 1, 1, word_count),
    Function::strict("_FullTextScore", 5, 5, score),
];

/// Term frequency saturation of BM25.
const K1: f64 = 1.2;
/// Length normalization of BM25.
const B: f64 = 0.75;

/// The arguments without the language, and the analyzer of the language.
fn analyzed<'c, 'a>(call: &'c Call<'_, 'a>) -> Option<(&'c [Value<'a>], Analyzer)> {
    let (language, args) = call.args.split_last()?;
    Some((args, Analyzer::new(language.as_str()?)))
}

fn contains<'a>(call: &Call<'_, 'a>, any: bool) -> Value<'a> {
    let Some((args, analyzer)) = analyzed(call) else {
        return Value::Undefined;
    };
    let Some(text) = args[0].as_str() else {
        return Value::Undefined;
    };
    let words = analyzer.words(text, call.fuel());
    let hit = |term: &Value<'_>| {
        let term = analyzer.term(term, call.fuel());
        term.is_some_and(|term| term_hits(&words, &term, call.fuel()) > 0)
    };
    let terms = &args[1..];
    Value::Bool(if any {
        terms.iter().any(hit)
    } else {
        terms.iter().all(hit)
    })
}

fn word_count<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Some((args, analyzer)) = analyzed(call) else {
        return Value::Undefined;
    };
    args[0].as_str().map_or(Value::Undefined, |text| {
        Value::int(analyzer.words(text, call.fuel()).len() as i64)
    })
}

/// `_FullTextScore(path, [terms], documentCount, totalWordCount, hitCounts)`.
fn score<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    scored(call).map_or(Value::Undefined, Value::float)
}

fn scored(call: &Call<'_, '_>) -> Option<f64> {
    let (args, analyzer) = analyzed(call)?;
    let words = analyzer.words(args[0].as_str()?, call.fuel());
    let terms = args[1].elements()?;
    let hits: Vec<u64> = terms
        .iter()
        .map(|term| {
            let term = analyzer.term(term, call.fuel());
            term.map_or(0, |term| term_hits(&words, &term, call.fuel()))
        })
        .collect();
    let totals: Option<Vec<u64>> = args[4]
        .elements()?
        .iter()
        .map(|n| n.as_i64().and_then(|n| u64::try_from(n).ok()))
        .collect();
    let number = |at: usize| args[at].as_i64().and_then(|n| u64::try_from(n).ok());
    Some(bm25(words.len() as u64, &hits, number(2)?, number(3)?, &totals?))
}

/// The BM25 score of a text with `words` words, in which term n occurs `hits[n]` times, among `documents` texts with `total_words` words, of which
/// `totals[n]` contain term n.
pub fn bm25(words: u64, hits: &[u64], documents: u64, total_words: u64, totals: &[u64]) -> f64 {
    let average = total_words as f64 / documents.max(1) as f64;
    let length = if average > 0.0 { words as f64 / average } else { 1.0 };
    let terms = hits.iter().zip(totals);
    terms
        .map(|(hits, total)| {
            let (hits, total) = (*hits as f64, *total as f64);
            let rarity = (1.0 + (documents as f64 - total + 0.5) / (total + 0.5)).ln();
            rarity * hits * (K1 + 1.0) / (hits + K1 * (1.0 - B + B * length))
        })
        .sum()
}
