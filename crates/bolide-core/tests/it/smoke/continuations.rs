//! Continuations of queries: what they belong to, and what they outlive (TTL-247, TTL-277).

use bolide_core::{QueryItems, Refusal, ScanScope};
use bolide_model::ErrorKind;
use bolide_model::epk::{Epk, EpkRange};
use serde_json::{Value, json};

use crate::test_container::{TestContainer, key, scope_of};

const ITEMS: usize = 24;

/// A page of a query: its rows, and where it goes on.
type Page = (Vec<Value>, Option<String>);

fn asked(text: &str, scope: ScanScope, size: usize, continuation: Option<String>) -> QueryItems {
    QueryItems {
        text: text.to_owned(),
        scope,
        cross_partition: true,
        max_items: Some(size),
        continuation,
        ..QueryItems::default()
    }
}

async fn ask(test: &TestContainer, query: &QueryItems) -> Result<Page, Refusal> {
    let ctx = test.begin().await;
    let page = test.account.query(&ctx, &test.container, query).await?.value;
    let rows = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap();
    Ok((rows, page.continuation))
}

async fn refusal(test: &TestContainer, query: &QueryItems) -> ErrorKind {
    ask(test, query).await.expect_err("a refusal").error.kind
}

/// All rows from a continuation on; from the beginning without one.
async fn rest(
    test: &TestContainer,
    text: &str,
    scope: &ScanScope,
    size: usize,
    mut from: Option<String>,
) -> Vec<Value> {
    let mut rows = Vec::new();
    loop {
        let query = asked(text, scope.clone(), size, from);
        let (more, next) = ask(test, &query)
            .await
            .unwrap_or_else(|refusal| panic!("{text} by {size}: {refusal:?}"));
        rows.extend(more);
        from = next;
        if from.is_none() {
            return rows;
        }
        assert!(rows.len() <= 10 * ITEMS, "{text} by {size}: pages never end");
    }
}

fn range(id: u32) -> ScanScope {
    ScanScope {
        range: Some(id),
        ..ScanScope::default()
    }
}

/// A container that all the pipelines can work on, with items in one range.
async fn filled() -> TestContainer {
    let paths = json!([[{"path": "/g", "order": "ascending"}, {"path": "/n", "order": "descending"}]]);
    let more = json!({
        "defaultTtl": -1,
        "indexingPolicy": {
            "compositeIndexes": paths,
            "fullTextIndexes": [{"path": "/text"}],
        },
        "fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text", "language": "en-US"}]},
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": 2, "distanceFunction": "euclidean"},
        ]},
    });
    let test = TestContainer::with(more).await;
    for n in 0..ITEMS {
        let item = json!({
            "id": format!("i{n:02}"),
            "pk": format!("p{n}"),
            "n": n,
            "g": n % 3,
            "tags": [n, n + 100],
            "long": format!("{}{:02}", "x".repeat(2_000), (n * 7) % ITEMS),
            "text": "red ".repeat(1 + n % 5),
            "v": [n, 0],
        });
        test.create(item).await.unwrap();
    }
    test
}

/// Queries whose rows come in one order.
const ORDERED: &[&str] = &[
    "SELECT VALUE c.id FROM c ORDER BY c.n DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.g, c.n DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.long",
    "SELECT VALUE t FROM c JOIN t IN c.tags ORDER BY c.g",
    "SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g",
    "SELECT TOP 9 VALUE c.id FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.n OFFSET 2 LIMIT 9",
    "SELECT TOP 9 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [3, 0])",
    "SELECT TOP 9 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'red')",
    "SELECT TOP 9 VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'red'), VectorDistance(c.v, [3, 0]))",
    "SELECT VALUE c.id FROM c",
    "SELECT TOP 9 VALUE c.id FROM c",
    "SELECT VALUE c.id FROM c OFFSET 2 LIMIT 9",
];

/// Queries whose rows may come in any order.
const UNORDERED: &[&str] = &[
    "SELECT VALUE t FROM c JOIN t IN c.tags",
    "SELECT DISTINCT VALUE c.g FROM c",
    "SELECT DISTINCT VALUE c.pk FROM c",
    "SELECT c.g, COUNT(1) AS k FROM c GROUP BY c.g",
    "SELECT VALUE c.pk FROM c GROUP BY c.pk",
    "SELECT VALUE g.k FROM (SELECT c.pk AS k, COUNT(1) AS n FROM c GROUP BY c.pk) g",
];

