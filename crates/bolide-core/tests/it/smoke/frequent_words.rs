//! Rankings by frequent words: their rows are those of a model of this file, whatever was written, has expired, was purged or restarted meanwhile, and they read no
//! more entries when more texts have the words.

use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_core::{AccountOptions, IndexUse, PurgeMode, QueryItems};
use serde_json::{Value, json};

use crate::random::RandomChoices;
use crate::test_container::{START, TestContainer, options};

/// Words that the analysis leaves as they are.
const WORDS: [&str; 6] = ["dog", "cat", "fox", "sky", "red", "sun"];

fn forced() -> AccountOptions {
    AccountOptions {
        index_use: IndexUse::Always,
        ..options()
    }
}

fn indexed() -> Value {
    json!({
        "defaultTtl": -1,
        "fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text"}]},
        "indexingPolicy": {"includedPaths": [{"path": "/*"}], "fullTextIndexes": [{"path": "/text"}]},
    })
}

/// An item of the model.
struct Known {
    /// Its place in the order of creation.
    created: u64,
    text: Option<Vec<&'static str>>,
    /// The second from which on it is a ghost.
    ends: i64,
}

#[derive(Default)]
struct Model {
    items: BTreeMap<String, Known>,
    creations: u64,
    now: i64,
}

impl Model {
    fn live(&self) -> impl Iterator<Item = (&String, &Known)> {
        self.items.iter().filter(|(_, item)| item.ends > self.now)
    }

    fn upsert(&mut self, id: &str, text: Option<Vec<&'static str>>, ttl: Option<i64>) {
        let known = self.items.get(id).filter(|item| item.ends > self.now);
        let created = known.map_or_else(
            || {
                self.creations += 1;
                self.creations
            },
            |item| item.created,
        );
        let ends = ttl.map_or(i64::MAX, |ttl| self.now + ttl);
        self.items.insert(id.to_owned(), Known { created, text, ends });
    }

    /// The ids by BM25 of some words, the highest first: those with equal scores in the order of creation, items without a text last.
    fn ranked(&self, terms: &[&str]) -> Vec<String> {
        let words_of = |item: &Known| item.text.as_ref().map_or(0, Vec::len) as f64;
        let documents = self.live().count() as f64;
        let average = self.live().map(|(_, item)| words_of(item)).sum::<f64>() / documents.max(1.0);
        let times = |item: &Known, term: &str| {
            let text = item.text.iter().flatten();
            text.filter(|word| **word == term).count() as f64
        };
        let score = |item: &Known| {
            item.text.as_ref()?;
            let length = if average > 0.0 { words_of(item) / average } else { 1.0 };
            let of_term = |term: &&str| {
                let with = self.live().filter(|(_, item)| times(item, term) > 0.0).count() as f64;
                let rarity = (1.0 + (documents - with + 0.5) / (with + 0.5)).ln();
                let times = times(item, term);
                rarity * times * 2.2 / (times + 1.2 * (1.0 - 0.75 + 0.75 * length))
            };
            Some(terms.iter().map(of_term).sum::<f64>())
        };
        let mut rows: Vec<_> = self.live().map(|(id, item)| (score(item), item.created, id)).collect();
        rows.sort_by(|(a, x, _), (b, y, _)| b.partial_cmp(a).unwrap().then(x.cmp(y)));
        rows.into_iter().map(|(_, _, id)| id.clone()).collect()
    }
}

async fn rows(test: &TestContainer, text: &str) -> Vec<Value> {
    let mut query = QueryItems {
        text: text.to_owned(),
        cross_partition: true,
        merges_ranges: true,
        ..QueryItems::default()
    };
    let mut rows = Vec::new();
    loop {
        let ctx = test.begin().await;
        let page = test.account.query(&ctx, &test.container, &query).await.unwrap().value;
        let page_rows: Vec<Value> = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat()).unwrap();
        rows.extend(page_rows);
        query.continuation = page.continuation;
        if query.continuation.is_none() {
            return rows;
        }
    }
}

