//! Times of commits, in one order for all partitions of a store.

use super::{UnixMillis, UnixSeconds};

/// The time of a commit: its millisecond, and its place among the commits of that millisecond.
///
/// ```text
///   seconds(32) ‖ millisecond of the second(12) ‖ count within the millisecond(20)
/// ```
///
/// So the halves are the parts of a BSON timestamp. Times before 1970 and after 2106 count as the first and the last second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct CommitTime(pub u64);

/// Bits of the count within a millisecond.
const COUNT_BITS: u32 = 20;

impl CommitTime {
    /// The time before every commit of a millisecond.
    pub fn first_of(millis: UnixMillis) -> CommitTime {
        let seconds = millis.seconds().0;
        match u32::try_from(seconds) {
            Ok(seconds) => {
                let part = millis.0.rem_euclid(1000).cast_unsigned();
                CommitTime(u64::from(seconds) << 32 | part << COUNT_BITS)
            }
            Err(_) if seconds < 0 => CommitTime(0),
            Err(_) => CommitTime(u64::from(u32::MAX) << 32),
        }
    }

    /// The last time of a millisecond.
    pub fn last_of(millis: UnixMillis) -> CommitTime {
        CommitTime(CommitTime::first_of(millis).0 | ((1 << COUNT_BITS) - 1))
    }

    /// The time whose halves are these: those of a BSON timestamp.
    pub fn from_parts(seconds: u32, increment: u32) -> CommitTime {
        CommitTime(u64::from(seconds) << 32 | u64::from(increment))
    }

    /// The next time.
    #[must_use]
    pub fn next(self) -> CommitTime {
        CommitTime(self.0.saturating_add(1))
    }

    /// The time before this one.
    #[must_use]
    pub fn before(self) -> CommitTime {
        CommitTime(self.0.saturating_sub(1))
    }

    /// The second.
    pub fn seconds(self) -> UnixSeconds {
        UnixSeconds(i64::from((self.0 >> 32) as u32))
    }

    /// The millisecond.
    pub fn millis(self) -> UnixMillis {
        let part = i64::from((self.0 as u32) >> COUNT_BITS).min(999);
        UnixMillis(self.seconds().0 * 1000 + part)
    }

    /// What follows the seconds: the increment of a BSON timestamp.
    pub fn increment(self) -> u32 {
        self.0 as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_order_of_their_milliseconds() {
        let millis = [i64::MIN, -1, 0, 1, 999, 1000, 1_700_000_000_123, 1 << 60];
        for pair in millis.windows(2) {
            let (first, second) = (UnixMillis(pair[0]), UnixMillis(pair[1]));
            assert!(CommitTime::first_of(first) <= CommitTime::first_of(second), "{pair:?}");
        }
        assert!(CommitTime::last_of(UnixMillis(7)) < CommitTime::first_of(UnixMillis(8)));
    }

    #[test]
    fn a_time_gives_back_its_parts() {
        let time = CommitTime::first_of(UnixMillis(1_700_000_000_123)).next();
        assert_eq!(time.millis(), UnixMillis(1_700_000_000_123));
        assert_eq!(time.seconds(), UnixSeconds(1_700_000_000));
        assert_eq!(time.increment(), 123 << 20 | 1);
        assert_eq!(CommitTime::from_parts(1_700_000_000, time.increment()), time);
    }
}
