//! The order of commits as the replica set's clients know it: timestamps of its log.

use bolide_model::UnixMillis;
use bolide_model::time::CommitTime;
use bson::Timestamp;

/// The time of a commit as a timestamp of the replica set's log.
pub fn timestamp(time: CommitTime) -> Timestamp {
    Timestamp {
        time: u32::try_from(time.seconds().0).unwrap_or(u32::MAX),
        // Clients take an increment of 0 for none.
        increment: time.increment().max(1),
    }
}

/// Returns the millisecond of a timestamp.
pub fn millis(at: Timestamp) -> UnixMillis {
    CommitTime::from_parts(at.time, at.increment).millis()
}

#[cfg(test)]
mod tests;
