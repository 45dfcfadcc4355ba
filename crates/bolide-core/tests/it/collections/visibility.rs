//! When documents end, as readers see it (mongo.md §18).

use bolide_mql::bson::rawdoc;

use super::fixture::{START, TestCollection, date_index, dated};

#[tokio::test]
async fn a_document_ends_in_the_millisecond_of_its_date_and_the_seconds_of_the_index() {
    let test = TestCollection::new().await;
    test.create_index(date_index(10)).await.unwrap().unwrap();
    test.insert(dated(1, START + 5)).await.unwrap();
    test.insert(rawdoc! {"_id": 2, "at": "never"}).await.unwrap();
    test.set_clock(START + 10_004);
    assert_eq!(test.ids().await, [1, 2]);
    test.set_clock(START + 10_005);
    assert_eq!(test.ids().await, [2]);
}

#[tokio::test]
async fn an_ended_document_leaves_its_id_and_its_unique_keys_to_others() {
    // mongo.md §19 no. 13, TTL-286.
    let test = TestCollection::new().await;
    test.create_index(date_index(0)).await.unwrap().unwrap();
    let unique = rawdoc! {"key": {"email": 1}, "name": "email_1", "unique": true};
    test.create_index(unique).await.unwrap().unwrap();
    let mut first = dated(1, START + 1_000);
    first.append(bolide_mql::bson::raw::cstr!("email"), "a@x");
    test.insert(first).await.unwrap();
    assert_eq!(
        test.insert(rawdoc! {"_id": 2, "email": "a@x"}).await.unwrap_err().index,
        2
    );
    assert_eq!(
        test.insert(rawdoc! {"_id": 1, "email": "b@x"}).await.unwrap_err().index,
        0
    );
    test.set_clock(START + 1_000);
    assert!(!test.delete(1).await);
    test.insert(rawdoc! {"_id": 2, "email": "a@x"}).await.unwrap();
    test.insert(rawdoc! {"_id": 1, "email": "b@x"}).await.unwrap();
    assert_eq!(test.ids().await, [2, 1]);
}

#[tokio::test]
async fn what_an_index_has_ended_stays_ended_when_it_is_weakened_or_dropped() {
    // mongo.md §18.4 no. 4.
    for change in [Some(1_000), None] {
        let mut test = TestCollection::new().await;
        test.create_index(date_index(10)).await.unwrap().unwrap();
        test.insert(dated(1, START)).await.unwrap();
        test.insert(dated(2, START + 1)).await.unwrap();
        test.set_clock(START + 10_000);
        test.change_index("at_1", change).await;
        assert_eq!(test.ids().await, [2], "{change:?}");
        // Written after the change, so the old rule never judges it, although its date is as early.
        test.insert(dated(3, START)).await.unwrap();
        assert_eq!(test.ids().await, [2, 3], "{change:?}");
        test.reopen().await;
        test.set_clock(START + 20_000);
        assert_eq!(test.ids().await, [2, 3], "{change:?}");
        test.set_clock(START + 1_000_000);
        let expected: &[i32] = if change.is_some() { &[2] } else { &[2, 3] };
        assert_eq!(test.ids().await, expected, "{change:?}");
    }
}

#[tokio::test]
async fn a_document_that_is_written_past_its_date_is_never_seen() {
    // mongo.md §19 no. 15.
    let test = TestCollection::new().await;
    test.create_index(date_index(0)).await.unwrap().unwrap();
    test.insert(dated(1, START)).await.unwrap();
    assert!(test.ids().await.is_empty());
    assert!(!test.replace(dated(1, START + 5_000)).await);
    test.insert(dated(1, START + 5_000)).await.unwrap();
    assert_eq!(test.ids().await, [1]);
    assert!(test.replace(dated(1, START - 1)).await);
    assert!(test.ids().await.is_empty());
}

#[tokio::test]
async fn the_earliest_of_both_kinds_of_ttl_counts() {
    // mongo.md §18.4 no. 2, TTL-280.
    let test = TestCollection::new().await;
    test.create_index(date_index(0)).await.unwrap().unwrap();
    let core = rawdoc! {"key": {"_ts": 1}, "name": "_ts_1", "expireAfterSeconds": 10};
    test.create_index(core).await.unwrap().unwrap();
    test.insert(dated(1, START + 5_500)).await.unwrap();
    test.insert(dated(2, START + 50_000)).await.unwrap();
    test.insert(rawdoc! {"_id": 3, "ttl": 20}).await.unwrap();
    test.insert(rawdoc! {"_id": 4, "ttl": 20.5}).await.unwrap();
    for (after, ids) in [
        (5_499, &[1, 2, 3, 4][..]),
        (5_500, &[2, 3, 4]),
        (9_999, &[2, 3, 4]),
        (10_000, &[3]),
        (20_000, &[]),
    ] {
        test.set_clock(START + after);
        assert_eq!(test.ids().await, ids, "after {after} ms");
    }
}
