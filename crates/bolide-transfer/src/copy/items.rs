//! The items of one container.

use std::collections::VecDeque;

use super::Copy;
use crate::container::Container;
use crate::failure::{Failure, Result};
use crate::feed::{Feed, FeedPlace};
use crate::import::{check_fresh, imported, stored};
use crate::input::Position;
use crate::item::{Item, drop_links, same_content};
use crate::item_lines::ItemLines;
use crate::load::{self, Acknowledged, Incoming, OnConflict, Source, Target};

/// Items between two steps of the progress bar.
const PROGRESS_ITEMS: u64 = 100;
/// Items that are compared if the container was written already and `_ts` is kept.
const COMPARED_ITEMS: usize = 1_000;

/// Copies the items. Returns how many were written, and how many were there.
pub(super) fn copy(copy: &Copy<'_>, source: &Container, target: &Container) -> Result<(u64, u64)> {
    let mut items = Items {
        feed: Feed::new(copy.from, source, FeedPlace::start())?,
        page: VecDeque::new(),
        // With `skip` equal items need not be told from others.
        may_be_own: copy.options.on_conflict == OnConflict::Fail,
        before: copy.copied.items,
        copy,
    };
    if copy.options.keep_timestamps {
        return keep(copy, target, items);
    }
    let into = Target {
        client: copy.to,
        container: target,
        on_conflict: copy.options.on_conflict,
        file: None,
    };
    let (outcome, _, counts) = load::run(&into, &mut items, Acknowledged::none());
    outcome.map(|()| (counts.created + counts.replaced, counts.own + counts.skipped))
}

/// Copies items with their `_ts`, all at once.
fn keep(copy: &Copy<'_>, target: &Container, mut items: Items<'_>) -> Result<(u64, u64)> {
    if let Err(refusal) = check_fresh(copy.to, target) {
        // An earlier copy has written all items, or this is another container.
        for _ in 0..COMPARED_ITEMS {
            let Some(item) = items.item()? else {
                break;
            };
            let same = stored(copy.to, target, &item)?;
            let is_same = |there: Item| there.get("_ts") == item.get("_ts") && same_content(&there, &item);
            if !same.is_some_and(is_same) {
                return Err(refusal);
            }
        }
        let mut there = 0;
        items.feed.restart();
        items.page.clear();
        while items.item()?.is_some() {
            there += 1;
        }
        return Ok((0, there));
    }
    let mut lines = ItemLines::new(|| items.item());
    let answer = copy.to.import_lines(&target.name.path(), &mut lines);
    if let Some(failure) = lines.into_failure() {
        return Err(failure);
    }
    imported(copy.to, &answer?).map(|written| (written, 0))
}

/// The items of the source.
struct Items<'a> {
    feed: Feed<'a>,
    page: VecDeque<Item>,
    may_be_own: bool,
    /// Items of containers before this one.
    before: u64,
    copy: &'a Copy<'a>,
}

impl Items<'_> {
    /// The next item, without its links.
    fn item(&mut self) -> Result<Option<Item>> {
        loop {
            if let Some(mut item) = self.page.pop_front() {
                drop_links(&mut item);
                return Ok(Some(item));
            }
            match self.feed.next()? {
                Some(page) => self.page = page.into(),
                None => return Ok(None),
            }
        }
    }
}

impl Source for Items<'_> {
    fn next(&mut self) -> Result<Option<Incoming>> {
        let Some(mut item) = self.item()? else {
            return Ok(None);
        };
        item.shift_remove("_ts");
        let text = serde_json::to_vec(&item);
        let text = text.map_err(|error| Failure::new(format!("an item cannot be written: {error}")))?;
        Ok(Some(Incoming {
            item,
            text,
            start: Position::start(),
            end: Position::start(),
            may_be_own: self.may_be_own,
        }))
    }

    fn checkpoint(&mut self, done: Acknowledged, next: u64) -> Result<u64> {
        self.copy.progress.set(self.before + done.count);
        Ok(next + PROGRESS_ITEMS)
    }
}
