//! Transactions: what they read, and when they conflict (mongo.md §7, TTL-290, TTL-292).

use std::sync::Arc;

use bolide_core::{DocumentScan, OpenTransaction, ReadScope};
use bolide_model::error::Detail;
use bolide_model::{Error, Reason, UnixMillis};
use bolide_mql::bson::{RawDocumentBuf, rawdoc};

use super::fixture::{START, TestCollection, date_index, dated, document_id};

struct Session<'t> {
    test: &'t TestCollection,
    transaction: Arc<OpenTransaction>,
}

impl Session<'_> {
    async fn begin(test: &TestCollection) -> Session<'_> {
        let now = test.account.begin().await.unwrap().now;
        let until = UnixMillis(now.0 + 60_000);
        let transaction = test.account.begin_transaction(&test.collection, now, until).await;
        Session {
            test,
            transaction: Arc::new(OpenTransaction::new(transaction.unwrap())),
        }
    }

    async fn ids(&self) -> Vec<i32> {
        let scope = ReadScope::in_transaction(UnixMillis(0), self.transaction.clone());
        let (mut scan, mut ids) = (DocumentScan::default(), Vec::new());
        while let Some(page) = scan.next_page(&scope, &self.test.collection).await.unwrap() {
            ids.extend(
                page.documents
                    .iter()
                    .map(|found| found.document().get_i32("_id").unwrap()),
            );
        }
        ids
    }

    async fn insert(&self, document: RawDocumentBuf) -> bool {
        let draft = self.test.draft(document);
        let inserted = self
            .transaction
            .write(&self.test.collection, |batch| batch.insert(&draft))
            .await;
        inserted.unwrap().is_ok()
    }

    async fn replace(&self, document: RawDocumentBuf) {
        self.try_replace(document).await.unwrap();
    }

    async fn try_replace(&self, document: RawDocumentBuf) -> Result<(), Error> {
        let draft = self.test.draft(document);
        let replaced = self.transaction.write(&self.test.collection, |batch| {
            let found = batch.find(draft.id())?.expect("it is there");
            batch.replace(&found, &draft)
        });
        replaced.await.map(|replaced| replaced.unwrap())
    }

    async fn try_insert(&self, document: RawDocumentBuf) -> Result<(), Error> {
        let draft = self.test.draft(document);
        let inserted = self
            .transaction
            .write(&self.test.collection, |batch| batch.insert(&draft));
        inserted.await.map(|inserted| inserted.unwrap())
    }

    async fn delete(&self, id: i32) {
        let id = document_id(id);
        let deleted = self.transaction.write(&self.test.collection, |batch| {
            let found = batch.find(&id)?.expect("it is there");
            batch.delete(&found);
            Ok(())
        });
        deleted.await.unwrap();
    }

    async fn commit(self) -> Result<(), Error> {
        let transaction = self.transaction.take().await.expect("it is open");
        self.test.account.commit_transaction(transaction, None).await
    }
}

fn is_conflict(committed: Result<(), Error>) -> bool {
    matches!(
        committed,
        Err(Error {
            detail: Detail::Reason(Reason::WriteConflict),
            ..
        })
    )
}

#[tokio::test]
async fn a_transaction_sees_its_snapshot_and_its_own_writes_and_others_see_neither() {
    let test = TestCollection::new().await;
    for id in 1..=3 {
        test.insert(rawdoc! {"_id": id, "n": 0}).await.unwrap();
    }
    let session = Session::begin(&test).await;
    assert_eq!(session.ids().await, [1, 2, 3]);
    test.insert(rawdoc! {"_id": 4}).await.unwrap();
    session.delete(2).await;
    assert!(session.insert(rawdoc! {"_id": 5}).await);
    assert!(!session.insert(rawdoc! {"_id": 5}).await);
    session.replace(rawdoc! {"_id": 1, "n": 1}).await;
    assert_eq!(session.ids().await, [1, 3, 5]);
    assert_eq!(test.ids().await, [1, 2, 3, 4]);
    session.commit().await.unwrap();
    assert_eq!(test.ids().await, [1, 3, 4, 5]);
}

