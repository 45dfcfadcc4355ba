//! Searches for an order of the calls, with the algorithm of Wing and Gong: of the calls that have no position yet, each that began before any
//! other of them ended may come next. Combinations of ordered calls and states that were tried before are not tried again.

use std::collections::HashSet;

use super::action::{Call, Outcome, State};

/// A call that has ended.
#[derive(Debug, Clone)]
pub struct Made {
    pub client: usize,
    /// Times of the start and the end, from a counter that all clients share.
    pub began: u64,
    pub ended: u64,
    /// Server time at the start and at the end, in seconds.
    pub seconds: (i64, i64),
    /// The log position in the answer, which clients use for their sessions; `None`: no answer came.
    pub lsn: Option<u64>,
    pub call: Call,
    pub outcome: Outcome,
}

impl Made {
    /// Returns what is to be ordered: the call, or for a feed the read of each version in it. That an item is missing tells nothing: it may have been
    /// written meanwhile, and then it comes later in the feed.
    pub fn parts(self) -> Vec<Made> {
        let (Call::Changes, Outcome::Listed(listed)) = (&self.call, &self.outcome) else {
            return vec![self];
        };
        let part = |version: &(String, String)| Made {
            call: Call::Change(version.0.clone()),
            outcome: Outcome::Listed(vec![version.clone()]),
            ..self.clone()
        };
        listed.iter().map(part).collect()
    }

    fn is_known(&self) -> bool {
        self.outcome != Outcome::Unknown
    }
}

/// Checks a history, one round of calls after the other. No call of one round overlaps a call of another.
pub struct Checker {
    /// The states that the partition can be in after all rounds so far.
    states: HashSet<State>,
    etags: HashSet<String>,
    tried: u64,
}

impl Default for Checker {
    fn default() -> Checker {
        Checker {
            states: HashSet::from([State::default()]),
            etags: HashSet::new(),
            tried: 0,
        }
    }
}

impl Checker {
    /// Returns the number of steps of the model that were tried.
    pub fn tried(&self) -> u64 {
        self.tried
    }

    /// Checks the calls of one round. A call of unknown outcome may come anywhere after its start, or nowhere.
    ///
    /// # Errors
    /// If no order of the calls explains what was seen, or two writes have the same etag.
    pub fn take(&mut self, calls: &[Made]) -> Result<(), String> {
        self.check_etags(calls)?;
        check_positions(calls)?;
        assert!(calls.len() <= 64, "placed calls are bits of a word");
        let mut waiting: Vec<(u64, State)> = self.states.drain().map(|state| (0, state)).collect();
        let mut tried: HashSet<(u64, State)> = waiting.iter().cloned().collect();
        let started = waiting.clone();
        let known = calls.iter().enumerate().filter(|(_, call)| call.is_known());
        let known = known.fold(0, |known, (at, _)| known | 1 << at);
        while let Some((placed, state)) = waiting.pop() {
            if placed & known == known {
                self.states.insert(state.clone());
            }
            for (at, next) in calls.iter().enumerate() {
                if placed & 1 << at != 0 || !may_come_next(calls, placed, next) {
                    continue;
                }
                for time in state.times(next.seconds, next.call.is_write()) {
                    self.tried += 1;
                    if let Some(after) = state.after(time, &next.call, &next.outcome) {
                        let step = (placed | 1 << at, after);
                        if tried.insert(step.clone()) {
                            waiting.push(step);
                        }
                    }
                }
            }
        }
        if self.states.is_empty() {
            let calls = calls.iter().map(|made| {
                let Made {
                    client,
                    began,
                    ended,
                    seconds: (first, last),
                    call,
                    outcome,
                    ..
                } = made;
                format!("  client {client} from {began} to {ended}, seconds {first} to {last}: {call:?} → {outcome:?}")
            });
            let calls: Vec<String> = calls.collect();
            return Err(format!(
                "no order of these calls\n{}\nfits any of {started:?}",
                calls.join("\n")
            ));
        }
        Ok(())
    }

    fn check_etags(&mut self, calls: &[Made]) -> Result<(), String> {
        use super::action::Seen;
        for call in calls {
            let seen = match &call.outcome {
                Outcome::Seen(seen) => std::slice::from_ref(seen),
                Outcome::Committed(seen) => seen,
                _ => &[],
            };
            let ran = match &call.outcome {
                Outcome::Ran(ran) => &ran[..],
                _ => &[],
            };
            for seen in seen.iter().chain(ran.iter().flatten()) {
                if let Seen::Written { etag, .. } = seen
                    && !self.etags.insert(etag.clone())
                {
                    return Err(format!("two writes have the etag {etag}"));
                }
            }
        }
        Ok(())
    }
}

