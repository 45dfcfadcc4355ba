//! Regular expressions (cosmos-sql §18.3.1).
//!
//! A pattern without look-around and back-references runs on an engine whose time is at most text × pattern ([`size`]). Others need backtracking, and
//! are given up after a number of steps back that keeps the whole search within a limit ([`steps`]).
//!
//! Neither can be interrupted. So the maximum cost of a search is computed before it: that much fuel must be left, and is spent where it can be
//! estimated. After a long search, the interruption check is made.

mod size;
mod steps;

use std::sync::{Arc, OnceLock};

use regex_syntax::hir::Hir;

use self::size::{Parsed, Size};
use self::steps::Steps;
use super::{Call, Function};
use crate::fuel::Fuel;
use crate::session::Session;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::strict("REGEXMATCH", 2, 3, is_match),
    Function::strict("_REGEX_MATCH", 2, 3, is_match),
    Function::strict("RegexExtract", 2, 3, extract),
    Function::strict("RegexExtractAll", 2, 3, extract_all),
];

/// Maximum size of a compiled pattern, and maximum memory for the states of a search, in bytes.
const COMPILED_BYTES: usize = 1024 * 1024;

/// Maximum size of a compiled part of a pattern for backtracking.
const PART_BYTES: usize = COMPILED_BYTES / 8;

/// Longer patterns are not parsed: compiled they would exceed the limit, and parsing takes many times their length.
const PATTERN_BYTES: usize = COMPILED_BYTES / 8;

/// Units of compiling per byte of the compiled pattern, at least.
const UNITS_OF_BYTE: u64 = 8;
const MIN_BYTES: usize = 16 * 1024;

/// Maximum units of one search: half a second.
const SEARCH_WORK: u64 = 500_000_000;

/// Units of a search that reads almost nothing.
const SEARCH: u64 = 200;

/// With less fuel left than this no search with backtracking runs. Conditions with that little fuel are evaluated on threads that other writes
/// share, and such a search can take long for a single item.
const MIN_BACKTRACKING_FUEL: u64 = 2_000_000;

/// If this much is left, searches that are unlikely to need their maximum spend only a part of it: only this query waits for them.
const AMPLE_FUEL: u64 = 50_000_000;

/// This part: for a search with backtracking that takes one step back per character,
const BACKTRACKING_SHARE: u64 = 64;
/// and for each search of the next match, which may go on to the end of the text.
const NEXT_SHARE: u64 = 1_024;

/// Numbers of steps back that a search may take: the largest affordable one is used.
const STEPS: [u64; 7] = [1_000_000, 200_000, 40_000, 8_000, 1_500, 300, 50];

/// After a search of at least this many units, the interruption check is made.
const LONG_SEARCH: u64 = 100_000;

/// Maximum number of compiled patterns kept by an execution: patterns from data often repeat from item to item.
const KEPT: usize = 8;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    engine: Engine,
}

#[derive(Debug, Clone)]
enum Engine {
    Linear(Arc<Linear>),
    Backtracking(Arc<Backtracking>),
}

/// A pattern without look-around and back-references.
#[derive(Debug)]
struct Linear {
    regex: regex_automata::meta::Regex,
    size: Size,
}

/// A pattern with look-around or back-references.
#[derive(Debug)]
struct Backtracking {
    text: String,
    steps: Steps,
    /// Compiled for each of [`STEPS`], when first needed.
    by_steps: [OnceLock<Option<fancy_regex::Regex>>; STEPS.len()],
}

/// Whether a search is one of many in the same text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Search {
    Only,
    OneOfMany,
}

impl Pattern {
    /// Compiles a pattern with its flags; `None` if either is invalid, the pattern is too large, or fuel is refused.
    pub fn new(pattern: &str, flags: &str, fuel: &Fuel) -> Option<Pattern> {
        if !flags.chars().all(|flag| "msix".contains(flag)) {
            return None;
        }
        if pattern.len() > PATTERN_BYTES {
            return None;
        }
        if !fuel.spend(50_000) {
            return None;
        }
        let text = if flags.is_empty() {
            pattern.to_owned()
        } else {
            format!("(?{flags}){pattern}")
        };
        let engine = match size::parse(&text, fuel) {
            Parsed::Hir(hir, size) => Engine::Linear(Arc::new(Linear::new(&hir, size, fuel)?)),
            Parsed::Unknown => Engine::Backtracking(Arc::new(Backtracking::new(text, fuel)?)),
            Parsed::TooLarge => return None,
        };
        fuel.check_interrupts().then_some(Pattern { engine })
    }

