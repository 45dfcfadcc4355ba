//! What happened in a simulation, in order: requests of servers to the store, faults, calls of clients with their outcomes.

use parking_lot::Mutex;

/// The lines so far; see the module.
#[derive(Default)]
pub struct Trace(Mutex<Vec<String>>);

impl Trace {
    /// Adds what happened to somebody, at a time in milliseconds since the beginning.
    pub fn note(&self, ms: i64, who: &str, what: &str) {
        self.0.lock().push(format!("{ms:>6} {who} {what}"));
    }

    /// Returns the lines so far.
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}
