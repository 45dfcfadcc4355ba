//! Documents that were seen to have ended in a millisecond, over a crash with the wall clock set back inside the same second (TTL-203).

use bolide_model::epk::Epk;
use std::sync::Arc;

use bolide_core::{
    Account, CollectionDefinition, Container, DocumentScan, FeedStart, ItemTarget, QueryItems, ReadChanges, ReadFeed,
    ReadItem, ScanScope,
};
use bolide_model::UnixMillis;
use bolide_model::time::Clock;
use bolide_model::ttl::Policy;
use bolide_mql::bson::RawDocumentBuf;
use bolide_mql::index::{IndexDefinition, ParseOptions};
use tempfile::TempDir;

use super::fixture::{date_index, dated, document_id};
use crate::server_time::{copy, start};
use crate::test_container::key;

/// 100 ms after the beginning of a second.
const BEGUN: UnixMillis = UnixMillis(1_700_000_000_100);

struct Machine {
    wall: Arc<Clock>,
    home: TempDir,
    account: Arc<Account>,
    collection: Arc<Container>,
}

impl Machine {
    /// A server with a document that ends 600 ms later.
    async fn new() -> Machine {
        let wall = Arc::new(Clock::virtual_at(BEGUN));
        let home = tempfile::tempdir().unwrap();
        let account = start(&wall, home.path()).await;
        let id_index = IndexDefinition::id_index(None).unwrap();
        let mut definition = CollectionDefinition::new(RawDocumentBuf::new(), None, id_index);
        let index = IndexDefinition::parse(&date_index(0), &ParseOptions::default()).unwrap();
        definition.add_index(index, Some(0), false);
        let collection = account
            .create_collection("db", "c", definition, Policy::Off)
            .await
            .unwrap();
        let drafted = collection.collection().unwrap();
        let document = dated(1, BEGUN.0 + 600);
        let draft = bolide_core::DocumentDraft::new(document, &drafted, account.draft_options()).unwrap();
        let ctx = account.begin().await.unwrap();
        let write = account.write_document(&ctx, (&collection, Epk::start()), move |batch| batch.insert(&draft));
        write.await.unwrap().value.unwrap();
        Machine {
            wall,
            home,
            account,
            collection,
        }
    }

    async fn crash(&mut self, step_ms: i64) {
        let left = tempfile::tempdir().unwrap();
        copy(self.home.path(), left.path());
        self.wall.advance(step_ms);
        let account = start(&self.wall, left.path()).await;
        self.collection = account.find_collection("db", "c").unwrap();
        self.account.close().await.unwrap();
        (self.account, self.home) = (account, left);
    }

    async fn sees(&self, way: Way) -> bool {
        let (account, collection) = (&self.account, &self.collection);
        let ctx = account.begin().await.unwrap();
        let scope = account.read_scope(&ctx);
        match way {
            Way::Scan => {
                let page = DocumentScan::default().next_page(&scope, collection).await;
                !page.unwrap().unwrap().documents.is_empty()
            }
            Way::Find => scope
                .find(collection, &Epk::start(), &document_id(1))
                .await
                .unwrap()
                .is_some(),
            Way::Write => {
                let find = |batch: &mut bolide_core::DocumentBatch<'_, '_>| Ok(batch.find(&document_id(1))?.is_some());
                account
                    .write_document(&ctx, (collection, Epk::start()), find)
                    .await
                    .unwrap()
                    .value
            }
            Way::ReadItem => {
                let read = ReadItem {
                    target: ItemTarget::Id(r#"{"$numberInt":"1"}"#.to_owned()),
                    partition_key: key("p"),
                    if_none_match: None,
                };
                account.read_item(&ctx, collection, &read).await.is_ok()
            }
            Way::ReadFeed => {
                let page = account.read_feed(&ctx, collection, &ReadFeed::default()).await;
                !page.unwrap().value.items.is_empty()
            }
            Way::ChangeFeed => {
                let read = ReadChanges {
                    scope: ScanScope::default(),
                    start: FeedStart::Beginning,
                    max_items: None,
                };
                let page = account.change_feed(&ctx, collection, &read).await;
                !page.unwrap().value.items.is_empty()
            }
            Way::Query => {
                let query = QueryItems {
                    text: "SELECT * FROM c".to_owned(),
                    ..QueryItems::default()
                };
                account.query(&ctx, collection, &query).await.unwrap().value.count > 0
            }
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Way {
    Scan,
    Find,
    Write,
    ReadItem,
    ReadFeed,
    ChangeFeed,
    Query,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_seen_ended_stays_so_over_a_crash_and_a_clock_set_back_within_the_second() {
    for way in [
        Way::Scan,
        Way::Find,
        Way::Write,
        Way::ReadItem,
        Way::ReadFeed,
        Way::ChangeFeed,
        Way::Query,
    ] {
        let mut machine = Machine::new().await;
        assert!(machine.sees(way).await, "{way:?}");
        machine.wall.advance(600);
        assert!(!machine.sees(way).await, "{way:?}");
        machine.crash(-500).await;
        assert!(!machine.sees(way).await, "{way:?}: it came back");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_is_made_durable_in_advance_by_no_more_than_a_moment() {
    let mut machine = Machine::new().await;
    for _ in 0..5 {
        machine.wall.advance(730);
        machine.sees(Way::Scan).await;
        machine.crash(0).await;
        let ahead = machine.account.server_time().0 - machine.wall.now().0;
        assert!((0..=200).contains(&ahead), "ahead={ahead}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_background_keeps_milliseconds_durable_for_the_requests_that_follow() {
    let machine = Machine::new().await;
    for _ in 0..100 {
        machine.sees(Way::Scan).await;
        let left = tempfile::tempdir().unwrap();
        copy(machine.home.path(), left.path());
        let account = start(&machine.wall, left.path()).await;
        if account.server_time().0 - machine.wall.now().0 == 200 {
            return;
        }
    }
    panic!("no time was made durable in advance");
}
