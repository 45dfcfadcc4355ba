//! A ghost does not exist (TTL-235…255): each operation one second before the end, at the end, and one after.
//!
//! The item is written at 100 in a container with default 10, so it ends at 110.

use bolide_core::FeedStart;
use bolide_model::ErrorKind;
use serde_json::{Value, json};

use crate::test_container::{TestContainer, ids, shown};

const BEFORE: i64 = 109;
const AFTER: [i64; 2] = [110, 111];

/// A test with the item "a", and its etag.
async fn with_item() -> (TestContainer, String) {
    let test = TestContainer::with(json!({
        "defaultTtl": 10,
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/mail"]}]}
    }))
    .await;
    let item = test.create(json!({"id": "a", "mail": "x", "old": true})).await.unwrap();
    (test, item.etag().to_string())
}

fn body() -> Value {
    json!({"id": "a", "mail": "x"})
}

fn touch() -> Value {
    json!([{"op": "set", "path": "/n", "value": 1}])
}

#[tokio::test]
async fn read_finds_nothing_whatever_the_condition() {
    // TTL-236, TTL-242
    let (test, etag) = with_item().await;
    test.at(BEFORE);
    assert!(test.has("a").await);
    for second in AFTER {
        test.at(second);
        assert_eq!(test.read("a").await.err(), Some(ErrorKind::NotFound));
        assert_eq!(
            test.read_unless("a", Some(&etag)).await.err(),
            Some(ErrorKind::NotFound)
        );
        assert_eq!(test.read_unless("a", Some("*")).await.err(), Some(ErrorKind::NotFound));
    }
}

#[tokio::test]
async fn replace_patch_and_delete_find_nothing_whatever_the_condition() {
    // TTL-237, TTL-238, TTL-239, TTL-242
    let (test, etag) = with_item().await;
    for second in AFTER {
        test.at(second);
        for if_match in [None, Some("*"), Some(etag.as_str()), Some("\"other\"")] {
            let not_found = Some(ErrorKind::NotFound);
            assert_eq!(test.replace("a", body(), if_match).await.err(), not_found);
            assert_eq!(test.patch("a", touch(), if_match).await.err(), not_found);
            assert_eq!(test.delete("a", if_match).await.err(), not_found);
        }
    }
}

#[tokio::test]
async fn each_write_one_second_before_the_end_restarts_the_countdown() {
    // TTL-069
    for write in ["replace", "patch", "upsert"] {
        let (test, etag) = with_item().await;
        test.at(BEFORE);
        match write {
            "replace" => drop(test.replace("a", body(), Some(&etag)).await.unwrap()),
            "patch" => drop(test.patch("a", touch(), Some(&etag)).await.unwrap()),
            _ => assert!(!test.upsert(body(), Some(&etag)).await.unwrap().1),
        }
        test.at(BEFORE + 9);
        assert!(test.has("a").await, "{write}");
        test.at(BEFORE + 10);
        assert!(!test.has("a").await, "{write}");
    }
}

#[tokio::test]
async fn upsert_creates_a_new_item_and_merges_nothing() {
    // TTL-240, TTL-242: If-Match on what is missing does not stop an upsert
    for second in AFTER {
        let (test, etag) = with_item().await;
        let ghost = test.read("a").await.unwrap();
        test.at(second);
        let (item, created) = test.upsert(body(), Some(&etag)).await.unwrap();
        assert!(created);
        assert_eq!(shown(&item).get("old"), None);
        assert!(item.rid() != ghost.rid() && item.etag() != ghost.etag());
        test.assert_sound().await;
    }
}

#[tokio::test]
async fn create_takes_the_id_with_a_new_rid_and_an_etag_that_was_never_given() {
    // TTL-241
    let (test, etag) = with_item().await;
    let ghost = test.read("a").await.unwrap();
    test.at(BEFORE);
    assert_eq!(test.create(body()).await.err(), Some(ErrorKind::Conflict));
    test.at(110);
    let item = test.create(body()).await.unwrap();
    assert_ne!(item.rid(), ghost.rid());
    assert_eq!(
        test.delete("a", Some(&etag)).await.err(),
        Some(ErrorKind::PreconditionFailed)
    );
    test.at(119);
    assert!(test.has("a").await);
    test.at(120);
    assert!(!test.has("a").await);
}

