//! The nearest vectors: times in a small and in a large container, and how many of the really nearest ones are found.
//!
//! The containers have four ranges, on an embedded engine in this process; the query is merged in the core. The small container has too few items for an index, so that
//! its vectors are compared one by one. What is really nearest is computed here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_core::{Account, AccountOptions, Container, QueryItems, Throughput};
use bolide_model::container::ContainerProperties;
use bolide_model::time::Clock;
use bolide_storage_lsm::{Durability, LsmEngine, LsmOptions};
use serde_json::{Value, json};

use super::store::runtime;
use crate::figures::{Latencies, micros};
use crate::table::Table;
use crate::{Result, item};

/// Throughput with which a container has four ranges.
const FOUR_RANGES: Throughput = Throughput::Manual { ru: 24_000 };
/// Number of clusters of clustered vectors, and how far vectors are from the centre, as a multiple of the centre's components.
const CLUSTERS: u64 = 1_000;
const SPREAD: f64 = 0.7;
/// Rows of a query.
const ROWS: usize = 10;
/// Maximum time of a query: without an index, a million vectors take longer than a server would let one take on a busy machine.
const QUERY_TIME: Duration = Duration::from_secs(600);

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Items of the large container, with 128 dimensions. Those with 768 have a quarter.
    #[arg(long, default_value_t = 200_000)]
    items: u64,
    /// Items of the small container.
    #[arg(long, default_value_t = 1_000)]
    few: u64,
    /// Runs of each query.
    #[arg(long, default_value_t = 500)]
    runs: u64,
    /// Leaves out the vectors with 768 dimensions and the uniform ones.
    #[arg(long)]
    short: bool,
}

/// How vectors are spread.
#[derive(Debug, Clone, Copy)]
enum Spread {
    Clustered,
    Uniform,
}

/// The vectors of a container.
struct Vectors {
    spread: Spread,
    dimensions: usize,
}

/// A filled container.
struct Filled {
    account: Arc<Account>,
    container: Arc<Container>,
    vectors: Vectors,
    items: u64,
    _dir: tempfile::TempDir,
}

/// Runs the benchmark.
pub fn run(options: &Options) -> Result<String> {
    runtime()?.block_on(async {
        let mut times = Table::new(["container", "p50 µs", "p99 µs", "p99 / small"]);
        let mut recall = Table::new([
            "vectors",
            "dimensions",
            "items",
            "index",
            "built in s",
            "recall@10",
            "10 x lists",
        ]);
        let clustered = |dimensions| Vectors {
            spread: Spread::Clustered,
            dimensions,
        };
        let uniform = |dimensions| Vectors {
            spread: Spread::Uniform,
            dimensions,
        };
        let small = fill(clustered(128), options.few).await?;
        let few = small.measure("", options.runs).await?;
        drop(small);
        let large = fill(clustered(128), options.items).await?;
        large.add_recall(&mut recall).await?;
        let many = large.measure("", options.runs).await?;
        let exact = large.measure(", true", 10).await?;
        drop(large);
        let named = [
            (format!("{} items, no index", options.few), &few),
            (format!("{} items", options.items), &many),
            (format!("{} items, compared one by one", options.items), &exact),
        ];
        for (name, latencies) in named {
            let of = |percent| micros(latencies.percentile(percent));
            let ratio = of(99.0) / micros(few.percentile(99.0));
            times.row([
                name,
                format!("{:.0}", of(50.0)),
                format!("{:.0}", of(99.0)),
                format!("{ratio:.2}"),
            ]);
        }
        if !options.short {
            for (vectors, items) in [
                (uniform(128), options.items / 4),
                (clustered(768), options.items / 4),
                (uniform(768), options.items / 8),
            ] {
                fill(vectors, items).await?.add_recall(&mut recall).await?;
            }
        }
        Ok(format!(
            "## Nearest vectors\n\nTOP {ROWS} by cosine, 128 dimensions, clustered, four ranges; {} runs.\n\n{times}\n\
             The same with the defaults, and with ten times as many lists.\n\n{recall}",
            options.runs
        ))
    })
}

impl Vectors {
    /// Returns the vector of an item. Numbers behind those of the items are those of queries.
    fn of(&self, number: u64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(number);
        let mut own = normal(&mut random, self.dimensions);
        if let Spread::Clustered = self.spread {
            let cluster = random.u64(..CLUSTERS);
            let centre = normal(&mut fastrand::Rng::with_seed(u64::MAX - cluster), self.dimensions);
            own = centre
                .iter()
                .zip(&own)
                .map(|(centre, own)| centre + SPREAD * own)
                .collect();
        }
        // As the text of the item has it.
        own.iter().map(|x| (x * 1e4).round() / 1e4).collect()
    }
}

/// Numbers of a normal distribution.
fn normal(random: &mut fastrand::Rng, count: usize) -> Vec<f64> {
    let number = |random: &mut fastrand::Rng| {
        let radius = (-2.0 * random.f64().max(f64::MIN_POSITIVE).ln()).sqrt();
        radius * (std::f64::consts::TAU * random.f64()).cos()
    };
    (0..count).map(|_| number(random)).collect()
}