async fn assert_ranked(test: &TestContainer, model: &Model, terms: &[&str], top: usize, what: &str) {
    let listed: Vec<String> = terms.iter().map(|term| format!("'{term}'")).collect();
    let text = format!(
        "SELECT TOP {top} VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, {})",
        listed.join(", ")
    );
    let mut expected = model.ranked(terms);
    expected.truncate(top);
    assert_eq!(rows(test, &text).await, expected, "{what}: {text}");
}

fn random_text(random: &mut RandomChoices) -> Option<Vec<&'static str>> {
    if random.roll(12) == 0 {
        return None;
    }
    let words = random.roll(9);
    Some(
        (0..words)
            .map(|_| WORDS[random.roll(6).min(random.roll(6)) as usize])
            .collect(),
    )
}

async fn upsert(test: &TestContainer, model: &mut Model, random: &mut RandomChoices, n: u64) {
    let (id, text) = (n.to_string(), random_text(random));
    let ttl = (random.roll(3) == 0).then(|| 3 + random.roll(20) as i64);
    let mut item = json!({"id": id, "pk": "p"});
    if let Some(text) = &text {
        item["text"] = json!(text.join(" "));
    }
    if let Some(ttl) = ttl {
        item["ttl"] = json!(ttl);
    }
    test.upsert(item, None).await.unwrap();
    model.upsert(&id, text, ttl);
}

#[tokio::test]
async fn rankings_by_frequent_words_are_those_of_a_model_after_any_history() {
    for seed in 0..4 {
        let mut random = RandomChoices::new(seed);
        let mut test = TestContainer::with_options(indexed(), None, forced()).await;
        let mut model = Model::default();
        for n in 0..120 {
            upsert(&test, &mut model, &mut random, n).await;
        }
        for step in 0..120 {
            match random.roll(20) {
                0..=10 => {
                    let n = random.roll(150);
                    upsert(&test, &mut model, &mut random, n).await;
                }
                11..=14 => {
                    let live: Vec<String> = model.live().map(|(id, _)| id.clone()).collect();
                    let id = live[random.roll(live.len() as u64) as usize].clone();
                    test.delete(&id, None).await.unwrap();
                    model.items.remove(&id);
                }
                15..=17 => {
                    model.now += 1 + random.roll(3) as i64;
                    test.at(START + model.now);
                }
                18 => {
                    let most = Some(1 + random.roll(20));
                    let purged = test.account.purge(&test.container, PurgeMode::Force, most).await;
                    purged.unwrap();
                }
                _ => test = test.reopen_with(forced()).await,
            }
            let what = format!("seed {seed}, step {step}");
            for terms in [&["dog"][..], &["cat"], &["dog", "cat"], &["sun", "dog", "dog"]] {
                let most = if random.roll(4) == 0 { 140 } else { 8 };
                let top = 1 + random.roll(most) as usize;
                assert_ranked(&test, &model, terms, top, &what).await;
            }
        }
        test.assert_sound().await;
    }
}