/// Checks that a call that began after another was answered shows no earlier position than that answer.
fn check_positions(calls: &[Made]) -> Result<(), String> {
    for later in calls {
        let mut before = calls.iter().filter(|call| call.ended < later.began);
        if let Some(earlier) = before.find(|earlier| later.lsn.is_some() && earlier.lsn > later.lsn) {
            return Err(format!("a session goes back, from {earlier:?} to {later:?}"));
        }
    }
    Ok(())
}

/// Returns whether no call without a position ended before this one began.
fn may_come_next(calls: &[Made], placed: u64, next: &Made) -> bool {
    let mut others = calls.iter().enumerate().filter(|(at, _)| placed & 1 << at == 0);
    others.all(|(_, other)| other.ended > next.began || !other.is_known())
}

#[cfg(test)]
mod tests {
    use super::super::action::{Action, Body, Listing, Refused, Seen};
    use super::*;

    const A: Body = Body {
        id: "a",
        n: 1,
        u: 1,
        ttl: None,
    };

    fn made(began: u64, ended: u64, call: Call, outcome: Outcome) -> Made {
        Made {
            client: 0,
            began,
            ended,
            seconds: (100, 100),
            lsn: Some(0),
            call,
            outcome,
        }
    }

    fn written(etag: &str, n: i64, created: bool) -> Outcome {
        Outcome::Seen(Seen::Written {
            created,
            n,
            etag: etag.to_owned(),
        })
    }

    fn found(etag: &str, n: i64) -> Outcome {
        Outcome::Seen(Seen::Found {
            n,
            u: 1,
            etag: etag.to_owned(),
        })
    }

    fn create() -> Call {
        Call::One(Action::Create(A))
    }

    fn read() -> Call {
        Call::One(Action::Read("a"))
    }

    fn increment() -> Call {
        Call::One(Action::Increment("a", None))
    }

    fn fits(calls: &[Made]) -> bool {
        Checker::default().take(calls).is_ok()
    }

    #[test]
    fn overlapping_calls_may_come_in_any_order() {
        let missing = Outcome::Refused(Refused::NotFound);
        for seen in [found("1", 1), missing] {
            assert!(fits(&[
                made(0, 9, create(), written("1", 1, true)),
                made(1, 8, read(), seen),
            ]));
        }
    }

    #[test]
    fn a_stale_read_fits_no_order() {
        assert!(!fits(&[
            made(0, 1, create(), written("1", 1, true)),
            made(2, 3, read(), Outcome::Refused(Refused::NotFound)),
        ]));
        assert!(!fits(&[
            made(0, 1, create(), written("1", 1, true)),
            made(2, 3, increment(), written("2", 2, false)),
            made(4, 5, read(), found("1", 1)),
        ]));
    }

    #[test]
    fn a_lost_update_fits_no_order() {
        assert!(!fits(&[
            made(0, 1, create(), written("1", 1, true)),
            made(2, 9, increment(), written("2", 2, false)),
            made(3, 8, increment(), written("3", 2, false)),
        ]));
    }

    #[test]
    fn two_creates_and_two_holders_of_a_unique_value_fit_no_order() {
        let other = Call::One(Action::Create(Body { id: "b", ..A }));
        for second in [create(), other] {
            assert!(!fits(&[
                made(0, 9, create(), written("1", 1, true)),
                made(1, 8, second, written("2", 1, true)),
            ]));
        }
    }

    #[test]
    fn a_torn_batch_fits_no_order() {
        let batch = Call::Batch(vec![Action::Create(A), Action::Create(Body { id: "b", u: 2, ..A })]);
        let both = |etag: &str| match written(etag, 1, true) {
            Outcome::Seen(seen) => seen,
            other => panic!("{other:?}"),
        };
        let committed = Outcome::Committed(vec![both("1"), both("2")]);
        let listed = |ids: &[(&str, &str)]| {
            let pairs = ids.iter().map(|(id, etag)| ((*id).to_owned(), (*etag).to_owned()));
            Outcome::Listed(pairs.collect())
        };
        let beside = |seen| {
            fits(&[
                made(0, 9, batch.clone(), committed.clone()),
                made(1, 8, Call::List(Listing::Query), seen),
            ])
        };
        assert!(beside(listed(&[])));
        assert!(beside(listed(&[("a", "1"), ("b", "2")])));
        assert!(!beside(listed(&[("a", "1")])));
    }

