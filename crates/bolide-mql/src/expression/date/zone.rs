//! Time zones: UTC, fixed offsets, and the zones of the IANA database.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};

use super::calendar::Civil;
use crate::error::{Error, Result};

/// A time zone.
#[derive(Debug, Clone)]
pub(in crate::expression) enum Zone {
    /// Seconds east of UTC.
    Fixed(i64),
    Named(TimeZone),
}

impl Zone {
    pub(in crate::expression) const UTC: Zone = Zone::Fixed(0);

    /// Reads a name such as `Europe/Berlin`, or an offset such as `+02`, `-0330` or `+05:30`.
    ///
    /// # Errors
    /// 40485: unknown.
    pub(in crate::expression) fn parse(name: &str) -> Result<Zone> {
        Zone::find(name).ok_or_else(|| Error::new(40485, format!("unrecognized time zone identifier: \"{name}\"")))
    }

    /// As [`parse`](Zone::parse); `None` for an unknown name.
    pub(in crate::expression) fn find(name: &str) -> Option<Zone> {
        if let Some(seconds) = offset(name) {
            return Some(Zone::Fixed(seconds));
        }
        match name {
            "UTC" | "GMT" => Some(Zone::UTC),
            _ => {
                let zone = TimeZone::get(name).ok()?;
                // Names have upper and lower case.
                let is_exact = zone.iana_name() == Some(name);
                (is_exact && !zone.is_unknown()).then_some(Zone::Named(zone))
            }
        }
    }

    /// Seconds east of UTC at an instant. Instants before and after the years that the database knows have the offset of its ends.
    pub(in crate::expression) fn offset_seconds(&self, millis: i64) -> i64 {
        match self {
            Zone::Fixed(seconds) => *seconds,
            Zone::Named(zone) => zone.to_offset(timestamp(millis)).seconds().into(),
        }
    }

    /// Milliseconds from the beginning of 1970 in the zone to an instant.
    pub(in crate::expression) fn local(&self, millis: i64) -> i64 {
        millis.saturating_add(self.offset_seconds(millis) * 1000)
    }

    /// The civil time in the zone at an instant.
    pub(in crate::expression) fn civil(&self, millis: i64) -> Civil {
        Civil::at(self.local(millis))
    }

    /// The instant at a civil time in milliseconds from the beginning of 1970 in the zone. A time that the clocks skip is taken as if they did not; one that
    /// they show twice is the first.
    pub(in crate::expression) fn instant(&self, local: i64) -> i64 {
        let offset = match self {
            Zone::Fixed(seconds) => *seconds,
            Zone::Named(zone) => {
                let civil = Offset::UTC.to_datetime(timestamp(local));
                match zone.to_ambiguous_timestamp(civil).compatible() {
                    Ok(instant) => return self.shifted_instant(local, instant),
                    Err(_) => self.offset_seconds(local),
                }
            }
        };
        local.saturating_sub(offset * 1000)
    }

    /// Instants beyond the database keep their distance to its end.
    fn shifted_instant(&self, local: i64, instant: Timestamp) -> i64 {
        let beyond = local.saturating_sub(timestamp(local).as_millisecond());
        instant.as_millisecond().saturating_add(beyond)
    }
}

/// The instant, or the nearest that the database knows.
fn timestamp(millis: i64) -> Timestamp {
    let end = if millis < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(millis).unwrap_or(end)
}

/// Seconds of an offset: a sign, two digits of hours, and optionally two of minutes, with or without a colon.
pub(super) fn offset(text: &str) -> Option<i64> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'+' => (1, text.get(1..)?),
        b'-' => (-1, text.get(1..)?),
        _ => return None,
    };
    let number = |digits: &str| {
        let is_number = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_digit());
        is_number.then(|| digits.parse::<i64>().ok()).flatten()
    };
    let minutes = match rest.len() {
        2 => 0,
        4 => number(rest.get(2..)?)?,
        5 if rest.get(2..3)? == ":" => number(rest.get(3..)?)?,
        _ => return None,
    };
    Some(sign * (number(rest.get(..2)?)? * 3600 + minutes * 60))
}
