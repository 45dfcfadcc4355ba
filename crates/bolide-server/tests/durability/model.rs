//! The possible states of one item, after acknowledged and unacknowledged writes.
//!
//! After an acknowledged write, an item is in one [`State`]. A write whose response was cut off by the kill may have happened or not: then the item
//! is in one of two states, until a read shows which. Times are whole seconds, as `_ts` and `ttl`.

use serde_json::Value;

/// An item, and its possible states.
#[derive(Debug, Clone)]
pub struct Item {
    pub id: String,
    pub partition_key: String,
    possible: Vec<State>,
    /// The position of the range's log when the item was last written or read.
    pub lsn: u64,
}

/// One possible state of an item.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    Absent,
    Stored(Version),
}

/// A version of an item.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// The document without system properties.
    pub body: Value,
    /// Seconds from `_ts` to its expiry; `None`: it does not expire.
    pub lifetime: Option<i64>,
    /// `_ts`: exact, or for an unacknowledged write the second before which it certainly was not written.
    pub written: Written,
}

/// When a version was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Written {
    At(i64),
    Since(i64),
}

impl Version {
    /// Whether it may still be live at `second` or later.
    fn may_live(&self, second: i64) -> bool {
        match (self.lifetime, self.written) {
            (None, _) | (Some(_), Written::Since(_)) => true,
            (Some(lifetime), Written::At(written)) => second < written + lifetime,
        }
    }

    /// Whether it may have expired at `second` or earlier.
    fn may_have_ended(&self, second: i64) -> bool {
        let (Written::At(written) | Written::Since(written)) = self.written;
        self.lifetime.is_some_and(|lifetime| second >= written + lifetime)
    }
}

impl State {
    /// Whether a request at `second` or later may find the item.
    pub fn may_live(&self, second: i64) -> bool {
        matches!(self, State::Stored(version) if version.may_live(second))
    }

    /// Whether a request at `second` or earlier may find no item.
    pub fn may_be_absent(&self, second: i64) -> bool {
        match self {
            State::Absent => true,
            State::Stored(version) => version.may_have_ended(second),
        }
    }

    fn is_seen_as(&self, seen: &Seen, from: i64, to: i64) -> bool {
        match (self, seen) {
            (_, Seen::Nothing) => self.may_be_absent(to),
            (State::Absent, Seen::Item { .. }) => false,
            (State::Stored(version), Seen::Item { body, last_modified }) => {
                let at_this_time = match version.written {
                    Written::At(written) => written == *last_modified,
                    Written::Since(since) => (since..=to).contains(last_modified),
                };
                let known = Version {
                    written: Written::At(*last_modified),
                    ..version.clone()
                };
                at_this_time && version.body == *body && known.may_live(from)
            }
        }
    }
}

/// The result of a read.
#[derive(Debug, Clone)]
pub enum Seen {
    Nothing,
    Item {
        /// Without system properties.
        body: Value,
        /// `_ts`.
        last_modified: i64,
    },
}

impl Item {
    /// An item that was never written.
    pub fn new(id: String, partition_key: String) -> Item {
        Item {
            id,
            partition_key,
            possible: vec![State::Absent],
            lsn: 0,
        }
    }

    /// The state, if there is only one.
    pub fn state(&self) -> &State {
        assert_eq!(
            self.possible.len(),
            1,
            "writers go on only after a read has effect what {} is",
            self.id
        );
        &self.possible[0]
    }

    /// Records an acknowledged write.
    pub fn becomes(&mut self, state: State) {
        self.possible = vec![state];
    }

    /// Records an unacknowledged write.
    pub fn may_become(&mut self, state: State) {
        self.possible.push(state);
    }

    /// Removes the states that contradict a read that ran between two times, in seconds.
    ///
    /// # Panics
    /// If no state agrees with the read.
    pub fn resolve(&mut self, seen: &Seen, from: i64, to: i64) {
        let fitting = self
            .possible
            .iter()
            .find(|state| state.is_seen_as(seen, from, to))
            .cloned();
        let Some(mut state) = fitting else {
            panic!(
                "{} was {seen:?} between {from} and {to}, and can only be {:?}",
                self.id, self.possible
            )
        };
        match (seen, &mut state) {
            (Seen::Item { last_modified, .. }, State::Stored(version)) => version.written = Written::At(*last_modified),
            // An expired item never comes back.
            _ => state = State::Absent,
        }
        self.possible = vec![state];
    }
}

mod tests {
    use serde_json::json;

    use super::*;

    fn stored(n: i64, lifetime: Option<i64>, written: Written) -> State {
        State::Stored(Version {
            body: json!({ "n": n }),
            lifetime,
            written,
        })
    }

    fn seen(n: i64, last_modified: i64) -> Seen {
        Seen::Item {
            body: json!({ "n": n }),
            last_modified,
        }
    }

    fn item(possible: &[State]) -> Item {
        Item {
            possible: possible.to_vec(),
            ..Item::new("a".into(), "p".into())
        }
    }

    fn accepts(possible: &[State], seen: &Seen, from: i64, to: i64) -> bool {
        let mut item = item(possible);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| item.resolve(seen, from, to))).is_ok()
    }

    #[test]
    fn an_acknowledged_version_must_be_found_as_it_was_written() {
        let possible = [stored(1, None, Written::At(100))];
        assert!(accepts(&possible, &seen(1, 100), 200, 200));
        assert!(!accepts(&possible, &seen(2, 100), 200, 200), "another body");
        assert!(!accepts(&possible, &seen(1, 101), 200, 200), "another _ts");
        assert!(!accepts(&possible, &Seen::Nothing, 200, 200), "lost");
    }

    #[test]
    fn an_unanswered_write_may_have_happened_or_not() {
        let possible = [stored(1, None, Written::At(100)), stored(2, None, Written::Since(150))];
        assert!(accepts(&possible, &seen(1, 100), 200, 200));
        assert!(accepts(&possible, &seen(2, 160), 200, 200));
        assert!(
            !accepts(&possible, &seen(2, 149), 200, 200),
            "written before it was asked for"
        );
        assert!(!accepts(&possible, &Seen::Nothing, 200, 200));
        assert!(accepts(
            &[State::Absent, stored(1, None, Written::Since(1))],
            &Seen::Nothing,
            200,
            200
        ));
    }

    #[test]
    fn a_lifetime_ends_at_its_second_and_not_before() {
        let possible = [stored(1, Some(2), Written::At(100))];
        assert!(
            accepts(&possible, &seen(1, 100), 101, 103),
            "the read may have been in 101"
        );
        assert!(
            accepts(&possible, &Seen::Nothing, 101, 102),
            "the read may have been in 102"
        );
        assert!(!accepts(&possible, &seen(1, 100), 102, 103));
        assert!(!accepts(&possible, &Seen::Nothing, 100, 101));
    }
}