#[tokio::test]
async fn the_first_of_two_transactions_that_write_a_document_wins() {
    let test = TestCollection::new().await;
    test.insert(rawdoc! {"_id": 1, "n": 0}).await.unwrap();
    let (first, second) = (Session::begin(&test).await, Session::begin(&test).await);
    first.replace(rawdoc! {"_id": 1, "n": 1}).await;
    assert!(second.insert(rawdoc! {"_id": 2}).await);
    assert!(is_conflict(second.try_replace(rawdoc! {"_id": 1, "n": 2}).await));
    // It can only be ended.
    assert!(is_conflict(second.try_insert(rawdoc! {"_id": 3}).await));
    first.commit().await.unwrap();
    assert!(is_conflict(second.commit().await));
    assert_eq!(test.ids().await, [1]);
}

#[tokio::test]
async fn what_a_transaction_has_written_is_free_when_it_ends() {
    let test = TestCollection::new().await;
    test.insert(rawdoc! {"_id": 1, "n": 0}).await.unwrap();
    for ends in [false, true] {
        let first = Session::begin(&test).await;
        first.replace(rawdoc! {"_id": 1, "n": 1}).await;
        assert!(first.insert(rawdoc! {"_id": 2}).await);
        let kept = first.transaction.clone();
        if ends {
            // Others, such as cursors, may still know it.
            first.transaction.end();
        } else {
            drop(first);
            drop(kept);
        }
        let second = Session::begin(&test).await;
        second.replace(rawdoc! {"_id": 1, "n": 2}).await;
        assert!(second.insert(rawdoc! {"_id": 2}).await);
    }
}

#[tokio::test]
async fn a_transaction_meets_what_was_committed_since_it_began_when_it_writes() {
    let test = TestCollection::new().await;
    let unique = rawdoc! {"key": {"n": 1}, "name": "n_1", "unique": true};
    test.create_index(unique).await.unwrap().unwrap();
    for id in 1..=3 {
        test.insert(rawdoc! {"_id": id, "n": id}).await.unwrap();
    }
    let first = Session::begin(&test).await;
    let others: Vec<Session<'_>> = vec![
        Session::begin(&test).await,
        Session::begin(&test).await,
        Session::begin(&test).await,
        Session::begin(&test).await,
    ];
    first.replace(rawdoc! {"_id": 1, "n": 10}).await;
    first.delete(2).await;
    assert!(first.insert(rawdoc! {"_id": 4, "n": 4}).await);
    first.commit().await.unwrap();
    assert!(is_conflict(others[0].try_replace(rawdoc! {"_id": 1, "n": 11}).await));
    assert!(is_conflict(others[1].try_replace(rawdoc! {"_id": 2, "n": 12}).await));
    assert!(is_conflict(others[2].try_insert(rawdoc! {"_id": 4, "n": 13}).await));
    others[3].try_replace(rawdoc! {"_id": 3, "n": 14}).await.unwrap();
    assert!(is_conflict(others[3].try_insert(rawdoc! {"_id": 5, "n": 10}).await));
}

#[tokio::test]
async fn the_same_key_in_two_open_transactions_is_a_conflict() {
    let test = TestCollection::new().await;
    let unique = rawdoc! {"key": {"n": 1}, "name": "n_1", "unique": true};
    test.create_index(unique).await.unwrap().unwrap();
    for id in 1..=2 {
        test.insert(rawdoc! {"_id": id, "n": id}).await.unwrap();
    }
    for (one, other) in [
        (rawdoc! {"_id": 3, "n": 3}, rawdoc! {"_id": 3, "n": 4}),
        (rawdoc! {"_id": 3, "n": 3}, rawdoc! {"_id": 4, "n": 3}),
    ] {
        let (first, second, third) = (
            Session::begin(&test).await,
            Session::begin(&test).await,
            Session::begin(&test).await,
        );
        first.try_insert(one).await.unwrap();
        assert!(is_conflict(second.try_insert(other).await));
        // New documents of two transactions have nothing to do with each other.
        third.try_insert(rawdoc! {"_id": 5, "n": 5}).await.unwrap();
        third.replace(rawdoc! {"_id": 5, "n": 6}).await;
    }
    let (first, second) = (Session::begin(&test).await, Session::begin(&test).await);
    test.insert(rawdoc! {"_id": 7, "n": 7}).await.unwrap();
    assert!(is_conflict(first.try_insert(rawdoc! {"_id": 7, "n": 8}).await));
    assert!(is_conflict(second.try_replace(rawdoc! {"_id": 1, "n": 7}).await));
}

