//! Full-text indexes: rankings, statistics and conditions are those of a scan, to the last bit and tie, and no ghost is in any of them.

use bolide_core::{IndexUse, PurgeMode, QueryItems};
use bolide_storage::{Key, Space};
use bytes::Bytes;
use serde_json::{Value, json};

use super::both::{Both, all_pages, with_use};
use crate::random::RandomChoices;
use crate::test_container::{START, TestContainer, key, options};

/// Words of the texts; the first ones are the most frequent. Some are stop words, and some have one stem.
const WORDS: [&str; 16] = [
    "the", "dog", "red", "runs", "running", "cars", "car", "Blue", "and", "house", "1,977", "über", "cat", "sky",
    "rare", "fox",
];

/// A definition with full-text indexes on `/text` in a language and on `/title`.
fn indexed(language: &str) -> Value {
    json!({
        "defaultTtl": -1,
        "fullTextPolicy": {
            "defaultLanguage": "en-US",
            "fullTextPaths": [{"path": "/text", "language": language}, {"path": "/title"}],
        },
        "indexingPolicy": {
            "includedPaths": [{"path": "/*"}],
            "fullTextIndexes": [{"path": "/text"}, {"path": "/title"}],
        },
    })
}

fn without_index(language: &str) -> Value {
    let mut definition = indexed(language);
    definition["indexingPolicy"]["fullTextIndexes"] = json!([]);
    definition
}

/// Asserts that all queries have the same rows in both, and that the index has what it must have.
async fn assert_same(both: &Both, what: &str) {
    for text in QUERIES.iter().map(|text| (*text).to_owned()).chain(sdk_queries()) {
        for size in [7, 1_000] {
            let (found, expected) = (
                pages(&both.with, &text, size).await.0,
                pages(&both.without, &text, size).await.0,
            );
            assert_eq!(found, expected, "{what}: {text} in pages of {size}");
        }
    }
    both.with.assert_sound().await;
}

const QUERIES: [&str; 18] = [
    "SELECT TOP 5 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'dog')",
    "SELECT TOP 5 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'rare', 'fox')",
    "SELECT TOP 7 c.id, c.text FROM c ORDER BY RANK FullTextScore(c.text, 'run', ['cars', 'the'], 'Dog', 'dog')",
    "SELECT VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'sky') OFFSET 3 LIMIT 4",
    "SELECT TOP 200 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'cat')",
    "SELECT TOP 3 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'nowhere')",
    "SELECT TOP 3 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'the')",
    "SELECT TOP 4 VALUE c.id FROM c WHERE c.n % 3 = 0 ORDER BY RANK FullTextScore(c.text, 'red')",
    "SELECT TOP 4 VALUE c.id FROM c WHERE FullTextContains(c.text, 'cat') ORDER BY RANK FullTextScore(c.text, 'cat', 'red')",
    "SELECT TOP 90 VALUE c.id FROM c WHERE FullTextContains(c.text, 'sky') ORDER BY RANK FullTextScore(c.text, 'sky')",
    "SELECT TOP 5 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.title, 'dog', 'house')",
    "SELECT TOP 5 VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.title, 'dog'), FullTextScore(c.text, 'dog'))",
    "SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'running')",
    "SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'red cars') OR FullTextContains(c.text, 'rare')",
    "SELECT VALUE c.id FROM c WHERE FullTextContainsAll(c.text, 'dog', 'cat') AND c.n > 10",
    "SELECT VALUE c.id FROM c WHERE FullTextContainsAny(c.title, 'fox', 'sky', 'the')",
    "SELECT VALUE COUNT(1) FROM c WHERE FullTextContains(c.text, 'dog') AND NOT FullTextContains(c.text, 'cat')",
    "SELECT TOP 5 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'red cars')",
];

