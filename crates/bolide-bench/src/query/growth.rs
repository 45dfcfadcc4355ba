//! Queries through property and full-text indexes in a small and in a large container: the times should hardly differ.
//!
//! Both containers have four ranges, on an embedded engine in this process; the query is merged in the core. Values are spread over the ranges. Each run of a query
//! asks for other values.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_core::{Account, AccountOptions, Container, QueryItems, Throughput};
use bolide_model::container::ContainerProperties;
use bolide_model::time::Clock;
use bolide_storage_lsm::{Durability, LsmEngine, LsmOptions};
use serde_json::json;

use super::data::{self, FIRST_CREATED};
use super::store::runtime;
use crate::figures::{Latencies, micros};
use crate::table::Table;
use crate::{Result, item};

/// Throughput with which a container has four ranges.
const FOUR_RANGES: Throughput = Throughput::Manual { ru: 24_000 };
const PATHS: [&str; 4] = ["/number/?", "/created/?", "/customer/name/?", "/words/[]/?"];
/// As much as the server takes on a machine with 16 GiB.
const CACHE_BYTES: u64 = 2 << 30;
/// Number of texts with one rare word.
const BATCH: u64 = 20;
/// Of ten texts, so many have the common word.
const COMMON_IN_TEN: u64 = 3;
/// Number of other words in a text, and of different ones in all texts.
const TEXT_WORDS: u64 = 20;
const VOCABULARY: u64 = 5_000;

/// Items whose entries one query of [`warm_ups`] reads.
const WARM_UP_ITEMS: u64 = 100_000;

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Items of the large container.
    #[arg(long, default_value_t = 1_000_000)]
    items: u64,
    /// Items of the small container.
    #[arg(long, default_value_t = 1_000)]
    few: u64,
    /// Runs of each query.
    #[arg(long, default_value_t = 500)]
    runs: u64,
}

/// A query; `{n}` stands for a number below that of the items, `{batch}` for that of its rare word, `{from}` and `{to}` for the times of a hundred orders.
struct Question {
    name: &'static str,
    text: &'static str,
}

const QUESTIONS: [Question; 11] = [
    Question {
        name: "equality, one match",
        text: "SELECT * FROM c WHERE c.number = {n}",
    },
    Question {
        name: "range of 100",
        text: "SELECT VALUE c.id FROM c WHERE c.created >= {from} AND c.created < {to}",
    },
    Question {
        name: "ORDER BY, TOP 20",
        text: "SELECT TOP 20 c.id, c.created FROM c WHERE c.created >= {from} ORDER BY c.created",
    },
    Question {
        name: "STARTSWITH, one match",
        text: "SELECT VALUE c.id FROM c WHERE STARTSWITH(c.customer.name, 'Customer {n} ')",
    },
    Question {
        name: "ARRAY_CONTAINS, one match",
        text: "SELECT VALUE c.id FROM c WHERE ARRAY_CONTAINS(c.words, 'word {n}')",
    },
    Question {
        name: "COUNT of a range of 100",
        text: "SELECT VALUE COUNT(1) FROM c WHERE c.created >= {from} AND c.created < {to}",
    },
    Question {
        name: "FullTextContains, 20 matches",
        text: "SELECT VALUE c.id FROM c WHERE FullTextContains(c.text, 'batch{batch}')",
    },
    Question {
        name: "full-text TOP 10, 20 matches",
        text: "SELECT TOP 10 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'batch{batch}')",
    },
    Question {
        name: "full-text TOP 10, one match",
        text: "SELECT TOP 10 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'single{n}')",
    },
    Question {
        name: "full-text statistics, 20 matches",
        text: "SELECT COUNT(1) AS n, SUM(_FullTextWordCount(c.text)) AS w, COUNTIF(FullTextContains(c.text, 'batch{batch}')) AS d FROM c",
    },
    Question {
        name: "full-text TOP 10, in 30 % of all",
        text: "SELECT TOP 10 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'common')",
    },
];

/// A filled container, and how long the fill took.
struct Filled {
    account: Arc<Account>,
    container: Arc<Container>,
    items: u64,
    _dir: tempfile::TempDir,
}

/// Runs the benchmark.
pub fn run(options: &Options) -> Result<String> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let small = fill(options.few).await?;
        let large = fill(options.items).await?;
        let mut table = Table::new(["query", "p50 small µs", "p50 large µs", "p99 small µs", "p99 large µs", "p99 ratio"]);
        for filled in [&small, &large] {
            for query in warm_ups(filled.items) {
                ask(filled, &query).await?;
            }
        }
        for question in &QUESTIONS {
            let (small, large) = (measure(&small, question, options.runs).await?, measure(&large, question, options.runs).await?);
            let of = |latencies: &Latencies, percent| micros(latencies.percentile(percent));
            table.row([
                question.name.to_owned(),
                format!("{:.0}", of(&small, 50.0)),
                format!("{:.0}", of(&large, 50.0)),
                format!("{:.0}", of(&small, 99.0)),
                format!("{:.0}", of(&large, 99.0)),
                format!("{:.2}", of(&large, 99.0) / of(&small, 99.0)),
            ]);
        }
        Ok(format!(
            "## Queries through indexes, small and large\n\n{} and {} items of 1 KB in four ranges, {} runs of each query.\n\n{table}",
            options.few, options.items, options.runs
        ))
    })
}

