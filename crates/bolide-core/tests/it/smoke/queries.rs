//! Queries over pages: the order of rows, and what changes of items between pages do to it.

use std::time::Duration;

use bolide_core::{AccountOptions, QueryItems, ScanScope};
use bolide_model::ErrorKind;
use serde_json::{Value, json};

use crate::test_container::{TestContainer, options, scope_of};

/// One page of a query over the whole container, and where it goes on.
async fn page(
    test: &TestContainer,
    text: &str,
    size: usize,
    continuation: Option<String>,
) -> (Vec<Value>, Option<String>) {
    let query = QueryItems {
        text: text.to_owned(),
        scope: ScanScope::default(),
        cross_partition: true,
        max_items: Some(size),
        continuation,
        ..QueryItems::default()
    };
    let ctx = test.begin().await;
    let page = test.account.query(&ctx, &test.container, &query).await.unwrap().value;
    let rows = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap();
    (rows, page.continuation)
}

async fn rest(test: &TestContainer, text: &str, size: usize, mut continuation: Option<String>) -> Vec<Value> {
    let mut rows = Vec::new();
    while continuation.is_some() {
        let (more, next) = page(test, text, size, continuation).await;
        assert!(!more.is_empty() && more.len() <= size);
        rows.extend(more);
        continuation = next;
    }
    rows
}

async fn created(test: &TestContainer, ids: &[&str]) {
    for (n, id) in ids.iter().enumerate() {
        test.create(json!({"id": id, "pk": id, "n": n})).await.unwrap();
    }
}

const LETTERS: [&str; 7] = ["g", "c", "a", "f", "d", "b", "e"];

#[tokio::test]
async fn a_small_range_is_read_in_the_order_of_creation_over_all_keys() {
    let test = TestContainer::with(json!({})).await;
    created(&test, &LETTERS).await;
    for size in 1..=8 {
        let (mut rows, continuation) = page(&test, "SELECT VALUE c.id FROM c", size, None).await;
        rows.extend(rest(&test, "SELECT VALUE c.id FROM c", size, continuation).await);
        assert_eq!(rows, LETTERS.map(Value::from), "pages of {size}");
    }
    let (first, _) = page(&test, "SELECT TOP 2 VALUE c.id FROM c", 10, None).await;
    assert_eq!(first, [json!("g"), json!("c")]);
}

/// TTL-247: what was to come is neither lost nor shown twice.
#[tokio::test]
async fn pages_in_the_order_of_creation_go_on_behind_what_expired_and_before_what_is_new() {
    let test = TestContainer::with_ttl(-1).await;
    for (n, id) in LETTERS.iter().enumerate() {
        let mut item = json!({"id": id, "pk": id, "n": n});
        if n % 2 == 1 {
            item["ttl"] = json!(10);
        }
        test.create(item).await.unwrap();
    }
    let (rows, continuation) = page(&test, "SELECT VALUE c.id FROM c", 2, None).await;
    assert_eq!(rows, [json!("g"), json!("c")]);
    test.at(110);
    assert_eq!(test.purge().await, 3);
    created(&test, &["new"]).await;
    let rows = rest(&test, "SELECT VALUE c.id FROM c", 2, continuation).await;
    assert_eq!(rows, ["a", "d", "e", "new"].map(Value::from));
}

#[tokio::test]
async fn pages_in_the_order_of_creation_go_on_when_the_range_has_grown_large() {
    let test = TestContainer::with(json!({})).await;
    created(&test, &LETTERS).await;
    let (_, continuation) = page(&test, "SELECT VALUE c.id FROM c", 3, None).await;
    for n in 0..1_200 {
        let id = format!("n{n}");
        test.create(json!({"id": id, "pk": id})).await.unwrap();
    }
    let rows = rest(&test, "SELECT VALUE c.id FROM c", 500, continuation).await;
    let old = LETTERS[3..].iter().map(|id| Value::from(*id));
    let new = (0..1_200).map(|n| Value::from(format!("n{n}")));
    assert_eq!(rows, old.chain(new).collect::<Vec<_>>());
}

