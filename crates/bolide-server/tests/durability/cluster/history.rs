//! What clients asked about one item and were told, and the search for an order that explains it.
//!
//! The algorithm is that of Wing and Gong: of the calls that have no position yet, each that began before any other of them ended may come next. A
//! write whose outcome is unknown may have a position or none; it has none after the next acknowledged write of its client.

use std::collections::{BTreeMap, HashMap, HashSet};

/// Microseconds since 1970, by one monotonic clock of the test.
pub type Time = i64;

/// The content of an item: the number that only one write has, and how often it was patched since it was written as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version {
    pub value: u64,
    pub patches: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Create(u64),
    Upsert(u64),
    Replace(u64),
    /// Sets the value and counts.
    Patch(u64),
    Delete,
    Read,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Stored {
        created: bool,
        patches: u64,
    },
    Deleted,
    Found(Version),
    /// 404.
    Missing,
    /// 409.
    Present,
    /// The connection broke, or 408.
    Unknown,
}

/// A call that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Made {
    pub client: usize,
    pub server: usize,
    pub began: Time,
    pub ended: Time,
    pub call: Call,
    pub outcome: Outcome,
}

impl Call {
    /// What the item has afterwards.
    pub fn value(self) -> Option<u64> {
        match self {
            Call::Create(value) | Call::Upsert(value) | Call::Replace(value) | Call::Patch(value) => Some(value),
            Call::Delete | Call::Read => None,
        }
    }
}

impl Made {
    /// When it had its effect at the latest.
    fn until(&self) -> Time {
        match self.outcome {
            Outcome::Unknown => Time::MAX,
            _ => self.ended,
        }
    }

    fn is_acknowledged_write(&self) -> bool {
        matches!(self.outcome, Outcome::Stored { .. } | Outcome::Deleted)
    }
}

/// When a version ends, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// It is certainly live before this.
    pub from: Time,
    /// It is certainly gone after this.
    pub until: Time,
}

impl End {
    pub const NEVER: End = End {
        from: Time::MAX,
        until: Time::MAX,
    };
    const UNKNOWN: End = End {
        from: Time::MIN,
        until: Time::MAX,
    };
}

/// The ends of the versions that were seen, by value. Nothing is known of others.
pub type Ends = HashMap<u64, End>;

/// An item between two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    Absent,
    Live(Version),
    /// Somebody has called it gone. Only with [`Rule::LateWrites`].
    Ended(Version),
}

/// Whether a write may be carried out on a version that somebody has called gone before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    Strict,
    /// If the write began before the end of the version: it was decided while that was live, and others saw it later.
    LateWrites,
}

/// A search gives up after so many steps.
const STEPS: usize = 4_000_000;
/// Calls around the one without an explanation that a failure shows.
const SHOWN: usize = 14;

/// Checks that there is an order of calls, in which each has its effect between its begin and its end, that explains all outcomes.
///
/// # Errors
/// If there is none: the calls before which the search ended.
pub fn explain(history: &[Made], ends: &Ends, rule: Rule) -> Result<(), String> {
    let mut calls = history.to_vec();
    calls.sort_by_key(|made| made.began);
    Search { calls, ends, rule }.run()
}

struct Search<'e> {
    calls: Vec<Made>,
    ends: &'e Ends,
    rule: Rule,
}

/// Which calls have a position, and what the item is after them.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Step {
    placed: Vec<u64>,
    state: State,
}

impl Step {
    fn has(&self, at: usize) -> bool {
        self.placed[at / 64] & 1 << (at % 64) != 0
    }

    fn with(&self, at: usize, state: State) -> Step {
        let mut placed = self.placed.clone();
        placed[at / 64] |= 1 << (at % 64);
        Step { placed, state }
    }
}

