//! Changes of the default ttl (TTL-225…234): the worked examples W1–W8, through the API.

use std::sync::Arc;

use bolide_model::ErrorKind;
use bolide_storage::Space;
use serde_json::{Value, json};

use crate::test_container::TestContainer;

async fn set(test: &TestContainer, default_ttl: Value) {
    test.define(json!({"defaultTtl": default_ttl})).await.unwrap();
}

/// Asserts that an item is visible until the second before `end`, and not from `end` on.
async fn assert_ends(test: &TestContainer, id: &str, end: i64) {
    test.at(end - 1);
    assert!(test.has(id).await, "{id} at {}", end - 1);
    test.at(end);
    assert!(!test.has(id).await, "{id} at {end}");
}

async fn create_at(test: &TestContainer, second: i64, body: Value) {
    test.at(second);
    test.create(body).await.unwrap();
}

#[tokio::test]
async fn w1_a_longer_default_saves_only_what_has_not_expired() {
    let test = TestContainer::with_ttl(10).await;
    create_at(&test, 100, json!({"id": "a"})).await;
    create_at(&test, 106, json!({"id": "b"})).await;
    test.at(115);
    set(&test, json!(1000)).await;
    assert!(!test.has("a").await);
    assert_ends(&test, "b", 1106).await;
}

#[tokio::test]
async fn w2_switched_off_and_on_again_brings_nothing_back() {
    let test = TestContainer::with_ttl(10).await;
    create_at(&test, 100, json!({"id": "a"})).await;
    create_at(&test, 106, json!({"id": "b"})).await;
    test.at(115);
    set(&test, Value::Null).await;
    test.at(199);
    assert_eq!(test.listed().await, ["b"]);
    test.at(200);
    assert!(test.has("b").await);
    set(&test, json!(10)).await;
    assert_eq!(test.listed().await, Vec::<String>::new());
}

#[tokio::test]
async fn w3_w4_an_own_value_counts_on_while_ttl_is_off() {
    let test = TestContainer::with_ttl(-1).await;
    create_at(&test, 100, json!({"id": "c", "ttl": 20})).await;
    test.at(119);
    set(&test, Value::Null).await;
    test.at(124);
    assert!(test.has("c").await);
    test.at(125);
    set(&test, json!(-1)).await;
    assert!(!test.has("c").await);

    let test = TestContainer::with_ttl(-1).await;
    create_at(&test, 100, json!({"id": "c", "ttl": 20})).await;
    test.at(120);
    set(&test, Value::Null).await;
    assert!(!test.has("c").await, "expired in the second of the change (TTL-227)");
}

#[tokio::test]
async fn w5_a_dip_catches_what_is_old_enough() {
    let test = TestContainer::with_ttl(1000).await;
    create_at(&test, 100, json!({"id": "a"})).await;
    create_at(&test, 145, json!({"id": "b"})).await;
    test.at(150);
    set(&test, json!(10)).await;
    test.at(151);
    set(&test, json!(1000)).await;
    assert_eq!(test.listed().await, ["b"]);
    assert_ends(&test, "b", 1145).await;
}

#[tokio::test]
async fn w6_a_change_that_lasts_no_second_is_a_change() {
    let test = TestContainer::with(json!({})).await;
    create_at(&test, 100, json!({"id": "a"})).await;
    test.at(200);
    set(&test, json!(10)).await;
    set(&test, Value::Null).await;
    assert!(!test.has("a").await);
}

#[tokio::test]
async fn w7_minus_one_outlives_every_change() {
    let test = TestContainer::with_ttl(10).await;
    create_at(&test, 100, json!({"id": "e", "ttl": -1})).await;
    for (second, default_ttl) in [(200, json!(1)), (201, json!(-1)), (202, Value::Null), (203, json!(5))] {
        test.at(second);
        set(&test, default_ttl).await;
        assert!(test.has("e").await);
    }
}

#[tokio::test]
async fn w8_a_successor_of_a_ghost_has_a_life_of_its_own() {
    let test = TestContainer::with_ttl(10).await;
    create_at(&test, 100, json!({"id": "a"})).await;
    test.at(112);
    set(&test, json!(1000)).await;
    create_at(&test, 113, json!({"id": "a"})).await;
    assert_ends(&test, "a", 1113).await;
}

#[tokio::test]
async fn changes_hold_after_a_restart() {
    let test = TestContainer::with_ttl(10).await;
    create_at(&test, 100, json!({"id": "a"})).await;
    create_at(&test, 106, json!({"id": "b"})).await;
    test.at(110);
    set(&test, Value::Null).await;
    let test = test.reopen().await;
    assert_eq!(test.listed().await, ["b"]);
    set(&test, json!(20)).await;
    assert_ends(&test, "b", 126).await;
}

