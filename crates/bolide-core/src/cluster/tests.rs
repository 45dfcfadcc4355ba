//! Two accounts over one engine: who is alive, who does the upkeep, and what the purge of one leaves to the reads of the other.

use std::sync::atomic::Ordering;

use bolide_model::Lsn;
use bolide_model::time::Clock;
use bolide_storage::Head;
use bolide_storage::memory::MemoryEngine;
use serde_json::json;

use super::*;
use crate::api::Account;
use crate::background::PurgeMode;
use crate::fixture::{Fixture, options_by_hand};
use crate::partition::AsOf;

/// Two accounts, each with its view of one container.
struct Both {
    monotonic: Monotonic,
    first: Fixture,
    second: Fixture,
}

impl Both {
    async fn with(more: serde_json::Value) -> Both {
        let monotonic = Monotonic::manual();
        let clock = Arc::new(Clock::virtual_at(UnixMillis(100_000)));
        let engine = Arc::new(MemoryEngine::shared(clock.clone()));
        let mut accounts = Vec::new();
        for _ in 0..2 {
            let options = options_by_hand(monotonic.clone());
            accounts.push(Account::open(engine.clone(), options).await.expect("an account"));
        }
        let [first, second] = accounts.try_into().unwrap_or_else(|_| panic!("two accounts"));
        let first = Fixture::in_account((clock, engine), first, more, None).await;
        second.refresh_catalog().await.expect("the catalog");
        let second = Fixture {
            clock: first.clock.clone(),
            engine: first.engine.clone(),
            container: second.all_containers().pop().expect("the container"),
            account: second,
        };
        let both = Both {
            monotonic,
            first,
            second,
        };
        both.beat().await;
        both
    }

    /// Both write a heartbeat and read the other's; the first knows the newest of the second.
    async fn beat(&self) {
        for fixture in [&self.first, &self.second, &self.first] {
            cluster(fixture).beat().await.expect("a heartbeat");
        }
    }

    fn nodes(&self) -> Vec<NodeId> {
        let nodes = cluster(&self.first).nodes();
        nodes.iter().map(|node| node.id).collect()
    }
}

fn cluster(fixture: &Fixture) -> Arc<Cluster> {
    fixture.account.cluster().expect("the engine is shared").clone()
}

async fn purge(fixture: &Fixture) -> Result<u64> {
    let purged = fixture.account.purge(&fixture.container, PurgeMode::Force, None);
    purged.await
}