impl Search<'_> {
    fn run(&self) -> Result<(), String> {
        let start = Step {
            placed: vec![0; self.calls.len() / 64 + 1],
            state: State::Absent,
        };
        let mut waiting = vec![start.clone()];
        let mut tried = HashSet::from([start.clone()]);
        let mut furthest = (0, start);
        while let Some(step) = waiting.pop() {
            let (next, is_complete, first) = self.candidates(&step);
            if is_complete {
                return Ok(());
            }
            if first >= furthest.0 {
                furthest = (first, step.clone());
            }
            // Those of a known outcome are tried first: they are at the top of the stack.
            for at in next {
                if let Some(state) = self.after(step.state, &self.calls[at]) {
                    let step = step.with(at, state);
                    if tried.insert(step.clone()) {
                        waiting.push(step);
                    }
                }
            }
            if tried.len() > STEPS {
                return Err(format!("undecided after {STEPS} steps: {}", self.describe(&furthest)));
            }
        }
        Err(format!("no order of the calls: {}", self.describe(&furthest)))
    }

    /// The calls that may come next, those of unknown outcome first; whether none of known outcome is left; the first of these.
    fn candidates(&self, step: &Step) -> (Vec<usize>, bool, usize) {
        let placed = self.calls.iter().enumerate().filter(|(at, _)| step.has(*at));
        let acknowledged = placed.filter(|(_, made)| made.is_acknowledged_write());
        let last: HashMap<usize, Time> = acknowledged.map(|(_, made)| (made.client, made.began)).collect();
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        let mut until = Time::MAX;
        for (at, made) in self.calls.iter().enumerate() {
            if step.has(at) {
                continue;
            }
            if made.began > until {
                break;
            }
            if made.outcome != Outcome::Unknown {
                until = until.min(made.ended);
                known.push(at);
            } else if last.get(&made.client).is_none_or(|began| *began < made.began) {
                unknown.push(at);
            }
        }
        let first = known.first().copied();
        known.reverse();
        unknown.extend(known);
        (unknown, first.is_none(), first.unwrap_or(self.calls.len()))
    }

    /// The item after a call with this outcome; `None` if it cannot have it.
    fn after(&self, state: State, made: &Made) -> Option<State> {
        let (version, end) = match state {
            State::Live(version) | State::Ended(version) => {
                let end = self.ends.get(&version.value).copied();
                (Some(version), end.unwrap_or(End::UNKNOWN))
            }
            State::Absent => (None, End::NEVER),
        };
        let is_live = matches!(state, State::Live(_));
        // What a write finds. What has ended is there only for those that began before.
        let base = version.filter(|_| end.until > made.began);
        let live = base.filter(|_| is_live);
        let may_be_gone = !is_live || end.from < made.until();
        let gone = match version {
            Some(version) if self.rule == Rule::LateWrites => State::Ended(version),
            _ => State::Absent,
        };
        let whole = |value| Some(State::Live(Version { value, patches: 0 }));
        let patched = |value| {
            let patches = base?.patches + 1;
            Some(State::Live(Version { value, patches }))
        };
        match (made.call, made.outcome) {
            (Call::Read, Outcome::Found(version)) => live.filter(|live| *live == version).map(State::Live),
            (Call::Create(_), Outcome::Present) => base.map(|_| state),
            (Call::Create(value), Outcome::Stored { created: true, .. } | Outcome::Unknown) if may_be_gone => {
                whole(value)
            }
            (Call::Upsert(value), Outcome::Stored { created: true, .. }) if may_be_gone => whole(value),
            (Call::Upsert(value) | Call::Replace(value), Outcome::Stored { created: false, .. }) => {
                base.and_then(|_| whole(value))
            }
            (Call::Upsert(value), Outcome::Unknown) => whole(value),
            (Call::Replace(value), Outcome::Unknown) => base.and_then(|_| whole(value)),
            (
                Call::Patch(value),
                Outcome::Stored {
                    created: false,
                    patches,
                },
            ) => patched(value).filter(|after| matches!(after, State::Live(version) if version.patches == patches)),
            (Call::Patch(value), Outcome::Unknown) => patched(value),
            (Call::Delete, Outcome::Deleted | Outcome::Unknown) => base.map(|_| State::Absent),
            (Call::Replace(_) | Call::Patch(_) | Call::Delete | Call::Read, Outcome::Missing) if may_be_gone => {
                Some(gone)
            }
            _ => None,
        }
    }

    fn describe(&self, (first, step): &(usize, Step)) -> String {
        let base = self.calls.first().map_or(0, |made| made.began);
        let mut text = format!("the item was {:?} before\n", step.state);
        for (at, made) in self.calls.iter().enumerate() {
            if at + SHOWN < *first || at > first + SHOWN {
                continue;
            }
            let Made {
                client,
                server,
                began,
                ended,
                call,
                outcome,
            } = made;
            let mark = if step.has(at) { "placed" } else { "      " };
            let ended = ended - base;
            let end = call.value().and_then(|value| self.ends.get(&value));
            let end = end.filter(|end| **end != End::NEVER);
            let end = end.map_or_else(String::new, |end| {
                format!(", ends from {} to {}", end.from - base, end.until.saturating_sub(base))
            });
            text += &format!(
                "  {mark} client {client} server {server} from {} to {ended} µs: {call:?} → {outcome:?}{end}\n",
                began - base
            );
        }
        text
    }
}

/// The calls of each item.
pub fn by_item<K: Ord + Clone>(calls: impl IntoIterator<Item = (K, Made)>) -> BTreeMap<K, Vec<Made>> {
    let mut items: BTreeMap<K, Vec<Made>> = BTreeMap::new();
    for (item, made) in calls {
        items.entry(item).or_default().push(made);
    }
    items
}

mod tests {
    use super::*;

    fn made(client: usize, began: Time, ended: Time, call: Call, outcome: Outcome) -> Made {
        Made {
            client,
            server: client,
            began,
            ended,
            call,
            outcome,
        }
    }

    fn stored(created: bool) -> Outcome {
        Outcome::Stored { created, patches: 0 }
    }

    fn found(value: u64) -> Outcome {
        Outcome::Found(Version { value, patches: 0 })
    }

    fn fits(history: &[Made]) -> bool {
        explain(history, &ends(), Rule::Strict).is_ok()
    }

    /// 1 to 9 never end, 10 ends at about 100.
    fn ends() -> Ends {
        let mut ends: Ends = (1..10).map(|value| (value, End::NEVER)).collect();
        ends.insert(10, End { from: 90, until: 110 });
        ends
    }

