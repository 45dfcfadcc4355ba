//! Create, read, replace, patch, delete, upsert; conditions; unique keys.

use bolide_core::ItemRead;
use bolide_model::ErrorKind;
use serde_json::json;

use crate::stage::{Stage, shown};

#[tokio::test]
async fn a_created_item_is_read_as_it_was_sent_with_the_servers_properties() {
    let stage = Stage::with(json!({})).await;
    let created = stage.create(json!({"id": "a", "text": "ä", "_ts": 1})).await.unwrap();
    let item = shown(&stage.read("a").await.unwrap());
    assert_eq!(item["text"], "ä");
    assert_eq!(item["_ts"], 100, "a client's _ts is replaced (TTL-209)");
    assert_eq!(item["_etag"], created.etag().to_string().as_str());
    assert_eq!(item["_rid"], created.rid().to_string().as_str());
    assert_eq!(item["_attachments"], "attachments/");
}

#[tokio::test]
async fn an_id_is_taken_within_its_partition_key_only() {
    let stage = Stage::with(json!({})).await;
    stage.create(json!({"id": "a"})).await.unwrap();
    assert_eq!(stage.create(json!({"id": "a"})).await.unwrap_err(), ErrorKind::Conflict);
    stage.create(json!({"id": "a", "pk": "q"})).await.unwrap();
    assert_eq!(stage.count().await, 2);
}

#[tokio::test]
async fn replace_and_patch_keep_the_rid_and_give_a_new_version() {
    let stage = Stage::with(json!({})).await;
    let first = stage.create(json!({"id": "a", "n": 1})).await.unwrap();
    let second = stage.replace("a", json!({"id": "a", "n": 2}), None).await.unwrap();
    let third = stage
        .patch("a", json!([{"op": "incr", "path": "/n", "value": 5}]), None)
        .await
        .unwrap();
    assert_eq!(shown(&third)["n"], 7);
    assert_eq!((first.rid(), first.rid()), (second.rid(), third.rid()));
    assert!(first.etag() != second.etag() && second.etag() != third.etag());
}

#[tokio::test]
async fn a_replace_may_rename_but_not_onto_another_item() {
    let stage = Stage::with(json!({})).await;
    stage.create(json!({"id": "a"})).await.unwrap();
    stage.create(json!({"id": "b"})).await.unwrap();
    let onto_b = stage.replace("a", json!({"id": "b"}), None).await;
    assert_eq!(onto_b.unwrap_err(), ErrorKind::Conflict);
    stage.replace("a", json!({"id": "c"}), None).await.unwrap();
    assert_eq!(stage.listed().await, ["c", "b"], "renamed in its place");
    assert!(!stage.has("a").await);
    stage.assert_sound().await;
}

#[tokio::test]
async fn a_name_that_went_to_another_item_leads_to_that_one() {
    // Reads remember an item's number by its name.
    let stage = Stage::with(json!({})).await;
    let first = stage.create(json!({"id": "a", "n": 1})).await.unwrap();
    assert_eq!(stage.read("a").await.unwrap().rid(), first.rid());
    stage.replace("a", json!({"id": "b", "n": 1}), None).await.unwrap();
    assert_eq!(stage.read("a").await.err(), Some(ErrorKind::NotFound));
    let second = stage.create(json!({"id": "a", "n": 2})).await.unwrap();
    assert_eq!(stage.read("a").await.unwrap().rid(), second.rid());
    assert_eq!(stage.read("b").await.unwrap().rid(), first.rid());
    stage.delete("a", None).await.unwrap();
    assert_eq!(stage.read("a").await.err(), Some(ErrorKind::NotFound));
    let third = stage.create(json!({"id": "a", "n": 3})).await.unwrap();
    assert_eq!(stage.read("a").await.unwrap().rid(), third.rid());
}

#[tokio::test]
async fn an_upsert_creates_what_is_missing_and_replaces_what_is_there() {
    let stage = Stage::with(json!({})).await;
    let (_, created) = stage.upsert(json!({"id": "a", "n": 1}), None).await.unwrap();
    let (item, created_again) = stage.upsert(json!({"id": "a", "m": 2}), None).await.unwrap();
    assert_eq!((created, created_again), (true, false));
    assert_eq!(shown(&item).get("n"), None, "nothing is merged");
}