    /// Its memory: compiled, plus twice as much for the states of searches, or for other numbers of steps.
    pub fn bytes(&self) -> usize {
        let compiled = match &self.engine {
            Engine::Linear(own) => own.regex.memory_usage(),
            Engine::Backtracking(own) => usize::try_from(own.steps.compile / UNITS_OF_BYTE).unwrap_or(usize::MAX),
        };
        MIN_BYTES.saturating_add(compiled.saturating_mul(3))
    }

    /// Whether the pattern occurs in the text; `None` if the search was given up.
    pub fn is_match(&self, text: &str, fuel: &Fuel) -> Option<bool> {
        self.search(text, Search::Only, fuel, |engine| match engine {
            Searching::Linear(regex) => Some(regex.is_match(text)),
            Searching::Backtracking(regex) => regex.is_match(text).ok(),
        })
    }

    /// The first occurrence.
    fn find<'t>(&self, text: &'t str, fuel: &Fuel) -> Option<&'t str> {
        self.search(text, Search::Only, fuel, |engine| match engine {
            Searching::Linear(regex) => Some(regex.find(text).map(|found| &text[found.range()])),
            Searching::Backtracking(regex) => Some(regex.find(text).ok()?.map(|found| found.as_str())),
        })?
    }

    /// All matches in order. An empty match directly after another one is left out.
    fn find_all<'t>(&self, text: &'t str, fuel: &Fuel) -> Vec<&'t str> {
        let mut all = Vec::new();
        let mut at = 0;
        let mut last_end = None;
        while at <= text.len() {
            let found = self.search(&text[at..], Search::OneOfMany, fuel, |engine| match engine {
                Searching::Linear(regex) => {
                    let input = regex_automata::Input::new(text).span(at..text.len());
                    Some(regex.find(input).map(|found| found.range()))
                }
                Searching::Backtracking(regex) => Some(regex.find_from_pos(text, at).ok()?.map(|found| found.range())),
            });
            let Some(range) = found.flatten() else { break };
            if !fuel.spend((range.end - at) as u64) {
                break;
            }
            at = range.end;
            if range.is_empty() {
                at += text[at..].chars().next().map_or(1, char::len_utf8);
            }
            if !range.is_empty() || last_end != Some(range.end) {
                last_end = Some(range.end);
                all.push(&text[range]);
            }
        }
        all
    }

    /// Runs a search within limits.
    fn search<T>(
        &self,
        text: &str,
        search: Search,
        fuel: &Fuel,
        run: impl FnOnce(Searching<'_>) -> Option<T>,
    ) -> Option<T> {
        let (engine, worst) = match &self.engine {
            Engine::Linear(own) => (Searching::Linear(&own.regex), own.reserve(text, search, fuel)?),
            Engine::Backtracking(own) => {
                let (regex, worst) = own.reserve(text, search, fuel)?;
                (Searching::Backtracking(regex), worst)
            }
        };
        let found = run(engine);
        if found.is_none() {
            // The search was given up, which is not a result.
            fuel.exhaust();
            return None;
        }
        found.filter(|_| worst <= LONG_SEARCH || fuel.check_interrupts())
    }
}