async fn fill(items: u64) -> Result<Filled> {
    let dir = tempfile::tempdir()?;
    let options = LsmOptions {
        durability: Durability::Buffered,
        cache_bytes: CACHE_BYTES,
        ..LsmOptions::default()
    };
    let engine = Arc::new(LsmEngine::open(dir.path(), Arc::new(Clock::System), options)?);
    let account = Account::open(engine, AccountOptions::default()).await.map_err(text)?;
    let ctx = account.begin().await.map_err(text)?;
    let database = account.create_database(&ctx, "bench", None).await.map_err(text)?;
    let paths = PATHS.iter().chain(&["/*"]).map(|path| json!({"path": path}));
    let paths: Vec<_> = paths.collect();
    let definition = json!({
        "id": "items", "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2},
        "indexingPolicy": {"includedPaths": paths, "fullTextIndexes": [{"path": "/text"}]},
        "fullTextPolicy": {"defaultLanguage": "en-US", "fullTextPaths": [{"path": "/text", "language": "en-US"}]},
    });
    let properties = ContainerProperties::from_json(&definition).map_err(text)?;
    let container = account
        .create_container(&ctx, database.rid, properties, Some(FOUR_RANGES))
        .await
        .map_err(text)?;
    item::create_all(&account, &container, items, document).await?;
    Ok(Filled {
        account,
        container,
        items,
        _dir: dir,
    })
}

/// Queries that read all items, and most entries of indexes, so that caches have them before anything is measured.
pub fn warm_ups(items: u64) -> Vec<String> {
    let mut queries = vec!["SELECT VALUE COUNT(1) FROM c WHERE LENGTH(c.id) > 0".to_owned()];
    for from in (0..items).step_by(WARM_UP_ITEMS as usize) {
        let to = from + WARM_UP_ITEMS;
        for (path, first) in [("number", 0), ("created", FIRST_CREATED)] {
            let (from, to) = (first + from, first + to);
            queries.push(format!(
                "SELECT VALUE COUNT(1) FROM c WHERE c.{path} >= {from} AND c.{path} < {to}"
            ));
        }
    }
    for digit in 1..10 {
        queries.push(format!(
            "SELECT VALUE COUNT(1) FROM c WHERE STARTSWITH(c.customer.name, 'Customer {digit}')"
        ));
    }
    queries
}

/// An order with its number, as a value, in the customer's name and in an array.
pub fn document(number: u64) -> String {
    let order = data::document(number).replacen("\"name\":\"Customer ", &format!("\"name\":\"Customer {number} "), 1);
    let members = order.strip_suffix('}').unwrap_or(&order);
    let text = full_text(number);
    format!("{members},\"number\":{number},\"words\":[\"order\",\"word {number}\"],\"text\":\"{text}\"}}")
}

/// A text with a word of its own, one that it has in common with a few, one that many have, and others.
fn full_text(number: u64) -> String {
    let mut random = fastrand::Rng::with_seed(number);
    let mut text = format!("single{number} batch{}", number / BATCH);
    if random.u64(..10) < COMMON_IN_TEN {
        text.push_str(" common");
    }
    for _ in 0..TEXT_WORDS {
        text.push_str(&format!(" word{}", random.u64(..VOCABULARY)));
    }
    text
}

async fn measure(filled: &Filled, question: &Question, runs: u64) -> Result<Latencies> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut latencies = Vec::new();
    for run in 0..runs + runs / 10 {
        let number = random.u64(..filled.items - 100);
        let from = FIRST_CREATED + number;
        let query = question
            .text
            .replace("{n}", &number.to_string())
            .replace("{batch}", &(number / BATCH).to_string())
            .replace("{from}", &from.to_string())
            .replace("{to}", &(from + 100).to_string());
        let took = ask(filled, &query).await?;
        // The first ones warm the caches.
        if run >= runs / 10 {
            latencies.push(took);
        }
    }
    Ok(latencies.into_iter().collect())
}

async fn ask(filled: &Filled, query: &str) -> Result<Duration> {
    let mut request = QueryItems {
        text: query.to_owned(),
        cross_partition: true,
        merges_ranges: true,
        max_items: Some(1_000),
        ..QueryItems::default()
    };
    let (began, mut rows) = (Instant::now(), 0);
    loop {
        let ctx = filled.account.begin().await.map_err(text)?;
        let page = filled.account.query(&ctx, &filled.container, &request).await;
        let page = page.map_err(|refusal| refusal.error.to_string())?.value;
        rows += page.count;
        request.continuation = page.continuation;
        if request.continuation.is_none() {
            break;
        }
    }
    match rows {
        0 => Err(format!("no rows: {query}").into()),
        _ => Ok(began.elapsed()),
    }
}

fn text(error: bolide_model::Error) -> String {
    error.to_string()
}
