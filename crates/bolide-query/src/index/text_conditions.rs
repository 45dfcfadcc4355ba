//! What a filter requires of the words of a text.
//!
//! A condition comes from one call of a full-text function with constants. OR unites the conditions on one text that all its operands have; any other
//! part of the filter gives no condition, and so lets every item pass.

use super::conditions::{filter_of_items, path_of};
use super::text::TextIndex;
use crate::bind::Bound;
use crate::fuel::Fuel;
use crate::functions::Analyzer;
use crate::program::Scalar;
use crate::value::Value;

/// Maximum number of words of a condition; beyond it there is no condition.
pub const MAX_TERMS_OF_CONDITION: usize = 64;
/// Fuel for the analysis of a term: longer ones give no condition.
const TERM_UNITS: u64 = 100_000;

/// The words that a text must have: all of at least one list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextCondition {
    /// The text.
    pub text: TextIndex,
    /// Lists of words, none of them empty. Without any, no item can pass.
    pub any_of: Vec<Vec<String>>,
}

impl TextCondition {
    /// Whether a text with these words, sorted, can pass.
    pub fn admits(&self, words: &[String]) -> bool {
        let has = |word: &String| words.binary_search(word).is_ok();
        self.any_of.iter().any(|list| list.iter().all(has))
    }
}

/// The conditions of the filter of a query over items, see [`crate::Query::text_conditions`].
pub(crate) fn text_conditions(bound: &Bound) -> Vec<TextCondition> {
    filter_of_items(bound).map_or_else(Vec::new, |filter| of(bound, filter))
}

/// What is true of every item for which the expression is true.
pub(super) fn of(bound: &Bound, condition: &Scalar) -> Vec<TextCondition> {
    match condition {
        Scalar::And(list) => list.iter().flat_map(|operand| of(bound, operand)).collect(),
        Scalar::Or(list) => united(bound, list),
        Scalar::Call(function, args) => of_call(bound, function.name, args),
        _ => Vec::new(),
    }
}

fn of_call(bound: &Bound, name: &str, args: &[Scalar]) -> Vec<TextCondition> {
    let [value, terms @ .., language] = args else {
        return Vec::new();
    };
    let Some(text) = text_of(bound, value, language) else {
        return Vec::new();
    };
    let analyzer = text.analyzer();
    let term = |term: &Scalar| words_of(&analyzer, term.as_const()?);
    let condition = |any_of: Vec<Vec<String>>| TextCondition {
        text: text.clone(),
        any_of: any_of.into_iter().filter(|words| !words.is_empty()).collect(),
    };
    let found: Vec<TextCondition> = match name {
        "FullTextContains" | "FullTextContainsAll" => terms
            .iter()
            .filter_map(term)
            .map(|words| condition(vec![words]))
            .collect(),
        "FullTextContainsAny" => {
            let lists: Option<Vec<_>> = terms.iter().map(term).collect();
            lists.map(condition).into_iter().collect()
        }
        _ => return Vec::new(),
    };
    found.into_iter().filter(is_short).collect()
}

/// The conditions on one text that every operand has.
fn united(bound: &Bound, list: &[Scalar]) -> Vec<TextCondition> {
    let mut operands = list.iter().map(|operand| of(bound, operand));
    let first = operands.next().unwrap_or_default();
    let united = operands.fold(first, |common, own| {
        let with = |mut one: TextCondition| {
            let other = own.iter().find(|other| other.text == one.text)?;
            one.any_of.extend(other.any_of.iter().cloned());
            Some(one)
        };
        common.into_iter().filter_map(with).collect()
    });
    united.into_iter().filter(is_short).collect()
}

fn is_short(condition: &TextCondition) -> bool {
    condition.any_of.iter().map(Vec::len).sum::<usize>() <= MAX_TERMS_OF_CONDITION
}

/// The text that a full-text function reads.
pub(super) fn text_of(bound: &Bound, value: &Scalar, language: &Scalar) -> Option<TextIndex> {
    let path = path_of(bound, value).filter(|path| !path.is_of_elements())?;
    let language = language.as_const()?.as_str()?.to_owned();
    Some(TextIndex { path, language })
}

/// The words that a text must have in order to have a term; none if no text has it. `None` if that is not known.
pub(super) fn words_of(analyzer: &Analyzer, term: &Value<'_>) -> Option<Vec<String>> {
    let fuel = Fuel::new(TERM_UNITS, None);
    let words = match analyzer.term(term, &fuel) {
        None => Vec::new(),
        Some(term) => term.exact_words()?.to_vec(),
    };
    fuel.check().ok()?;
    Some(words)
}

#[cfg(test)]
mod tests;
