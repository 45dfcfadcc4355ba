//! What all partitions of an account share: the wakeup of background tasks, the order of commits, and the memory of lists.

use std::sync::Arc;

use super::Wakeup;
use super::commit_times::CommitTimes;
use super::ranked_texts::ListMemory;

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Signals {
    pub wakeup: Arc<Wakeup>,
    pub times: Arc<CommitTimes>,
    pub list_memory: Arc<ListMemory>,
}