#[tokio::test]
async fn keys_of_one_range_need_no_merge_and_are_read_in_the_order_of_creation() {
    let test = TestContainer::with(json!({})).await;
    created(&test, &LETTERS).await;
    let few = "FROM c WHERE c.pk IN ('a', 'b', 'c', 'g')";
    let (sum, _) = page(&test, &format!("SELECT VALUE SUM(c.n) {few}"), 10, None).await;
    assert_eq!(sum, [json!(8)]);
    let (first, _) = page(&test, &format!("SELECT TOP 2 VALUE c.id {few}"), 10, None).await;
    assert_eq!(first, [json!("g"), json!("c")]);
}

/// A query over several ranges is answered without a merge where its filter leaves one partition key over.
#[tokio::test]
async fn a_filter_that_pins_the_key_needs_no_merge() {
    let test = TestContainer::with(json!({})).await;
    for n in 0..12 {
        let (id, pk) = (n.to_string(), format!("p{}", n % 4));
        test.create(json!({"id": id, "pk": pk, "n": n})).await.unwrap();
    }
    test.account.split(&test.container, None).await.unwrap();
    for (text, expected) in [
        ("SELECT VALUE AVG(c.n) FROM c WHERE c.pk = 'p1'", json!([5])),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.pk = 'p1'", json!([3])),
        (
            "SELECT VALUE c.n FROM c WHERE c.pk = 'p1' ORDER BY c.n DESC",
            json!([9, 5, 1]),
        ),
        ("SELECT TOP 1 VALUE c.n FROM c WHERE c.pk = 'p2'", json!([2])),
        ("SELECT DISTINCT VALUE c.pk FROM c WHERE c.pk = 'p3'", json!(["p3"])),
        (
            "SELECT c.pk, SUM(c.n) AS n FROM c WHERE c.pk = 'p0' GROUP BY c.pk",
            json!([{"pk": "p0", "n": 12}]),
        ),
    ] {
        let (rows, continuation) = page(&test, text, 100, None).await;
        assert_eq!((Value::from(rows), continuation), (expected, None), "{text}");
    }
    // Source of the second: the Python SDK's test_aggregate.
    for text in ["SELECT COUNT(1) FROM c", "SELECT AVG(c.n) FROM c WHERE c.pk = 'p1'"] {
        let query = QueryItems {
            text: text.to_owned(),
            cross_partition: true,
            ..QueryItems::default()
        };
        let ctx = test.begin().await;
        let refusal = test.account.query(&ctx, &test.container, &query).await;
        let kind = refusal.expect_err("a refusal").error.kind;
        assert!(
            matches!(kind, ErrorKind::CrossPartitionQuery { .. }),
            "{text}: {kind:?}"
        );
    }
}

/// Items whose `v` are 0, 1, 2, 0, 1, 2 and so on; every third lives for ten seconds only.
async fn with_values(test: &TestContainer, count: usize) {
    for n in 0..count {
        let mut item = json!({"id": format!("i{n}"), "pk": format!("p{n}"), "v": n % 3, "n": n});
        if n % 3 == 0 {
            item["ttl"] = json!(10);
        }
        test.create(item).await.unwrap();
    }
}

/// TTL-246, TTL-247: what expires between two pages takes nothing else with it.
async fn assert_others_stay(count: usize, text: &str) {
    let test = TestContainer::with_ttl(-1).await;
    with_values(&test, count).await;
    let (mut given, continuation) = page(&test, text, 1, None).await;
    test.at(110);
    test.purge().await;
    given.extend(rest(&test, text, 1, continuation).await);
    for value in [1, 2] {
        let times = given.iter().filter(|row| **row == json!(value)).count();
        assert_eq!(times, 1, "{text}: {given:?}");
    }
}

#[tokio::test]
async fn distinct_values_stay_when_others_expire_between_pages() {
    for count in [9, 2_100] {
        assert_others_stay(count, "SELECT DISTINCT VALUE c.v FROM c").await;
        assert_others_stay(count, "SELECT DISTINCT VALUE c.v FROM c ORDER BY c.n").await;
    }
}

#[tokio::test]
async fn groups_stay_when_others_expire_between_pages() {
    assert_others_stay(9, "SELECT VALUE c.v FROM c GROUP BY c.v").await;
}