#[tokio::test]
async fn what_is_not_there_cannot_be_changed() {
    let stage = Stage::with(json!({})).await;
    let not_found = Some(ErrorKind::NotFound);
    assert_eq!(stage.read("a").await.err(), not_found);
    assert_eq!(stage.replace("a", json!({"id": "a"}), Some("*")).await.err(), not_found);
    assert_eq!(
        stage
            .patch("a", json!([{"op": "set", "path": "/n", "value": 1}]), None)
            .await
            .err(),
        not_found
    );
    assert_eq!(stage.delete("a", None).await.err(), not_found);
}

#[tokio::test]
async fn a_stale_etag_changes_nothing() {
    let stage = Stage::with(json!({})).await;
    let stale = stage.create(json!({"id": "a"})).await.unwrap().etag().to_string();
    let newest = stage.replace("a", json!({"id": "a"}), Some(&stale)).await.unwrap();
    let failed = Some(ErrorKind::PreconditionFailed);
    assert_eq!(stage.replace("a", json!({"id": "a"}), Some(&stale)).await.err(), failed);
    assert_eq!(stage.upsert(json!({"id": "a"}), Some(&stale)).await.err(), failed);
    assert_eq!(
        stage
            .patch("a", json!([{"op": "set", "path": "/n", "value": 1}]), Some(&stale))
            .await
            .err(),
        failed
    );
    assert_eq!(stage.delete("a", Some(&stale)).await.err(), failed);
    assert_eq!(stage.read("a").await.unwrap().etag(), newest.etag());
    stage.delete("a", Some("*")).await.unwrap();
}

#[tokio::test]
async fn a_read_spares_the_body_of_a_version_that_is_known() {
    let stage = Stage::with(json!({})).await;
    let etag = stage.create(json!({"id": "a"})).await.unwrap().etag().to_string();
    let spared = stage.read_unless("a", Some(&etag)).await.unwrap();
    assert!(matches!(spared, ItemRead::NotModified { .. }), "{spared:?}");
    stage.replace("a", json!({"id": "a"}), None).await.unwrap();
    let sent = stage.read_unless("a", Some(&etag)).await.unwrap();
    assert!(matches!(sent, ItemRead::Found(_)), "{sent:?}");
}

#[tokio::test]
async fn a_conflict_with_a_write_that_was_never_stored_is_no_conflict() {
    // Both are decided in one round; its commit fails.
    let stage = Stage::with(json!({})).await;
    stage.engine.cut_after(0);
    let (one, other) = tokio::join!(stage.create(json!({"id": "a"})), stage.create(json!({"id": "a"})));
    assert_eq!(
        (one.err(), other.err()),
        (Some(ErrorKind::Unavailable), Some(ErrorKind::Unavailable))
    );
    stage.engine.mend();
    stage.create(json!({"id": "a"})).await.unwrap();
}

#[tokio::test]
async fn a_unique_value_is_held_within_a_partition_key_and_let_go() {
    let stage = Stage::with(json!({"uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/mail"]}]}})).await;
    stage.create(json!({"id": "a", "mail": "x"})).await.unwrap();
    stage.create(json!({"id": "b", "mail": "y"})).await.unwrap();
    let taken = Some(ErrorKind::UniqueKeyConflict);
    assert_eq!(stage.create(json!({"id": "c", "mail": "x"})).await.err(), taken);
    assert_eq!(
        stage.replace("b", json!({"id": "b", "mail": "x"}), None).await.err(),
        taken
    );
    stage.create(json!({"id": "c", "mail": "x", "pk": "q"})).await.unwrap();
    stage.replace("a", json!({"id": "a", "mail": "z"}), None).await.unwrap();
    stage.replace("b", json!({"id": "b", "mail": "x"}), None).await.unwrap();
    stage.delete("b", None).await.unwrap();
    stage.create(json!({"id": "d", "mail": "x"})).await.unwrap();
    stage.assert_sound().await;
}