fn sorted(rows: &[Value]) -> Vec<String> {
    let mut texts: Vec<String> = rows.iter().map(Value::to_string).collect();
    texts.sort();
    texts
}

#[tokio::test]
async fn every_pipeline_goes_on_over_a_split_and_a_restart() {
    for text in ORDERED.iter().chain(UNORDERED) {
        let all = ScanScope::default();
        let test = filled().await;
        let whole = rest(&test, text, &all, 100, None).await;
        let mut begun = Vec::new();
        for size in [1, 3, 5] {
            begun.push((size, ask(&test, &asked(text, all.clone(), size, None)).await.unwrap()));
        }
        test.account.split(&test.container, None).await.unwrap();
        let test = test.reopen().await;
        for (size, (mut rows, continuation)) in begun {
            if continuation.is_some() {
                rows.extend(rest(&test, text, &all, size, continuation).await);
            }
            if ORDERED.contains(text) {
                assert_eq!(rows, whole, "{text} by {size}");
            }
            assert_eq!(sorted(&rows), sorted(&whole), "{text} by {size}");
        }
    }
}

#[tokio::test]
async fn each_child_of_a_split_goes_on_in_its_own_part() {
    for text in [
        "SELECT VALUE c.id FROM c",
        "SELECT VALUE t FROM c JOIN t IN c.tags",
        "SELECT VALUE c.id FROM c ORDER BY c.n DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.g, c.n DESC",
        "SELECT VALUE c.id FROM c ORDER BY c.long",
        "SELECT TOP 100 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [3, 0])",
        "SELECT TOP 100 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'red')",
        "SELECT DISTINCT VALUE c.pk FROM c",
        "SELECT DISTINCT VALUE c.pk FROM c ORDER BY c.n",
        "SELECT VALUE c.pk FROM c GROUP BY c.pk",
        "SELECT VALUE c.pk FROM c GROUP BY c.pk OFFSET 0 LIMIT 100",
    ] {
        let test = filled().await;
        let whole = rest(&test, text, &range(0), 100, None).await;
        let mut begun = Vec::new();
        for size in [1, 3, 5] {
            begun.push((size, ask(&test, &asked(text, range(0), size, None)).await.unwrap()));
        }
        let split = test.account.split(&test.container, None).await.unwrap();
        for (size, (mut rows, continuation)) in begun {
            for child in &split.children {
                rows.extend(rest(&test, text, &range(*child), size, continuation.clone()).await);
            }
            assert_eq!(sorted(&rows), sorted(&whole), "{text} by {size}");
        }
    }
}

/// TTL-246, TTL-247: what expires between two pages takes nothing else with it, and brings nothing back.
#[tokio::test]
async fn what_expires_between_pages_costs_no_other_row_and_gives_none_twice() {
    for (text, was_first) in [
        ("SELECT DISTINCT VALUE c.g FROM c", json!(0)),
        ("SELECT DISTINCT VALUE c.g FROM c ORDER BY c.n", json!(0)),
        ("SELECT DISTINCT TOP 3 VALUE c.g FROM c", json!(0)),
        ("SELECT VALUE c.g FROM c GROUP BY c.g OFFSET 0 LIMIT 3", json!(0)),
        ("SELECT VALUE d FROM (SELECT DISTINCT VALUE c.g FROM c) d", json!(0)),
        (
            "SELECT TOP 9 VALUE c.n FROM c ORDER BY RANK FullTextScore(c.text, 'red')",
            json!(4),
        ),
        ("SELECT VALUE c.n FROM c ORDER BY c.long", json!(0)),
    ] {
        let test = filled().await;
        let all = ScanScope::default();
        let (mut rows, continuation) = ask(&test, &asked(text, all.clone(), 1, None)).await.unwrap();
        assert_eq!(rows, [was_first], "{text}");
        // Every item that has that row now goes; another with the same value of `g` stays.
        for n in [0, 3, 4, 6] {
            let renewed = json!({"id": format!("i{n:02}"), "pk": format!("p{n}"), "ttl": 10});
            test.upsert(renewed, None).await.unwrap();
        }
        test.at(110);
        test.purge().await;
        let expected = rest(&test, text, &all, 100, None).await;
        rows.extend(rest(&test, text, &all, 1, continuation).await);
        let later: Vec<&Value> = rows[1..].iter().collect();
        for row in &expected {
            let times = rows.iter().filter(|other| *other == row).count();
            assert!(times == 1 || expected.len() == 9, "{text}: {row} in {rows:?}");
        }
        assert!(!later.contains(&&rows[0]), "{text}: {rows:?}");
        let distinct = sorted(&rows).into_iter().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(distinct.len(), rows.len(), "{text}: {rows:?}");
    }
}