/// TTL-293: what the other account's read of several steps still shows stays stored until that read has ended.
#[tokio::test]
async fn the_purge_of_one_leaves_what_a_read_of_the_other_may_show() {
    let both = Both::with(json!({"defaultTtl": 10})).await;
    both.first.upsert(json!({"id": "a"})).await;
    both.first.at(105);
    let pin = both.second.container.pin_reads_at(UnixMillis(105_000));
    both.first.at(120);
    cluster(&both.second).beat().await.expect("a heartbeat");
    cluster(&both.first).beat().await.expect("a heartbeat");
    let rid = both.first.container.rid();
    assert_eq!(cluster(&both.first).purge_bound(rid), UnixMillis(105_000));

    let waiting = tokio::spawn({
        let (account, container) = (both.first.account.clone(), both.first.container.clone());
        async move { account.purge(&container, PurgeMode::Force, None).await }
    });
    // It writes a heartbeat each time that it looks.
    let written = cluster(&both.first);
    let before = written.beating.lock().await.beat;
    while written.beating.lock().await.beat < before + 3 {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    assert_eq!(both.first.stored_ids().await, ["a"]);

    drop(pin);
    cluster(&both.second).beat().await.expect("a heartbeat");
    assert_eq!(waiting.await.expect("it ends"), Ok(1));
    assert_eq!(both.first.stored_ids().await, Vec::<String>::new());
}

/// A node that has joined after the others have looked reads at a later time than they purge.
#[tokio::test]
async fn the_purge_goes_no_further_than_the_last_look_at_the_others() {
    let both = Both::with(json!({"defaultTtl": 10})).await;
    let rid = both.first.container.rid();
    both.first.at(150);
    assert_eq!(cluster(&both.first).purge_bound(rid), UnixMillis(100_000));
    both.beat().await;
    assert_eq!(cluster(&both.first).purge_bound(rid), UnixMillis(150_000));
}

/// A reader that nobody hears any more holds nothing back, and ends its own reads before that.
#[tokio::test]
async fn a_node_without_heartbeats_is_dead_to_the_others_and_knows_it_earlier() {
    let both = Both::with(json!({"defaultTtl": 10})).await;
    let second = cluster(&both.second);
    let pin = both.second.container.pin_reads_at(UnixMillis(50_000));
    both.beat().await;
    assert_eq!(both.nodes().len(), 2);
    both.monotonic.advance(Duration::from_millis(4_001));
    assert_eq!(
        second.signals.heard.check().map_err(|error| error.kind),
        Err(ErrorKind::Unavailable)
    );
    cluster(&both.first).beat().await.expect("a heartbeat");
    assert_eq!(both.nodes().len(), 2, "it may have written one just before");
    let rid = both.first.container.rid();
    assert_eq!(cluster(&both.first).purge_bound(rid), UnixMillis(50_000));

    both.monotonic.advance(Duration::from_secs(1));
    cluster(&both.first).beat().await.expect("a heartbeat");
    assert_eq!(both.nodes(), [cluster(&both.first).id]);
    assert_eq!(cluster(&both.first).purge_bound(rid), UnixMillis(100_000));

    second.beat().await.expect("a heartbeat");
    let refused = second.signals.heard.check();
    assert!(refused.is_err(), "the read of before may lack what was purged");
    drop(pin);
    second.beat().await.expect("a heartbeat");
    assert_eq!(second.signals.heard.check(), Ok(()));
    cluster(&both.first).beat().await.expect("a heartbeat");
    assert_eq!(both.nodes().len(), 2, "it is back");
}

#[tokio::test]
async fn the_second_page_of_a_node_that_nobody_hears_is_refused() {
    let both = Both::with(json!({})).await;
    both.monotonic.advance(Duration::from_millis(4_001));
    let partition = both.second.partition();
    let (state, now) = (both.second.state(), UnixMillis(100_000));
    let settings = &state.settings;
    let first = partition.snapshot(ReadRequest::default, AsOf::Time { settings, now });
    assert!(first.await.is_ok(), "one step needs nobody");
    let horizon = settings.horizon(now);
    let later = partition.snapshot(ReadRequest::default, AsOf::Horizon(&horizon)).await;
    assert_eq!(
        later.map(|_| ()).map_err(|error| error.kind),
        Err(ErrorKind::Unavailable)
    );
}

/// One of the nodes does the upkeep of a partition, and it learns of what the other has written.
#[tokio::test]
async fn the_owner_of_a_partition_learns_what_the_other_node_has_written() {
    let both = Both::with(json!({"defaultTtl": -1})).await;
    let id = both.first.partition().id;
    let (owner, other) = match cluster(&both.first).owns(id) {
        true => (&both.first, &both.second),
        false => (&both.second, &both.first),
    };
    assert!(!cluster(other).owns(id));
    assert_eq!(purge(owner).await, Ok(0));
    assert_eq!(owner.partition().next_expiry(), i64::MAX, "nothing expires");
    other.upsert(json!({"id": "a", "ttl": 5})).await;
    assert_eq!(owner.partition().next_expiry(), i64::MAX, "it does not know yet");
    cluster(owner).follow_heads(false).await;
    assert!(owner.partition().next_expiry() <= 105);
}

#[tokio::test]
async fn a_node_that_leaves_is_gone_at_once_and_one_that_died_is_forgotten_after_a_minute() {
    let both = Both::with(json!({})).await;
    cluster(&both.second).leave().await;
    cluster(&both.first).beat().await.expect("a heartbeat");
    assert_eq!(both.nodes(), [cluster(&both.first).id]);

    cluster(&both.second).beat().await.expect("a heartbeat");
    let rows = || async { both.first.rows(PartitionId::NODES, bolide_storage::Space::Meta).await };
    let is_row = |(key, _): &(bytes::Bytes, bytes::Bytes)| heartbeat::node_of(key).is_some();
    cluster(&both.first).beat().await.expect("a heartbeat");
    both.monotonic.advance(Duration::from_secs(60));
    cluster(&both.first).beat().await.expect("a heartbeat");
    assert_eq!(rows().await.iter().filter(|row| is_row(row)).count(), 2);
    both.monotonic.advance(Duration::from_secs(1));
    cluster(&both.first).beat().await.expect("a heartbeat");
    assert_eq!(rows().await.iter().filter(|row| is_row(row)).count(), 1);
}

/// A server that has seen commits which the store has lost serves nothing more, whatever is written afterwards.
#[tokio::test]
async fn a_server_that_has_seen_what_the_store_has_lost_refuses_all_requests() {
    let both = Both::with(json!({})).await;
    both.first.upsert(json!({"id": "a"})).await;
    assert_eq!(both.second.listed().await, ["a"]);
    let partition = both.first.partition();
    let (id, head) = (partition.id, partition.head().await.expect("a head"));
    both.first.engine.remove(id).await.expect("it is there");
    let earlier = Head { lsn: Lsn(0), ..head };
    both.first.engine.create(id, earlier).await.expect("a restored backup");
    let unavailable = Err(ErrorKind::Unavailable);
    assert_eq!(both.first.try_upsert(json!({"id": "b"})).await.map(drop), unavailable);
    let begun = both.first.account.begin().await;
    assert_eq!(begun.map(drop).map_err(|error| error.kind), unavailable);
    let begun = both.first.account.begin_admin().await;
    assert_eq!(begun.map(drop).map_err(|error| error.kind), unavailable);
}

/// A write that found a version just before its end would be visible only after another server has called it gone: it waits, and is judged again.
#[tokio::test]
async fn a_write_of_a_version_that_is_about_to_end_waits_for_its_end() {
    let both = Arc::new(Both::with(json!({"defaultTtl": 10})).await);
    let signals = &cluster(&both.first).signals;
    signals.waits_out.store(true, Ordering::Relaxed);
    for id in ["replaced", "upserted"] {
        both.first.upsert(json!({"id": id})).await;
    }
    both.first.clock.set(UnixMillis(109_700));
    let early = both
        .first
        .try_replace("replaced", json!({"id": "replaced", "n": 1}))
        .await;
    assert!(early.is_ok(), "there is enough time");
    both.first.clock.set(UnixMillis(109_800));
    let upserting = tokio::spawn({
        let both = both.clone();
        async move { both.first.try_upsert(json!({"id": "upserted", "n": 2})).await }
    });
    // Others do not wait for it.
    both.first.upsert(json!({"id": "other"})).await;
    assert!(!upserting.is_finished());
    both.first.clock.set(UnixMillis(110_000));
    let before = both.first.listed().await;
    assert_eq!(
        before,
        ["other", "replaced"],
        "it has ended, and nothing has taken its place"
    );
    upserting.await.expect("it ends").expect("a new item");
    assert_eq!(both.first.listed().await, ["other", "replaced", "upserted"]);

    both.first.clock.set(UnixMillis(118_900));
    let replacing = tokio::spawn({
        let both = both.clone();
        async move { both.first.try_replace("replaced", json!({"id": "replaced"})).await }
    });
    both.first.upsert(json!({"id": "third"})).await;
    both.first.clock.set(UnixMillis(119_000));
    let replaced = replacing.await.expect("it ends");
    assert_eq!(replaced.map(drop), Err(ErrorKind::NotFound));
}

/// It waits for one end, not for the ends of all that it writes, one after the other.
#[tokio::test]
async fn a_write_waits_no_longer_than_the_last_time_of_one_version() {
    let both = Both::with(json!({"defaultTtl": 10})).await;
    both.first.upsert(json!({"id": "a"})).await;
    let signals = &cluster(&both.first).signals;
    signals.waits_out.store(true, Ordering::Relaxed);
    // The clock stands still, so the version does not end.
    both.first.clock.set(UnixMillis(109_750));
    let replaced = both.first.try_replace("a", json!({"id": "a", "n": 1})).await;
    assert!(replaced.is_ok());
}

/// What would be written to a partition that was made again would be lost once the row is read again.
#[tokio::test]
async fn a_partition_that_another_split_has_replaced_meanwhile_is_not_made_again() {
    let both = Both::with(json!({})).await;
    let first = &both.first;
    first.account.split(&first.container, None).await.expect("a split");
    let catalog = &cluster(&both.second).catalog;
    let rid = both.second.container.rid();
    let row = catalog.container_row(rid).await.expect("a row").expect("it is there");
    // Before the second has opened the new partitions, one of them is split again.
    first.account.split(&first.container, None).await.expect("a split");
    let opened = catalog.open_layout(&row, None).await;
    assert!(opened.is_err_and(|error| error.is_of_changed_settings()));
    let newest = catalog.container_row(rid).await.expect("a row").expect("it is there");
    let replaced = row.placements.iter().map(|placement| placement.id);
    let is_gone = |id: &PartitionId| newest.placements.iter().all(|placement| placement.id != *id);
    let replaced = replaced.filter(is_gone).collect::<Vec<_>>();
    assert_eq!(replaced.len(), 1);
    let read = first.engine.read(replaced[0], ReadRequest::default()).await;
    assert!(read.is_err(), "it is not there");
}
