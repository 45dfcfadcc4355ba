//! Request units of reads and transactions.

use bolide_core::{AccountOptions, DocumentScan, OpenTransaction, Pacing, PacingSettings, ReadScope, RequestContext};
use bolide_model::epk::Epk;
use bolide_model::{ErrorKind, UnixMillis};
use bolide_mql::bson::rawdoc;

use super::fixture::{START, TestCollection, document_id};
use crate::test_container::options;

/// A collection with five documents of 10 KB and 20 units per second.
async fn limited() -> TestCollection {
    let enforced = AccountOptions {
        enforce_throughput: true,
        ..options()
    };
    let test = TestCollection::with_options(enforced).await;
    for id in 1..=5 {
        test.insert(rawdoc! {"_id": id, "pad": "x".repeat(10_000)})
            .await
            .unwrap();
    }
    let pacing = PacingSettings {
        pacing: Pacing::Provisioned { ru: 20.0 },
        delete_ru: None,
        count_only_load: false,
    };
    test.account.set_pacing(&test.collection, pacing).await.unwrap();
    test.set_clock(START + 1_000);
    test
}

impl TestCollection {
    async fn request(&self) -> RequestContext {
        self.account.begin().await.unwrap()
    }

    async fn scan_all(&self, scope: &ReadScope) -> bolide_model::Result<usize> {
        let (mut scan, mut count) = (DocumentScan::default(), 0);
        while let Some(page) = scan.next_page(scope, &self.collection).await? {
            count += page.documents.len();
        }
        Ok(count)
    }
}

#[tokio::test]
async fn reads_use_up_the_throughput_of_their_second() {
    let test = limited().await;
    // A query that reads 50 KB costs 2.3 for its start, 0.1 for five documents, and 2.4 for their bytes: 4.8 of 20 units.
    for _ in 0..5 {
        let scope = test.account.read_scope(&test.request().await);
        assert_eq!(test.scan_all(&scope).await.unwrap(), 5);
    }
    let scope = test.account.read_scope(&test.request().await);
    let error = test.scan_all(&scope).await.unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Throttled { .. }), "{error}");
    let error = scope
        .find(&test.collection, &Epk::start(), &document_id(1))
        .await
        .unwrap_err();
    assert!(error.is_throttled(), "{error}");
    let unmetered = ReadScope::new(test.request().await.now);
    assert_eq!(test.scan_all(&unmetered).await.unwrap(), 5);
    test.set_clock(START + 2_000);
    // A point read of 10 KB costs 1.4 units, one that finds nothing 1.
    for n in 0..17 {
        let scope = test.account.read_scope(&test.request().await);
        let found = scope
            .find(&test.collection, &Epk::start(), &document_id(if n < 7 { 1 } else { 9 }))
            .await;
        assert_eq!(found.unwrap().is_some(), n < 7, "no. {n}");
    }
    // 7 × 1.42 + 10 × 1 = 19.94 units were consumed, so that one more read is admitted.
    for is_admitted in [true, false] {
        let scope = test.account.read_scope(&test.request().await);
        let found = scope.find(&test.collection, &Epk::start(), &document_id(9)).await;
        assert_eq!(found.is_ok(), is_admitted);
    }
}

#[tokio::test]
async fn a_command_that_has_begun_reads_to_its_end() {
    let test = limited().await;
    let scope = test.account.read_scope(&test.request().await);
    for _ in 0..10 {
        assert_eq!(test.scan_all(&scope).await.unwrap(), 5);
    }
}

#[tokio::test]
async fn a_transaction_is_charged_when_it_commits() {
    let test = limited().await;
    let now = test.request().await.now;
    let until = UnixMillis(now.0 + 60_000);
    let begun = test
        .account
        .begin_transaction(&test.collection, now, until)
        .await
        .unwrap();
    let transaction = OpenTransaction::new(begun);
    for id in 6..=9 {
        let draft = test.draft(rawdoc! {"_id": id, "pad": "x".repeat(10_000)});
        let insert = |batch: &mut bolide_core::DocumentBatch<'_, '_>| batch.insert(&draft);
        transaction.write(&test.collection, insert).await.unwrap().unwrap();
    }
    let free = test.account.read_scope(&test.request().await);
    assert!(
        free.find(&test.collection, &Epk::start(), &document_id(9))
            .await
            .unwrap()
            .is_none(),
        "nothing is charged yet"
    );
    let transaction = transaction.take().await.unwrap();
    test.account.commit_transaction(transaction, None).await.unwrap();
    // Four writes of 10 KB cost 7.5 units each.
    let scope = test.account.read_scope(&test.request().await);
    assert!(
        scope
            .find(&test.collection, &Epk::start(), &document_id(9))
            .await
            .unwrap_err()
            .is_throttled()
    );

    let now = test.request().await.now;
    let begun = test
        .account
        .begin_transaction(&test.collection, now, until)
        .await
        .unwrap();
    let refused = OpenTransaction::new(begun)
        .find(&test.collection, &document_id(1))
        .await;
    assert!(refused.unwrap_err().is_throttled());
}
