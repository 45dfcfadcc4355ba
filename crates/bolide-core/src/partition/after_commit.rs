//! What a decision asks for besides its rows: noted while it is made, done once by the worker when the commit is durable.
//!
//! So a decision changes nothing but the batch it is made for, and may be made any number of times.

use bolide_model::RequestUnits;

/// What is to be done after a commit. See the module.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct AfterCommit {
    /// The second before which nothing falls due, but for `expiry_due`: the purge has found the first end.
    pub(super) expiry_rests_until: Option<i64>,
    /// The earliest end of what the batch writes.
    pub(super) expiry_due: Option<i64>,
    /// The second before which nothing has to be counted, but for `expiry_due`.
    pub(super) count_rests_until: Option<i64>,
    /// The second before which nothing leaves the history, but for `trim_due`.
    pub(super) trim_rests_until: Option<i64>,
    /// The earliest second at which what the batch writes leaves the history.
    pub(super) trim_due: Option<i64>,
    /// What removing ghosts costs: spent by the purge, whoever removes them (TTL-255, TTL-259).
    pub(super) purge_spent: RequestUnits,
}

impl AfterCommit {
    /// What the batch writes falls due at a second.
    pub fn expect_expiry(&mut self, second: i64) {
        self.expiry_due = earlier(self.expiry_due, second);
    }

    /// Nothing that was there before falls due before a second.
    pub fn rest_expiry_until(&mut self, second: i64) {
        self.expiry_rests_until = Some(second);
    }

    /// Nothing that was there before has to be counted before a second.
    pub fn rest_count_until(&mut self, second: i64) {
        self.count_rests_until = Some(second);
    }

    /// What the batch writes leaves the history at a second.
    pub fn expect_trim(&mut self, second: i64) {
        self.trim_due = earlier(self.trim_due, second);
    }

    /// Nothing that was there before leaves the history before a second.
    pub fn rest_trim_until(&mut self, second: i64) {
        self.trim_rests_until = Some(second);
    }

    /// A ghost was removed at this cost.
    pub fn spend_on_purge(&mut self, cost: RequestUnits) {
        self.purge_spent += cost;
    }
}

fn earlier(known: Option<i64>, second: i64) -> Option<i64> {
    Some(known.map_or(second, |known| known.min(second)))
}
