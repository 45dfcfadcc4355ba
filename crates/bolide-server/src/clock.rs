//! The clock for the timeouts of connections.

use std::time::Instant;

use bolide_model::time::Monotonic;

/// A monotonic clock that also counts from the start of the server, so that a time fits in an atomic number.
#[derive(Debug, Clone)]
pub struct ServerClock {
    monotonic: Monotonic,
    started: Instant,
}

impl ServerClock {
    /// Starts counting now.
    pub fn new(monotonic: Monotonic) -> ServerClock {
        let started = monotonic.now();
        ServerClock { monotonic, started }
    }

    /// The monotonic clock.
    pub fn monotonic(&self) -> &Monotonic {
        &self.monotonic
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        self.monotonic.now()
    }

    /// Nanoseconds since the start of the server.
    pub fn nanos(&self) -> u64 {
        u64::try_from(self.monotonic.since(self.started).as_nanos()).unwrap_or(u64::MAX)
    }
}