#[tokio::test]
async fn an_unusable_ttl_is_refused_whether_ttl_is_on_or_off() {
    // TTL-215, TTL-216, TTL-218
    let unusable = [
        json!(0),
        json!(-2),
        json!(2.5),
        json!(2_147_483_648_i64),
        json!("5"),
        Value::Null,
        json!({}),
    ];
    let on = TestContainer::with_ttl(-1).await;
    let off = TestContainer::with(json!({})).await;
    for ttl in unusable {
        let item = json!({"id": "a", "ttl": ttl});
        for test in [&on, &off] {
            let created = test.create(item.clone()).await;
            assert_eq!(created.err(), Some(ErrorKind::BadRequest), "{ttl}");
            let upserted = test.upsert(item.clone(), None).await;
            assert_eq!(upserted.err(), Some(ErrorKind::BadRequest), "{ttl}");
        }
    }
    for test in [&on, &off] {
        assert_eq!(test.count().await, 0);
        test.create(json!({"id": "a", "n": 1})).await.unwrap();
        let set = json!([{"op": "set", "path": "/ttl", "value": 0}]);
        let patched = test.patch("a", set, None).await;
        assert_eq!(
            patched.err(),
            Some(ErrorKind::BadRequest),
            "of a patch the result counts"
        );
    }
}

#[tokio::test]
async fn an_unusable_ttl_of_an_older_store_counts_as_absent() {
    // TTL-217
    let test = TestContainer::with(json!({})).await;
    let line = json!({"id": "a", "pk": "p", "ttl": "soon", "_ts": 100}).to_string();
    let parts = futures_util::stream::iter([Ok(bytes::Bytes::from(line))]);
    let imported = test.account.import(&test.container, parts).await;
    assert_eq!(imported.unwrap(), 1);
    set(&test, json!(10)).await;
    let touch = json!([{"op": "set", "path": "/n", "value": 1}]);
    assert_eq!(
        test.patch("a", touch, None).await.err(),
        Some(ErrorKind::BadRequest),
        "whether or not it touched ttl"
    );
    assert_ends(&test, "a", 110).await;
}

#[tokio::test]
async fn the_same_default_again_resets_nothing() {
    // TTL-231
    let test = TestContainer::with_ttl(10).await;
    create_at(&test, 100, json!({"id": "a"})).await;
    test.at(105);
    set(&test, json!(10)).await;
    assert_ends(&test, "a", 110).await;
}

#[tokio::test]
async fn server_time_stands_still_while_the_clock_is_behind() {
    // TTL-202: countdowns pause
    let test = TestContainer::with_ttl(10).await;
    create_at(&test, 100, json!({"id": "a"})).await;
    test.at(110);
    assert!(!test.has("a").await);
    create_at(&test, 50, json!({"id": "b"})).await;
    assert!(!test.has("a").await);
    assert_eq!(test.read("b").await.unwrap().last_modified().0, 110);
}

/// Lets other tasks run for long enough to finish what they need not wait for.
async fn let_others_run(is_done: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if is_done() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// All requests waited for the change, as long as the longest page took.
#[tokio::test]
async fn requests_are_answered_while_a_change_waits_for_a_long_page() {
    // TTL-233
    let test = Arc::new(TestContainer::with_ttl(1000).await);
    test.create(json!({"id": "a"})).await.unwrap();
    test.create(json!({"id": "b"})).await.unwrap();
    test.engine.hold_scans_of(Space::Item);
    let listing = || {
        let test = test.clone();
        tokio::spawn(async move { test.list(10, None).await.0.len() })
    };
    let page = listing();
    test.engine.until_held(1).await;
    let change = tokio::spawn({
        let test = test.clone();
        async move { test.define(json!({"defaultTtl": 10})).await }
    });
    let_others_run(|| change.is_finished()).await;
    assert!(!change.is_finished(), "it waits for the page");
    let answered = tokio::spawn({
        let test = test.clone();
        async move {
            test.at(111);
            test.read("a").await?;
            test.create(json!({"id": "c"})).await?;
            test.upsert(json!({"id": "a", "n": 1}), None).await?;
            test.delete("b", None).await
        }
    });
    let_others_run(|| answered.is_finished()).await;
    assert!(answered.is_finished(), "short requests do not wait for the page");
    answered
        .await
        .unwrap()
        .expect("by the settings in force, all are there");
    let second_page = listing();
    let_others_run(|| test.engine.held_scans() > 1).await;
    assert_eq!(test.engine.held_scans(), 1, "new long work waits with the change");
    assert!(!change.is_finished());

    test.engine.release_scans();
    change.await.unwrap().unwrap();
    assert_eq!(test.container.properties().policy.to_number(), Some(10));
    page.await.unwrap();
    assert_eq!(second_page.await.unwrap(), 2);
    assert_ends(&test, "a", 121).await;
    assert_eq!(test.read("c").await.map(|_| ()), Err(ErrorKind::NotFound));
    test.assert_sound().await;
}

/// A change that waits only for short requests keeps new ones out until it is made, so that no request uses two settings.
#[tokio::test]
async fn a_change_waits_for_requests_that_are_under_way() {
    // TTL-233
    let test = Arc::new(TestContainer::with_ttl(1000).await);
    test.create(json!({"id": "a"})).await.unwrap();
    let removed = test.clone();
    // A step of the purge is a short request.
    test.engine.hold_scans_of(Space::Log);
    let purge = tokio::spawn(async move { removed.purge().await });
    test.engine.until_held(1).await;
    let changing = test.clone();
    let change = tokio::spawn(async move { changing.define(json!({"defaultTtl": 5})).await });
    let_others_run(|| change.is_finished()).await;
    assert!(!change.is_finished());
    test.engine.release_scans();
    change.await.unwrap().unwrap();
    assert_eq!(purge.await.unwrap(), 0);
    assert_ends(&test, "a", 105).await;
}
