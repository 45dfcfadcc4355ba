//! Documents in the order of an index.

use std::sync::Arc;

use bolide_core::{CollectionChange, OrderedWalk, ReadScope, Selection, Walked};
use bolide_model::epk::Epk;
use bolide_mql::bson::{RawDocumentBuf, rawdoc};
use bolide_mql::filter::Filter;
use bolide_mql::sort::Sort;

use super::fixture::{START, TestCollection, date_index, dated};

impl TestCollection {
    /// Returns a walk in an order, if an index has it.
    fn walk(&self, order: RawDocumentBuf) -> Option<OrderedWalk> {
        let selection = Selection {
            filter: Arc::new(Filter::all()),
            collation: None,
            hint: None,
        };
        let sort = Sort::parse(&order).expect("a sort");
        OrderedWalk::plan(&self.collection, selection, &sort, Some(&Epk::start()))
    }

    /// Returns the ids of the next documents, at most so many, of one command.
    async fn step(&self, walk: &mut OrderedWalk, most: usize) -> Vec<i32> {
        let scope = ReadScope::new(self.account.begin().await.expect("a clock").now);
        walk.want(Some(most as u64));
        let mut ids = Vec::new();
        while ids.len() < most {
            match walk.next(&scope, &self.collection).await.expect("a step") {
                Walked::Document(document) => ids.push(document.document().get_i32("_id").expect("an int")),
                Walked::More => {}
                Walked::End => break,
                Walked::GivenUp => panic!("it was given up"),
            }
        }
        walk.rest();
        ids
    }
}

fn n_index() -> RawDocumentBuf {
    rawdoc! {"key": {"n": 1}, "name": "n_1"}
}

/// Five hundred documents, of which every fiftieth has the same number.
async fn filled() -> TestCollection {
    let test = TestCollection::new().await;
    test.create_index(n_index()).await.unwrap().unwrap();
    for id in 0..500 {
        test.insert(rawdoc! {"_id": id, "n": id % 50}).await.unwrap();
    }
    test
}

#[tokio::test]
async fn as_many_entries_are_read_as_documents_are_wanted() {
    let test = filled().await;
    let mut backward = test.walk(rawdoc! {"n": -1}).expect("an order");
    let found = test.step(&mut backward, 20).await;
    // Those that sort alike come backward, too.
    let of = |n: i32| (0..10).rev().map(move |at| 50 * at + n);
    assert_eq!(found, of(49).chain(of(48)).collect::<Vec<_>>());
    assert_eq!(backward.keys_examined(), 20);
    let mut all = test.walk(rawdoc! {"n": 1}).expect("an order");
    let expected: Vec<i32> = (0..50).flat_map(|n| (0..10).map(move |at| 50 * at + n)).collect();
    assert_eq!(test.step(&mut all, 1_000).await, expected);
    let mut by_id = test.walk(rawdoc! {"_id": -1}).expect("an order");
    assert_eq!(test.step(&mut by_id, 3).await, [499, 498, 497]);
    assert_eq!(test.step(&mut by_id, 2).await, [496, 495]);
    assert!(test.walk(rawdoc! {"m": 1}).is_none());
}

#[tokio::test]
async fn ghosts_do_not_come_and_are_not_counted() {
    let test = TestCollection::new().await;
    test.create_index(date_index(0)).await.unwrap().unwrap();
    for id in 0..20 {
        test.insert(dated(id, START + i64::from(id))).await.unwrap();
    }
    test.set_clock(START + 15);
    for _ in 0..2 {
        let mut walk = test.walk(rawdoc! {"at": 1}).expect("an order");
        assert_eq!(test.step(&mut walk, 2).await, [16, 17]);
        assert!(walk.keys_examined() <= 4, "{}", walk.keys_examined());
        assert_eq!(test.step(&mut walk, 10).await, [18, 19]);
        let mut backward = test.walk(rawdoc! {"at": -1}).expect("an order");
        assert_eq!(test.step(&mut backward, 10).await, [19, 18, 17, 16]);
        assert_eq!(backward.keys_examined(), 4);
        test.purge().await;
    }
    // What ends while the walk rests does not come either.
    let mut walk = test.walk(rawdoc! {"at": 1}).expect("an order");
    assert_eq!(test.step(&mut walk, 1).await, [16]);
    test.set_clock(START + 18);
    assert_eq!(test.step(&mut walk, 10).await, [19]);
}

#[tokio::test]
async fn a_walk_goes_on_where_it_was_in_what_is_there_then() {
    let mut test = TestCollection::new().await;
    test.create_index(n_index()).await.unwrap().unwrap();
    for id in 1..=9 {
        test.insert(rawdoc! {"_id": id, "n": 10 * id}).await.unwrap();
    }
    let mut walk = test.walk(rawdoc! {"n": 1}).expect("an order");
    assert_eq!(test.step(&mut walk, 3).await, [1, 2, 3]);
    // One goes, one comes, one moves behind, and one before what was read.
    assert!(test.delete(5).await);
    test.insert(rawdoc! {"_id": 10, "n": 65}).await.unwrap();
    assert!(test.replace(rawdoc! {"_id": 4, "n": 85}).await);
    assert!(test.replace(rawdoc! {"_id": 7, "n": 5}).await);
    assert_eq!(test.step(&mut walk, 2).await, [6, 10]);
    test.reopen().await;
    assert_eq!(test.step(&mut walk, 10).await, [8, 4, 9]);
}

#[tokio::test]
async fn a_walk_ends_with_its_index_and_with_keys_out_of_order() {
    let test = filled().await;
    let remove = |change: &mut CollectionChange<'_>| {
        change.definition.remove_index("n_1", change.now);
        Ok(())
    };
    let mut walk = test.walk(rawdoc! {"n": 1}).expect("an order");
    assert_eq!(test.step(&mut walk, 2).await, [0, 50]);
    test.account.change_collection(&test.collection, remove).await.unwrap();
    let scope = ReadScope::new(test.account.begin().await.unwrap().now);
    let next = walk.next(&scope, &test.collection).await.unwrap();
    assert!(matches!(next, Walked::GivenUp));
    assert!(walk.is_given_up());
    drop(scope);
    let long = rawdoc! {"_id": 1_000, "n": "x".repeat(2_000)};
    test.create_index(n_index()).await.unwrap().unwrap();
    test.insert(long).await.unwrap();
    // Keys are cut: they do not tell the order of long values.
    let mut backward = test.walk(rawdoc! {"n": -1}).expect("an order");
    let scope = ReadScope::new(test.account.begin().await.unwrap().now);
    let next = backward.next(&scope, &test.collection).await.unwrap();
    assert!(matches!(next, Walked::GivenUp));
    let mut forward = test.walk(rawdoc! {"n": 1}).expect("an order");
    assert_eq!(test.step(&mut forward, 2).await, [0, 50]);
}
