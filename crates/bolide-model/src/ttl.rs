//! The rule of expiry; no other code decides when something expires.
//!
//! A container has a [`Policy`] (its default) and [`Floors`], which earlier policies raised. An item has a [`Stamp`], fixed when
//! it is written. A request at time *T* carries a [`Horizon`], one threshold per class, made of policy, floors and *T*:
//!
//! ```text
//!   stamp of a version          base           expired at T iff base <= horizon of the class
//!   inherited (no own ttl)      _ts            W(T) = max(W0, T - D where D >= 1)
//!   own (ttl = n)               _ts + n        X(T) = T where TTL is on, else X0
//!   never (ttl = -1)            -              never
//!
//!   settings change at T:       W0 := W(T)     X0 := X(T)     then D := the new default
//! ```
//!
//! Why this equals the definition over the whole history of settings (TTL-225): a period with default *n* that ends at *u* expires the inherited
//! versions with `_ts <= u - n`. All periods together expire those up to the largest of these numbers, which is what the floor keeps. A version with
//! its own ttl is expired by a period with TTL on that lasted up to its end, so all periods together expire those up to the last moment at which TTL
//! was on. Since *T* never falls, the horizons do not fall either: what has expired stays expired (TTL-226). A settings change costs O(1) and touches
//! no item (TTL-234).
//!
//! Units: whole Unix seconds, in signed 64 bits (TTL-210).
//!
//! Collections of the MongoDB API may also have date rules ([`dates`]), with deadlines in milliseconds. They are in the same settings and horizons; the
//! earliest end counts (TTL-280).

mod dates;

use crate::error::{Error, Result};
use crate::limits::TTL_SECONDS;
use crate::time::{UnixMillis, UnixSeconds};

pub use dates::{DateHorizon, DateRule, DateRules, Deadline, RuleId};

/// A container's default, for items without their own ttl (TTL-017…023, TTL-213).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Policy {
    /// TTL is off: nothing expires, own values are not interpreted (TTL-018, TTL-025). Absent or null on the wire.
    #[default]
    Off,
    /// TTL is on, and items expire only by their own ttl. −1 on the wire.
    OwnOnly,
    /// Items expire this many seconds after their last write, unless they have their own ttl. At least 1.
    After(u32),
}

impl Policy {
    /// Reads `defaultTtl`: `None` for absent or null, else its number (TTL-212, TTL-213).
    ///
    /// # Errors
    /// `BadRequest` for anything but −1 and 1…2147483647.
    pub fn from_number(default_ttl: Option<f64>) -> Result<Policy> {
        match default_ttl {
            None => Ok(Policy::Off),
            Some(number) => match Own::from_number(number) {
                Some(Own::Never) => Ok(Policy::OwnOnly),
                Some(Own::After(seconds)) => Ok(Policy::After(seconds)),
                Some(Own::Absent) | None => Err(invalid_ttl("defaultTtl", &number.to_string())),
            },
        }
    }

    /// The number for `defaultTtl`; `None` if the property is left out (TTL-214).
    pub fn to_number(self) -> Option<i64> {
        match self {
            Policy::Off => None,
            Policy::OwnOnly => Some(-1),
            Policy::After(seconds) => Some(i64::from(seconds)),
        }
    }

    /// Whether TTL is on, so that items' own values apply (TTL-025).
    pub fn is_on(self) -> bool {
        self != Policy::Off
    }
}

/// An item's own ttl, if it is usable (TTL-217).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Own {
    /// No root property `ttl`, or an unusable one: the container's default applies.
    #[default]
    Absent,
    /// −1: never expires (TTL-027).
    Never,
    /// Expires this many seconds after its last write. At least 1.
    After(u32),
}

impl Own {
    /// Reads a number: −1 or a whole number from 1 to 2147483647, in any spelling (TTL-034, TTL-212). `None` for any other.
    pub fn from_number(number: f64) -> Option<Own> {
        if number == -1.0 {
            Some(Own::Never)
        } else if number.fract() == 0.0 && (1.0..=TTL_SECONDS as f64).contains(&number) {
            Some(Own::After(number as u32))
        } else {
            None
        }
    }
}

/// The error for an unusable ttl, in the service's words (TTL-213, TTL-215). `value` is the value as JSON text.
pub fn invalid_ttl(property: &str, value: &str) -> Error {
    Error::bad_request(format!(
        "The input {property} '{value}' is invalid. Ensure to provide a nonzero positive integer less than or equal to \
         '{TTL_SECONDS}', or '-1' which means never expire."
    ))
}

/// Which threshold of the horizon applies to a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// No own value: the container's default applies.
    Inherited,
    /// An own value of at least one second.
    Own,
    /// Own value −1.
    Never,
}

/// The data of a version that decide its expiry, fixed when it is written: its class and base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Which threshold applies.
    pub class: Class,
    /// `_ts` for [`Class::Inherited`] and [`Class::Never`]; `_ts` + own ttl for [`Class::Own`].
    pub base: UnixSeconds,
}

