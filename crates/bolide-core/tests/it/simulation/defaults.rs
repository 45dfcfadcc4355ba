//! The default ttls that may have been in force, and when: whoever removes a version must have had a reason (P6).

use crate::linear::action::{Call, Outcome};
use crate::linear::checker::Made;
use crate::linear::followers::Removed;

/// A time in which a default may have been in force, in seconds.
#[derive(Debug)]
struct Period {
    default: Option<i64>,
    from: i64,
    until: i64,
    /// When its call ended, as [`Made::ended`].
    ended: u64,
}

/// All defaults of a container so far. Changes that overlap, and those without an answer, count as long as they may be in force.
#[derive(Debug)]
pub struct Defaults(Vec<Period>);

impl Defaults {
    /// Only the default with which the container was created.
    pub fn of_creation(default: Option<i64>) -> Defaults {
        Defaults(vec![Period {
            default,
            from: i64::MIN,
            until: i64::MAX,
            ended: 0,
        }])
    }

    /// Adds the changes among the calls of a round.
    pub fn take(&mut self, calls: &[Made]) {
        let changes = calls.iter().filter(|made| made.outcome != Outcome::NotDefined);
        for made in changes.clone() {
            if let Call::DefaultTtl(default) = made.call {
                self.0.push(Period {
                    default,
                    from: made.seconds.0,
                    until: i64::MAX,
                    ended: made.ended,
                });
            }
        }
        // A change that was acknowledged ends all that had an answer, or none, before it began.
        for made in changes.filter(|made| made.outcome == Outcome::Defined) {
            for period in self.0.iter_mut().filter(|period| period.ended < made.began) {
                period.until = period.until.min(made.seconds.1);
            }
        }
    }

    /// Checks that a version had ended when it was removed: that there was a time in its life, and a default that may have been in force then, by which
    /// it had lived for its ttl.
    ///
    /// # Errors
    /// If not.
    pub fn check(&self, removed: &Removed) -> Result<(), String> {
        let has_ended = |period: &Period| {
            let ttl = period.default.map(|default| removed.own.unwrap_or(default));
            let end = ttl.filter(|ttl| *ttl != -1).map(|ttl| removed.written + ttl);
            period.from <= removed.removed && end.is_some_and(|end| period.until.min(removed.removed) >= end)
        };
        match self.0.iter().any(has_ended) {
            true => Ok(()),
            false => Err(format!(
                "P6: a version of {} was removed before it had ended: {removed:?}, by any of {:?}",
                removed.id, self.0
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(moments: (u64, u64), seconds: (i64, i64), default: Option<i64>, outcome: Outcome) -> Made {
        Made {
            client: 0,
            began: moments.0,
            ended: moments.1,
            seconds,
            lsn: None,
            call: Call::DefaultTtl(default),
            outcome,
        }
    }

    fn may_be_removed(calls: &[Made], written: i64, own: Option<i64>, at: i64) -> bool {
        let mut defaults = Defaults::of_creation(Some(-1));
        defaults.take(calls);
        let removed = Removed {
            id: "a".to_owned(),
            written,
            own,
            removed: at,
        };
        defaults.check(&removed).is_ok()
    }

    #[test]
    fn a_version_may_be_removed_from_the_second_of_its_end_on() {
        assert!(!may_be_removed(&[], 100, Some(3), 102) && may_be_removed(&[], 100, Some(3), 103));
        assert!(!may_be_removed(&[], 100, None, 1_000));
        let calls = [change((1, 2), (101, 101), Some(2), Outcome::Defined)];
        assert!(!may_be_removed(&calls, 100, None, 101) && may_be_removed(&calls, 100, None, 102));
        assert!(!may_be_removed(&calls, 90, None, 100) && may_be_removed(&calls, 90, None, 101));
    }

    #[test]
    fn an_earlier_default_counts_only_while_it_may_have_been_in_force() {
        let then = |at| {
            [
                change((1, 2), (100, 100), Some(2), Outcome::Defined),
                change((3, 4), (at, at), None, Outcome::Defined),
            ]
        };
        assert!(!may_be_removed(&then(101), 100, None, 200) && may_be_removed(&then(102), 100, None, 200));
        assert!(!may_be_removed(&then(101), 100, Some(2), 200));
        let unknown = [
            change((1, 2), (100, 100), Some(2), Outcome::Unknown),
            change((1, 4), (101, 101), None, Outcome::Defined),
        ];
        assert!(may_be_removed(&unknown, 100, None, 200), "they overlap");
    }
}
