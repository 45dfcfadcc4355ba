//! A crash at each commit of the task that builds and removes indexes: after the next start the indexes that the policy names are complete, the others are gone
//! to the last entry, and queries find what they must.

use std::sync::Arc;
use std::time::Duration;

use bolide_core::{AccountOptions, IndexUse, QueryItems};
use bolide_storage::Space;
use serde_json::{Value, json};

use crate::test_container::{START, TestContainer, options};

/// More than two steps of a build.
const ITEMS: usize = 450;
/// Of these, every tenth has expired when queries run.
const EXPIRING: usize = 10;
/// Far more than a build and a removal have.
const MAX_COMMITS: i64 = 60;

fn always() -> AccountOptions {
    AccountOptions {
        index_use: IndexUse::Always,
        ..options()
    }
}

/// A definition with indexes on a path of values alone and with `/text`, and on the words of `/text` and the places at `/p` if wanted.
fn naming(path: &str, has_more: bool) -> Value {
    let (texts, shapes) = if has_more {
        (
            json!([{"path": "/text"}]),
            json!([{"path": "/p/?", "types": ["Point"]}]),
        )
    } else {
        (json!([]), json!([]))
    };
    let composite = json!([[{"path": path.trim_end_matches("/?")}, {"path": "/text", "order": "descending"}]]);
    json!({
        "defaultTtl": -1,
        "fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text", "language": "en-US"}]},
        "indexingPolicy": {
            "includedPaths": [{"path": "/*"}, {"path": path}],
            "compositeIndexes": composite,
            "fullTextIndexes": texts,
            "spatialIndexes": shapes,
        },
    })
}

/// A container with an index on `/w`, which the change of the policy drops.
async fn filled() -> TestContainer {
    let test = TestContainer::with_options(naming("/w/?", false), None, always()).await;
    for n in 0..ITEMS {
        let mut item =
            json!({"id": n.to_string(), "pk": n.to_string(), "v": n, "w": n, "text": format!("word{}", n % 5)});
        item["p"] = json!({"type": "Point", "coordinates": [n as f64 / 10.0, 50]});
        if n % EXPIRING == 0 {
            item["ttl"] = 5.into();
        }
        test.create(item).await.unwrap();
    }
    test.at(START + 10);
    test
}

/// Lets the builder run until it has no more work, or its storage is cut off. Returns whether it has no more work.
async fn run_builder(test: &TestContainer) -> bool {
    for _ in 0..100_000 {
        if test.engine.is_cut() {
            return false;
        }
        tokio::task::yield_now().await;
        match test.account.index_report(&test.container).await {
            Ok(report) if report.dropped == 0 && report.indexes.iter().all(|index| index.is_ready) => return true,
            _ => {}
        }
    }
    panic!("the builder never ended");
}

/// The process ends, and another one opens the same data.
async fn crash(test: TestContainer) -> TestContainer {
    let TestContainer {
        clock,
        engine,
        account,
        container,
    } = test;
    drop((account, container));
    // What still runs in it has no more effect, and ends.
    while Arc::strong_count(&engine) > 1 {
        tokio::time::sleep(Duration::from_micros(100)).await;
    }
    engine.mend();
    let account = bolide_core::Account::open(engine.clone(), always()).await.unwrap();
    let container = account.all_containers().pop().unwrap();
    TestContainer {
        clock,
        engine,
        account,
        container,
    }
}

/// Returns the rows of a query and the number of items that it read.
async fn ask(test: &TestContainer, text: &str) -> (Vec<Value>, u64) {
    let query = QueryItems {
        text: text.to_owned(),
        cross_partition: true,
        max_items: Some(1_000),
        ..QueryItems::default()
    };
    let ctx = test.begin().await;
    let page = test.account.query(&ctx, &test.container, &query).await.unwrap().value;
    let rows: Vec<Value> = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap();
    (rows, page.metrics.retrieved_items)
}

async fn assert_complete(test: &TestContainer, commits: i64) {
    let live = ITEMS - ITEMS / EXPIRING;
    let with_word = (0..ITEMS).filter(|n| n % 5 == 3 && n % EXPIRING != 0).count();
    let (expired, found) = (0, 1);
    for (text, rows, read) in [
        ("SELECT VALUE c.pk FROM c WHERE c.v = 223", json!(["223"]), found),
        ("SELECT VALUE c.pk FROM c WHERE c.v = 220", json!([]), expired),
        (
            "SELECT VALUE c.pk FROM c WHERE c.v IN (7, 223) AND c.text > 'word2'",
            json!(["223"]),
            found,
        ),
        ("SELECT VALUE COUNT(1) FROM c WHERE c.v >= 0", json!([live]), 0),
        (
            "SELECT VALUE COUNT(1) FROM c WHERE FullTextContains(c.text, 'word3')",
            json!([with_word]),
            with_word as u64,
        ),
        (
            "SELECT VALUE c.pk FROM c WHERE ST_DISTANCE(c.p, {'type': 'Point', 'coordinates': [22.3, 50]}) < 100",
            json!(["223"]),
            found,
        ),
    ] {
        let (seen, items) = ask(test, text).await;
        assert_eq!((json!(seen), items), (rows, read), "crash at commit {commits}: {text}");
    }
    // Each item has two entries for `/v`, one for its word, one for its text and one for its place; nothing is left of `/w`.
    let entries = test.engine.rows(Space::Index).await;
    let entries = entries.iter().filter(|(key, _)| key.first() == Some(&b'P')).count();
    assert_eq!(entries, 5 * ITEMS, "crash at commit {commits}");
    test.assert_sound().await;
}

#[tokio::test]
async fn a_crash_at_each_commit_of_a_build_loses_and_leaves_nothing() {
    for commits in 0..MAX_COMMITS {
        let test = filled().await;
        test.engine.cut_after(commits);
        // Without its commit the change of the policy has not happened, and the client repeats it.
        let is_defined = test.define(naming("/v/?", true)).await.is_ok();
        let is_done = is_defined && run_builder(&test).await;
        let test = crash(test).await;
        if !is_defined {
            test.define(naming("/v/?", true)).await.unwrap();
        }
        assert!(run_builder(&test).await, "crash at commit {commits}");
        assert_complete(&test, commits).await;
        if is_done {
            // The definition, three steps of the build and of the removal, and two changes of the catalog at least.
            assert!(commits >= 9, "only {commits} commits");
            return;
        }
    }
    panic!("a build had more than {MAX_COMMITS} commits");
}