/// Fills a container with texts of which 30 % have one word, and measures rankings by it: rows that scans return for the first one and for later ones.
async fn entries_of_rankings(items: u64, term: &str) -> (u64, Vec<u64>) {
    let test = TestContainer::with_options(indexed(), None, options()).await;
    let text = |n: u64| {
        if n % 10 < 3 {
            format!("common w{n} sky")
        } else {
            format!("w{n} red sky")
        }
    };
    for n in 0..items {
        let item = json!({"id": n.to_string(), "pk": n.to_string(), "text": text(n)});
        test.upsert(item, None).await.unwrap();
    }
    let query = format!("SELECT TOP 10 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, {term})");
    let mut found = Vec::new();
    for again in 0..6 {
        test.engine.found_rows();
        assert_eq!(rows(&test, &query).await.len(), 10);
        found.push(test.engine.found_rows());
        // The list follows writes.
        let item = json!({"id": format!("more{again}"), "pk": "more", "text": "common dog"});
        test.upsert(item, None).await.unwrap();
        let id = json!({"id": again.to_string(), "pk": again.to_string(), "text": "no more"});
        test.upsert(id, None).await.unwrap();
    }
    let statistics =
        "SELECT COUNTIF(FullTextContains(c.text, 'common')) AS d, SUM(_FullTextWordCount(c.text)) AS w FROM c";
    test.engine.found_rows();
    let counted = rows(&test, statistics).await;
    if term == "'common'" {
        // Three of the six items that got another text had the word.
        assert_eq!(counted[0]["d"], json!(items * 3 / 10 + 6 - 3));
        found.push(test.engine.found_rows());
    }
    (found.remove(0), found)
}

#[tokio::test]
async fn a_ranking_by_frequent_words_does_not_read_all_of_their_entries() {
    for term in ["'common'", "'common', 'sky'"] {
        let (few, many) = (
            entries_of_rankings(1_000, term).await,
            entries_of_rankings(4_000, term).await,
        );
        assert!(
            few.0 >= 300 && many.0 >= 1_200,
            "the first one reads all: {few:?} {many:?}"
        );
        assert_eq!(few.1, many.1, "{term}: the others read as many in both");
        assert!(many.1.iter().all(|found| *found < 100), "{term}: {many:?}");
    }
}

#[tokio::test]
async fn of_entries_that_are_too_many_to_be_held_a_list_is_made_too() {
    // With forced indexes, a read holds 64 entries.
    let test = TestContainer::with_options(indexed(), None, forced()).await;
    let mut model = Model::default();
    for n in 0..300 {
        let mut random = RandomChoices::new(n);
        upsert(&test, &mut model, &mut random, n).await;
    }
    model.now = 15;
    test.at(START + model.now);
    for terms in [&["dog"][..], &["cat", "dog"], &["red", "sky", "fox"]] {
        for again in 0..2 {
            assert_ranked(&test, &model, terms, 4, &format!("time {again}")).await;
        }
    }
    let query = "SELECT TOP 4 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'dog', 'cat')";
    test.engine.found_rows();
    rows(&test, query).await;
    let (found, ghosts) = (test.engine.found_rows(), model.items.len() - model.live().count());
    assert!(found <= 2 * ghosts as u64 + 20, "{found} rows with {ghosts} ghosts");
    test.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rankings_beside_writers_are_of_one_version() {
    let test = Arc::new(TestContainer::with_options(indexed(), None, forced()).await);
    let item = |n: u64, word: &str| json!({"id": n.to_string(), "pk": "p", "text": format!("dog {word} red")});
    for n in 0..200 {
        test.upsert(item(n, "sky"), None).await.unwrap();
    }
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let test = test.clone();
            tokio::spawn(async move {
                let mut random = RandomChoices::new(writer);
                for _ in 0..400 {
                    let word = WORDS[random.roll(6) as usize];
                    // Behind the first ten, so that what is ranked first is not replaced while it is read.
                    test.upsert(item(10 + random.roll(190), word), None).await.unwrap();
                }
            })
        })
        .collect();
    let ranking = "SELECT TOP 10 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'dog') ";
    let statistics =
        "SELECT COUNTIF(FullTextContains(c.text, 'dog')) AS d, SUM(_FullTextWordCount(c.text)) AS w FROM c";
    // However often an item is replaced, it has the word once among three, except for those that have it twice: these are first.
    let mut rankings = 0;
    while rankings == 0 || !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        assert_eq!(rows(&test, statistics).await, [json!({"d": 200, "w": 600})]);
        assert_eq!(rows(&test, ranking).await.len(), 10);
        rankings += 1;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    test.assert_sound().await;
}
