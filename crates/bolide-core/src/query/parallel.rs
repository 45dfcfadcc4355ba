//! What a page gives to the threads that help its scan, and what it does with the items that they have left out.

use std::sync::Arc;
use std::time::Duration;

use bolide_query::{Environment, Item};

use super::counting::Counting;
use super::page::{PageRun, Scanned};
use crate::continuation::query::After;
use crate::executor::{Executor, Watch};
use crate::scan::{Helpers, ItemScan, ItemTest, LeftOut};

/// Threads that may help a scan, and when they must end.
#[derive(Clone)]
pub(super) struct ScanThreads {
    pub executor: Arc<Executor>,
    pub limit: Duration,
    /// See [`crate::IndexUse::ParallelScan`].
    pub is_forced: bool,
}

impl PageRun<'_> {
    /// Counts items that were left out. Returns whether the page ends with them.
    pub(super) fn pass_over(&self, execution: &mut Counting, others: LeftOut, scanned: &mut Scanned) -> bool {
        execution.enter(others.range);
        execution.leave_out(others.items, others.bytes);
        scanned.after = After::Key(others.last);
        !self.query.rescans() && self.watch.clock().now() >= self.until
    }

    /// Lets other threads help a scan of items, for a task with a thread of its own.
    pub(super) fn get_helpers(&self, walk: &mut ItemScan<'_>) {
        // The documents of an unsharded collection are all in one place.
        if self.watch.is_brief() || self.state.is_unsharded() {
            return;
        }
        let (query, environment) = (self.query.clone(), self.environment.clone());
        let test = move |watch: &Arc<Watch>| -> ItemTest {
            let environment = Environment {
                interrupts: Some(watch.interrupts()),
                ..environment.clone()
            };
            let mut filter = query.item_filter(environment);
            Box::new(move |item| {
                let filter = filter.as_mut()?;
                // An item that cannot be read is for the execution to refuse.
                let tested = Item::stored(item.document_json(), item).ok()?;
                let passes = filter.may_pass(&tested, item.record().number());
                (!passes).then(|| tested.bytes() as u64)
            })
        };
        walk.read_with(Helpers {
            executor: self.threads.executor.clone(),
            limit: self.threads.limit,
            ending: self.container.ending().clone(),
            watch: self.watch.clone(),
            definition: self.state.properties.partition_key.clone(),
            is_forced: self.threads.is_forced,
            test: Arc::new(test),
        });
    }
}
