//! The queues of date rules, as the purge reads them.

use bolide_model::Result;
use bolide_model::ttl::{DateRules, Horizon};
use bolide_storage::Page;

use super::{Position, QueueHead, SCAN_BYTES};
use crate::format::keys::DeadlinePosition;
use crate::format::queues;
use crate::partition::write_batch::{Decision, WriteBatch};

/// Maximum number of rows of all rules together that one step reads, unless there are very many rules.
const ROWS: usize = 2_000;
/// Least number of rows of each rule.
const LEAST_ROWS: usize = 4;

/// Reads the next entries of the queue of each rule; ended rules have queues, too.
pub(super) fn read(batch: &mut WriteBatch<'_>, rules: &DateRules, items: usize) -> Decision<Vec<Page>> {
    let count = rules.iter().count();
    if count == 0 {
        return Ok(Vec::new());
    }
    let rows = items.saturating_add(1).min((ROWS / count).max(LEAST_ROWS));
    let scans: Vec<_> = rules
        .iter()
        .map(|rule| queues::scan_dates(batch.state.date_purge.of(rule.id), None, rows, SCAN_BYTES))
        .collect();
    batch.scan_raw(&scans)
}

impl QueueHead {
    /// Returns the due entries of a page of a rule's queue.
    pub(super) fn of_dates(page: &Page, horizon: &Horizon, rules: &DateRules) -> Result<QueueHead> {
        let mut queue = QueueHead::empty();
        for entry in queues::date_entries(page) {
            let entry = entry?;
            let deadline = entry.position.deadline;
            if !horizon.dates.has_ended(deadline) {
                // Rounded up: nothing is removed before it has ended.
                let end = rules.ends_at(deadline).map(|end| end.seconds_up().0);
                let resume = Position::Date(DeadlinePosition::after_ended(deadline.rule, &horizon.dates));
                return Ok(queue.ends_before(resume, end));
            }
            let after = Position::Date(entry.position.next());
            queue.take(entry.item_key, entry.size, entry.position.version, after);
        }
        queue.is_complete = !page.more;
        Ok(queue)
    }
}
