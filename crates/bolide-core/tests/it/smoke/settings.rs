//! Changes of the default ttl (TTL-225…234): the worked examples W1–W8, over the API.

use std::sync::Arc;

use bolide_model::ErrorKind;
use bolide_storage::Space;
use serde_json::{Value, json};

use crate::stage::Stage;

async fn set(stage: &Stage, default_ttl: Value) {
    stage.define(json!({"defaultTtl": default_ttl})).await.unwrap();
}

/// The second before which an item is there and from which it is not.
async fn assert_ends(stage: &Stage, id: &str, end: i64) {
    stage.at(end - 1);
    assert!(stage.has(id).await, "{id} at {}", end - 1);
    stage.at(end);
    assert!(!stage.has(id).await, "{id} at {end}");
}

async fn create_at(stage: &Stage, second: i64, body: Value) {
    stage.at(second);
    stage.create(body).await.unwrap();
}

#[tokio::test]
async fn w1_a_longer_default_saves_only_what_has_not_expired() {
    let stage = Stage::with_ttl(10).await;
    create_at(&stage, 100, json!({"id": "a"})).await;
    create_at(&stage, 106, json!({"id": "b"})).await;
    stage.at(115);
    set(&stage, json!(1000)).await;
    assert!(!stage.has("a").await);
    assert_ends(&stage, "b", 1106).await;
}

#[tokio::test]
async fn w2_switched_off_and_on_again_brings_nothing_back() {
    let stage = Stage::with_ttl(10).await;
    create_at(&stage, 100, json!({"id": "a"})).await;
    create_at(&stage, 106, json!({"id": "b"})).await;
    stage.at(115);
    set(&stage, Value::Null).await;
    stage.at(199);
    assert_eq!(stage.listed().await, ["b"]);
    stage.at(200);
    assert!(stage.has("b").await);
    set(&stage, json!(10)).await;
    assert_eq!(stage.listed().await, Vec::<String>::new());
}

#[tokio::test]
async fn w3_w4_an_own_value_counts_on_while_ttl_is_off() {
    let stage = Stage::with_ttl(-1).await;
    create_at(&stage, 100, json!({"id": "c", "ttl": 20})).await;
    stage.at(119);
    set(&stage, Value::Null).await;
    stage.at(124);
    assert!(stage.has("c").await);
    stage.at(125);
    set(&stage, json!(-1)).await;
    assert!(!stage.has("c").await);

    let stage = Stage::with_ttl(-1).await;
    create_at(&stage, 100, json!({"id": "c", "ttl": 20})).await;
    stage.at(120);
    set(&stage, Value::Null).await;
    assert!(!stage.has("c").await, "expired in the second of the change (TTL-227)");
}

#[tokio::test]
async fn w5_a_dip_catches_what_is_old_enough() {
    let stage = Stage::with_ttl(1000).await;
    create_at(&stage, 100, json!({"id": "a"})).await;
    create_at(&stage, 145, json!({"id": "b"})).await;
    stage.at(150);
    set(&stage, json!(10)).await;
    stage.at(151);
    set(&stage, json!(1000)).await;
    assert_eq!(stage.listed().await, ["b"]);
    assert_ends(&stage, "b", 1145).await;
}

#[tokio::test]
async fn w6_a_change_that_lasts_no_second_is_a_change() {
    let stage = Stage::with(json!({})).await;
    create_at(&stage, 100, json!({"id": "a"})).await;
    stage.at(200);
    set(&stage, json!(10)).await;
    set(&stage, Value::Null).await;
    assert!(!stage.has("a").await);
}

#[tokio::test]
async fn w7_minus_one_outlives_every_change() {
    let stage = Stage::with_ttl(10).await;
    create_at(&stage, 100, json!({"id": "e", "ttl": -1})).await;
    for (second, default_ttl) in [(200, json!(1)), (201, json!(-1)), (202, Value::Null), (203, json!(5))] {
        stage.at(second);
        set(&stage, default_ttl).await;
        assert!(stage.has("e").await);
    }
}

#[tokio::test]
async fn w8_a_successor_of_a_ghost_has_a_life_of_its_own() {
    let stage = Stage::with_ttl(10).await;
    create_at(&stage, 100, json!({"id": "a"})).await;
    stage.at(112);
    set(&stage, json!(1000)).await;
    create_at(&stage, 113, json!({"id": "a"})).await;
    assert_ends(&stage, "a", 1113).await;
}