/// An engine that may run.
enum Searching<'p> {
    Linear(&'p regex_automata::meta::Regex),
    Backtracking(&'p fancy_regex::Regex),
}

impl Linear {
    /// Compiles a pattern; `None` if it is too large, or fuel is refused.
    fn new(hir: &Hir, size: Size, fuel: &Fuel) -> Option<Linear> {
        if !fuel.spend(size.compile) {
            return None;
        }
        let config = regex_automata::meta::Config::new()
            .nfa_size_limit(Some(COMPILED_BYTES))
            .hybrid_cache_capacity(COMPILED_BYTES);
        let built = regex_automata::meta::Builder::new()
            .configure(config)
            .build_from_hir(hir);
        Some(Linear {
            regex: built.ok()?,
            size,
        })
    }

    /// Spends the maximum cost of a search, and returns it; `None` if there is not enough fuel.
    fn reserve(&self, text: &str, search: Search, fuel: &Fuel) -> Option<u64> {
        let worst = SEARCH.saturating_add(self.size.units(text.len() as u64, text.is_ascii()));
        if worst > fuel.left().min(SEARCH_WORK) {
            fuel.exhaust();
            return None;
        }
        let spent = match search {
            Search::OneOfMany if fuel.left() >= AMPLE_FUEL => SEARCH + worst / NEXT_SHARE,
            Search::OneOfMany | Search::Only => worst,
        };
        fuel.spend(spent).then_some(worst)
    }
}

impl Backtracking {
    /// Compiles a pattern; `None` if it is invalid or too large, or fuel is refused.
    fn new(text: String, fuel: &Fuel) -> Option<Backtracking> {
        let own = Backtracking {
            steps: steps::of(&text, fuel)?,
            text,
            by_steps: [const { OnceLock::new() }; STEPS.len()],
        };
        own.regex(0, fuel)?;
        Some(own)
    }

    /// The pattern for a search of a text, with the maximum cost; this cost or a part of it is spent. `None` if there is not enough fuel.
    fn reserve(&self, text: &str, search: Search, fuel: &Fuel) -> Option<(&fancy_regex::Regex, u64)> {
        let (bytes, is_ascii) = (text.len() as u64 + 1, text.is_ascii());
        let left = fuel.left();
        let units = |steps: u64| self.steps.units(bytes, is_ascii, steps);
        let at = STEPS
            .iter()
            .position(|steps| units(*steps).is_some_and(|units| units <= left.min(SEARCH_WORK)));
        let Some((at, worst)) = at
            .filter(|_| left >= MIN_BACKTRACKING_FUEL)
            .and_then(|at| Some((at, units(STEPS[at])?)))
        else {
            fuel.exhaust();
            return None;
        };
        let usual = units(bytes).map_or(worst, |usual| usual / BACKTRACKING_SHARE);
        let spent = match search {
            _ if left < AMPLE_FUEL => worst,
            Search::Only => usual.min(worst),
            Search::OneOfMany => usual.min(worst / BACKTRACKING_SHARE / NEXT_SHARE),
        };
        if !fuel.spend(SEARCH.saturating_add(spent)) {
            return None;
        }
        self.regex(at, fuel).map(|regex| (regex, worst))
    }

    /// The pattern for one of [`STEPS`].
    fn regex(&self, at: usize, fuel: &Fuel) -> Option<&fancy_regex::Regex> {
        let own = &self.by_steps[at];
        if own.get().is_none() && !fuel.spend(self.steps.compile) {
            return None;
        }
        let build = || {
            fancy_regex::RegexBuilder::new(&self.text)
                .backtrack_limit(usize::try_from(STEPS[at]).unwrap_or(usize::MAX))
                .delegate_size_limit(PART_BYTES)
                .delegate_dfa_size_limit(COMPILED_BYTES)
                .build()
                .ok()
        };
        own.get_or_init(build).as_ref()
    }
}

/// Patterns that were compiled while items were processed; `None` for invalid ones.
#[derive(Debug, Default)]
pub struct Patterns {
    /// By text and flags, the most recently used last.
    kept: Vec<(String, String, Option<Pattern>)>,
}

impl Patterns {
    fn get(&mut self, text: &str, flags: &str, session: &Session) -> Option<Pattern> {
        if let Some(at) = self
            .kept
            .iter()
            .rposition(|(own, own_flags, _)| own == text && own_flags == flags)
        {
            return self.kept[at].2.clone();
        }
        let pattern = Pattern::new(text, flags, &session.fuel);
        if self.kept.len() >= KEPT {
            let (text, _, pattern) = self.kept.remove(0);
            session.memory.release(kept_bytes(&text, pattern.as_ref()));
        }
        if !session.memory.take_for_function(kept_bytes(text, pattern.as_ref())) {
            return None;
        }
        self.kept.push((text.to_owned(), flags.to_owned(), pattern.clone()));
        pattern
    }
}

fn kept_bytes(text: &str, pattern: Option<&Pattern>) -> usize {
    text.len() + pattern.map_or(0, Pattern::bytes)
}

fn pattern(call: &Call<'_, '_>) -> Option<Pattern> {
    let flags = if call.args.len() > 2 { call.str(2)? } else { "" };
    let text = call.str(1)?;
    call.session.patterns.borrow_mut().get(text, flags, call.session)
}

fn is_match<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Some(text) = call.str(0) else {
        return Value::Undefined;
    };
    pattern(call)
        .and_then(|pattern| pattern.is_match(text, call.fuel()))
        .map_or(Value::Undefined, Value::Bool)
}

fn extract<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Some((text, pattern)) = call.str(0).zip(pattern(call)) else {
        return Value::Undefined;
    };
    pattern.find(text, call.fuel()).map_or(Value::Undefined, Value::string)
}

fn extract_all<'a>(call: &Call<'_, 'a>) -> Value<'a> {
    let Some((text, pattern)) = call.str(0).zip(pattern(call)) else {
        return Value::Undefined;
    };
    Value::array(pattern.find_all(text, call.fuel()).into_iter().map(Value::string))
}

#[cfg(test)]
mod tests;
