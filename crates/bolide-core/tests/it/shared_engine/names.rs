//! The data derived from the rows of the catalog: the index of names, and the log of changes.

use bolide_model::ErrorKind;
use bolide_storage::{Batch, CommitToken, Engine, Key, Outcome, PartitionId, Put, ReadRequest, Space};
use bytes::Bytes;
use serde_json::json;

use super::{Two, container};
use crate::probe::rows_of;

async fn rows(two: &Two, space: Space) -> Vec<(Bytes, Bytes)> {
    rows_of(two.engine.as_ref(), PartitionId::CATALOG, space).await
}

/// Commits to the catalog's partition like a version of Bolide that writes rows only.
async fn commit(two: &Two, puts: Vec<Put>, deletes: Vec<Key>) {
    let head = two
        .engine
        .read(PartitionId::CATALOG, ReadRequest::default())
        .await
        .unwrap()
        .head;
    let batch = Batch {
        base: head.lsn,
        next: head.lsn.next(),
        stamp: head.stamp,
        edition: head.edition,
        token: CommitToken(7),
        puts,
        deletes,
        new_keys: Vec::new(),
        may_block: false,
    };
    let outcome = two.engine.commit(PartitionId::CATALOG, batch).await;
    assert!(matches!(outcome, Ok(Outcome::Done(_))), "{outcome:?}");
}

#[tokio::test]
async fn names_of_a_store_without_an_index_are_found_and_what_the_index_has_wrong_is_mended() {
    let two = Two::open().await;
    let ctx = two.first.begin().await.unwrap();
    let database = two.first.create_database(&ctx, "d", None).await.unwrap().rid;
    two.first
        .create_container(&ctx, database, container("c", &json!({})), None)
        .await
        .unwrap();
    two.first.create_user(&ctx, database, "ada").await.unwrap();
    let index = rows(&two, Space::Index).await;
    assert_eq!(index.len(), 3);

    let deletes = index
        .iter()
        .map(|(key, _)| Key::new(Space::Index, key.clone()))
        .collect();
    commit(&two, vec![], deletes).await;
    let third = two.third().await;
    assert_eq!(rows(&two, Space::Index).await, index);
    let taken = third.create_user(&ctx, database, "ada").await;
    assert_eq!(taken.unwrap_err().kind, ErrorKind::Conflict);

    let wrong = |name: &'static [u8], target: &Bytes| Put {
        key: Key::new(Space::Index, name),
        value: target.clone(),
    };
    let puts = vec![wrong(b"Dgone", &index[1].1), wrong(b"Dd", &index[0].1)];
    commit(&two, puts, vec![]).await;
    let fourth = two.third().await;
    assert_eq!(rows(&two, Space::Index).await, index);
    fourth.create_database(&ctx, "gone", None).await.unwrap();
}

#[tokio::test]
async fn an_account_catches_up_when_the_log_of_changes_does_not_go_back_so_far() {
    let two = Two::open().await;
    let (first, second) = (&two.first, &two.second);
    let ctx = first.begin().await.unwrap();
    let gone = first.create_database(&ctx, "gone", None).await.unwrap();
    let kept = first.create_database(&ctx, "kept", None).await.unwrap();
    second.refresh_catalog().await.unwrap();
    first.delete_database(&ctx, gone.rid, None).await.unwrap();
    for n in 0..1_100 {
        first.set_mongo_document_ttl(n % 2 == 1).await.unwrap();
    }
    let log = rows(&two, Space::Log).await;
    assert_eq!(log.len(), 1_024, "it does not grow for ever");
    first.set_mongo_document_ttl(false).await.unwrap();
    second.refresh_catalog().await.unwrap();
    assert_eq!(second.list_databases(), [kept]);
    assert!(!second.mongo_document_ttl());
    assert_eq!(second.definitions(), first.definitions());
}

#[tokio::test]
async fn an_account_sees_what_a_version_without_a_log_of_changes_wrote() {
    let two = Two::open().await;
    let ctx = two.first.begin().await.unwrap();
    let database = two.first.create_database(&ctx, "d", None).await.unwrap();
    two.second.refresh_catalog().await.unwrap();
    let key = Key::new(Space::Meta, [b"D", &database.rid.bytes()[..]].concat());
    commit(&two, vec![], vec![key]).await;
    two.second.refresh_catalog().await.unwrap();
    assert!(two.second.list_databases().is_empty());
}
