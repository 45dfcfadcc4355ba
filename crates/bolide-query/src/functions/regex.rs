//! Regular expressions (cosmos-sql §18.3.1).

use std::sync::{LazyLock, Mutex};

use super::{Call, Function};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::strict("REGEXMATCH", 2, 3, is_match),
    Function::strict("_REGEX_MATCH", 2, 3, is_match),
    Function::strict("RegexExtract", 2, 3, extract),
    Function::strict("RegexExtractAll", 2, 3, extract_all),
];

/// How far a pattern with look-around or back-references may search before it gives up.
const BACKTRACK_LIMIT: usize = 1_000_000;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: fancy_regex::Regex,
}

impl Pattern {
    /// Compiles a pattern with its flags; `None` if either is invalid.
    pub fn new(pattern: &str, flags: &str) -> Option<Pattern> {
        if !flags.chars().all(|flag| "msix".contains(flag)) {
            return None;
        }
        let text = if flags.is_empty() {
            pattern.to_owned()
        } else {
            format!("(?{flags}){pattern}")
        };
        let regex = fancy_regex::RegexBuilder::new(&text)
            .backtrack_limit(BACKTRACK_LIMIT)
            .build()
            .ok()?;
        Some(Pattern { regex })
    }

    /// Whether the pattern occurs anywhere; `None` if the search was given up.
    pub fn is_match(&self, text: &str) -> Option<bool> {
        self.regex.is_match(text).ok()
    }
}

/// A pattern with the texts it was compiled from; none if they are invalid.
struct Compiled {
    text: String,
    flags: String,
    pattern: Option<Pattern>,
}

/// The pattern compiled last: data-dependent patterns tend to repeat from item to item.
static LAST: LazyLock<Mutex<Option<Compiled>>> = LazyLock::new(Mutex::default);

fn pattern(call: &Call<'_, '_>) -> Option<Pattern> {
    let flags = if call.args.len() > 2 { call.str(2)? } else { "" };
    let text = call.str(1)?;
    let mut last = LAST.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match &*last {
        Some(compiled) if compiled.text == text && compiled.flags == flags => compiled.pattern.clone(),
        _ => {
            let pattern = Pattern::new(text, flags);
            *last = Some(Compiled {
                text: text.to_owned(),
                flags: flags.to_owned(),
                pattern: pattern.clone(),
            });
            pattern
        }
    }
}

fn is_match<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Some(text) = call.str(0) else {
        return Value::Undefined;
    };
    pattern(call)
        .and_then(|pattern| pattern.is_match(text))
        .map_or(Value::Undefined, Value::Bool)
}

fn extract<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Some((text, pattern)) = call.str(0).zip(pattern(call)) else {
        return Value::Undefined;
    };
    pattern
        .regex
        .find(text)
        .ok()
        .flatten()
        .map_or(Value::Undefined, |found| Value::string(found.as_str()))
}

fn extract_all<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Some((text, pattern)) = call.str(0).zip(pattern(call)) else {
        return Value::Undefined;
    };
    Value::array(
        pattern
            .regex
            .find_iter(text)
            .map_while(Result::ok)
            .map(|found| Value::string(found.as_str())),
    )
}