#[tokio::test]
async fn a_query_that_would_hold_too_much_is_refused_with_the_limit() {
    let options = AccountOptions {
        query_state_bytes: 10_000,
        ..options()
    };
    let test = TestContainer::with_options(json!({}), None, options).await;
    for n in 0..200 {
        let id = n.to_string();
        test.create(json!({"id": id, "pk": id, "n": n})).await.unwrap();
    }
    for (text, is_refused) in [
        ("SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n", true),
        ("SELECT * FROM c ORDER BY c.n", true),
        ("SELECT DISTINCT VALUE c.n FROM c", true),
        ("SELECT VALUE COUNT(1) FROM c", false),
        ("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n", false),
    ] {
        let query = QueryItems {
            text: text.to_owned(),
            cross_partition: true,
            ..QueryItems::default()
        };
        let answer = test.account.query(&test.begin().await, &test.container, &query).await;
        match answer {
            Ok(_) => assert!(!is_refused, "{text}"),
            Err(refusal) => {
                assert!(is_refused, "{text}");
                assert_eq!(refusal.error.kind, ErrorKind::BadRequest, "{text}");
                assert!(
                    refusal.error.message.contains("limit=10000 bytes"),
                    "{text}: {}",
                    refusal.error.message
                );
            }
        }
    }
}

/// cosmos-sql §23.3: only what really found the items is told.
#[tokio::test]
async fn the_partition_key_is_told_as_the_index_that_served_where_it_did() {
    let test = TestContainer::with(json!({})).await;
    for (text, scope, is_used) in [
        ("SELECT * FROM c", scope_of("p"), true),
        ("SELECT * FROM c WHERE c.pk = 'p'", ScanScope::default(), true),
        (
            "SELECT * FROM c WHERE c.pk IN ('p', 'q') AND c.n > 1",
            ScanScope::default(),
            true,
        ),
        (
            "SELECT * FROM c WHERE c.pk = 'p' OR c.n = 1",
            ScanScope::default(),
            false,
        ),
        ("SELECT * FROM c WHERE c.pk > 'p'", ScanScope::default(), false),
        ("SELECT * FROM c WHERE c.n = 1", ScanScope::default(), false),
        ("SELECT 1", ScanScope::default(), false),
    ] {
        let query = QueryItems {
            text: text.to_owned(),
            scope,
            cross_partition: true,
            ..QueryItems::default()
        };
        let ctx = test.begin().await;
        let page = test.account.query(&ctx, &test.container, &query).await.unwrap().value;
        let used = page.index_metrics["UtilizedSingleIndexes"].as_array().unwrap().clone();
        let specs: Vec<&str> = used.iter().filter_map(|index| index["IndexSpec"].as_str()).collect();
        assert_eq!(specs, if is_used { vec!["/pk/?"] } else { vec![] }, "{text}");
        assert_eq!(page.index_metrics["PotentialSingleIndexes"], json!([]), "{text}");
    }
}

/// A query for so many keys, of which the container has the first `stored`, each with `items` items; what it gave, by how many reads of the
/// engine and on how many pages.
async fn by_keys(stored: usize, asked: usize, items: usize) -> (Vec<Value>, u64, usize) {
    // However slow the machine, the page does not end by its time.
    let options = AccountOptions {
        query_page_time: Duration::from_secs(3_600),
        ..options()
    };
    let test = TestContainer::with_options(json!({}), None, options).await;
    for n in 0..stored {
        for item in 0..items {
            test.create(json!({"id": format!("{n}-{item}"), "pk": format!("k{n}"), "n": n}))
                .await
                .unwrap();
        }
    }
    let keys: Vec<String> = (0..asked).map(|n| format!("'k{}'", n * 2)).collect();
    let text = format!("SELECT VALUE c.id FROM c WHERE c.pk IN ({})", keys.join(","));
    test.engine.traffic();
    let (mut rows, mut continuation) = page(&test, &text, 1_000, None).await;
    let mut pages = 1;
    while continuation.is_some() {
        let (more, next) = page(&test, &text, 1_000, continuation).await;
        rows.extend(more);
        continuation = next;
        pages += 1;
    }
    (rows, test.engine.traffic().reads, pages)
}