/// Clients ask for continuations of at most a kilobyte.
#[tokio::test]
async fn continuations_stay_within_a_kilobyte() {
    let test = filled().await;
    for text in ORDERED.iter().chain(UNORDERED) {
        let mut continuation = None;
        for number in 1.. {
            assert!(number < 10 * ITEMS, "{text}: pages never end");
            let query = QueryItems {
                continuation_limit_kb: Some(1),
                ..asked(text, range(0), 1, continuation)
            };
            (_, continuation) = ask(&test, &query).await.unwrap();
            if continuation.is_none() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn one_key_is_one_part_however_it_is_named() {
    let test = TestContainer::with(json!({})).await;
    for n in 0..6 {
        test.create(json!({"id": n.to_string()})).await.unwrap();
    }
    let text = "SELECT VALUE c.id FROM c ORDER BY c.id";
    let (_, continuation) = ask(&test, &asked(text, scope_of("p"), 2, None)).await.unwrap();
    let epk = Epk::of(&test.container.properties().partition_key, &key("p"));
    let names = [
        scope_of("p"),
        ScanScope {
            epk: Some(EpkRange::point(epk)),
            ..ScanScope::default()
        },
        ScanScope {
            range: Some(0),
            ..scope_of("p")
        },
    ];
    for scope in names {
        assert_eq!(
            rest(&test, text, &scope, 2, continuation.clone()).await,
            ["2", "3", "4", "5"],
            "{scope:?}"
        );
    }
}

/// Clients rewrite the filter of a sorted query when they go on (cosmos-rest §6.1).
#[tokio::test]
async fn a_continuation_of_a_sorted_query_belongs_to_its_order() {
    let test = filled().await;
    let text = "SELECT VALUE c.id FROM c ORDER BY c.n DESC";
    let (_, continuation) = ask(&test, &asked(text, range(0), 2, None)).await.unwrap();
    let continued = |text: &str| asked(text, range(0), 2, continuation.clone());
    let rewritten = "SELECT VALUE c.id FROM c WHERE ((c.n <= 22) OR NOT IS_DEFINED(c.n)) ORDER BY c.n DESC";
    assert_eq!(ask(&test, &continued(rewritten)).await.unwrap().0, ["i21", "i20"]);
    for other in [
        "SELECT VALUE c.id FROM c ORDER BY c.n",
        "SELECT VALUE c.id FROM c ORDER BY c.g DESC",
        "SELECT VALUE c.id FROM c",
    ] {
        assert_eq!(
            refusal(&test, &continued(other)).await,
            ErrorKind::BadRequest,
            "{other}"
        );
    }
}

#[tokio::test]
async fn a_continuation_is_refused_for_another_question_or_another_part() {
    let test = TestContainer::with(json!({})).await;
    for n in 0..6 {
        test.create(json!({"id": n.to_string()})).await.unwrap();
    }
    let text = "SELECT VALUE c.id FROM c";
    let (_, continuation) = ask(&test, &asked(text, scope_of("p"), 2, None)).await.unwrap();
    let continued = |text: &str, scope| asked(text, scope, 2, continuation.clone());
    assert!(ask(&test, &continued(text, scope_of("p"))).await.is_ok());
    for query in [
        continued("SELECT VALUE c.id  FROM c", scope_of("p")),
        continued(text, scope_of("q")),
        continued(text, ScanScope::default()),
        QueryItems {
            parameters: vec![("@p".to_owned(), json!(1))].into(),
            ..continued(text, scope_of("p"))
        },
    ] {
        assert_eq!(refusal(&test, &query).await, ErrorKind::BadRequest, "{query:?}");
    }
    let whole = continuation.clone().unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone().into_bytes();
        damaged[at] = if damaged[at] == b'A' { b'B' } else { b'A' };
        let query = asked(text, scope_of("p"), 2, Some(String::from_utf8(damaged).unwrap()));
        assert_eq!(refusal(&test, &query).await, ErrorKind::BadRequest, "{query:?}");
    }
}