    #[test]
    fn a_lost_write_and_a_stale_read_are_noticed() {
        let create = made(0, 0, 1, Call::Create(1), stored(true));
        let update = made(0, 2, 3, Call::Upsert(2), stored(false));
        assert!(fits(&[create, update, made(1, 4, 5, Call::Read, found(2))]));
        assert!(!fits(&[create, made(1, 2, 3, Call::Read, Outcome::Missing)]));
        assert!(!fits(&[create, update, made(1, 4, 5, Call::Read, found(1))]));
        assert!(fits(&[create, update, made(1, 2, 5, Call::Read, found(1))]));
    }

    #[test]
    fn a_write_that_was_refused_and_is_there_is_noticed() {
        let create = made(0, 0, 1, Call::Create(1), stored(true));
        assert!(!fits(&[create, made(1, 4, 5, Call::Read, found(7))]));
    }

    #[test]
    fn two_creates_of_one_item_are_noticed() {
        let create = made(0, 0, 9, Call::Create(1), stored(true));
        assert!(!fits(&[create, made(1, 1, 8, Call::Create(2), stored(true))]));
        assert!(fits(&[create, made(1, 1, 8, Call::Create(2), Outcome::Present)]));
    }

    #[test]
    fn a_patch_that_was_carried_out_twice_is_noticed() {
        let create = made(0, 0, 1, Call::Create(1), stored(true));
        let patch = made(0, 2, 3, Call::Patch(2), Outcome::Unknown);
        let read = |patches| made(1, 4, 5, Call::Read, Outcome::Found(Version { value: 2, patches }));
        assert!(fits(&[create, patch, read(1)]));
        assert!(!fits(&[create, patch, read(2)]));
    }

    #[test]
    fn a_write_of_unknown_outcome_happens_once_or_not_at_all() {
        let create = made(0, 0, 1, Call::Create(1), stored(true));
        let unknown = made(0, 2, 3, Call::Upsert(2), Outcome::Unknown);
        let read = |at, value| made(1, at, at + 1, Call::Read, found(value));
        assert!(fits(&[create, unknown, read(4, 1), read(6, 2), read(8, 2)]));
        assert!(fits(&[create, unknown, read(4, 1), read(6, 1)]));
        assert!(!fits(&[create, unknown, read(4, 2), read(6, 1)]));
    }

    #[test]
    fn a_write_of_unknown_outcome_that_happens_after_a_later_one_is_noticed() {
        let create = made(0, 0, 1, Call::Create(1), stored(true));
        let unknown = made(0, 2, 3, Call::Upsert(2), Outcome::Unknown);
        let later = made(0, 4, 5, Call::Upsert(3), stored(false));
        assert!(fits(&[create, unknown, later, made(1, 6, 7, Call::Read, found(3))]));
        assert!(!fits(&[create, unknown, later, made(1, 6, 7, Call::Read, found(2))]));
    }

    #[test]
    fn an_item_that_is_live_after_it_was_gone_is_noticed() {
        let create = made(0, 0, 1, Call::Create(10), stored(true));
        let gone = made(1, 95, 96, Call::Read, Outcome::Missing);
        let seen = made(2, 97, 98, Call::Read, found(10));
        assert!(fits(&[create, gone]) && fits(&[create, seen]));
        assert!(!fits(&[create, gone, seen]));
        assert!(!fits(&[create, gone, made(2, 97, 98, Call::Replace(1), stored(false))]));
        let again = made(0, 96, 99, Call::Create(1), stored(true));
        assert!(fits(&[create, gone, again, made(2, 97, 98, Call::Read, found(1))]));
    }

    #[test]
    fn a_late_write_is_allowed_only_by_its_rule_and_only_if_it_began_before_the_end() {
        let create = made(0, 0, 1, Call::Create(10), stored(true));
        let gone = made(1, 95, 96, Call::Read, Outcome::Missing);
        let write = |began| made(2, began, 120, Call::Upsert(1), stored(false));
        let fits = |history: &[Made]| explain(history, &ends(), Rule::LateWrites).is_ok();
        let overlapping = made(2, 94, 99, Call::Upsert(1), stored(false));
        let seen = made(1, 97, 98, Call::Read, Outcome::Missing);
        let late = [create, gone, overlapping, seen, made(1, 100, 101, Call::Read, found(1))];
        assert!(fits(&late) && explain(&late, &ends(), Rule::Strict).is_err());
        assert!(!fits(&[create, gone, write(111)]));
        assert!(!fits(&[create, gone, made(2, 97, 98, Call::Read, found(10))]));
    }

    #[test]
    fn an_item_that_ends_too_early_or_too_late_is_noticed() {
        let create = made(0, 0, 1, Call::Create(10), stored(true));
        assert!(!fits(&[create, made(1, 50, 60, Call::Read, Outcome::Missing)]));
        assert!(!fits(&[create, made(1, 120, 130, Call::Read, found(10))]));
        assert!(!fits(&[create, made(1, 50, 60, Call::Upsert(1), stored(true))]));
    }
}