#[tokio::test]
async fn a_document_that_ends_during_a_transaction_stays_visible_to_it_and_cannot_be_written() {
    // TTL-290, TTL-292: whether the purge has removed it must not show.
    for is_purged in [false, true] {
        let test = TestCollection::new().await;
        let core = rawdoc! {"key": {"_ts": 1}, "name": "_ts_1", "expireAfterSeconds": 10};
        test.create_index(core).await.unwrap().unwrap();
        test.insert(rawdoc! {"_id": 1, "n": 0}).await.unwrap();
        test.insert(rawdoc! {"_id": 2, "ttl": -1}).await.unwrap();
        let session = Session::begin(&test).await;
        assert_eq!(session.ids().await, [1, 2]);
        test.set_clock(START + 10_000);
        if is_purged {
            assert_eq!(test.purge().await, 1);
        }
        assert_eq!(test.ids().await, [2]);
        assert_eq!(session.ids().await, [1, 2]);
        assert!(
            !session.insert(rawdoc! {"_id": 1}).await,
            "a conflict with a document that dies is still one"
        );
        let replaced = session.try_replace(rawdoc! {"_id": 1, "n": 1}).await;
        assert!(is_conflict(replaced), "purged: {is_purged}");
        assert_eq!(test.ids().await, [2]);
    }
}

#[tokio::test]
async fn a_document_that_ends_after_a_transaction_wrote_it_conflicts_at_the_commit() {
    // TTL-290, TTL-292: whether the purge has removed it must not show.
    for is_purged in [false, true] {
        let test = TestCollection::new().await;
        let core = rawdoc! {"key": {"_ts": 1}, "name": "_ts_1", "expireAfterSeconds": 10};
        test.create_index(core).await.unwrap().unwrap();
        test.insert(rawdoc! {"_id": 1, "n": 0}).await.unwrap();
        let session = Session::begin(&test).await;
        session.replace(rawdoc! {"_id": 1, "n": 1}).await;
        test.set_clock(START + 10_000);
        if is_purged {
            assert_eq!(test.purge().await, 1);
        }
        assert_eq!(session.ids().await, [1]);
        assert!(is_conflict(session.commit().await), "purged: {is_purged}");
        assert!(test.ids().await.is_empty());
    }
}

#[tokio::test]
async fn unique_keys_may_move_between_documents_of_a_transaction() {
    let test = TestCollection::new().await;
    let unique = rawdoc! {"key": {"n": 1}, "name": "n_1", "unique": true};
    test.create_index(unique).await.unwrap().unwrap();
    test.insert(rawdoc! {"_id": 1, "n": 1}).await.unwrap();
    test.insert(rawdoc! {"_id": 2, "n": 2}).await.unwrap();
    let session = Session::begin(&test).await;
    session.replace(rawdoc! {"_id": 1, "n": 9}).await;
    session.replace(rawdoc! {"_id": 2, "n": 1}).await;
    session.replace(rawdoc! {"_id": 1, "n": 2}).await;
    session.commit().await.unwrap();
    assert_eq!(test.insert(rawdoc! {"_id": 3, "n": 1}).await.unwrap_err().index, 1);
    assert_eq!(test.insert(rawdoc! {"_id": 3, "n": 2}).await.unwrap_err().index, 1);
    test.insert(rawdoc! {"_id": 3, "n": 9}).await.unwrap();
}

#[tokio::test]
async fn what_a_transaction_writes_gets_its_time_at_the_commit() {
    let test = TestCollection::new().await;
    test.create_index(date_index(1_000)).await.unwrap().unwrap();
    let core = rawdoc! {"key": {"_ts": 1}, "name": "_ts_1", "expireAfterSeconds": 10};
    test.create_index(core).await.unwrap().unwrap();
    let session = Session::begin(&test).await;
    assert!(session.insert(dated(1, START)).await);
    test.set_clock(START + 9_000);
    session.commit().await.unwrap();
    test.set_clock(START + 18_999);
    assert_eq!(test.ids().await, [1]);
    test.set_clock(START + 19_000);
    assert!(test.ids().await.is_empty());
}
