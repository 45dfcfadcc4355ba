//! The entries of indexes of collections, and which scans read them.

use std::sync::Arc;
use std::time::Duration;

use bolide_core::{CollectionChange, DocumentScan, ReadScope, Selection};
use bolide_mql::bson::{RawDocumentBuf, rawdoc};
use bolide_mql::filter::Filter;
use bolide_mql::index::{IndexDefinition, ParseOptions};

use super::fixture::{START, TestCollection, date_index, dated};

impl TestCollection {
    /// Returns the ids that a scan for a filter returns, which may be too many, and whether it has read by an index.
    async fn selected(&self, filter: RawDocumentBuf) -> (Vec<i32>, bool) {
        let selection = Selection {
            filter: Arc::new(Filter::parse(&filter).expect("a filter")),
            collation: None,
            hint: None,
        };
        let scope = ReadScope::new(self.account.begin().await.expect("a clock").now);
        let (mut scan, mut ids) = (DocumentScan::default().selecting(selection), Vec::new());
        while let Some(page) = scan.next_page(&scope, &self.collection).await.expect("a page") {
            let found = page.documents.iter();
            ids.extend(found.map(|document| document.document().get_i32("_id").expect("an int")));
        }
        (ids, !scan.plan().is_empty())
    }

    /// Waits until the background task has built what is missing.
    async fn wait_until_served(&self, filter: &RawDocumentBuf) -> Vec<i32> {
        for _ in 0..2_000 {
            let (ids, is_served) = self.selected(filter.clone()).await;
            if is_served {
                return ids;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("the index is not built");
    }

    async fn assert_sound(&self) {
        let report = self.account.verify(&self.collection).await.expect("a report");
        assert!(report.is_ok(), "{:?}", report.problems);
    }
}

fn n_index() -> RawDocumentBuf {
    rawdoc! {"key": {"n": 1}, "name": "n_1"}
}

/// Five hundred documents, of which every fiftieth has the same number.
async fn filled() -> TestCollection {
    let test = TestCollection::new().await;
    for id in 0..500 {
        test.insert(rawdoc! {"_id": id, "n": id % 50}).await.unwrap();
    }
    test
}

#[tokio::test]
async fn an_index_is_used_when_it_is_built_and_no_longer_when_it_is_dropped() {
    let test = filled().await;
    let filter = || rawdoc! {"n": 7};
    assert_eq!(test.selected(filter()).await.0.len(), 500);
    test.create_index(n_index()).await.unwrap().unwrap();
    assert_eq!(
        test.selected(filter()).await,
        ((0..10).map(|n| 50 * n + 7).collect(), true)
    );
    assert!(test.replace(rawdoc! {"_id": 7, "n": 8}).await);
    assert!(test.delete(57).await);
    assert_eq!(test.selected(filter()).await.0.len(), 8);
    test.assert_sound().await;
    test.change_index("n_1", None).await;
    assert!(!test.selected(filter()).await.1);
    test.create_index(n_index()).await.unwrap().unwrap();
    assert_eq!(test.selected(filter()).await.0.len(), 8);
    test.assert_sound().await;
}

#[tokio::test]
async fn a_build_that_a_stop_interrupts_leaves_no_index() {
    let mut test = filled().await;
    let begin = |change: &mut CollectionChange<'_>| {
        let definition = IndexDefinition::parse(&n_index(), &ParseOptions::default()).expect("valid");
        change.definition.add_index(definition, None, true);
        Ok(())
    };
    test.account.change_collection(&test.collection, begin).await.unwrap();
    assert!(!test.selected(rawdoc! {"n": 7}).await.1);
    test.reopen().await;
    assert!(!test.selected(rawdoc! {"n": 7}).await.1);
    assert_eq!(test.collection.collection().unwrap().indexes.len(), 1);
    test.create_index(n_index()).await.unwrap().unwrap();
    assert_eq!(test.selected(rawdoc! {"n": 7}).await.0.len(), 10);
    test.assert_sound().await;
}

#[tokio::test]
async fn an_index_that_nobody_has_built_is_built_in_the_background() {
    let test = filled().await;
    // As in a store of a version that had no entries.
    let add = |change: &mut CollectionChange<'_>| {
        let definition = IndexDefinition::parse(&n_index(), &ParseOptions::default()).expect("valid");
        change.definition.add_index(definition, None, false);
        Ok(())
    };
    test.account.change_collection(&test.collection, add).await.unwrap();
    assert_eq!(test.wait_until_served(&rawdoc! {"n": 7}).await.len(), 10);
    test.assert_sound().await;
}

#[tokio::test]
async fn ghosts_are_not_found_and_the_purge_removes_their_entries() {
    let test = TestCollection::new().await;
    test.create_index(date_index(0)).await.unwrap().unwrap();
    for id in 0..20 {
        test.insert(dated(id, START + i64::from(id))).await.unwrap();
    }
    let all = || rawdoc! {"at": {"$gt": bolide_mql::bson::DateTime::from_millis(0)}};
    test.set_clock(START + 15);
    assert_eq!(test.selected(all()).await, ((16..20).collect(), true));
    assert_eq!(test.purge().await, 16);
    assert_eq!(test.selected(all()).await, ((16..20).collect(), true));
    test.assert_sound().await;
}

#[tokio::test]
async fn a_document_with_very_many_keys_is_found_too() {
    let test = TestCollection::new().await;
    test.create_index(n_index()).await.unwrap().unwrap();
    let mut many = bolide_mql::bson::RawArrayBuf::new();
    (0..3_000).for_each(|n: i32| many.push(n));
    test.insert(rawdoc! {"_id": 1, "n": many}).await.unwrap();
    test.insert(rawdoc! {"_id": 2, "n": 2_500}).await.unwrap();
    test.insert(rawdoc! {"_id": 3, "n": 5}).await.unwrap();
    assert_eq!(test.selected(rawdoc! {"n": 2_500}).await, (vec![1, 2], true));
    test.assert_sound().await;
}