#[tokio::test]
async fn a_unique_value_is_free_at_the_end() {
    // TTL-251
    let (test, _) = with_item().await;
    test.at(BEFORE);
    let other = || json!({"id": "b", "mail": "x"});
    assert_eq!(test.create(other()).await.err(), Some(ErrorKind::UniqueKeyConflict));
    test.at(110);
    test.create(other()).await.unwrap();
    assert_eq!(test.purge().await, 0, "the writer purged the ghost");
    test.assert_sound().await;
}

#[tokio::test]
async fn feeds_and_figures_leave_it_out_from_the_second_of_its_end() {
    // TTL-248, TTL-249, TTL-253
    let (test, _) = with_item().await;
    test.at(105);
    test.create(json!({"id": "b", "mail": "y"})).await.unwrap();
    for (second, expected) in [
        (BEFORE, vec!["a", "b"]),
        (110, vec!["b"]),
        (114, vec!["b"]),
        (115, vec![]),
    ] {
        test.at(second);
        assert_eq!(test.listed().await, expected, "{second}");
        let (changes, _) = test.changes(FeedStart::Beginning, 10).await;
        assert_eq!(ids(&changes), expected, "{second}");
        assert_eq!(test.count().await, expected.len() as u64, "{second}");
    }
}

#[tokio::test]
async fn the_answer_is_the_same_when_it_is_purged() {
    // TTL-235: charges too (TTL-254)
    let (test, _) = with_item().await;
    test.at(110);
    let charge = async || {
        let read = bolide_core::ReadItem {
            target: bolide_core::ItemTarget::Id("a".into()),
            partition_key: crate::test_container::key("p"),
            if_none_match: None,
        };
        let refused = test
            .account
            .read_item(&test.begin().await, &test.container, &read)
            .await;
        refused.unwrap_err()
    };
    let as_ghost = charge().await;
    assert_eq!(test.purge().await, 1);
    let purged = charge().await;
    assert_eq!(
        (as_ghost.error, as_ghost.cost.charge),
        (purged.error, purged.cost.charge)
    );
}

#[tokio::test]
async fn a_write_over_it_is_charged_for_itself_and_the_purge_owes_the_rest() {
    // TTL-255
    let (test, _) = with_item().await;
    test.at(110);
    test.create(body()).await.unwrap();
    let report = test.account.ttl_report(&test.container).await.unwrap();
    assert_eq!((report.purged_total, report.backlog_items), (1, 0));
    assert_eq!(report.ru_spent_total.0, 4.95, "an explicit delete of it");
}

#[tokio::test]
async fn own_values_count_by_the_matrix() {
    // TTL-036…044 at the second before the end and at the end
    let rows = [
        (Value::Null, Value::Null, None),
        (Value::Null, json!(5), None),
        (json!(-1), Value::Null, None),
        (json!(-1), json!(-1), None),
        (json!(-1), json!(5), Some(5)),
        (json!(10), Value::Null, Some(10)),
        (json!(10), json!(-1), None),
        (json!(10), json!(20), Some(20)),
        (json!(10), json!(1), Some(1)),
    ];
    for (default_ttl, ttl, lives) in rows {
        let test = TestContainer::with(json!({"defaultTtl": default_ttl})).await;
        let mut item = json!({"id": "a"});
        if !ttl.is_null() {
            item["ttl"] = ttl.clone();
        }
        test.create(item).await.unwrap();
        let named = format!("default {default_ttl}, ttl {ttl}");
        let end = lives.map_or(100 + (1 << 31), |seconds| 100 + seconds);
        test.at(end - 1);
        assert!(test.has("a").await, "{named}");
        test.at(end);
        assert_eq!(test.has("a").await, lives.is_none(), "{named}");
    }
}

#[tokio::test]
async fn the_longest_ttl_ends_beyond_32_bits_to_the_second() {
    // TTL-007, TTL-210
    let test = TestContainer::with_ttl(-1).await;
    test.at(1 << 32);
    test.create(json!({"id": "a", "ttl": 2_147_483_647})).await.unwrap();
    test.at((1 << 32) + 2_147_483_646);
    assert!(test.has("a").await);
    test.at((1 << 32) + 2_147_483_647);
    assert!(!test.has("a").await);
    assert_eq!(test.purge().await, 1);
}
