//! Text analysis: the settings of full-text policies for it.
//!
//! There is one analyzer: words in lower case, without the basic stop words of the language, stemmed. Settings that ask for it are stored and
//! returned; settings that ask for another one are refused, because searches would silently find something else. Source: the .NET SDK's
//! `FullTextDefaultSpec` and `FullTextPath`.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::input::{Input, invalid};
use crate::error::{Error, Result, excerpt};

/// The service's sets of analyzers.
const PACKAGES: [&str; 2] = ["legacy", "standard"];
const TOKENIZER: &str = "word";
const FILTERS: [&str; 3] = ["stop", "lowercase", "stem"];
const STOP_WORDS: &str = "basic";

/// Reads `package`.
pub(super) fn read_package(input: &Input<'_>) -> Result<Option<String>> {
    let Some(package) = input.string("package")? else {
        return Ok(None);
    };
    if PACKAGES.contains(&package) {
        return Ok(Some(package.to_owned()));
    }
    Err(invalid(
        &input.name_of("package"),
        &format!("one of {}; it is '{}'", PACKAGES.join(", "), excerpt(package)),
    ))
}

/// Reads the analysis settings of a path, or the default of all paths.
pub(super) fn read(input: &Input<'_>) -> Result<Map<String, Value>> {
    let mut analysis = Map::new();
    if let Some(tokenizer) = input.string("tokenizer")? {
        check(input, "tokenizer", tokenizer == TOKENIZER, TOKENIZER)?;
    }
    if let Some(filters) = strings(input, "filters")? {
        check(input, "filters", filters == FILTERS.into(), &FILTERS.join(", "))?;
    }
    if let Some(kind) = input.string("stopWordListKind")? {
        check(input, "stopWordListKind", kind == STOP_WORDS, STOP_WORDS)?;
    }
    for member in ["addStopWords", "removeStopWords"] {
        if let Some(words) = strings(input, member)? {
            check(input, member, words.is_empty(), "an empty list")?;
        }
    }
    for member in [
        "tokenizer",
        "filters",
        "stopWordListKind",
        "addStopWords",
        "removeStopWords",
    ] {
        if let Some(value) = input.get(member) {
            analysis.insert(member.to_owned(), value.clone());
        }
    }
    Ok(analysis)
}

fn strings<'a>(input: &Input<'a>, member: &str) -> Result<Option<BTreeSet<&'a str>>> {
    let Some(list) = input.array(member)? else {
        return Ok(None);
    };
    let strings: Option<BTreeSet<&str>> = list.iter().map(Value::as_str).collect();
    strings
        .map(Some)
        .ok_or_else(|| invalid(&input.name_of(member), "an array of strings"))
}

fn check(input: &Input<'_>, member: &str, is_supported: bool, supported: &str) -> Result<()> {
    if is_supported {
        return Ok(());
    }
    Err(Error::not_supported(format!(
        "'{}' is supported with one value only, as text is analyzed in one way: {supported}.",
        input.name_of(member)
    )))
}
