//! Forgets the retryable writes of MongoDB sessions that were not used for long (`crate::documents::sessions`).

use std::sync::Arc;

use bolide_model::Result;
use bolide_storage::{Key, Scan, Space};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::PartitionContext;
use crate::background::job::{End, Job, JobKind, JobStep, StepLimits, StepReport};
use crate::documents::sessions::REMEMBERED;
use crate::format::keys;
use crate::partition::Partition;
use crate::partition::write_batch::{Decision, WriteBatch};

/// Maximum number of sessions that one step forgets.
const STEP: usize = 200;

/// See the module.
pub(in crate::background) struct ForgetSessions(PartitionContext);

impl ForgetSessions {
    pub fn new(context: PartitionContext) -> ForgetSessions {
        ForgetSessions(context)
    }
}

impl Job for ForgetSessions {
    fn kind(&self) -> JobKind {
        JobKind::ForgetSessions
    }

    fn next_due(&self) -> i64 {
        self.0.partition.next_forget()
    }

    fn step(&self, _: StepLimits) -> BoxFuture<'_, Result<StepReport>> {
        let forget = async |_, partition: Arc<Partition>| {
            let is_last = partition.background(forget_some).await?;
            let end = if is_last { End::Drained } else { End::Unfinished };
            Ok(JobStep::new(0, end))
        };
        self.0.step(forget).boxed()
    }
}

/// Forgets some sessions that were not used for long. Returns whether no more are to be forgotten now.
fn forget_some(batch: &mut WriteBatch<'_>) -> Decision<bool> {
    let (from, to) = keys::session_queue();
    let scan = Scan {
        space: Space::Meta,
        from,
        to,
        reverse: false,
        max_rows: STEP,
        max_bytes: usize::MAX,
        keys_only: true,
    };
    let page = batch.scan_raw(&[scan])?.pop().unwrap_or_default();
    let now = batch.seconds().0;
    for (key, _) in &page.rows {
        let Some((last_use, session)) = keys::session_of_use(key) else {
            continue;
        };
        let end = last_use.0.saturating_add(REMEMBERED);
        if end > now {
            batch.after.rest_forget_until(end);
            return Ok(true);
        }
        batch.delete(keys::session(session));
        batch.delete(Key::new(Space::Meta, key.clone()));
    }
    if !page.more {
        batch.after.rest_forget_until(i64::MAX);
    }
    Ok(!page.more)
}