#[tokio::test]
async fn changes_hold_after_a_restart() {
    let stage = Stage::with_ttl(10).await;
    create_at(&stage, 100, json!({"id": "a"})).await;
    create_at(&stage, 106, json!({"id": "b"})).await;
    stage.at(110);
    set(&stage, Value::Null).await;
    let stage = stage.reopen().await;
    assert_eq!(stage.listed().await, ["b"]);
    set(&stage, json!(20)).await;
    assert_ends(&stage, "b", 126).await;
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
    let on = Stage::with_ttl(-1).await;
    let off = Stage::with(json!({})).await;
    for ttl in unusable {
        let item = json!({"id": "a", "ttl": ttl});
        for stage in [&on, &off] {
            let created = stage.create(item.clone()).await;
            assert_eq!(created.err(), Some(ErrorKind::BadRequest), "{ttl}");
            let upserted = stage.upsert(item.clone(), None).await;
            assert_eq!(upserted.err(), Some(ErrorKind::BadRequest), "{ttl}");
        }
    }
    for stage in [&on, &off] {
        assert_eq!(stage.count().await, 0);
        stage.create(json!({"id": "a", "n": 1})).await.unwrap();
        let set = json!([{"op": "set", "path": "/ttl", "value": 0}]);
        let patched = stage.patch("a", set, None).await;
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
    let stage = Stage::with(json!({})).await;
    let line = json!({"id": "a", "pk": "p", "ttl": "soon", "_ts": 100}).to_string();
    let parts = futures_util::stream::iter([Ok(bytes::Bytes::from(line))]);
    let imported = stage.account.import(&stage.container, parts).await;
    assert_eq!(imported.unwrap(), 1);
    set(&stage, json!(10)).await;
    let touch = json!([{"op": "set", "path": "/n", "value": 1}]);
    assert_eq!(
        stage.patch("a", touch, None).await.err(),
        Some(ErrorKind::BadRequest),
        "whether or not it touched ttl"
    );
    assert_ends(&stage, "a", 110).await;
}

#[tokio::test]
async fn the_same_default_again_resets_nothing() {
    // TTL-231
    let stage = Stage::with_ttl(10).await;
    create_at(&stage, 100, json!({"id": "a"})).await;
    stage.at(105);
    set(&stage, json!(10)).await;
    assert_ends(&stage, "a", 110).await;
}

#[tokio::test]
async fn server_time_stands_still_while_the_clock_is_behind() {
    // TTL-202: countdowns pause
    let stage = Stage::with_ttl(10).await;
    create_at(&stage, 100, json!({"id": "a"})).await;
    stage.at(110);
    assert!(!stage.has("a").await);
    create_at(&stage, 50, json!({"id": "b"})).await;
    assert!(!stage.has("a").await);
    assert_eq!(stage.read("b").await.unwrap().last_modified().0, 110);
}

/// Lets others run for long enough to do what they need not wait for.
async fn let_others_run(is_done: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if is_done() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// All requests waited behind the change, as long as the longest page took.
#[tokio::test]
async fn requests_are_answered_while_a_change_waits_for_a_long_page() {
    // TTL-233
    let stage = Arc::new(Stage::with_ttl(1000).await);
    stage.create(json!({"id": "a"})).await.unwrap();
    stage.create(json!({"id": "b"})).await.unwrap();
    stage.engine.hold_scans_of(Space::Item);
    let listing = || {
        let stage = stage.clone();
        tokio::spawn(async move { stage.list(10, None).await.0.len() })
    };
    let page = listing();
    stage.engine.until_held(1).await;
    let change = tokio::spawn({
        let stage = stage.clone();
        async move { stage.define(json!({"defaultTtl": 10})).await }
    });
    let_others_run(|| change.is_finished()).await;
    assert!(!change.is_finished(), "it waits for the page");
    let answered = tokio::spawn({
        let stage = stage.clone();
        async move {
            stage.at(111);
            stage.read("a").await?;
            stage.create(json!({"id": "c"})).await?;
            stage.upsert(json!({"id": "a", "n": 1}), None).await?;
            stage.delete("b", None).await
        }
    });
    let_others_run(|| answered.is_finished()).await;
    assert!(answered.is_finished(), "short requests do not wait for the page");
    answered
        .await
        .unwrap()
        .expect("by the settings in force, all are there");
    let second_page = listing();
    let_others_run(|| stage.engine.held_scans() > 1).await;
    assert_eq!(stage.engine.held_scans(), 1, "new long work waits with the change");
    assert!(!change.is_finished());

    stage.engine.release_scans();
    change.await.unwrap().unwrap();
    assert_eq!(stage.container.properties().policy.to_number(), Some(10));
    page.await.unwrap();
    assert_eq!(second_page.await.unwrap(), 2);
    assert_ends(&stage, "a", 121).await;
    assert_eq!(stage.read("c").await.map(|_| ()), Err(ErrorKind::NotFound));
    stage.assert_sound().await;
}

/// A change that waits for nobody but short requests keeps the next ones out until it is made: none is judged by two settings.
#[tokio::test]
async fn a_change_waits_for_requests_that_are_under_way() {
    // TTL-233
    let stage = Arc::new(Stage::with_ttl(1000).await);
    stage.create(json!({"id": "a"})).await.unwrap();
    let removed = stage.clone();
    // A step of the purge is a short one.
    stage.engine.hold_scans_of(Space::Log);
    let purge = tokio::spawn(async move { removed.purge().await });
    stage.engine.until_held(1).await;
    let changing = stage.clone();
    let change = tokio::spawn(async move { changing.define(json!({"defaultTtl": 5})).await });
    let_others_run(|| change.is_finished()).await;
    assert!(!change.is_finished());
    stage.engine.release_scans();
    change.await.unwrap().unwrap();
    assert_eq!(purge.await.unwrap(), 0);
    assert_ends(&stage, "a", 105).await;
}
