//! What all partitions of an account share: the wakeup of background tasks, the order of commits, the memory of lists, and what other servers have to do with them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::Wakeup;
use super::commit_times::CommitTimes;
use super::heard::{Conflicts, Heard};
use super::lost_history::LostHistory;
use super::ranked_texts::ListMemory;

/// See the module.
#[derive(Clone, Default)]
pub(crate) struct Signals {
    pub wakeup: Arc<Wakeup>,
    pub times: Arc<CommitTimes>,
    pub list_memory: Arc<ListMemory>,
    pub heard: Arc<Heard>,
    pub conflicts: Arc<Conflicts>,
    pub lost: Arc<LostHistory>,
    /// Whether writes wait until a version has ended that is about to: other servers may call it gone before they see the commit.
    pub waits_out: Arc<AtomicBool>,
}