impl Stamp {
    /// The stamp of a version written at `last_modified`.
    pub fn new(last_modified: UnixSeconds, own: Own) -> Stamp {
        match own {
            Own::Absent => Stamp {
                class: Class::Inherited,
                base: last_modified,
            },
            Own::Never => Stamp {
                class: Class::Never,
                base: last_modified,
            },
            Own::After(seconds) => Stamp {
                class: Class::Own,
                base: UnixSeconds(last_modified.0.saturating_add(i64::from(seconds))),
            },
        }
    }

    /// Tells whether a version is live: its base is above the horizon of its class.
    ///
    /// A base equal to the horizon is expired (TTL-045).
    pub fn is_live(self, horizon: &Horizon) -> bool {
        match self.class {
            Class::Inherited => self.base.0 > horizon.inherited,
            Class::Own => self.base.0 > horizon.own,
            Class::Never => true,
        }
    }

    /// The second at which a version ends, unless the policy changes. `None`: never (TTL-223).
    pub fn ends_at(self, policy: Policy) -> Option<i64> {
        match (self.class, policy) {
            (_, Policy::Off) | (Class::Never, _) | (Class::Inherited, Policy::OwnOnly) => None,
            (Class::Own, _) => Some(self.base.0),
            (Class::Inherited, Policy::After(seconds)) => Some(self.base.0.saturating_add(i64::from(seconds))),
        }
    }
}

/// The thresholds of one request: a version is expired if its base is at or below the one of its class, or one of its dates at or below that of its
/// rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Horizon {
    /// *W(T)*: compared with `_ts` of items without an own ttl.
    pub inherited: i64,
    /// *X(T)*: compared with `_ts` + ttl of items that have one.
    pub own: i64,
    /// Compared with the dates of versions that have deadlines.
    pub dates: DateHorizon,
}

impl Horizon {
    /// Tells whether a version is live: neither its stamp nor one of its deadlines has ended it.
    pub fn shows(&self, stamp: Stamp, deadlines: impl IntoIterator<Item = Deadline>) -> bool {
        stamp.is_live(self) && !deadlines.into_iter().any(|deadline| self.dates.has_ended(deadline))
    }
}

/// The thresholds of what earlier settings already expired: *W0* and *X0*. They only rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floors {
    /// *W0*: every inherited version with `_ts` up to this expired under earlier settings.
    pub inherited: i64,
    /// *X0*: every own version with `_ts` + ttl up to this expired under earlier settings.
    pub own: i64,
}

impl Default for Floors {
    /// For a new container: nothing has expired.
    fn default() -> Floors {
        Floors {
            inherited: i64::MIN,
            own: i64::MIN,
        }
    }
}

/// The part of a container's settings that matters for expiry: the current policy, and the floors of earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The current policy.
    pub policy: Policy,
    /// What earlier policies already expired.
    pub floors: Floors,
    /// The date rules, and what ended ones had already expired.
    pub dates: DateRules,
}

impl Settings {
    /// Settings of a new container.
    pub fn new(policy: Policy) -> Settings {
        Settings {
            policy,
            floors: Floors::default(),
            dates: DateRules::default(),
        }
    }

    /// The thresholds at server time `now`.
    pub fn horizon(&self, now: UnixMillis) -> Horizon {
        let (now, dates) = (now.seconds(), self.dates.horizon(now));
        let inherited = match self.policy {
            Policy::After(seconds) => self.floors.inherited.max(now.0.saturating_sub(i64::from(seconds))),
            Policy::Off | Policy::OwnOnly => self.floors.inherited,
        };
        let own = if self.policy.is_on() {
            self.floors.own.max(now.0)
        } else {
            self.floors.own
        };
        Horizon { inherited, own, dates }
    }

    /// When a version ends, unless the settings change: the earliest end by its stamp and its deadlines (TTL-280). `None`: never.
    pub fn ends_at(&self, stamp: Stamp, deadlines: impl IntoIterator<Item = Deadline>) -> Option<UnixMillis> {
        let by_stamp = stamp.ends_at(self.policy).map(|second| UnixSeconds(second).millis());
        let by_dates = deadlines
            .into_iter()
            .filter_map(|deadline| self.dates.ends_at(deadline));
        by_dates.chain(by_stamp).min()
    }

    /// Whether something ends versions: the policy, or a date rule in force.
    pub fn is_on(&self) -> bool {
        self.policy.is_on() || self.dates.iter().any(|rule| rule.after_seconds.is_some())
    }

    /// The settings after a change to `policy` at server time `now`: what has expired by then stays expired (TTL-226, TTL-227).
    ///
    /// Setting the current policy again starts no new period and changes nothing (TTL-231).
    #[must_use]
    pub fn change(&self, policy: Policy, now: UnixSeconds) -> Settings {
        if policy == self.policy {
            return self.clone();
        }
        let horizon = self.horizon(now.millis());
        Settings {
            policy,
            floors: Floors {
                inherited: horizon.inherited,
                own: horizon.own,
            },
            dates: self.dates.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