/// What SDKs send for a ranking over several ranges: the query for statistics, and those of the components.
fn sdk_queries() -> Vec<String> {
    let statistics = "SELECT COUNT(1) AS documentCount, [{\"totalWordCount\": SUM(_FullTextWordCount(c.text)), \"hitCounts\": \
                      [COUNTIF(FullTextContains(c.text, \"dog\")), COUNTIF(FullTextContains(c.text, \"fox\"))]}, \
                      {\"totalWordCount\": SUM(_FullTextWordCount(c.title)), \"hitCounts\": \
                      [COUNTIF(FullTextContains(c.title, \"the\"))]}] AS fullTextStatistics FROM c";
    let of_score = |score: &str, top: u32, filter: &str| {
        format!(
            "SELECT TOP {top} c.id, [{{\"item\": {score}}}] AS orderByItems, {{\"payload\": c.n, \"componentScores\": \
             [({score} ?? -1)]}} AS payload FROM c WHERE {filter} ORDER BY {score} DESC"
        )
    };
    let component = |top, filter: &str| {
        of_score(
            "_FullTextScore(c.text, [\"dog\", \"fox\"], 150, 1100, [60, 9])",
            top,
            filter,
        )
    };
    vec![
        // Without words, or with very many, the length of a text does not count, so that many scores are equal.
        of_score("_FullTextScore(c.text, [\"dog\"], 150, 0, [60])", 9, "(true)"),
        of_score(
            "_FullTextScore(c.text, [\"red\", \"dog\"], 150, 9000000000000000000, [70, 60])",
            9,
            "(true)",
        ),
        statistics.to_owned(),
        component(20, "(true)"),
        component(120, "(c.n < 100)"),
        component(3, "(FullTextContains(c.text, \"fox\"))"),
    ]
}

/// Returns the rows of all pages in order, and the number of items that the first one read.
async fn pages(test: &TestContainer, text: &str, size: usize) -> (Vec<Value>, u64) {
    let query = QueryItems {
        text: text.to_owned(),
        max_items: Some(size),
        ..QueryItems::default()
    };
    let (rows, first) = all_pages(test, query).await;
    (rows, first.metrics.retrieved_items)
}

fn random_text(random: &mut RandomChoices) -> String {
    let words = random.roll(12);
    let word = |random: &mut RandomChoices| WORDS[random.roll(16).min(random.roll(16)) as usize];
    (0..words).map(|_| word(random)).collect::<Vec<_>>().join(" ")
}

fn random_item(random: &mut RandomChoices, n: usize) -> Value {
    let mut item = json!({"id": n.to_string(), "pk": n.to_string(), "n": n, "title": random_text(random)});
    match random.roll(10) {
        0 => {}
        1 => item["text"] = json!(7),
        _ => item["text"] = json!(random_text(random)),
    }
    if random.roll(4) == 0 {
        item["ttl"] = json!(10);
    }
    item
}

async fn fill(both: &Both, random: &mut RandomChoices) {
    for n in 0..150 {
        both.upsert(&random_item(random, n)).await;
    }
}

#[tokio::test]
async fn with_a_full_text_index_and_without_queries_have_the_same_rows() {
    for language in ["en-US", "de-DE"] {
        let mut random = RandomChoices::new(7);
        let both = Both::new(indexed(language)).await;
        assert_same(&both, "without items").await;
        fill(&both, &mut random).await;
        assert_same(&both, "after the load").await;
        both.at(START + 9);
        for n in 0..60 {
            match random.roll(3) {
                0 => both.delete(&n.to_string()).await,
                _ => both.upsert(&random_item(&mut random, n)).await,
            }
        }
        both.at(START + 10);
        assert_same(&both, "with ghosts").await;
        both.at(START + 19);
        assert_same(&both, "with more ghosts").await;
        both.split().await;
        assert_same(&both, "after a split, with ghosts").await;
        for test in both.each() {
            test.account
                .purge(&test.container, PurgeMode::Force, None)
                .await
                .unwrap();
        }
        assert_same(&both, "after the purge").await;
    }
}

#[tokio::test]
async fn statistics_leave_ghosts_out_to_the_word() {
    let both = Both::new(indexed("en-US")).await;
    let item =
        |n: usize, text: &str, ttl: i64| json!({"id": n.to_string(), "pk": n.to_string(), "text": text, "ttl": ttl});
    both.upsert(&item(0, "the red dog", 10)).await;
    both.upsert(&item(1, "dog dog dog and a cat", 100)).await;
    both.upsert(&item(2, "", 100)).await;
    both.upsert(&json!({"id": "3", "pk": "3", "text": 5, "ttl": 10})).await;
    let text = "SELECT COUNT(1) AS n, SUM(_FullTextWordCount(c.text)) AS w, COUNTIF(FullTextContains(c.text, 'dogs')) AS d FROM c";
    for (second, expected) in [
        (9, json!({"n": 4, "w": 6, "d": 2})),
        (10, json!({"n": 2, "w": 4, "d": 1})),
    ] {
        both.at(START + second);
        assert_eq!(
            pages(&both.with, text, 10).await,
            (vec![expected.clone()], 0),
            "second {second}"
        );
        assert_eq!(pages(&both.without, text, 10).await.0, [expected], "second {second}");
    }
    // The ghost's id is taken by another item, which removes the ghost.
    both.upsert(&item(0, "red cat", 1_000)).await;
    assert_eq!(
        pages(&both.with, text, 10).await,
        (vec![json!({"n": 3, "w": 6, "d": 1})], 0)
    );
    assert_same(&both, "after a ghost was replaced").await;
}

