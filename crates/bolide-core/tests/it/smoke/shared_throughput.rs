//! Throughput that the containers of a database share (TTL-264), and the refusals of users who exceed it.

use std::sync::Arc;

use bolide_core::{
    Account, AccountOptions, Container, CreateItem, Pacing, PacingSettings, PurgeMode, ReadFeed, RequestContext,
    Throughput,
};
use bolide_model::container::ContainerProperties;
use bolide_model::document::Document;
use bolide_model::time::{Clock, Monotonic};
use bolide_model::{ErrorKind, RequestUnits, UnixMillis};
use bolide_storage::memory::MemoryEngine;
use serde_json::json;

use crate::test_container::{background_options, definition, options, run_background};

/// A database of 400 units per second with two containers.
struct Shared {
    clock: Arc<Clock>,
    engine: Arc<MemoryEngine>,
    account: Arc<Account>,
    containers: Vec<Arc<Container>>,
}

impl Shared {
    async fn new(options: AccountOptions) -> Shared {
        let clock = Arc::new(Clock::virtual_at(UnixMillis(100_000)));
        let engine = Arc::new(MemoryEngine::new(clock.clone()));
        let account = Account::open(engine.clone(), options).await.unwrap();
        let ctx = account.begin().await.unwrap();
        let throughput = Some(Throughput::Manual { ru: 400 });
        let database = account.create_database(&ctx, "d", throughput).await.unwrap();
        let mut containers = Vec::new();
        for id in ["a", "b"] {
            let properties = ContainerProperties::from_json(&definition(&json!({"id": id, "defaultTtl": 1}))).unwrap();
            let created = account.create_container(&ctx, database.rid, properties, None).await;
            containers.push(created.unwrap());
        }
        Shared {
            clock,
            engine,
            account,
            containers,
        }
    }

    async fn begin(&self) -> RequestContext {
        self.account.begin().await.unwrap()
    }

    fn at(&self, ms: i64) {
        self.clock.set(UnixMillis(ms));
    }

    async fn fill(&self, container: usize, items: usize) {
        for n in 0..items {
            let document = json!({"id": n.to_string(), "pk": "p"}).to_string();
            let create = CreateItem {
                document: Document::parse(document.as_bytes()).unwrap(),
                partition_key: None,
            };
            let ctx = self.begin().await;
            let created = self
                .account
                .create_item(&ctx, &self.containers[container], create)
                .await;
            created.unwrap();
        }
    }

    async fn purge(&self, container: usize) -> u64 {
        let purged = self
            .account
            .purge(&self.containers[container], PurgeMode::Paced, None)
            .await;
        purged.unwrap()
    }

    fn consume(&self, container: usize, units: f64) -> Result<(), ErrorKind> {
        let consumed = self.account.consume(&self.containers[container], RequestUnits(units));
        consumed.map_err(|error| error.kind)
    }
}

/// Deleting an item below 1 KB costs 4.95 units, and the one that overdraws the credit is still removed: 81 for 400 units.
const FOR_400: u64 = 81;

#[tokio::test]
async fn the_purges_of_all_containers_spend_what_is_left_over_in_the_database() {
    // TTL-264
    let shared = Shared::new(options()).await;
    shared.fill(0, 100).await;
    shared.fill(1, 100).await;
    shared.at(110_000);
    assert_eq!(shared.purge(0).await, FOR_400);
    assert_eq!(shared.purge(1).await, 0, "nothing is left of this second");
    shared.at(112_000);
    assert_eq!(shared.purge(1).await, FOR_400);
    assert_eq!(shared.purge(0).await, 0);
}

#[tokio::test]
async fn users_of_one_container_take_from_the_purge_of_the_other() {
    // TTL-264
    let shared = Shared::new(options()).await;
    shared.fill(0, 100).await;
    shared.at(110_000);
    shared.consume(1, 350.5).unwrap();
    assert_eq!(
        shared
            .consume(0, 100.0)
            .err()
            .map(|kind| matches!(kind, ErrorKind::Throttled { .. })),
        Some(true)
    );
    shared.at(111_000);
    assert_eq!(shared.purge(0).await, 10, "49.5 units at 4.95");
}

#[tokio::test]
async fn the_budget_is_shared_after_a_restart_and_follows_the_offer() {
    let shared = Shared::new(options()).await;
    shared.fill(0, 200).await;
    let account = Account::open(shared.engine.clone(), options()).await.unwrap();
    let containers = account.all_containers();
    let shared = Shared {
        account,
        containers,
        ..shared
    };
    shared.at(110_000);
    assert_eq!(shared.purge(0).await, FOR_400);
    let offer = shared.account.list_offers()[0].rid;
    let more = Throughput::Manual { ru: 800 };
    let ctx = shared.begin().await;
    shared.account.replace_offer(&ctx, offer, more, None).await.unwrap();
    shared.at(112_000);
    assert_eq!(shared.purge(0).await, 200 - FOR_400);
}

#[tokio::test]
async fn a_container_with_a_budget_of_its_own_does_not_share() {
    let shared = Shared::new(options()).await;
    let own = PacingSettings {
        pacing: Pacing::Provisioned { ru: 400.0 },
        delete_ru: None,
        count_only_load: false,
    };
    shared.account.set_pacing(&shared.containers[1], own).await.unwrap();
    shared.fill(0, 100).await;
    shared.fill(1, 100).await;
    shared.at(110_000);
    assert_eq!((shared.purge(0).await, shared.purge(1).await), (FOR_400, FOR_400));
}

#[tokio::test]
async fn users_over_the_throughput_hear_when_the_next_second_begins() {
    let enforcing = AccountOptions {
        enforce_throughput: true,
        ..options()
    };
    let shared = Shared::new(enforcing).await;
    shared.at(110_250);
    shared.consume(0, 400.0).unwrap();
    let list = async |container: usize| {
        let ctx = shared.begin().await;
        let read = ReadFeed::default();
        let listed = shared
            .account
            .read_feed(&ctx, &shared.containers[container], &read)
            .await;
        listed.map(|_| ()).map_err(|refusal| refusal.error.kind)
    };
    let retry_after = std::time::Duration::from_millis(750);
    for container in [0, 1] {
        assert_eq!(list(container).await, Err(ErrorKind::Throttled { retry_after }));
    }
    shared.at(111_000);
    assert_eq!(list(1).await, Ok(()));
}

#[tokio::test]
async fn the_background_purge_gives_each_container_its_turn() {
    // TTL-264. The clock stands still, so that there is only one second's credit.
    let monotonic = Monotonic::manual();
    let shared = Shared::new(background_options(&monotonic)).await;
    shared.fill(0, 100).await;
    shared.fill(1, 100).await;
    shared.at(110_000);
    let purged = async |container: usize| {
        let report = shared.account.ttl_report(&shared.containers[container]).await;
        report.unwrap().purged_total
    };
    run_background(&monotonic, async || purged(0).await + purged(1).await >= FOR_400).await;
    let (one, other) = (purged(0).await, purged(1).await);
    assert_eq!(one + other, FOR_400);
    assert!(one.abs_diff(other) <= 10, "a batch is ten items: {one} and {other}");
    shared.account.close().await.unwrap();
}
