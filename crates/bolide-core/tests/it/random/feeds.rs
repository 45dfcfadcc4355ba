//! Feeds of the programs: pages, and the positions between them.

use bolide_core::{
    ChangePage, ChargedResult, FeedPage, FeedStart, ReadChanges, ReadFeed, RequestContext, Response, ScanScope,
    StoredItem,
};
use bolide_model::{ErrorKind, UnixSeconds};

use super::checks::differ;
use super::faults::is_fault;
use super::program::{Since, Where};
use super::runner::{Runner, Stepped, Stop};
use crate::model::{ChangesPlace, Listed, Part};
use crate::test_container::scope_of;

/// A read feed in progress.
#[derive(Debug, Clone)]
pub struct Listing {
    pub(super) part: Part,
    pub(super) done: Listed,
    pub(super) continuation: Option<String>,
}

/// A change feed in progress.
#[derive(Debug, Clone)]
pub struct Following {
    pub(super) part: Part,
    pub(super) place: ChangesPlace,
    pub(super) start: FeedStart,
}

impl Runner {
    pub(super) async fn list(&mut self, slot: usize, size: usize) -> Stepped {
        let Some(listing) = self.listings[slot].clone() else {
            return Ok("not listing".into());
        };
        let ctx = self.begin().await?;
        let page = match self.list_page(&ctx, &listing, size).await {
            Err(refusal) if is_fault(&refusal.error) => return Err(Stop::Fault),
            Err(refusal) if refusal.error.kind == ErrorKind::RangeGone && !self.model.has(listing.part) => {
                self.listings[slot] = None;
                return Ok("range gone".into());
            }
            Err(refusal) => return Err(Stop::Wrong(format!("list: {refusal:?}"))),
            Ok(page) => page,
        };
        let want = self.model.listed(listing.part, &listing.done);
        let shown = self.model.items_of_page(&want, size);
        self.same_items(&page.value.items, &want[..shown])?;
        differ(
            "more items follow",
            page.value.continuation.is_some(),
            want.len() > shown,
        )?;
        let mut done = listing.done;
        self.model.note_listed(&want, shown, &mut done);
        let answered = format!("{:?} {:?}", ids_of(&page.value.items), page.cost.charge);
        self.charged(&page.cost);
        self.listings[slot] = page.value.continuation.map(|continuation| Listing {
            part: listing.part,
            done,
            continuation: Some(continuation),
        });
        Ok(answered)
    }

    async fn list_page(&self, ctx: &RequestContext, listing: &Listing, size: usize) -> ChargedResult<FeedPage> {
        let read = ReadFeed {
            scope: scope(listing.part),
            max_items: Some(size),
            continuation: listing.continuation.clone(),
        };
        self.account().read_feed(ctx, self.container(), &read).await
    }

    pub(super) fn following(&self, part: Where, since: Since) -> Following {
        let (place, start) = match since {
            Since::Beginning => (ChangesPlace::new(), FeedStart::Beginning),
            Since::Now => (self.model.end_of_changes(), FeedStart::Now),
            Since::Ago(seconds) => {
                let second = self.model.now() - seconds;
                (self.model.changes_since(second), FeedStart::Time(UnixSeconds(second)))
            }
        };
        Following {
            part: self.part(part),
            place,
            start,
        }
    }

    pub(super) async fn follow(&mut self, slot: usize, size: usize) -> Stepped {
        let Some(mut following) = self.followings[slot].take() else {
            return Ok("not following".into());
        };
        let page = match self.changes_page(&following, size).await {
            // The meaning of these depends on the time of the request, so a retry could differ.
            Err(Stop::Fault) if matches!(following.start, FeedStart::Now | FeedStart::Time(_)) => {
                return Err(Stop::Fault);
            }
            Err(Stop::Fault) => {
                self.followings[slot] = Some(following);
                return Err(Stop::Fault);
            }
            Err(wrong) => return Err(wrong),
            Ok(None) => return Ok("range gone".into()),
            Ok(Some(page)) => page,
        };
        let want = self.model.changed(following.part, &following.place);
        let want = &want[..self.model.page_of(&want, size)];
        self.same_items(&page.value.items, want)?;
        for version in want {
            let range = self.model.range_id_of(version);
            following.place.insert(range, version.order);
        }
        let answered = format!("{:?} {:?}", ids_of(&page.value.items), page.cost.charge);
        self.charged(&page.cost);
        following.start = FeedStart::After(page.value.continuation);
        self.followings[slot] = Some(following);
        Ok(answered)
    }

    /// Returns a page of changes; `None` if the range was split, as in the model.
    async fn changes_page(&mut self, following: &Following, size: usize) -> Result<Option<Response<ChangePage>>, Stop> {
        let ctx = self.begin().await?;
        let read = ReadChanges {
            scope: scope(following.part),
            start: following.start.clone(),
            max_items: Some(size),
        };
        match self.account().change_feed(&ctx, self.container(), &read).await {
            Ok(page) => Ok(Some(page)),
            Err(refusal) if is_fault(&refusal.error) => Err(Stop::Fault),
            Err(refusal) if refusal.error.kind == ErrorKind::RangeGone && !self.model.has(following.part) => Ok(None),
            Err(refusal) => Err(Stop::Wrong(format!("changes: {refusal:?}"))),
        }
    }
}

pub(super) fn scope(part: Part) -> ScanScope {
    match part {
        Part::All => ScanScope::default(),
        Part::Key(pk) => scope_of(pk),
        Part::Range(id) => ScanScope {
            range: Some(id),
            ..ScanScope::default()
        },
    }
}

fn ids_of(items: &[StoredItem]) -> Vec<String> {
    items
        .iter()
        .map(|item| format!("{}@{}", item.id(), item.last_modified().0))
        .collect()
}