#[tokio::test]
async fn items_that_end_by_the_default_are_left_out_too() {
    let mut definition = indexed("en-US");
    definition["defaultTtl"] = json!(20);
    let both = Both::new(definition).await;
    fill(&both, &mut RandomChoices::new(3)).await;
    both.at(START + 5);
    for n in 150..200 {
        both.upsert(&random_item(&mut RandomChoices::new(n as u64), n)).await;
    }
    for second in [10, 15, 19, 20, 24, 25, 30] {
        both.at(START + second);
        assert_same(&both, &format!("second {second}")).await;
    }
}

#[tokio::test]
async fn a_ranking_reads_only_the_best_items() {
    let both = Both {
        with: TestContainer::with_options(indexed("en-US"), None, options()).await,
        ..Both::new(indexed("en-US")).await
    };
    for n in 0..300 {
        let text = if n % 100 == 5 { "a rare fox" } else { "a dog" };
        both.upsert(&json!({"id": n.to_string(), "pk": n.to_string(), "text": text}))
            .await;
    }
    for (text, most) in [
        (
            "SELECT TOP 2 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'rare')",
            6,
        ),
        (
            "SELECT TOP 10 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'rare')",
            20,
        ),
        (
            "SELECT TOP 10 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'dog')",
            14,
        ),
        ("SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'foxes')", 3),
    ] {
        let (rows, read) = pages(&both.with, text, 100).await;
        assert!(read <= most && !rows.is_empty(), "{text} read {read}");
        assert_eq!(rows, pages(&both.without, text, 100).await.0, "{text}");
    }
}

#[tokio::test]
async fn a_text_with_very_many_words_is_ranked_and_found_too() {
    let both = Both::new(indexed("en-US")).await;
    let many: Vec<String> = (0..5_000).map(|n| format!("{}", 10_000 + n)).collect();
    let long = "9".repeat(300);
    for (id, text) in [
        ("many", format!("{} dog dog", many.join(" "))),
        ("long", format!("{long} dog")),
        ("short", "a dog and a cat".to_owned()),
        ("none", "a cat".to_owned()),
    ] {
        both.upsert(&json!({"id": id, "pk": id, "text": text, "n": 30})).await;
    }
    assert_same(&both, "with long texts").await;
    for filter in ["'14999'", "'15000'", &format!("'{long}'")] {
        let text = format!("SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, {filter})");
        assert_eq!(
            pages(&both.with, &text, 10).await.0,
            pages(&both.without, &text, 10).await.0
        );
    }
    both.upsert(&json!({"id": "many", "pk": "many", "text": "short now", "ttl": 10}))
        .await;
    both.upsert(&json!({"id": "long", "pk": "long", "text": long, "ttl": 10}))
        .await;
    both.at(START + 10);
    assert_same(&both, "without long texts").await;
}

#[tokio::test]
async fn with_very_many_ghosts_a_ranking_is_exact_too() {
    let both = Both::new(indexed("en-US")).await;
    for n in 0..700 {
        let mut item = random_item(&mut RandomChoices::new(n as u64), n);
        item["ttl"] = json!(if n % 7 == 0 { 100 } else { 10 });
        both.upsert(&item).await;
    }
    both.at(START + 10);
    assert_same(&both, "600 ghosts").await;
}

#[tokio::test]
async fn items_that_were_deleted_with_their_key_are_in_no_figure() {
    let both = Both::new(indexed("en-US")).await;
    fill(&both, &mut RandomChoices::new(5)).await;
    for test in both.each() {
        let ctx = test.begin().await;
        test.account
            .delete_all_of_key(&ctx, &test.container, &key("7"))
            .await
            .unwrap();
    }
    assert_same(&both, "after a deletion by key").await;
}