    #[test]
    fn queries_see_what_reads_see() {
        let beside = |call: &Call, seen: Outcome| {
            fits(&[
                made(0, 1, create(), written("1", 1, true)),
                made(2, 3, call.clone(), seen),
            ])
        };
        let listed = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(id, etag)| ((*id).to_owned(), (*etag).to_owned()));
            Outcome::Listed(pairs.collect())
        };
        for count in [Call::Count, Call::Usage] {
            assert!(beside(&count, Outcome::Counted(1)) && !beside(&count, Outcome::Counted(0)));
        }
        let one = || listed(&[("a", "1")]);
        assert!(beside(&Call::Find(A.u), one()) && !beside(&Call::Find(A.u), listed(&[])));
        assert!(beside(&Call::Find(A.u + 1), listed(&[])) && !beside(&Call::Find(A.u + 1), one()));
        assert!(!beside(&Call::Find(A.u), listed(&[("a", "2")])));
    }

    #[test]
    fn without_a_default_nothing_ends_and_what_has_ended_stays_so() {
        let during = |began, seconds, call, seen| Made {
            seconds: (seconds, seconds),
            ..made(began, began + 1, call, seen)
        };
        let brief = Call::One(Action::Create(Body { ttl: Some(2), ..A }));
        let off = || Call::DefaultTtl(None);
        let history = |off_at: i64, seen| {
            fits(&[
                during(0, 100, brief.clone(), written("1", 1, true)),
                during(2, off_at, off(), Outcome::Defined),
                during(4, 110, read(), seen),
            ])
        };
        let missing = || Outcome::Refused(Refused::NotFound);
        assert!(history(101, found("1", 1)) && !history(101, missing()));
        assert!(history(102, missing()) && !history(102, found("1", 1)));
    }

    #[test]
    fn what_has_no_answer_may_have_happened_once_or_not_at_all() {
        let after = |etags: &[&str]| {
            let mut calls = vec![
                made(0, 1, create(), written("1", 1, true)),
                made(2, 3, increment(), Outcome::Unknown),
            ];
            for (at, etag) in (4..).step_by(2).zip(etags) {
                calls.push(made(at, at + 1, read(), found(etag, if *etag == "1" { 1 } else { 2 })));
            }
            fits(&calls)
        };
        assert!(after(&["1", "1"]) && after(&["2", "2"]) && after(&["1", "2"]));
        assert!(!after(&["2", "1"]) && !after(&["2", "3"]));
        assert!(!fits(&[
            made(4, 5, create(), Outcome::Unknown),
            made(2, 3, read(), found("1", 1)),
        ]));
    }

    #[test]
    fn what_has_ended_for_one_call_has_ended_for_all_later_ones() {
        let brief = Call::One(Action::Create(Body { ttl: Some(1), ..A }));
        let during = |began, seconds, call, seen| Made {
            seconds,
            ..made(began, began + 1, call, seen)
        };
        let history = |second: Made| {
            fits(&[
                made(0, 1, brief.clone(), written("1", 1, true)),
                during(2, (100, 101), read(), Outcome::Refused(Refused::NotFound)),
                second,
            ])
        };
        assert!(history(during(
            4,
            (100, 101),
            read(),
            Outcome::Refused(Refused::NotFound)
        )));
        assert!(!history(during(4, (100, 101), read(), found("1", 1))));
        assert!(!history(during(4, (100, 101), increment(), written("2", 2, false))));
    }

    #[test]
    fn an_item_of_the_second_before_is_gone_at_its_second() {
        let brief = Call::One(Action::Create(Body { ttl: Some(1), ..A }));
        let at = |second, seen| {
            let mut checker = Checker::default();
            checker
                .take(&[made(0, 1, brief.clone(), written("1", 1, true))])
                .expect("a create");
            let later = Made {
                seconds: (second, second),
                ..made(2, 3, read(), seen)
            };
            checker.take(&[later]).is_ok()
        };
        assert!(at(100, found("1", 1)) && !at(101, found("1", 1)));
        assert!(at(101, Outcome::Refused(Refused::NotFound)) && !at(100, Outcome::Refused(Refused::NotFound)));
    }
}
