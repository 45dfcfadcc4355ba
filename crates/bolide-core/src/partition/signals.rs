//! What all partitions of an account share: the wakeup of background tasks, and the order of commits.

use std::sync::Arc;

use super::Wakeup;
use super::commit_times::CommitTimes;

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Signals {
    pub wakeup: Arc<Wakeup>,
    pub times: Arc<CommitTimes>,
}