/// Waits until the number of items that a query reads fits.
async fn wait_until_read(test: &TestContainer, text: &str, fits: impl Fn(u64) -> bool) {
    for _ in 0..10_000 {
        if fits(pages(test, text, 100).await.1) {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{text} is never read so");
}

const RARE: &str = "SELECT TOP 2 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'dog')";

#[tokio::test]
async fn an_index_that_a_policy_adds_is_built_beside_writes_and_one_that_it_drops_is_removed() {
    let mut random = RandomChoices::new(11);
    let both = Both::new(without_index("en-US")).await;
    fill(&both, &mut random).await;
    for n in 150..450 {
        both.upsert(&random_item(&mut random, n)).await;
    }
    assert_eq!(pages(&both.with, RARE, 10).await.1, 450);
    both.with.define(indexed("en-US")).await.unwrap();
    for n in (0..450).step_by(5) {
        match random.roll(3) {
            0 => both.delete(&n.to_string()).await,
            _ => both.upsert(&random_item(&mut random, n)).await,
        }
        tokio::task::yield_now().await;
    }
    wait_until_read(&both.with, RARE, |read| read < 20).await;
    assert_same(&both, "after the build").await;
    // The language decides which words are the same: it is another index.
    let german = |definition: fn(&str) -> Value| definition("de-DE");
    both.with.define(german(indexed)).await.unwrap();
    both.without.define(german(without_index)).await.unwrap();
    wait_until_read(&both.with, RARE, |read| read < 20).await;
    assert_same(&both, "in another language").await;
    both.with.define(german(without_index)).await.unwrap();
    wait_until_read(&both.with, RARE, |read| read > 100).await;
    assert_same(&both, "without an index").await;
    both.with.define(german(indexed)).await.unwrap();
    wait_until_read(&both.with, RARE, |read| read < 20).await;
    assert_same(&both, "with an index again").await;
}

#[tokio::test]
async fn a_build_that_a_stop_interrupts_counts_every_text_once() {
    let both = Both::new(without_index("en-US")).await;
    let mut random = RandomChoices::new(13);
    fill(&both, &mut random).await;
    for n in 150..450 {
        both.upsert(&random_item(&mut random, n)).await;
    }
    both.with.define(indexed("en-US")).await.unwrap();
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    both.with.account.end().await;
    let Both { with, without } = both;
    let with = with.reopen_with(with_use(IndexUse::Always)).await;
    wait_until_read(&with, RARE, |read| read < 20).await;
    assert_same(&Both { with, without }, "after the build").await;
}

/// Returns the entries of full-text indexes: they have values.
async fn entries(test: &TestContainer) -> Vec<(Key, Bytes)> {
    let rows = test.engine.rows(Space::Index).await;
    let texts = rows
        .into_iter()
        .filter(|(key, value)| key.first() == Some(&b'P') && !value.is_empty());
    texts.map(|(key, value)| (Key::new(Space::Index, key), value)).collect()
}

#[tokio::test]
async fn every_entry_that_is_lost_or_changed_is_found() {
    let test = TestContainer::with_options(indexed("en-US"), None, options()).await;
    test.create(json!({"id": "a", "pk": "a", "text": "a red dog", "ttl": 50}))
        .await
        .unwrap();
    test.create(json!({"id": "b", "pk": "b", "text": 1})).await.unwrap();
    test.assert_sound().await;
    let entries = entries(&test).await;
    // Two words and the text; no text; and twice no title.
    assert_eq!(entries.len(), 3 + 1 + 2);
    let problems = async || test.account.verify(&test.container).await.unwrap().problems;
    for (key, value) in entries {
        test.engine.rewrite(key.clone(), None).await;
        assert!(
            problems().await.iter().any(|problem| problem.contains("has no entry")),
            "{key:?}"
        );
        let changed = [&value[..], &[1]].concat();
        test.engine.rewrite(key.clone(), Some(changed.into())).await;
        assert!(
            problems().await.iter().any(|problem| problem.contains("does not fit")),
            "{key:?}"
        );
        test.engine.rewrite(key.clone(), Some(value.clone())).await;
        let mut other = key.bytes.to_vec();
        other[5] ^= 0x40;
        let other = Key::new(Space::Index, other);
        test.engine.rewrite(other.clone(), Some(value)).await;
        assert!(
            problems().await.iter().any(|problem| problem.contains("has no item")),
            "{key:?}"
        );
        test.engine.rewrite(other, None).await;
    }
    test.assert_sound().await;
}