async fn fill(vectors: Vectors, items: u64) -> Result<Filled> {
    let dir = tempfile::tempdir()?;
    let options = LsmOptions {
        durability: Durability::Buffered,
        ..LsmOptions::default()
    };
    let engine = Arc::new(LsmEngine::open(dir.path(), Arc::new(Clock::System), options)?);
    let options = AccountOptions {
        query_time: QUERY_TIME,
        ..AccountOptions::default()
    };
    let account = Account::open(engine, options).await.map_err(text)?;
    let ctx = account.begin().await.map_err(text)?;
    let database = account.create_database(&ctx, "bench", None).await.map_err(text)?;
    let definition = json!({
        "id": "items", "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2},
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": vectors.dimensions, "distanceFunction": "cosine"}
        ]},
        "indexingPolicy": {"includedPaths": [{"path": "/*"}], "excludedPaths": [{"path": "/v/*"}],
            "vectorIndexes": [{"path": "/v", "type": "quantizedFlat"}]},
    });
    let properties = ContainerProperties::from_json(&definition).map_err(text)?;
    let container = account
        .create_container(&ctx, database.rid, properties, Some(FOUR_RANGES))
        .await
        .map_err(text)?;
    let document = |number| json!({"id": item::id(number), "v": vectors.of(number)}).to_string();
    item::create_all(&account, &container, items, document).await?;
    Ok(Filled {
        account,
        container,
        vectors,
        items,
        _dir: dir,
    })
}

impl Filled {
    /// Adds a row with the index and what it finds.
    async fn add_recall(&self, table: &mut Table) -> Result<()> {
        let built = self.wait_for_index().await?;
        let account = &self.account;
        let query = self.query("", 0);
        let explained = account.explain_query(&self.container, &query.text, &query.parameters);
        let explained = explained.await.map_err(text)?;
        let lists = explained.rsplit("in ").next().unwrap_or_default().trim();
        let wide = ", false, {'searchListSizeMultiplier': 100}";
        table.row([
            format!("{:?}", self.vectors.spread).to_lowercase(),
            self.vectors.dimensions.to_string(),
            self.items.to_string(),
            lists.to_owned(),
            format!("{:.0}", built.as_secs_f64()),
            format!("{:.3}", self.recall("").await?),
            format!("{:.3}", self.recall(wide).await?),
        ]);
        Ok(())
    }

    /// Waits until the index can be used, and no earlier one is left. Returns how long that took.
    async fn wait_for_index(&self) -> Result<Duration> {
        let began = Instant::now();
        loop {
            self.ask("", 0).await?;
            let report = self.account.index_report(&self.container).await.map_err(text)?;
            if !report.indexes.is_empty() && report.indexes.iter().all(|index| index.is_ready) && report.dropped == 0 {
                return Ok(began.elapsed());
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
    }

    fn query(&self, options: &str, run: u64) -> QueryItems {
        let vector = self.vectors.of(self.items + run);
        QueryItems {
            text: format!("SELECT TOP {ROWS} c.id FROM c ORDER BY VectorDistance(c.v, @q{options})"),
            parameters: Arc::new(vec![("@q".to_owned(), json!(vector))]),
            cross_partition: true,
            merges_ranges: true,
            ..QueryItems::default()
        }
    }

    /// Returns the numbers of the items that are found, and how long that took.
    async fn ask(&self, options: &str, run: u64) -> Result<(Vec<u64>, Duration)> {
        let mut query = self.query(options, run);
        let (began, mut found) = (Instant::now(), Vec::new());
        loop {
            let ctx = self.account.begin().await.map_err(text)?;
            let page = self.account.query(&ctx, &self.container, &query).await;
            let page = page.map_err(|refusal| refusal.error.to_string())?.value;
            let rows: Vec<Value> = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat())?;
            let numbers = rows.iter().filter_map(|row| row["id"].as_str()?.parse::<u64>().ok());
            found.extend(numbers);
            query.continuation = page.continuation;
            if query.continuation.is_none() {
                return Ok((found, began.elapsed()));
            }
        }
    }

    async fn measure(&self, options: &str, runs: u64) -> Result<Latencies> {
        let mut latencies = Vec::new();
        for run in 0..runs + runs / 10 {
            let (_, took) = self.ask(options, run).await?;
            // The first ones warm the caches.
            if run >= runs / 10 {
                latencies.push(took);
            }
        }
        Ok(latencies.into_iter().collect())
    }

    /// Returns which part of the really nearest items is found.
    async fn recall(&self, options: &str) -> Result<f64> {
        const QUERIES: u64 = 50;
        let unit = |vector: Vec<f64>| {
            let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
            vector.iter().map(|x| x / length).collect::<Vec<f64>>()
        };
        let targets: Vec<Vec<f64>> = (0..QUERIES)
            .map(|run| unit(self.vectors.of(self.items + run)))
            .collect();
        let mut nearest = vec![Vec::<(f64, u64)>::new(); targets.len()];
        for number in 0..self.items {
            let vector = unit(self.vectors.of(number));
            for (target, nearest) in targets.iter().zip(&mut nearest) {
                let product: f64 = target.iter().zip(&vector).map(|(a, b)| a * b).sum();
                nearest.push((-product, number));
                if nearest.len() >= 2_000 {
                    keep_nearest(nearest);
                }
            }
        }
        let mut hits = 0;
        for (run, mut nearest) in (0..).zip(nearest) {
            keep_nearest(&mut nearest);
            let (found, _) = self.ask(options, run).await?;
            hits += nearest.iter().filter(|(_, number)| found.contains(number)).count();
        }
        Ok(hits as f64 / (QUERIES * ROWS as u64) as f64)
    }
}

fn keep_nearest(nearest: &mut Vec<(f64, u64)>) {
    nearest.sort_by(|a, b| a.0.total_cmp(&b.0));
    nearest.truncate(ROWS);
}

fn text(error: bolide_model::Error) -> String {
    error.to_string()
}
