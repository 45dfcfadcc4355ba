//! Regular expressions (cosmos-sql §18.3.1).
//!
//! A pattern without look-around and back-references runs on an engine whose time is at most text × pattern. Others need backtracking: it
//! is given up after so many steps back that text, pattern and steps together stay within a limit. Steps forward are not counted by that
//! engine, so how deep its loops are nested counts, too ([`depth`]).
//! Both kinds cannot be ended in the middle, so what could take long by that measure is refused before, and whoever runs the query is asked
//! whether it may go on after.

mod depth;

use std::sync::{Arc, OnceLock};

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

/// Largest compiled pattern, and most memory for the states of a search, in bytes.
const COMPILED_BYTES: usize = 1024 * 1024;

/// Largest compiled part of a pattern for backtracking.
const PART_BYTES: usize = COMPILED_BYTES / 8;

/// Longer patterns are not even read: compiled they would be larger than any may be, and reading them takes many times their length.
const PATTERN_BYTES: usize = COMPILED_BYTES / 8;

/// What a pattern for backtracking takes for each position, and in any case: roughly, as its engine does not tell.
const POSITION_BYTES: u64 = 256;
const LEAST_BYTES: usize = 16 * 1024;

/// Most units for one search, if every character of the text met every position of the pattern.
const SEARCH_WORK: u64 = 1_000_000_000;

/// The same for a search with backtracking, where each step could go through the text. Nearly all of them do not.
const BACKTRACKING_WORK: u64 = 4_000_000_000;

/// Backtracking may go through the text from each of its places: this part of that is charged before.
const BACKTRACKING_SHARE: u64 = 64;

/// A search with backtracking takes its time for one item where less is left than this: where conditions are judged beside others' writes.
const BACKTRACKING_LEAST: u64 = 2_000_000;

/// How many steps back a search may take: the most that its text allows.
const STEPS: [u64; 3] = [1_000_000, 30_000, 1_000];

/// Units of a search from which on it is asked whether to go on.
const LONG_SEARCH: u64 = 100_000;

/// Patterns that one execution keeps compiled: data-dependent ones tend to repeat from item to item.
const KEPT: usize = 8;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    engine: Engine,
    /// The pattern's length, with what is repeated a number of times counted so often.
    positions: u64,
}

#[derive(Debug, Clone)]
enum Engine {
    Linear(regex_automata::meta::Regex),
    Backtracking(Arc<Backtracking>),
}

