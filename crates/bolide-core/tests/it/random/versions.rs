//! The all-versions feed of the programs (P7).
//!
//! A reader may get the ghosts of one purge in any order, all other events in the order of commit within their range. A page contains events of
//! one range; after a page that is not full, no event of that range is left, and after an empty page, none of any range.

use std::collections::HashSet;

use bolide_core::{ChangeKind, FeedStart, ItemChange, ReadChanges};
use bolide_model::ErrorKind;

use super::checks::{check_item, differ};
use super::faults::is_fault;
use super::feeds::scope;
use super::program::Where;
use super::runner::{Runner, Stepped, Stop};
use crate::model::{Event, Happened, Part};

/// An all-versions feed in progress.
#[derive(Debug, Clone)]
pub struct Watching {
    part: Part,
    /// The first event that may be shown, and which of the events after it were shown.
    from: usize,
    shown: HashSet<usize>,
    start: FeedStart,
}

impl Runner {
    pub(super) fn watching(&self, part: Where) -> Watching {
        Watching {
            part: self.part(part),
            from: self.model.events.len(),
            shown: HashSet::new(),
            start: FeedStart::Now,
        }
    }

    pub(super) async fn watch(&mut self, slot: usize, size: usize) -> Stepped {
        // The outcome of a commit with an engine error is found out too late to know its position in the feed.
        if self.options.kind.is_in_trouble() {
            return Ok("not watching".into());
        }
        let Some(mut watching) = self.watchings[slot].take() else {
            return Ok("not watching".into());
        };
        let ctx = self.begin().await?;
        let read = ReadChanges {
            scope: scope(watching.part),
            start: watching.start.clone(),
            max_items: Some(size),
        };
        let page = match self.account().all_versions(&ctx, self.container(), &read).await {
            Ok(page) => page,
            Err(refusal) if is_fault(&refusal.error) => return Err(Stop::Fault),
            Err(refusal) if refusal.error.kind == ErrorKind::RangeGone && !self.model.has(watching.part) => {
                return Ok("range gone".into());
            }
            Err(refusal) if refusal.error.kind == ErrorKind::BadRequest && !self.setup.keeps_history => {
                return Ok("no history".into());
            }
            Err(refusal) => return Err(Stop::Wrong(format!("all versions: {refusal:?}"))),
        };
        differ("a history is kept", self.setup.keeps_history, true)?;
        let mut range = None;
        for change in &page.value.changes {
            range = Some(self.take(&mut watching, change)?);
        }
        if page.value.changes.len() < size {
            let left = self.unseen(&watching).map(|(_, event)| event);
            let left: Vec<&Event> = left
                .filter(|event| range.is_none_or(|range| self.model.range_id_of(&event.version) == range))
                .collect();
            differ("events that no page shows", left.len(), 0).map_err(|error| format!("P7: {error}: {left:?}"))?;
        }
        self.charged(&page.cost);
        watching.start = FeedStart::After(page.value.continuation);
        self.watchings[slot] = Some(watching);
        // Two servers that purge at different times show different events (P4).
        Ok("watched".into())
    }

    /// Returns the events of a reader's part that it has not seen yet.
    fn unseen<'a>(&'a self, watching: &'a Watching) -> impl Iterator<Item = (usize, &'a Event)> {
        self.model
            .events
            .from(watching.from)
            .filter(|(at, event)| self.model.contains(watching.part, &event.version) && !watching.shown.contains(at))
    }

    /// Records a change that was shown; returns its range.
    fn take(&self, watching: &mut Watching, change: &ItemChange) -> Result<u32, String> {
        let happened = match change.kind {
            ChangeKind::Create => Happened::Created,
            ChangeKind::Replace => Happened::Replaced,
            ChangeKind::Delete => Happened::Deleted,
            ChangeKind::Expire => Happened::Purged,
        };
        let item = change.current.as_ref().or(change.previous.as_ref());
        let item = item.ok_or("an event without any version")?;
        let name = (happened, item.etag().to_string());
        let found = self.unseen(watching).find(|(_, event)| event.name() == name);
        let (at, event) =
            found.ok_or_else(|| format!("P7: {happened:?} {} never happened, or came twice", item.id()))?;
        let range = self.model.range_id_of(&event.version);
        let skipped = self
            .unseen(watching)
            .find(|(_, earlier)| earlier.turn < event.turn && self.model.range_id_of(&earlier.version) == range);
        if let Some((_, earlier)) = skipped {
            return Err(format!("{:?} comes before {:?}", event.name(), earlier.name()));
        }
        check_event(change, event)?;
        watching.shown.insert(at);
        Ok(range)
    }
}

fn check_event(change: &ItemChange, event: &Event) -> Result<(), String> {
    differ("crts", change.crts.0, event.at)?;
    let is_gone = matches!(event.happened, Happened::Deleted | Happened::Purged);
    differ("a new version", change.current.is_none(), is_gone)?;
    if let Some(current) = &change.current {
        check_item(current, &event.version)?;
        differ("lsn", change.lsn, current.lsn())?;
    }
    match (&change.previous, &event.before) {
        (Some(previous), Some(before)) => check_item(previous, before),
        (previous, before) => differ("a version before", previous.is_some(), before.is_some()),
    }
}
