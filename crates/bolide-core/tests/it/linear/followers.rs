//! Readers of the change feed: one of its latest versions, one of all versions. Whenever no client writes, both know which items exist.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bolide_core::{
    Account, ChangeKind, Container, FeedStart, ItemChange, PurgeMode, ReadChanges, ReadFeed, ScanScope, StoredItem,
};
use bolide_model::Error;

use crate::test_container::shown;

/// The two readers; see the module.
pub struct Followers {
    latest: FeedStart,
    all: FeedStart,
    /// Etags by id from the latest-version feed: of existing items, and of items that have ended.
    seen: BTreeMap<String, String>,
    /// Etags by id from the all-versions feed: of the stored items.
    stored: BTreeMap<String, String>,
    /// The second of the newest change.
    newest: i64,
    /// The versions that the purge has removed, by their etags.
    removed: BTreeSet<String>,
    /// Those among them that nobody has taken yet.
    news: Vec<Removed>,
}

/// A version that has ended, as the all-versions feed shows its removal. Times are seconds.
#[derive(Debug)]
pub struct Removed {
    pub id: String,
    pub written: i64,
    /// The ttl of the item itself.
    pub own: Option<i64>,
    pub removed: i64,
}

impl Followers {
    pub async fn from_now(account: &Account, container: &Arc<Container>) -> Followers {
        let mut followers = Followers {
            latest: FeedStart::Beginning,
            all: FeedStart::Now,
            seen: BTreeMap::new(),
            stored: BTreeMap::new(),
            newest: i64::MIN,
            removed: BTreeSet::new(),
            news: Vec::new(),
        };
        // A start from now becomes a fixed position here: the next page begins at it.
        followers.follow(account, container).await.expect("pages");
        followers
    }

    /// Reads both feeds to their ends. Clients may be writing. After an error it goes on at the last page.
    ///
    /// # Errors
    /// Those of the account.
    pub async fn follow(&mut self, account: &Account, container: &Arc<Container>) -> Result<(), Error> {
        self.follow_latest(account, container).await?;
        self.follow_all(account, container).await
    }

    /// Reads both feeds to their ends. No client may be writing.
    pub async fn catch_up(&mut self, account: &Account, container: &Arc<Container>) {
        self.follow(account, container).await.expect("pages");
        for item in list(account, container).await {
            let (id, etag) = (item.id(), item.etag().to_string());
            assert_eq!(self.seen.get(id), Some(&etag), "the latest version of {id}");
            assert_eq!(self.stored.get(id), Some(&etag), "what all versions left of {id}");
        }
    }

    /// Purges everything, and asserts that the items left by the all-versions feed are those listed, and that each ghost has ended once (P7).
    pub async fn assert_complete(&mut self, account: &Account, container: &Arc<Container>) {
        let purged = account.purge(container, PurgeMode::Force, None).await;
        purged.expect("a purge");
        self.catch_up(account, container).await;
        let listed = list(account, container).await;
        let listed = listed
            .iter()
            .map(|item| (item.id().to_owned(), item.etag().to_string()));
        assert_eq!(self.stored, listed.collect());
        let report = account.ttl_report(container).await.expect("a report");
        assert_eq!(self.removed.len() as u64, report.purged_total, "P7");
    }

    /// Takes what has been removed since this was last called.
    pub fn take_removed(&mut self) -> Vec<Removed> {
        std::mem::take(&mut self.news)
    }

    async fn follow_latest(&mut self, account: &Account, container: &Arc<Container>) -> Result<(), Error> {
        loop {
            let ctx = account.begin().await?;
            let read = page(&self.latest);
            let page = account.change_feed(&ctx, container, &read).await;
            let page = page.map_err(|refusal| refusal.error)?.value;
            self.latest = FeedStart::After(page.continuation);
            if page.items.is_empty() {
                return Ok(());
            }
            let versions = page
                .items
                .iter()
                .map(|item| (item.id().to_owned(), item.etag().to_string()));
            self.seen.extend(versions);
        }
    }

    async fn follow_all(&mut self, account: &Account, container: &Arc<Container>) -> Result<(), Error> {
        loop {
            let ctx = account.begin().await?;
            let read = page(&self.all);
            let page = account.all_versions(&ctx, container, &read).await;
            let page = page.map_err(|refusal| refusal.error)?.value;
            self.all = FeedStart::After(page.continuation);
            if page.changes.is_empty() {
                return Ok(());
            }
            page.changes.iter().for_each(|change| self.take(change));
        }
    }

    fn take(&mut self, change: &ItemChange) {
        let etag = |item: &Option<StoredItem>| item.as_ref().map(|item| item.etag().to_string());
        let item = change.current.as_ref().or(change.previous.as_ref()).expect("a version");
        let before = match etag(&change.current) {
            Some(current) => self.stored.insert(item.id().to_owned(), current),
            None => self.stored.remove(item.id()),
        };
        assert_eq!(
            before,
            etag(&change.previous),
            "{:?} of {} follows another",
            change.kind,
            item.id()
        );
        // All items have one partition key, so the feed has them in the order of commits.
        assert!(
            change.crts.0 >= self.newest,
            "P3: time goes back, from {} to {change:?}",
            self.newest
        );
        self.newest = change.crts.0;
        if let Some(current) = &change.current {
            assert_eq!(
                current.last_modified(),
                change.crts,
                "P3: the time of a commit and of its item"
            );
        }
        if change.kind == ChangeKind::Expire {
            let is_first = self.removed.insert(item.etag().to_string());
            assert!(is_first, "P7: {} has ended twice", item.id());
            self.news.push(Removed {
                id: item.id().to_owned(),
                written: item.last_modified().0,
                own: shown(item).get("ttl").and_then(serde_json::Value::as_i64),
                removed: change.crts.0,
            });
        }
    }
}

/// Returns a request for a few changes at a time, so that there are many pages.
fn page(start: &FeedStart) -> ReadChanges {
    ReadChanges {
        scope: ScanScope::default(),
        start: start.clone(),
        max_items: Some(3),
    }
}

async fn list(account: &Account, container: &Arc<Container>) -> Vec<StoredItem> {
    let ctx = account.begin().await.expect("a clock");
    let read = ReadFeed::default();
    account
        .read_feed(&ctx, container, &read)
        .await
        .expect("a page")
        .value
        .items
}
