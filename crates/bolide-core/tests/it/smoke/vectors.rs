//! Indexes of vectors: they find what is nearest, no ghosts included, and their lists come and go with their items.
//!
//! What is nearest is computed here, from the vectors that the tests have stored.

use std::sync::Arc;
use std::time::Duration;

use bolide_core::{AccountOptions, IndexUse, PurgeMode, QueryItems, ScanScope};
use bolide_model::epk::{Epk, EpkRange};
use bolide_model::time::Monotonic;
use bolide_storage::{Engine, PartitionId, ReadRequest, Scan, Space};
use bytes::Bytes;
use serde_json::{Value, json};

use super::both::all_pages;
use crate::test_container::{START, TestContainer, key, options, scope_of};

const DIMENSIONS: usize = 8;
/// The number of items from which on containers of these tests get their index.
const ENOUGH: u64 = 64;

/// Numbers between -1 and 1, the same for the same seed.
struct Numbers(fastrand::Rng);

impl Numbers {
    fn new() -> Numbers {
        Numbers(fastrand::Rng::with_seed(11))
    }

    fn vector(&mut self) -> Vec<f64> {
        (0..DIMENSIONS).map(|_| self.0.f64() * 2.0 - 1.0).collect()
    }
}

fn with_index() -> AccountOptions {
    AccountOptions {
        index_use: IndexUse::Always,
        vector_index_items: ENOUGH,
        ..options()
    }
}

