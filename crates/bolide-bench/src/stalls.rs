//! The longest time without any response, while a store is loaded and while half of the requests are updates.
//!
//! Clients call the core in the benchmark's process, each with one request at a time, on the embedded engine with one fsync for everything that waits
//! at the same time. A gap is the time between two responses, to any client: it shows pauses of all clients at once by flushes, merges and deleted
//! files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bolide_core::{ItemTarget, ReadItem};
use bolide_model::partition_key::{Component, PartitionKey};
use bolide_model::time::Clock;
use bolide_storage_lsm::{LsmEngine, LsmOptions};

use crate::embedded::{Embedded, Load, any_of, text};
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
    #[command(flatten)]
    load: Load,
    /// Requests of the second phase, half of them updates.
    #[arg(long, default_value_t = 500_000)]
    requests: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            load: Load::default(),
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
        let clients = Arc::new(Clients(Embedded::create(Arc::new(engine)).await?));
        let (items, requests) = (options.load.items, options.requests);
        let loaded = clients.phase("loading", items, |clients, n| Box::pin(clients.create(n)));
        let loaded = loaded.await?;
        let mixed = clients.phase("reads and updates", requests, move |clients, n| {
            Box::pin(clients.read_or_update(n, items))
        });
        let mixed = mixed.await?;
        clients.0.close().await?;
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
        options.load.items,
        item::BYTES
    ))
}

struct Clients(Embedded);

type Call = std::pin::Pin<Box<dyn Future<Output = Result<()>> + Send>>;

impl Clients {
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
        self.0.create_item(number).await
    }

    async fn read_or_update(self: Arc<Self>, number: u64, items: u64) -> Result<()> {
        let at = any_of(items, number);
        if !number.is_multiple_of(2) {
            return self.0.update(at, Some(-1)).await;
        }
        let Embedded { account, container } = &self.0;
        let ctx = account.begin().await.map_err(text)?;
        let id = item::id(at);
        let read = ReadItem {
            target: ItemTarget::Id(id.clone()),
            partition_key: PartitionKey(vec![Component::String(id)]),
            if_none_match: None,
        };
        let read = account.read_item(&ctx, container, &read).await;
        read.map_err(|refusal| refusal.error.to_string())?;
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
