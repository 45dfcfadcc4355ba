//! Databases, containers and offers.

use bolide_core::{CreateItem, OfferResource, Pacing, PacingSettings, Throughput};
use bolide_model::ErrorKind;
use bolide_model::document::Document;
use serde_json::json;

use crate::test_container::{TestContainer, definition};

#[tokio::test]
async fn databases_and_containers_are_there_after_a_restart() {
    let test = TestContainer::with_ttl(10).await;
    let ctx = test.begin().await;
    test.account
        .create_database(&ctx, "e", Some(Throughput::Manual { ru: 400 }))
        .await
        .unwrap();
    let again = test.account.create_database(&ctx, "e", None).await;
    assert_eq!(again.unwrap_err().kind, ErrorKind::Conflict);
    let test = test.reopen().await;
    let names: Vec<String> = test
        .account
        .list_databases()
        .into_iter()
        .map(|database| database.id)
        .collect();
    assert_eq!(names, ["d", "e"]);
    assert_eq!(test.container.properties().id, "c");
    assert_eq!(test.container.properties().policy.to_number(), Some(10));
}

/// Runs a request until it first waits, and drops it there, as when its client disconnects.
async fn begin_and_leave<T>(request: impl Future<Output = T>) {
    tokio::select! {
        biased;
        _ = request => panic!("it is done before anybody could leave"),
        () = std::future::ready(()) => {}
    }
}

/// A database that was committed while its client disconnected was unknown until the next start, and the next database took its place.
#[tokio::test]
async fn a_change_is_carried_out_although_its_client_leaves() {
    let test = TestContainer::with(json!({})).await;
    let (account, ctx) = (&test.account, test.begin().await);
    begin_and_leave(account.create_database(&ctx, "left", None)).await;
    account.create_database(&ctx, "e", None).await.unwrap();
    let names = |test: &TestContainer| -> Vec<String> {
        let databases = test.account.list_databases().into_iter();
        databases.map(|database| database.id).collect()
    };
    let known = names(&test);
    assert_eq!(known[..2], ["d", "left"]);
    assert_eq!(names(&test.reopen().await), known, "memory has what is stored");
}

#[tokio::test]
async fn a_container_of_the_same_name_starts_anew() {
    // TTL-271
    let test = TestContainer::with_ttl(10).await;
    test.create(json!({"id": "a"})).await.unwrap();
    test.at(110);
    let ctx = test.begin().await;
    let (rid, database) = (test.container.rid(), test.container.info().database_rid);
    test.account.delete_container(&ctx, rid, None).await.unwrap();
    assert_eq!(test.read("a").await.err(), Some(ErrorKind::NotFound));
    let purge = test
        .account
        .purge(&test.container, bolide_core::PurgeMode::Force, None)
        .await;
    assert_eq!(purge.unwrap_err().kind, ErrorKind::NotFound);
    let properties = (*test.container.properties()).clone();
    let anew = test
        .account
        .create_container(&ctx, database, properties, None)
        .await
        .unwrap();
    assert_ne!(anew.rid(), rid);
    let report = test.account.ttl_report(&anew).await.unwrap();
    assert_eq!((report.backlog_items, report.purged_total), (0, 0));
}

#[tokio::test]
async fn a_container_can_be_deleted_while_it_is_purged_and_written() {
    // TTL-271
    let test = TestContainer::with_ttl(10).await;
    for n in 0..300 {
        test.create(json!({"id": n.to_string()})).await.unwrap();
    }
    test.at(110);
    let ctx = test.begin().await;
    let document = Document::parse(br#"{"id":"late","pk":"p"}"#).unwrap();
    let create = CreateItem {
        document,
        partition_key: None,
    };
    let (purged, written, deleted) = tokio::join!(
        test.account.purge(&test.container, bolide_core::PurgeMode::Force, None),
        test.account.create_item(&ctx, &test.container, create),
        test.account.delete_container(&ctx, test.container.rid(), None),
    );
    deleted.unwrap();
    assert!(purged.map_or_else(|error| error.kind == ErrorKind::NotFound, |purged| purged == 300));
    assert!(written.map_or_else(|refusal| refusal.error.kind == ErrorKind::NotFound, |_| true));
    assert!(test.account.all_containers().is_empty());
}

#[tokio::test]
async fn deleting_a_database_takes_its_containers_along() {
    let test = TestContainer::with(json!({})).await;
    let ctx = test.begin().await;
    test.account
        .delete_database(&ctx, test.container.info().database_rid, None)
        .await
        .unwrap();
    assert!(test.account.all_containers().is_empty());
    assert_eq!(test.create(json!({"id": "a"})).await.err(), Some(ErrorKind::NotFound));
}

#[tokio::test]
async fn a_definition_is_replaced_only_at_the_version_that_is_known() {
    let test = TestContainer::with_ttl(10).await;
    let ctx = test.begin().await;
    let stale = test.container.info().etag.to_string();
    test.define(json!({"defaultTtl": 20})).await.unwrap();
    let sent = definition(&json!({}));
    let replaced = test
        .account
        .replace_container(&ctx, &test.container, &sent, Some(&stale))
        .await;
    assert_eq!(replaced.unwrap_err().kind, ErrorKind::PreconditionFailed);
    assert_eq!(test.container.properties().policy.to_number(), Some(20));
}

#[tokio::test]
async fn an_offer_is_replaced_and_more_throughput_brings_more_ranges() {
    let test = TestContainer::with_throughput(json!({}), Some(Throughput::Manual { ru: 400 })).await;
    for n in 0..10 {
        test.create(json!({"id": n.to_string(), "pk": n.to_string()}))
            .await
            .unwrap();
    }
    let ctx = test.begin().await;
    let offer = test.account.list_offers().pop().unwrap();
    assert_eq!(offer.resource, OfferResource::Container(test.container.rid()));
    let bad = test
        .account
        .replace_offer(&ctx, offer.rid, Throughput::Manual { ru: 450 }, None)
        .await;
    assert_eq!(bad.unwrap_err().kind, ErrorKind::BadRequest);
    // As many as are needed if each serves 10,000 request units: Python's `test_incremental_merge_handles_split_partitions`.
    let mut before = Vec::new();
    for (ru, count, kept) in [(11_000, 2, 0), (20_000, 2, 2), (25_000, 3, 1), (400, 3, 3)] {
        let throughput = Throughput::Manual { ru };
        let replaced = test.account.replace_offer(&ctx, offer.rid, throughput, None).await;
        assert_eq!(replaced.unwrap().throughput, throughput);
        let ranges: Vec<u32> = test.container.ranges().ranges.iter().map(|range| range.id).collect();
        assert_eq!(ranges.len(), count, "{ru}");
        let same = ranges.iter().filter(|range| before.contains(*range)).count();
        assert_eq!(same, kept, "{ru}");
        before = ranges;
    }
    assert_eq!(test.count().await, 10);
    test.assert_sound().await;
}

#[tokio::test]
async fn pacing_survives_a_restart() {
    let test = TestContainer::with_ttl(10).await;
    let pacing = PacingSettings {
        pacing: Pacing::Provisioned { ru: 400.0 },
        delete_ru: Some(10.0),
        count_only_load: true,
    };
    test.account.set_pacing(&test.container, pacing).await.unwrap();
    test.at(150);
    let test = test.reopen().await;
    let credit = async || test.account.ttl_report(&test.container).await.unwrap().credit;
    assert_eq!(credit().await, Some(0.0), "credit is 0 at a start (TTL-259)");
    test.at(151);
    assert_eq!(credit().await, Some(400.0));
}
