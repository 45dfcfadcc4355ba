//! Create, read, replace, patch, delete, upsert; conditions; unique keys.

use bolide_core::ItemRead;
use bolide_model::ErrorKind;
use serde_json::json;

use crate::test_container::{TestContainer, shown};

#[tokio::test]
async fn a_created_item_is_read_as_it_was_sent_with_the_servers_properties() {
    let test = TestContainer::with(json!({})).await;
    let created = test.create(json!({"id": "a", "text": "ä", "_ts": 1})).await.unwrap();
    let item = shown(&test.read("a").await.unwrap());
    assert_eq!(item["text"], "ä");
    assert_eq!(item["_ts"], 100, "a client's _ts is replaced (TTL-209)");
    assert_eq!(item["_etag"], created.etag().to_string().as_str());
    assert_eq!(item["_rid"], created.rid().to_string().as_str());
    assert_eq!(item["_attachments"], "attachments/");
}

#[tokio::test]
async fn an_id_is_taken_within_its_partition_key_only() {
    let test = TestContainer::with(json!({})).await;
    test.create(json!({"id": "a"})).await.unwrap();
    assert_eq!(test.create(json!({"id": "a"})).await.unwrap_err(), ErrorKind::Conflict);
    test.create(json!({"id": "a", "pk": "q"})).await.unwrap();
    assert_eq!(test.count().await, 2);
}

#[tokio::test]
async fn replace_and_patch_keep_the_rid_and_give_a_new_version() {
    let test = TestContainer::with(json!({})).await;
    let first = test.create(json!({"id": "a", "n": 1})).await.unwrap();
    let second = test.replace("a", json!({"id": "a", "n": 2}), None).await.unwrap();
    let third = test
        .patch("a", json!([{"op": "incr", "path": "/n", "value": 5}]), None)
        .await
        .unwrap();
    assert_eq!(shown(&third)["n"], 7);
    assert_eq!((first.rid(), first.rid()), (second.rid(), third.rid()));
    assert!(first.etag() != second.etag() && second.etag() != third.etag());
}

#[tokio::test]
async fn a_replace_may_rename_but_not_onto_another_item() {
    let test = TestContainer::with(json!({})).await;
    test.create(json!({"id": "a"})).await.unwrap();
    test.create(json!({"id": "b"})).await.unwrap();
    let onto_b = test.replace("a", json!({"id": "b"}), None).await;
    assert_eq!(onto_b.unwrap_err(), ErrorKind::Conflict);
    test.replace("a", json!({"id": "c"}), None).await.unwrap();
    assert_eq!(test.listed().await, ["c", "b"], "renamed in its place");
    assert!(!test.has("a").await);
    test.assert_sound().await;
}

#[tokio::test]
async fn a_name_that_went_to_another_item_leads_to_that_one() {
    // Reads cache an item's number by its id.
    let test = TestContainer::with(json!({})).await;
    let first = test.create(json!({"id": "a", "n": 1})).await.unwrap();
    assert_eq!(test.read("a").await.unwrap().rid(), first.rid());
    test.replace("a", json!({"id": "b", "n": 1}), None).await.unwrap();
    assert_eq!(test.read("a").await.err(), Some(ErrorKind::NotFound));
    let second = test.create(json!({"id": "a", "n": 2})).await.unwrap();
    assert_eq!(test.read("a").await.unwrap().rid(), second.rid());
    assert_eq!(test.read("b").await.unwrap().rid(), first.rid());
    test.delete("a", None).await.unwrap();
    assert_eq!(test.read("a").await.err(), Some(ErrorKind::NotFound));
    let third = test.create(json!({"id": "a", "n": 3})).await.unwrap();
    assert_eq!(test.read("a").await.unwrap().rid(), third.rid());
}

#[tokio::test]
async fn an_upsert_creates_what_is_missing_and_replaces_what_is_there() {
    let test = TestContainer::with(json!({})).await;
    let (_, created) = test.upsert(json!({"id": "a", "n": 1}), None).await.unwrap();
    let (item, created_again) = test.upsert(json!({"id": "a", "m": 2}), None).await.unwrap();
    assert_eq!((created, created_again), (true, false));
    assert_eq!(shown(&item).get("n"), None, "nothing is merged");
}

