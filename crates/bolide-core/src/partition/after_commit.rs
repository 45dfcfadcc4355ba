//! The effects of a decision besides its rows: noted while the decision is made, applied once by the worker when the commit is durable.
//!
//! So a decision changes only the write batch that it is made for, and may be made any number of times.

use bolide_model::{RequestUnits, UnixMillis};

/// What is to be done after a commit. See the module.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct AfterCommit {
    /// The second before which no older item expires: the purge has found the first expiry.
    pub(super) expiry_rests_until: Option<i64>,
    /// The earliest second at which an item of the write batch expires.
    pub(super) expiry_due: Option<i64>,
    /// The second before which no older item must be counted as a ghost.
    pub(super) count_rests_until: Option<i64>,
    /// The second before which no older entry leaves the history.
    pub(super) trim_rests_until: Option<i64>,
    /// The earliest second at which an entry of the write batch leaves the history.
    pub(super) trim_due: Option<i64>,
    /// The second before which no older session is to be forgotten.
    pub(super) forget_rests_until: Option<i64>,
    /// The earliest second at which a session of the write batch is to be forgotten.
    pub(super) forget_due: Option<i64>,
    /// The time before which no older document ends whose end is to be told.
    pub(super) endings_rest_until: Option<UnixMillis>,
    /// The earliest time at which a document of the write batch ends.
    pub(super) ending_due: Option<UnixMillis>,
    /// The cost of removing ghosts, charged to the purge whoever removes them (TTL-255, TTL-259).
    pub(super) purge_spent: RequestUnits,
}

impl AfterCommit {
    /// Records that an item of the write batch expires at a second.
    pub fn expect_expiry(&mut self, second: i64) {
        self.expiry_due = earlier(self.expiry_due, second);
    }

    /// Records that no older item expires before a second.
    pub fn rest_expiry_until(&mut self, second: i64) {
        self.expiry_rests_until = Some(second);
    }

    /// Records that no older item must be counted as a ghost before a second.
    pub fn rest_count_until(&mut self, second: i64) {
        self.count_rests_until = Some(second);
    }

    /// Records that an entry of the write batch leaves the history at a second.
    pub fn expect_trim(&mut self, second: i64) {
        self.trim_due = earlier(self.trim_due, second);
    }

    /// Records that no older entry leaves the history before a second.
    pub fn rest_trim_until(&mut self, second: i64) {
        self.trim_rests_until = Some(second);
    }

    /// Records that a session of the write batch is to be forgotten at a second.
    pub fn expect_forget(&mut self, second: i64) {
        self.forget_due = earlier(self.forget_due, second);
    }

    /// Records that no older session is to be forgotten before a second.
    pub fn rest_forget_until(&mut self, second: i64) {
        self.forget_rests_until = Some(second);
    }

    /// Records that no older document ends before a time.
    pub fn rest_endings_until(&mut self, at: UnixMillis) {
        self.endings_rest_until = Some(at);
    }

    /// Records that a document of the write batch ends at a time.
    pub fn expect_ending(&mut self, at: UnixMillis) {
        self.ending_due = Some(self.ending_due.map_or(at, |known| known.min(at)));
    }

    /// Records the cost of a ghost that was removed.
    pub fn spend_on_purge(&mut self, cost: RequestUnits) {
        self.purge_spent += cost;
    }
}

fn earlier(known: Option<i64>, second: i64) -> Option<i64> {
    Some(known.map_or(second, |known| known.min(second)))
}
