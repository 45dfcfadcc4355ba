//! The longest time without any response, while a store is loaded and while half of the requests are updates.
//!
//! Clients call the core in the benchmark's process, each with one request at a time, on the embedded engine with one fsync for everything that waits
//! at the same time. A gap is the time between two responses, to any client: it shows pauses of all clients at once by flushes, merges and deleted
//! files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bolide_core::{Account, AccountOptions, Container, ItemTarget, ReadItem, UpsertItem};
use bolide_model::container::ContainerProperties;
use bolide_model::document::Document;
use bolide_model::partition_key::{Component, PartitionKey};
use bolide_model::time::Clock;
use bolide_storage_lsm::{LsmEngine, LsmOptions};
use serde_json::json;

use crate::figures::Latencies;
use crate::table::Table;
use crate::{Result, item};

/// Clients in every phase.
const CLIENTS: u64 = 32;
/// Gaps of at least this length are counted.
const LONG: Duration = Duration::from_millis(100);

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Number of items loaded.
    #[arg(long, default_value_t = 1_000_000)]
    items: u64,
    /// Requests of the second phase, half of them updates.
    #[arg(long, default_value_t = 500_000)]
    requests: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            items: 1_000_000,
            requests: 500_000,
        }
    }
}

/// The result of one phase.
struct Phase {
    name: &'static str,
    requests: u64,
    time: Duration,
    latencies: Latencies,
    longest_gap: Duration,
    long_gaps: u64,
}

/// Runs the benchmark.
pub fn run(options: &Options) -> Result<String> {
    let dir = tempfile::tempdir()?;
    let engine = LsmEngine::open(dir.path(), Arc::new(Clock::System), LsmOptions::default())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let phases = runtime.block_on(async {
        let clients = Arc::new(Clients::of(Arc::new(engine)).await?);
        let (items, requests) = (options.items, options.requests);
        let loaded = clients.phase("loading", items, |clients, n| Box::pin(clients.create(n)));
        let loaded = loaded.await?;
        let mixed = clients.phase("reads and updates", requests, move |clients, n| {
            Box::pin(clients.read_or_update(n, items))
        });
        let mixed = mixed.await?;
        clients.account.close().await.map_err(text)?;
        Ok::<_, crate::Error>([loaded, mixed])
    })?;
    let mut table = Table::new([
        "phase",
        "requests/s",
        "p50 µs",
        "p99 µs",
        "longest gap ms",
        "gaps above 100 ms",
    ]);
    for phase in phases {
        table.row([
            phase.name.to_owned(),
            format!("{:.0}", phase.requests as f64 / phase.time.as_secs_f64()),
            format!("{:.0}", phase.latencies.percentile(50.0).as_secs_f64() * 1e6),
            format!("{:.0}", phase.latencies.percentile(99.0).as_secs_f64() * 1e6),
            format!("{:.0}", phase.longest_gap.as_secs_f64() * 1e3),
            phase.long_gaps.to_string(),
        ]);
    }
    Ok(format!(
        "## Stalls\n\n{CLIENTS} clients, {} items of {} bytes.\n\n{table}",
        options.items,
        item::BYTES
    ))
}

struct Clients {
    account: Arc<Account>,
    container: Arc<Container>,
}

type Call = std::pin::Pin<Box<dyn Future<Output = Result<()>> + Send>>;

impl Clients {
    async fn of(engine: Arc<LsmEngine>) -> Result<Clients> {
        let account = Account::open(engine, AccountOptions::default()).await.map_err(text)?;
        let ctx = account.begin().await.map_err(text)?;
        let database = account.create_database(&ctx, "bench", None).await.map_err(text)?;
        let definition = json!({"id": "items", "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2}});
        let properties = ContainerProperties::from_json(&definition).map_err(text)?;
        let created = account.create_container(&ctx, database.rid, properties, None);
        let container = created.await.map_err(text)?;
        Ok(Clients { account, container })
    }

    /// Lets all clients together send this many requests.
    async fn phase(
        self: &Arc<Self>,
        name: &'static str,
        requests: u64,
        call: impl Fn(Arc<Clients>, u64) -> Call + Clone + Send + 'static,
    ) -> Result<Phase> {
        let (next, gaps) = (Arc::new(AtomicU64::new(0)), Arc::new(Gaps::begin()));
        let began = Instant::now();
        let client = || {
            let (clients, next, gaps, call) = (self.clone(), next.clone(), gaps.clone(), call.clone());
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= requests {
                        return Ok::<_, crate::Error>(latencies);
                    }
                    let sent = Instant::now();
                    call(clients.clone(), number).await?;
                    latencies.push(sent.elapsed());
                    gaps.answered();
                }
            })
        };
        let running: Vec<_> = (0..CLIENTS).map(|_| client()).collect();
        let mut latencies = Vec::new();
        for client in running {
            latencies.extend(client.await??);
        }
        Ok(Phase {
            name,
            requests,
            time: began.elapsed(),
            latencies: latencies.into_iter().collect(),
            longest_gap: Duration::from_nanos(gaps.longest.load(Ordering::Relaxed)),
            long_gaps: gaps.long.load(Ordering::Relaxed),
        })
    }

    async fn create(self: Arc<Self>, number: u64) -> Result<()> {
        item::create(&self.account, &self.container, &item::document(&item::id(number), None)).await
    }

    async fn read_or_update(self: Arc<Self>, number: u64, items: u64) -> Result<()> {
        // A pseudo-random one, the same in every run.
        let at = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) % items;
        let ctx = self.account.begin().await.map_err(text)?;
        if number.is_multiple_of(2) {
            let id = item::id(at);
            let read = ReadItem {
                target: ItemTarget::Id(id.clone()),
                partition_key: PartitionKey(vec![Component::String(id)]),
                if_none_match: None,
            };
            let read = self.account.read_item(&ctx, &self.container, &read).await;
            read.map_err(|refusal| refusal.error.to_string())?;
        } else {
            let upsert = UpsertItem {
                document: document(at, Some(-1))?,
                partition_key: None,
                if_match: None,
            };
            let upserted = self.account.upsert_item(&ctx, &self.container, upsert).await;
            upserted.map_err(|refusal| refusal.error.to_string())?;
        }
        Ok(())
    }
}

/// The times between responses.
struct Gaps {
    began: Instant,
    /// Nanoseconds after `began`.
    last: AtomicU64,
    longest: AtomicU64,
    long: AtomicU64,
}

impl Gaps {
    fn begin() -> Gaps {
        Gaps {
            began: Instant::now(),
            last: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            long: AtomicU64::new(0),
        }
    }

    fn answered(&self) {
        let now = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let gap = now.saturating_sub(self.last.fetch_max(now, Ordering::Relaxed));
        self.longest.fetch_max(gap, Ordering::Relaxed);
        self.long
            .fetch_add(u64::from(Duration::from_nanos(gap) >= LONG), Ordering::Relaxed);
    }
}

fn document(number: u64, ttl: Option<i32>) -> Result<Document> {
    Ok(Document::parse(item::document(&item::id(number), ttl).as_bytes()).map_err(text)?)
}

fn text(error: bolide_model::Error) -> String {
    error.to_string()
}