#[tokio::test]
async fn what_is_not_there_cannot_be_changed() {
    let test = TestContainer::with(json!({})).await;
    let not_found = Some(ErrorKind::NotFound);
    assert_eq!(test.read("a").await.err(), not_found);
    assert_eq!(test.replace("a", json!({"id": "a"}), Some("*")).await.err(), not_found);
    assert_eq!(
        test.patch("a", json!([{"op": "set", "path": "/n", "value": 1}]), None)
            .await
            .err(),
        not_found
    );
    assert_eq!(test.delete("a", None).await.err(), not_found);
}

#[tokio::test]
async fn a_stale_etag_changes_nothing() {
    let test = TestContainer::with(json!({})).await;
    let stale = test.create(json!({"id": "a"})).await.unwrap().etag().to_string();
    let newest = test.replace("a", json!({"id": "a"}), Some(&stale)).await.unwrap();
    let failed = Some(ErrorKind::PreconditionFailed);
    assert_eq!(test.replace("a", json!({"id": "a"}), Some(&stale)).await.err(), failed);
    assert_eq!(test.upsert(json!({"id": "a"}), Some(&stale)).await.err(), failed);
    assert_eq!(
        test.patch("a", json!([{"op": "set", "path": "/n", "value": 1}]), Some(&stale))
            .await
            .err(),
        failed
    );
    assert_eq!(test.delete("a", Some(&stale)).await.err(), failed);
    assert_eq!(test.read("a").await.unwrap().etag(), newest.etag());
    test.delete("a", Some("*")).await.unwrap();
}

#[tokio::test]
async fn a_read_spares_the_body_of_a_version_that_is_known() {
    let test = TestContainer::with(json!({})).await;
    let etag = test.create(json!({"id": "a"})).await.unwrap().etag().to_string();
    let spared = test.read_unless("a", Some(&etag)).await.unwrap();
    assert!(matches!(spared, ItemRead::NotModified { .. }), "{spared:?}");
    test.replace("a", json!({"id": "a"}), None).await.unwrap();
    let sent = test.read_unless("a", Some(&etag)).await.unwrap();
    assert!(matches!(sent, ItemRead::Found(_)), "{sent:?}");
}

#[tokio::test]
async fn a_conflict_with_a_write_that_was_never_stored_is_no_conflict() {
    // Both are decided in one write batch, whose commit fails.
    let test = TestContainer::with(json!({})).await;
    test.engine.cut_after(0);
    let (one, other) = tokio::join!(test.create(json!({"id": "a"})), test.create(json!({"id": "a"})));
    assert_eq!(
        (one.err(), other.err()),
        (Some(ErrorKind::Unavailable), Some(ErrorKind::Unavailable))
    );
    test.engine.mend();
    test.create(json!({"id": "a"})).await.unwrap();
}

#[tokio::test]
async fn a_unique_value_is_held_within_a_partition_key_and_let_go() {
    let test = TestContainer::with(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/mail"]}]}})).await;
    test.create(json!({"id": "a", "mail": "x"})).await.unwrap();
    test.create(json!({"id": "b", "mail": "y"})).await.unwrap();
    let taken = Some(ErrorKind::UniqueKeyConflict);
    assert_eq!(test.create(json!({"id": "c", "mail": "x"})).await.err(), taken);
    assert_eq!(
        test.replace("b", json!({"id": "b", "mail": "x"}), None).await.err(),
        taken
    );
    test.create(json!({"id": "c", "mail": "x", "pk": "q"})).await.unwrap();
    test.replace("a", json!({"id": "a", "mail": "z"}), None).await.unwrap();
    test.replace("b", json!({"id": "b", "mail": "x"}), None).await.unwrap();
    test.delete("b", None).await.unwrap();
    test.create(json!({"id": "d", "mail": "x"})).await.unwrap();
    test.assert_sound().await;
}