/// A pattern with look-around or back-references.
#[derive(Debug)]
struct Backtracking {
    text: String,
    /// See [`depth`]; at least 1.
    depth: u32,
    /// Compiled for each of [`STEPS`], when first needed.
    by_steps: [OnceLock<Option<fancy_regex::Regex>>; STEPS.len()],
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
        let positions = positions(pattern);
        if !fuel.spend(50_000 + positions.min(5_000) * 2_000 + pattern.len() as u64 * 100) {
            return None;
        }
        let text = if flags.is_empty() {
            pattern.to_owned()
        } else {
            format!("(?{flags}){pattern}")
        };
        let engine = match linear(&text) {
            Some(regex) => Engine::Linear(regex),
            None => Engine::Backtracking(Arc::new(Backtracking::new(text)?)),
        };
        fuel.look_now().then_some(Pattern { engine, positions })
    }

    /// What it takes: compiled, and as much again for the states of its searches.
    pub fn bytes(&self) -> usize {
        let compiled = match &self.engine {
            Engine::Linear(regex) => regex.memory_usage(),
            Engine::Backtracking(_) => {
                let by_positions = usize::try_from(self.positions.saturating_mul(POSITION_BYTES)).unwrap_or(usize::MAX);
                by_positions.min(COMPILED_BYTES)
            }
        };
        LEAST_BYTES + 2 * compiled
    }

    /// Whether the pattern occurs anywhere; `None` if the search was given up.
    pub fn is_match(&self, text: &str, fuel: &Fuel) -> Option<bool> {
        fuel.spend(text.len() as u64);
        self.search(text, fuel, |engine| match engine {
            Searching::Linear(regex) => Some(regex.is_match(text)),
            Searching::Backtracking(regex) => regex.is_match(text).ok(),
        })
    }

    /// The first occurrence.
    fn find<'t>(&self, text: &'t str, fuel: &Fuel) -> Option<&'t str> {
        fuel.spend(text.len() as u64);
        self.search(text, fuel, |engine| match engine {
            Searching::Linear(regex) => Some(regex.find(text).map(|found| &text[found.range()])),
            Searching::Backtracking(regex) => Some(regex.find(text).ok()?.map(|found| found.as_str())),
        })?
    }

    /// All occurrences, one behind the other. One that is empty does not follow another at once.
    fn find_all<'t>(&self, text: &'t str, fuel: &Fuel) -> Vec<&'t str> {
        let mut all = Vec::new();
        let mut at = 0;
        let mut last_end = None;
        while at <= text.len() {
            let found = self.search(&text[at..], fuel, |engine| match engine {
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
    fn search<T>(&self, text: &str, fuel: &Fuel, run: impl FnOnce(Searching<'_>) -> Option<T>) -> Option<T> {
        let length = text.len() as u64 + 16;
        let (depth, steps) = match &self.engine {
            Engine::Linear(_) => (1, 0),
            Engine::Backtracking(own) => (own.depth, (length * length) / BACKTRACKING_SHARE),
        };
        let worst = length.saturating_pow(depth).saturating_mul(self.positions);
        let is_afforded = matches!(self.engine, Engine::Linear(_)) || fuel.has(BACKTRACKING_LEAST);
        if !is_afforded {
            fuel.exhaust();
            return None;
        }
        if !fuel.spend(200 + steps) {
            return None;
        }
        let found = match &self.engine {
            Engine::Linear(regex) if worst <= SEARCH_WORK => run(Searching::Linear(regex)),
            Engine::Linear(_) => None,
            Engine::Backtracking(own) => own.within(worst).and_then(|regex| run(Searching::Backtracking(regex))),
        };
        if found.is_none() {
            // It was given up, which is no answer.
            fuel.exhaust();
            return None;
        }
        let is_long = worst > LONG_SEARCH || matches!(self.engine, Engine::Backtracking(_));
        found.filter(|_| !is_long || fuel.look_now())
    }
}

/// An engine that may run.
enum Searching<'p> {
    Linear(&'p regex_automata::meta::Regex),
    Backtracking(&'p fancy_regex::Regex),
}

fn linear(text: &str) -> Option<regex_automata::meta::Regex> {
    let config = regex_automata::meta::Config::new()
        .nfa_size_limit(Some(COMPILED_BYTES))
        .hybrid_cache_capacity(COMPILED_BYTES);
    regex_automata::meta::Builder::new().configure(config).build(text).ok()
}

impl Backtracking {
    /// Compiles a pattern; `None` if it is invalid or too large.
    fn new(text: String) -> Option<Backtracking> {
        let own = Backtracking {
            depth: depth::of(&text)?.max(1),
            text,
            by_steps: [const { OnceLock::new() }; STEPS.len()],
        };
        own.regex(0).is_some().then_some(own)
    }

    /// The pattern for a search that takes so many units without a step back. `None` if that is too much.
    fn within(&self, units: u64) -> Option<&fancy_regex::Regex> {
        let steps = BACKTRACKING_WORK / units.max(1);
        let fewest = STEPS.len() - 1;
        let at = STEPS.iter().position(|most| *most <= steps);
        // Without look-arounds in loops hardly a step goes through much of the text.
        let at = at.or((self.depth == 1 && units <= SEARCH_WORK).then_some(fewest))?;
        self.regex(at)
    }

    fn regex(&self, at: usize) -> Option<&fancy_regex::Regex> {
        let build = || {
            fancy_regex::RegexBuilder::new(&self.text)
                .backtrack_limit(usize::try_from(STEPS[at]).unwrap_or(usize::MAX))
                .delegate_size_limit(PART_BYTES)
                .delegate_dfa_size_limit(COMPILED_BYTES)
                .build()
                .ok()
        };
        self.by_steps[at].get_or_init(build).as_ref()
    }
}

/// How many characters a pattern stands for, roughly: what is repeated a number of times counts so often.
fn positions(pattern: &str) -> u64 {
    // Of each group that is open: what it has so far, and the size of its last part.
    let mut open: Vec<(u64, u64)> = vec![(0, 0)];
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        let (sum, last) = open.pop().unwrap_or_default();
        match c {
            '(' => {
                open.push((sum.saturating_add(last), 0));
                open.push((0, 0));
                continue;
            }
            ')' if !open.is_empty() => {
                let (outer, _) = open.pop().unwrap_or_default();
                open.push((outer, sum.saturating_add(last).saturating_add(1)));
                continue;
            }
            '{' => {
                let times = repetitions(rest.as_str());
                open.push((sum, last.saturating_mul(times)));
                continue;
            }
            '\\' => {
                rest.next();
            }
            _ => {}
        }
        open.push((sum.saturating_add(last), 1));
    }
    open.iter()
        .fold(1, |all, (sum, last)| all.saturating_add(*sum).saturating_add(*last))
}

/// The largest number of a repetition whose opening brace was read.
fn repetitions(rest: &str) -> u64 {
    let body = rest.split('}').next().unwrap_or_default();
    let numbers = body.split(',').filter_map(|number| number.trim().parse::<u64>().ok());
    numbers.max().unwrap_or(1).max(1)
}

/// Patterns that were compiled while items were gone through; none where they are invalid.
#[derive(Debug, Default)]
pub struct Patterns {
    /// By text and flags, the one used last at the end.
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
            session.memory.give_back(kept_bytes(&text, pattern.as_ref()));
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
