//! Indexes that are created while there are documents.

use bolide_core::{BuildFailure, Duplicate};
use bolide_model::epk::Epk;
use bolide_mql::bson::rawdoc;

use super::fixture::{START, TestCollection, date_index, dated};

#[tokio::test]
async fn a_ttl_index_ends_documents_that_were_there_before_it() {
    // TTL-086, mongo.md §18.1.
    let mut test = TestCollection::new().await;
    test.insert(dated(1, START - 20_000)).await.unwrap();
    test.insert(dated(2, START)).await.unwrap();
    test.insert(rawdoc! {"_id": 3}).await.unwrap();
    test.create_index(date_index(10)).await.unwrap().unwrap();
    assert_eq!(test.ids().await, [2, 3]);
    test.reopen().await;
    test.set_clock(START + 10_000);
    assert_eq!(test.ids().await, [3]);
}

#[tokio::test]
async fn a_unique_index_is_not_built_over_documents_with_equal_keys() {
    let test = TestCollection::new().await;
    test.insert(rawdoc! {"_id": 1, "n": 5}).await.unwrap();
    test.insert(rawdoc! {"_id": 2, "n": 5.0}).await.unwrap();
    let unique = || rawdoc! {"key": {"n": 1}, "name": "n_1", "unique": true};
    let failed = test.create_index(unique()).await.unwrap();
    assert!(
        matches!(failed, Err(BuildFailure::Duplicate { index: 1, .. })),
        "{failed:?}"
    );
}

#[tokio::test]
async fn a_unique_index_is_built_over_ghosts_with_equal_keys() {
    // mongo.md §18.5: unique index builds do not see the dead.
    let test = TestCollection::new().await;
    test.create_index(date_index(0)).await.unwrap().unwrap();
    let with = |id: i32, date: i64| rawdoc! {"_id": id, "n": 5, "at": bolide_mql::bson::DateTime::from_millis(date)};
    test.insert(with(1, START + 1_000)).await.unwrap();
    test.insert(with(2, START + 9_000)).await.unwrap();
    test.set_clock(START + 1_000);
    let unique = rawdoc! {"key": {"n": 1}, "name": "n_1", "unique": true};
    test.create_index(unique).await.unwrap().unwrap();
    assert_eq!(test.insert(rawdoc! {"_id": 3, "n": 5}).await.unwrap_err().index, 2);
    assert_eq!(test.ids().await, [2]);
}

/// TTL-233, TTL-286: a document is written by the indexes that are in force at its commit, whenever it was prepared.
#[tokio::test]
async fn a_document_that_was_prepared_before_its_indexes_changed_is_written_by_the_new_ones() {
    let test = TestCollection::new().await;
    let without = [1, 2].map(|id| test.draft(dated(id, START - 1)));
    test.create_index(date_index(0)).await.unwrap().unwrap();
    for draft in &without {
        test.write(draft.clone()).await.unwrap();
    }
    assert_eq!(test.ids().await, Vec::<i32>::new(), "both have ended");

    let with = test.draft(dated(3, START - 1));
    test.change_index("at_1", None).await;
    test.write(with).await.unwrap();
    assert_eq!(test.ids().await, [3], "no index has a date for it");

    let free = test.draft(rawdoc! { "_id": 4, "u": 1 });
    test.insert(rawdoc! { "_id": 5, "u": 1 }).await.unwrap();
    let unique = rawdoc! { "key": { "u": 1 }, "name": "u_1", "unique": true };
    test.create_index(unique).await.unwrap().unwrap();
    assert!(test.write(free).await.is_err(), "the key is taken");
    assert_eq!(test.ids().await, [3, 5]);
}

/// An engine that several accounts share checks new entries with the commit, which has only those of documents that are inserted. Of one that is refused for
/// another reason, it is not known yet whether its `_id` is there.
#[tokio::test]
async fn a_document_that_is_there_is_refused_for_its_id_also_if_one_before_it_has_its_unique_key() {
    let test = TestCollection::on_shared_engine().await;
    let unique = rawdoc! { "key": { "u": 1 }, "name": "u_1", "unique": true };
    test.create_index(unique).await.unwrap().unwrap();
    test.insert(rawdoc! { "_id": 1, "u": 1 }).await.unwrap();
    let [new, there] =
        [rawdoc! { "_id": 2, "u": 2 }, rawdoc! { "_id": 1, "u": 2 }].map(|document| test.draft(document));
    let ctx = test.account.begin().await.unwrap();
    let target = (&test.collection, Epk::start());
    let write = test.account.write_document(&ctx, target, move |batch| {
        Ok([batch.insert(&new)?, batch.insert(&there)?])
    });
    assert_eq!(write.await.unwrap().value, [Ok(()), Err(Duplicate { index: 0 })]);
    assert_eq!(test.ids().await, [1, 2]);
}