fn ids_of_even_keys(stored: usize, items: usize) -> Vec<String> {
    let keys = (0..stored).step_by(2);
    let mut ids: Vec<String> = keys
        .flat_map(|n| (0..items).map(move |item| format!("{n}-{item}")))
        .collect();
    ids.sort();
    ids
}

fn assert_ids_of_even_keys(rows: &[Value], stored: usize, items: usize) {
    let mut given: Vec<&str> = rows.iter().filter_map(Value::as_str).collect();
    given.sort_unstable();
    assert_eq!(
        given,
        ids_of_even_keys(stored, items),
        "{items} items of each of {stored} keys"
    );
    assert_eq!(given.len(), rows.len(), "ids only");
}

#[tokio::test]
async fn many_keys_are_read_together() {
    // Few items: one scan, not 20 000 lookups. Many items: hundreds of keys at once. Few keys with many items: page by page.
    for (stored, asked, items, most_reads) in [(300, 20_000, 1, 10), (3_000, 300, 1, 20), (40, 10, 100, 40)] {
        let (rows, reads, pages) = by_keys(stored, asked, items).await;
        assert_ids_of_even_keys(&rows, stored.min(2 * asked), items);
        assert!(reads <= most_reads, "{stored} {asked} {items}: {reads} reads");
        assert_eq!(pages, 1, "{stored} {asked} {items}");
    }
}

/// TTL-247 with many keys: pages go on behind their last item whichever way the items are found.
#[tokio::test]
async fn pages_over_many_keys_hold_each_item_once() {
    for (stored, asked, items) in [(300, 400, 2), (2_000, 150, 2), (100, 50, 30)] {
        let test = TestContainer::with(json!({})).await;
        for n in 0..stored {
            for item in 0..items {
                test.create(json!({"id": format!("{n}-{item}"), "pk": format!("k{n}")}))
                    .await
                    .unwrap();
            }
        }
        let keys: Vec<String> = (0..asked).map(|n| format!("'k{}'", n * 2)).collect();
        let text = format!("SELECT VALUE c.id FROM c WHERE c.pk IN ({})", keys.join(","));
        let (mut rows, continuation) = page(&test, &text, 7, None).await;
        rows.extend(rest(&test, &text, 7, continuation).await);
        assert_ids_of_even_keys(&rows, stored.min(2 * asked), items);
    }
}

#[tokio::test]
async fn a_page_that_takes_long_ends_and_the_next_one_goes_on() {
    // Every look at the clock finds the time over, and a page looks behind its first item.
    let options = AccountOptions {
        query_page_time: Duration::ZERO,
        ..options()
    };
    let test = TestContainer::with_options(json!({}), None, options).await;
    for n in 0..5 {
        let id = n.to_string();
        test.create(json!({"id": id, "pk": "p", "n": n, "l": [0, 1]}))
            .await
            .unwrap();
    }
    for (text, pages) in [
        (
            "SELECT VALUE c.n FROM c",
            vec![json!([0]), json!([1]), json!([2]), json!([3]), json!([4])],
        ),
        ("SELECT VALUE c.n FROM c WHERE c.n = 2 OR c.n = 4", {
            vec![json!([]), json!([]), json!([2]), json!([]), json!([4])]
        }),
        ("SELECT VALUE c.n FROM c JOIN x IN c.l WHERE c.n < 2", {
            vec![json!([0, 0]), json!([1, 1]), json!([]), json!([]), json!([])]
        }),
        (
            "SELECT VALUE c.n FROM c OFFSET 1 LIMIT 2",
            vec![json!([]), json!([1]), json!([2])],
        ),
        // These see all items on every page, so ending one early would not help.
        ("SELECT VALUE SUM(c.n) FROM c", vec![json!([10])]),
        (
            "SELECT VALUE c.n FROM c ORDER BY c.n DESC",
            vec![json!([4, 3, 2, 1, 0])],
        ),
        ("SELECT DISTINCT VALUE c.pk FROM c", vec![json!(["p"])]),
    ] {
        let mut query = QueryItems {
            text: text.to_owned(),
            cross_partition: true,
            ..QueryItems::default()
        };
        let mut given = Vec::new();
        loop {
            let ctx = test.begin().await;
            let page = test.account.query(&ctx, &test.container, &query).await.unwrap().value;
            let rows = format!("[{}]", String::from_utf8_lossy(&page.rows));
            given.push(serde_json::from_str::<Value>(&rows).unwrap());
            query.continuation = page.continuation;
            if query.continuation.is_none() {
                break;
            }
        }
        // That nothing comes behind the last item takes an empty page to say.
        if given.len() > pages.len() && given.last() == Some(&json!([])) {
            given.pop();
        }
        assert_eq!(given, pages, "{text}");
    }
}

