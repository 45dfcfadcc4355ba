//! Queries sorted by the paths of a composite index: they are read in the order of its first path, and come as sorted without an index.

use bolide_core::{AccountOptions, IndexUse};
use serde_json::{Value, json};

use super::property_indexes::{many_values_in, page, pages};
use crate::test_container::{TestContainer, options};

const QUERIES: [&str; 12] = [
    "SELECT VALUE c.id FROM c ORDER BY c.v, c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.v DESC, c.n DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.v, c.n DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.v DESC, c.n",
    "SELECT c.id, c.v FROM c ORDER BY c.v, c.id",
    "SELECT VALUE c.id FROM c WHERE c.v > 20 AND c.n != 5 ORDER BY c.v, c.n DESC",
    "SELECT VALUE c.id FROM c WHERE IS_DEFINED(c.v) ORDER BY c.v, c.n",
    "SELECT VALUE c.id FROM c WHERE IS_ARRAY(c.v) OR c.v = 'text' ORDER BY c.v DESC, c.n",
    "SELECT VALUE c.id FROM c WHERE c.v = 3 ORDER BY c.v, c.n",
    "SELECT TOP 30 VALUE c.id FROM c WHERE c.n < 100 ORDER BY c.v, c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.v DESC, c.n OFFSET 66 LIMIT 80",
    "SELECT VALUE c.id FROM c ORDER BY c.v, c.n, c.missing",
];

/// A definition whose only indexes are composite.
fn composite() -> Value {
    let index = |paths: &[(&str, &str)]| -> Value {
        let paths = paths.iter().map(|(path, order)| json!({"path": path, "order": order}));
        paths.collect()
    };
    let indexes = [
        index(&[("/v", "ascending"), ("/n", "ascending")]),
        index(&[("/v", "ascending"), ("/n", "descending")]),
        index(&[("/v", "ascending"), ("/id", "ascending")]),
        index(&[("/v", "ascending"), ("/n", "ascending"), ("/missing", "ascending")]),
    ];
    json!({"defaultTtl": -1, "indexingPolicy": {
        "includedPaths": [], "excludedPaths": [{"path": "/*"}], "compositeIndexes": indexes,
    }})
}

fn using(index_use: IndexUse) -> AccountOptions {
    AccountOptions { index_use, ..options() }
}

#[tokio::test]
async fn rows_sorted_by_several_paths_come_as_sorted_without_an_index() {
    // TTL-244, TTL-247: some of the items are ghosts.
    let without = many_values_in(composite(), using(IndexUse::Never)).await;
    for index_use in [IndexUse::Always, IndexUse::AlwaysInOrder] {
        let with = many_values_in(composite(), using(index_use)).await;
        for text in QUERIES {
            for size in [1, 7, 1_000] {
                let (found, expected) = (pages(&with, text, size).await.0, pages(&without, text, size).await.0);
                assert!(!found.is_empty(), "{text}");
                assert_eq!(found, expected, "{text} in pages of {size}, {index_use:?}");
            }
        }
        with.assert_sound().await;
    }
}

#[tokio::test]
async fn a_plan_may_change_between_two_pages() {
    let mut test = many_values_in(composite(), using(IndexUse::Always)).await;
    for text in QUERIES {
        let (expected, _) = pages(&test, text, 1_000).await;
        let (mut rows, mut from) = (Vec::new(), None);
        let plans = [IndexUse::AlwaysInOrder, IndexUse::Never, IndexUse::Always];
        for index_use in plans.into_iter().cycle() {
            test.account.end().await;
            test = test.reopen_with(using(index_use)).await;
            let (page_rows, _, next) = page(&test, text, 9, from).await;
            rows.extend(page_rows);
            from = next;
            if from.is_none() {
                break;
            }
        }
        assert_eq!(rows, expected, "{text}");
    }
}

#[tokio::test]
async fn a_page_reads_its_items_and_those_with_the_same_first_value() {
    let test = TestContainer::with_options(composite(), None, options()).await;
    for n in 0..1_500 {
        let item = json!({"id": n.to_string(), "pk": n.to_string(), "v": n / 10, "n": 1_500 - n});
        test.create(item).await.unwrap();
    }
    for (text, first) in [
        ("SELECT VALUE c.pk FROM c ORDER BY c.v, c.n", "9"),
        ("SELECT VALUE c.pk FROM c ORDER BY c.v DESC, c.n DESC", "1490"),
        (
            "SELECT TOP 20 VALUE c.pk FROM c WHERE c.v >= 100 ORDER BY c.v, c.n",
            "1009",
        ),
    ] {
        let (rows, read, next) = page(&test, text, 20, None).await;
        assert_eq!(rows[0], first, "{text}");
        // A page needs one row more, and reads those with its value.
        assert!((20..=40).contains(&read), "{text}: {read}");
        if let Some(next) = next {
            let (_, read, _) = page(&test, text, 20, Some(next)).await;
            assert!((20..=60).contains(&read), "{text}: {read}");
        }
    }
}
