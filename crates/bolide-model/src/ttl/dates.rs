//! Rules that let dates inside a document end it: MongoDB's TTL indexes on date fields (mongo.md §18.1, §18.4).
//!
//! ```text
//!   a version has          Deadline { rule, date }     for each rule that applied to it when it was written
//!   a rule has             after E seconds, floor F    F: what the rule had already expired when it was last weakened
//!   a version ends at      date + E                    so at T it has ended if and only if date <= max(F, T - E)
//! ```
//!
//! What has ended stays ended when a rule is weakened or dropped. A version that is written after that must not be judged by that floor, though its
//! date may be as early. So after each change new versions get a new [`RuleId`]: versions that exist keep theirs, which has the floor, and both follow
//! later changes of the index. Ids are never used again.
//!
//! Units: milliseconds of Unix time, in signed 64 bits; sums saturate (mongo.md §19 no. 17).

use std::sync::Arc;

use crate::time::UnixMillis;

/// Identifies a date rule in stored versions and queues. Unique in a container, never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RuleId(pub u32);

/// The date that a rule found in a version when it was written: the earliest of its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline {
    /// The rule.
    pub rule: RuleId,
    /// The date.
    pub date: UnixMillis,
}

/// A date rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateRule {
    /// Its id in deadlines.
    pub id: RuleId,
    /// How long after its date a version ends, in seconds; `None` once the rule has ended.
    pub after_seconds: Option<u32>,
    /// Every version with a date up to this has ended under earlier settings of the rule. It only rises.
    pub floor: i64,
    /// When its time to live was last changed. For statistics.
    pub since: UnixMillis,
    /// The shortest of its earlier times to live, in seconds: by this the versions up to the floor had ended. For statistics.
    pub earlier_seconds: Option<u32>,
}

impl DateRule {
    /// A rule in force under which nothing has ended yet.
    pub fn new(id: RuleId, after_seconds: u32) -> DateRule {
        DateRule {
            id,
            after_seconds: Some(after_seconds),
            floor: i64::MIN,
            since: UnixMillis(i64::MIN),
            earlier_seconds: None,
        }
    }

    /// The latest date of the versions that have ended at `now`; both ends included.
    pub fn threshold(&self, now: UnixMillis) -> i64 {
        let current = self.after_seconds.map(|seconds| now.0.saturating_sub(millis(seconds)));
        current.map_or(self.floor, |current| current.max(self.floor))
    }

    /// When a version with this date ends, unless the rule changes; `None`: never. For one that earlier settings ended: the earliest instant at which
    /// they may have; for one that a change ended: the change. A later date never ends earlier.
    pub fn ends_at(&self, date: UnixMillis) -> Option<UnixMillis> {
        match self.earlier_seconds.filter(|_| date.0 <= self.floor) {
            Some(seconds) => Some(later(date, seconds)),
            None => Some(later(date, self.after_seconds?).max(self.since)),
        }
    }

    /// The rule after a change at `now`: what has ended by then stays ended. `None` ends the rule.
    #[must_use]
    pub fn change(self, after_seconds: Option<u32>, now: UnixMillis) -> DateRule {
        DateRule {
            after_seconds,
            floor: self.threshold(now),
            since: now,
            earlier_seconds: self.earlier_seconds.into_iter().chain(self.after_seconds).min(),
            ..self
        }
    }
}

fn later(date: UnixMillis, seconds: u32) -> UnixMillis {
    UnixMillis(date.0.saturating_add(millis(seconds)))
}

fn millis(seconds: u32) -> i64 {
    i64::from(seconds) * 1_000
}

/// The date rules of a container, those included that have ended; empty for most containers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DateRules(Option<Arc<[DateRule]>>);

impl DateRules {
    /// From rules in any order.
    pub fn new(mut rules: Vec<DateRule>) -> DateRules {
        rules.sort_unstable_by_key(|rule| rule.id);
        DateRules((!rules.is_empty()).then(|| rules.into()))
    }

    /// The rules in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &DateRule> {
        self.0.iter().flat_map(|rules| rules.iter())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The rule with an id.
    pub fn get(&self, id: RuleId) -> Option<&DateRule> {
        let rules = self.0.as_deref()?;
        let at = rules.binary_search_by_key(&id, |rule| rule.id).ok()?;
        rules.get(at)
    }

    /// When a version with this deadline ends, unless its rule changes; `None`: never, also by rules that the container does not have.
    pub fn ends_at(&self, deadline: Deadline) -> Option<UnixMillis> {
        self.get(deadline.rule)?.ends_at(deadline.date)
    }

    /// The thresholds at server time `now`.
    pub fn horizon(&self, now: UnixMillis) -> DateHorizon {
        let thresholds = |rules: &Arc<[DateRule]>| rules.iter().map(|rule| (rule.id, rule.threshold(now))).collect();
        DateHorizon(self.0.as_ref().map(thresholds))
    }
}

/// The thresholds of the date rules for one request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DateHorizon(Option<Arc<[(RuleId, i64)]>>);

impl DateHorizon {
    /// The latest date of the versions that a rule has ended; `None` for a rule that the container does not have.
    pub fn threshold(&self, rule: RuleId) -> Option<i64> {
        let thresholds = self.0.as_deref()?;
        let at = thresholds.binary_search_by_key(&rule, |(id, _)| *id).ok()?;
        thresholds.get(at).map(|(_, threshold)| *threshold)
    }

    /// Tells whether a version with this deadline has ended. A date equal to the threshold has (mongo.md §18.1).
    pub fn has_ended(&self, deadline: Deadline) -> bool {
        self.threshold(deadline.rule)
            .is_some_and(|threshold| deadline.date.0 <= threshold)
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests;