const SORTED: &str = "SELECT VALUE c.n FROM c ORDER BY c.n DESC";

/// A container of many items in one range, the first two pages of ten of [`SORTED`], and where it goes on.
async fn two_pages(count: i64) -> (TestContainer, Vec<Value>, Option<String>) {
    let test = TestContainer::with(json!({"defaultTtl": -1})).await;
    for n in 0..count {
        let mut item = json!({"id": n.to_string(), "n": n});
        if n % 2 == 1 {
            item["ttl"] = json!(10);
        }
        test.create(item).await.unwrap();
    }
    let (mut rows, continuation) = page(&test, SORTED, 10, None).await;
    let (more, continuation) = page(&test, SORTED, 10, continuation).await;
    rows.extend(more);
    (test, rows, continuation)
}

fn numbers(numbers: impl Iterator<Item = i64>) -> Vec<Value> {
    numbers.map(Value::from).collect()
}

#[tokio::test]
async fn pages_of_a_sorted_query_do_not_read_everything_again() {
    let (test, mut rows, continuation) = two_pages(400).await;
    test.engine.found_rows();
    test.engine.value_bytes();
    rows.extend(rest(&test, SORTED, 10, continuation).await);
    assert_eq!(rows, numbers((0..400).rev()));
    let read = (test.engine.found_rows(), test.engine.value_bytes());
    assert_eq!(read, (0, 0), "no item is read for what was sorted before");
}

/// TTL-246, TTL-247.
#[tokio::test]
async fn sorted_rows_that_expire_between_pages_are_gone() {
    let (test, _, continuation) = two_pages(100).await;
    test.at(110);
    let rows = rest(&test, SORTED, 10, continuation).await;
    assert_eq!(rows, numbers((0..80).rev().filter(|n| n % 2 == 0)));
}

#[tokio::test]
async fn sorted_rows_show_what_was_written_between_pages() {
    let (test, _, continuation) = two_pages(100).await;
    test.create(json!({"id": "new", "n": 75.5})).await.unwrap();
    test.delete("78", None).await.unwrap();
    let (mut rows, continuation) = page(&test, SORTED, 10, continuation).await;
    assert_eq!(rows[..5], [json!(79), json!(77), json!(76), json!(75.5), json!(75)]);
    // Once more, behind rows that this page has kept.
    test.create(json!({"id": "newer", "n": 60.5})).await.unwrap();
    rows.extend(rest(&test, SORTED, 10, continuation).await);
    assert_eq!(rows.len(), 81);
    assert!(rows.contains(&json!(60.5)));
}

#[tokio::test]
async fn sorted_rows_follow_a_change_of_the_time_to_live_between_pages() {
    let (test, _, continuation) = two_pages(100).await;
    test.at(110);
    test.define(json!({"defaultTtl": 5})).await.unwrap();
    let (rows, continuation) = page(&test, SORTED, 10, continuation).await;
    assert_eq!((rows, continuation), (vec![], None));
}

#[tokio::test]
async fn a_sorted_query_that_looks_at_the_time_begins_anew() {
    let test = TestContainer::with(json!({})).await;
    for n in 0..30 {
        test.create(json!({"id": n.to_string(), "n": n})).await.unwrap();
    }
    let text = "SELECT VALUE GetCurrentTimestamp() FROM c ORDER BY c.n";
    let (_, continuation) = page(&test, text, 5, None).await;
    let (_, continuation) = page(&test, text, 5, continuation).await;
    test.at(170);
    let (rows, _) = page(&test, text, 5, continuation).await;
    assert_eq!(rows, vec![json!(170_000); 5]);
}