fn definition(kind: &str, function: &str) -> Value {
    json!({
        "defaultTtl": -1,
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": DIMENSIONS, "distanceFunction": function}
        ]},
        "indexingPolicy": {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/v/*"}],
            "vectorIndexes": [{"path": "/v", "type": kind}]},
    })
}

/// A container with items whose vectors the test knows.
struct Vectors {
    test: TestContainer,
    numbers: Numbers,
    /// The vectors of the items that are live, by their ids.
    known: Vec<(String, Vec<f64>)>,
    function: &'static str,
}

impl Vectors {
    async fn new(function: &'static str, options: AccountOptions) -> Vectors {
        let test = TestContainer::with_options(definition("quantizedFlat", function), None, options).await;
        Vectors {
            test,
            numbers: Numbers::new(),
            known: Vec::new(),
            function,
        }
    }

    /// With an index of so many items.
    async fn indexed(function: &'static str, items: usize) -> Vectors {
        let mut vectors = Vectors::new(function, with_index()).await;
        vectors.create(items, None).await;
        vectors.wait_for_index().await;
        vectors
    }

    async fn create(&mut self, items: usize, ttl: Option<i64>) {
        for _ in 0..items {
            let (id, vector) = (self.known.len().to_string(), self.numbers.vector());
            self.put(&id, &vector, ttl).await;
            self.known.push((id, vector));
        }
    }

    async fn put(&self, id: &str, vector: &[f64], ttl: Option<i64>) {
        let mut item = json!({"id": id, "pk": id, "n": id.parse::<u64>().unwrap_or(0) % 10, "v": vector});
        if let Some(ttl) = ttl {
            item["ttl"] = ttl.into();
        }
        self.test.upsert(item, None).await.unwrap();
    }

    async fn wait_for_index(&self) {
        for _ in 0..100_000 {
            let report = self.test.account.index_report(&self.test.container).await.unwrap();
            if report.indexes.iter().any(|index| index.is_ready) && report.dropped == 0 {
                return;
            }
            self.nearest("", 1).await;
            tokio::task::yield_now().await;
        }
        panic!("the index is never built");
    }

    /// Returns the lines of the explanation that name an index.
    async fn explained(&self) -> Vec<String> {
        let text = "SELECT TOP 5 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @q)";
        let account = &self.test.account;
        let explained = account
            .explain_query(&self.test.container, text, &self.parameters())
            .await
            .unwrap();
        let lines = explained.lines().filter(|line| line.starts_with("index:"));
        lines.map(str::to_owned).collect()
    }

    fn target() -> Vec<f64> {
        vec![0.3, -0.5, 0.2, 0.9, -0.1, 0.4, -0.7, 0.6]
    }

    fn parameters(&self) -> Vec<(String, Value)> {
        vec![("@q".to_owned(), json!(Vectors::target()))]
    }

    /// The ids of the items with a vector, the nearest first.
    fn expected(&self) -> Vec<&str> {
        let target = Vectors::target();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let far = |v: &[f64]| match self.function {
            "cosine" => -dot(&target, v) / dot(v, v).sqrt(),
            "dotproduct" => -dot(&target, v),
            _ => target.iter().zip(v).map(|(a, b)| (a - b) * (a - b)).sum(),
        };
        let mut sorted: Vec<&(String, Vec<f64>)> = self.known.iter().collect();
        sorted.sort_by(|a, b| far(&a.1).total_cmp(&far(&b.1)));
        sorted.into_iter().map(|(id, _)| &id[..]).collect()
    }

    /// Returns the ids of the nearest items that pass a filter, and the number of items that were read.
    async fn nearest(&self, filter: &str, rows: usize) -> (Vec<String>, u64) {
        let text = format!("SELECT TOP {rows} VALUE c.id FROM c {filter} ORDER BY VectorDistance(c.v, @q)");
        self.ask(&text, ScanScope::default(), 1_000).await
    }

    /// Returns the rows of all pages, and the number of items that the first page has read.
    async fn ask(&self, text: &str, scope: ScanScope, page_rows: usize) -> (Vec<String>, u64) {
        let query = QueryItems {
            text: text.to_owned(),
            parameters: Arc::new(self.parameters()),
            max_items: Some(page_rows),
            scope,
            ..QueryItems::default()
        };
        let (rows, first) = all_pages(&self.test, query).await;
        let texts = rows.iter().map(|row| row.as_str().unwrap().to_owned());
        (texts.collect(), first.metrics.retrieved_items)
    }

    /// Asserts that the nearest items are found, with at most so many errors, and that few items are read.
    async fn assert_nearest(&self, rows: usize, most_read: u64) {
        let (found, read) = self.nearest("", rows).await;
        let expected = &self.expected()[..rows];
        let hits = found.iter().filter(|id| expected.contains(&&id[..])).count();
        assert!(hits * 10 >= rows * 9, "{found:?} {expected:?}");
        assert!(
            found.len() == rows && read <= most_read,
            "{} rows, {read} read",
            found.len()
        );
    }
}

#[tokio::test]
async fn the_index_finds_the_nearest_vectors_by_reading_a_few_items() {
    for function in ["cosine", "dotproduct", "euclidean"] {
        let vectors = Vectors::indexed(function, 400).await;
        assert_eq!(
            vectors.explained().await,
            ["index: /v/? finds the nearest vectors, in 40 lists"]
        );
        vectors.assert_nearest(10, 50).await;
        vectors.assert_nearest(1, 5).await;
        // As a component of a hybrid search, as clients send it to each range.
        let component = "SELECT TOP 10 VALUE c.id FROM c WHERE (true) ORDER BY _VectorScore(c.v, @q)";
        let (found, read) = vectors.ask(component, ScanScope::default(), 1_000).await;
        assert_eq!((found, read), (vectors.nearest("", 10).await.0, 50));
        vectors.test.assert_sound().await;
    }
}

#[tokio::test]
async fn if_all_entries_are_candidates_the_result_is_exact() {
    for function in ["cosine", "dotproduct", "euclidean"] {
        let vectors = Vectors::indexed(function, 300).await;
        let all = "{'searchListSizeMultiplier': 100, 'quantizedVectorListMultiplier': 100}";
        let text = format!("SELECT TOP 20 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @q, false, {all})");
        let (found, read) = vectors.ask(&text, ScanScope::default(), 1_000).await;
        assert_eq!(
            (&found[..], read),
            (
                &vectors.expected()[..20]
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()[..],
                300
            )
        );
        let text = "SELECT TOP 20 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @q, true)";
        assert_eq!(
            vectors.ask(text, ScanScope::default(), 1_000).await,
            (found, 300),
            "brute force"
        );
    }
}

#[tokio::test]
async fn entries_follow_their_items() {
    let mut vectors = Vectors::indexed("cosine", 100).await;
    // The nearest one is moved away, the farthest one comes nearest, and one is deleted.
    let (nearest, farthest) = (vectors.expected()[0].to_owned(), vectors.expected()[99].to_owned());
    let second = vectors.expected()[1].to_owned();
    let opposite: Vec<f64> = Vectors::target().iter().map(|x| -x).collect();
    for (id, vector) in [(&nearest, opposite), (&farthest, Vectors::target())] {
        vectors.put(id, &vector, None).await;
        vectors.known.iter_mut().find(|(own, _)| own == id).unwrap().1 = vector;
    }
    vectors
        .test
        .account
        .delete_all_of_key(&vectors.test.begin().await, &vectors.test.container, &key(&second))
        .await
        .unwrap();
    vectors.known.retain(|(id, _)| *id != second);
    assert_eq!(vectors.expected()[0], farthest);
    vectors.assert_nearest(10, 50).await;
    assert_eq!(vectors.nearest("", 1).await.0, [farthest]);
    vectors.test.assert_sound().await;
}

#[tokio::test]
async fn ghosts_are_never_found_and_are_made_up_for() {
    // TTL-244, TTL-254
    let mut vectors = Vectors::new("euclidean", with_index()).await;
    vectors.create(60, None).await;
    for n in 0..200 {
        // Nearer than all others.
        let near: Vec<f64> = Vectors::target().iter().map(|x| x + f64::from(n) * 1e-5).collect();
        vectors.put(&format!("9{n:03}"), &near, Some(50)).await;
    }
    vectors.wait_for_index().await;
    vectors.test.at(START + 49);
    assert!(vectors.nearest("", 10).await.0.iter().all(|id| id.starts_with('9')));
    vectors.test.at(START + 50);
    let (found, read) = vectors.nearest("", 10).await;
    assert_eq!(found, vectors.expected()[..10]);
    assert!(read <= 60, "ghosts are not counted as read: {read}");
    let (found, _) = vectors.nearest("", 100).await;
    assert_eq!(found, vectors.expected());
    let purged = vectors
        .test
        .account
        .purge(&vectors.test.container, PurgeMode::Force, None)
        .await;
    assert_eq!(purged.unwrap(), 200);
    assert_eq!(vectors.nearest("", 10).await.0, vectors.expected()[..10]);
    vectors.test.assert_sound().await;
}

#[tokio::test]
async fn items_without_a_vector_have_their_place_in_the_order() {
    for function in ["cosine", "euclidean"] {
        let mut vectors = Vectors::new(function, with_index()).await;
        vectors.create(80, None).await;
        let others = [
            json!(null),
            json!("text"),
            json!([1, 2]),
            json!([1, 2, 3, 4, 5, 6, 7, "x"]),
            json!([]),
        ];
        for (n, other) in others.iter().enumerate() {
            let id = format!("without{n}");
            vectors
                .test
                .create(json!({"id": id, "pk": id, "v": other}))
                .await
                .unwrap();
        }
        // Too large for an entry, but it has a distance.
        let huge: Vec<f64> = Vectors::target().iter().map(|x| x * 1e30).collect();
        vectors.put("huge", &huge, None).await;
        vectors.known.push(("huge".to_owned(), huge));
        vectors.wait_for_index().await;
        let brute = "SELECT TOP 90 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @q, true)";
        let expected = vectors.ask(brute, ScanScope::default(), 1_000).await.0;
        assert_eq!(expected.len(), 86);
        assert_eq!(vectors.nearest("", 90).await.0, expected, "{function}");
        let first = vectors.nearest("", 7).await.0;
        assert_eq!(first, expected[..7], "{function}");
        let firsts: &[&str] = match function {
            "cosine" => &["huge"],
            _ => &["without0", "without1", "without2", "without3", "without4"],
        };
        assert_eq!(first[..firsts.len()], *firsts);
        let (found, read) = vectors.nearest("WHERE IS_DEFINED(c.v) AND IS_NUMBER(c.v[7])", 5).await;
        assert_eq!(found, vectors.expected()[..5], "{function}");
        assert!(read < 86, "{read}");
        vectors.test.assert_sound().await;
    }
}

#[tokio::test]
async fn a_filter_makes_the_search_go_on() {
    let vectors = Vectors::indexed("cosine", 500).await;
    let (found, read) = vectors.nearest("WHERE c.n = 3", 10).await;
    let passing: Vec<&str> = vectors.expected().into_iter().filter(|id| id.ends_with('3')).collect();
    assert_eq!(found, passing[..10]);
    assert!(read < 500, "{read}");
    assert_eq!(vectors.nearest("WHERE c.n = 3", 60).await.0, passing);
    assert_eq!(vectors.nearest("WHERE c.n = 11", 10).await.0, [""; 0]);
}

#[tokio::test]
async fn pages_show_each_row_once_in_order() {
    let vectors = Vectors::indexed("dotproduct", 300).await;
    for text in [
        "SELECT TOP 40 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @q)",
        "SELECT VALUE c.id FROM c ORDER BY VectorDistance(c.v, @q) OFFSET 13 LIMIT 27",
    ] {
        let (whole, read) = vectors.ask(text, ScanScope::default(), 1_000).await;
        assert!(read < 300, "{read}");
        for size in [1, 7, 39] {
            assert_eq!(
                vectors.ask(text, ScanScope::default(), size).await.0,
                whole,
                "pages of {size}"
            );
        }
        let expected = vectors.expected();
        let expected = if text.contains("TOP") {
            &expected[..40]
        } else {
            &expected[13..40]
        };
        assert_eq!(whole, expected);
    }
}

#[tokio::test]
async fn a_part_of_the_container_is_searched() {
    let mut vectors = Vectors::new("cosine", with_index()).await;
    vectors.create(150, None).await;
    for n in 0..30 {
        let vector = vectors.numbers.vector();
        let item = json!({"id": format!("in{n}"), "pk": "one", "v": vector});
        vectors.test.create(item).await.unwrap();
        vectors.known.push((format!("in{n}"), vector));
    }
    vectors.wait_for_index().await;
    let text = "SELECT TOP 5 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @q)";
    let (found, read) = vectors.ask(text, scope_of("one"), 100).await;
    let inside: Vec<&str> = vectors
        .expected()
        .into_iter()
        .filter(|id| id.starts_with("in"))
        .collect();
    assert_eq!(found, inside[..5]);
    assert!(read <= 30, "{read}");
    let middle = Epk::from_bytes([0x20]);
    let mut both = Vec::new();
    for epk in [
        EpkRange {
            min: Epk::start(),
            max: middle.clone(),
        },
        EpkRange {
            min: middle,
            max: Epk::end(),
        },
    ] {
        let scope = ScanScope {
            epk: Some(epk),
            ..ScanScope::default()
        };
        let (found, read) = vectors
            .ask(
                "SELECT TOP 180 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @q)",
                scope,
                1_000,
            )
            .await;
        assert_eq!(found.len() as u64, read);
        both.extend(found);
    }
    both.sort_unstable();
    let mut all = vectors.expected();
    all.sort_unstable();
    assert_eq!(both, all);
}

#[tokio::test]
async fn few_vectors_and_flat_indexes_are_compared_one_by_one() {
    let mut few = Vectors::new("cosine", with_index()).await;
    few.create(ENOUGH as usize - 1, None).await;
    let mut flat = Vectors::new("cosine", with_index()).await;
    flat.test = TestContainer::with_options(definition("flat", "cosine"), None, with_index()).await;
    flat.create(200, None).await;
    for vectors in [few, flat] {
        let all = vectors.known.len() as u64;
        for _ in 0..100 {
            assert_eq!(
                vectors.nearest("", 5).await,
                (vectors.expected()[..5].iter().map(ToString::to_string).collect(), all)
            );
            tokio::task::yield_now().await;
        }
        assert_eq!(vectors.explained().await, [""; 0]);
    }
}

#[tokio::test]
async fn without_the_use_of_indexes_and_by_another_function_all_vectors_are_compared() {
    let vectors = Vectors::indexed("cosine", 100).await;
    let other =
        "SELECT TOP 5 VALUE c.id FROM c ORDER BY VectorDistance(c.v, @q, false, {'distanceFunction': 'euclidean'})";
    assert_eq!(vectors.ask(other, ScanScope::default(), 10).await.1, 100);
    let shorter = "SELECT TOP 5 VALUE c.id FROM c ORDER BY VectorDistance(c.v, [1, 2])";
    assert_eq!(vectors.ask(shorter, ScanScope::default(), 10).await.1, 100);
    let never = AccountOptions {
        index_use: IndexUse::Never,
        ..with_index()
    };
    let Vectors {
        test,
        numbers,
        known,
        function,
    } = vectors;
    let vectors = Vectors {
        test: test.reopen_with(never).await,
        numbers,
        known,
        function,
    };
    assert_eq!(vectors.nearest("", 5).await.1, 100);
}

#[tokio::test]
async fn the_lists_are_there_after_a_restart() {
    let vectors = Vectors::indexed("cosine", 200).await;
    let before = vectors.nearest("", 10).await;
    let Vectors {
        test,
        numbers,
        known,
        function,
    } = vectors;
    let test = test.reopen_with(with_index()).await;
    let mut vectors = Vectors {
        test,
        numbers,
        known,
        function,
    };
    assert_eq!(vectors.nearest("", 10).await, before);
    vectors.create(20, None).await;
    vectors.assert_nearest(10, 50).await;
    vectors.test.assert_sound().await;
}

#[tokio::test]
async fn a_build_that_a_stop_interrupts_is_finished_after_the_start() {
    let mut vectors = Vectors::new("cosine", with_index()).await;
    vectors.create(400, None).await;
    for yields in [0, 3, 10, 30] {
        vectors.nearest("", 1).await;
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        vectors.test.account.end().await;
        let Vectors {
            test,
            numbers,
            known,
            function,
        } = vectors;
        vectors = Vectors {
            test: test.reopen_with(with_index()).await,
            numbers,
            known,
            function,
        };
    }
    vectors.wait_for_index().await;
    vectors.assert_nearest(10, 50).await;
    vectors.test.assert_sound().await;
}

#[tokio::test]
async fn a_split_carries_the_lists() {
    let mut vectors = Vectors::indexed("euclidean", 300).await;
    vectors.test.account.split(&vectors.test.container, None).await.unwrap();
    vectors.assert_nearest(10, 50).await;
    vectors.create(50, None).await;
    vectors.assert_nearest(10, 50).await;
    vectors.test.assert_sound().await;
}

#[tokio::test]
async fn a_container_that_has_grown_gets_new_lists() {
    let monotonic = Monotonic::manual();
    let options = AccountOptions {
        monotonic: monotonic.clone(),
        ..with_index()
    };
    let mut vectors = Vectors::new("cosine", options).await;
    vectors.create(100, None).await;
    vectors.wait_for_index().await;
    assert_eq!(
        vectors.explained().await,
        ["index: /v/? finds the nearest vectors, in 20 lists"]
    );
    vectors.create(700, None).await;
    for _ in 0..100_000 {
        // Once in a minute it is looked at.
        monotonic.advance(Duration::from_secs(1));
        tokio::task::yield_now().await;
        let report = vectors
            .test
            .account
            .index_report(&vectors.test.container)
            .await
            .unwrap();
        let is_new = vectors.explained().await == ["index: /v/? finds the nearest vectors, in 56 lists"];
        if is_new && report.indexes.len() == 1 && report.dropped == 0 {
            assert_eq!(rows_of_centroids(&vectors.test).await, 1);
            vectors.assert_nearest(10, 50).await;
            return vectors.test.assert_sound().await;
        }
    }
    panic!("there are no new lists");
}

#[tokio::test]
async fn the_definition_of_a_container_adds_and_removes_vector_indexes() {
    let mut vectors = Vectors::new("cosine", with_index()).await;
    vectors.test = TestContainer::with_options(json!({"defaultTtl": -1}), None, with_index()).await;
    vectors.create(100, None).await;
    assert_eq!(vectors.nearest("", 5).await.1, 100);
    vectors.test.define(definition("diskANN", "cosine")).await.unwrap();
    vectors.wait_for_index().await;
    vectors.assert_nearest(10, 50).await;
    vectors.test.assert_sound().await;
    assert_eq!(rows_of_centroids(&vectors.test).await, 1);
    let rid = vectors.test.container.rid();
    let ctx = vectors.test.begin().await;
    let deleted = vectors.test.account.delete_container(&ctx, rid, None).await;
    deleted.unwrap();
    assert_eq!(rows_of_centroids(&vectors.test).await, 0);
}

/// Returns the number of rows of the catalog that hold centroids.
async fn rows_of_centroids(test: &TestContainer) -> usize {
    let scan = Scan {
        space: Space::Meta,
        from: Bytes::from_static(b"V"),
        to: Some(Bytes::from_static(b"W")),
        reverse: false,
        max_rows: 100,
        max_bytes: usize::MAX,
        keys_only: true,
    };
    let request = ReadRequest {
        scans: vec![scan],
        ..ReadRequest::default()
    };
    let reply = test.engine.read(PartitionId::CATALOG, request).await.unwrap();
    reply.pages[0].rows.len()
}
