//! How long a writer waits while its range is split in two.
//!
//! Clients call the core in the benchmark's process, on the embedded engine with one fsync for everything that waits at the same time. Each updates
//! items of one container, one after the other, for some seconds before its only range is split, and during the split. If the split blocked requests,
//! the longest wait would show it; if it only uses processor and disk, the percentiles show it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bolide_model::time::Clock;
use bolide_storage_lsm::{LsmEngine, LsmOptions};
use tokio::task::JoinHandle;

use crate::embedded::{Embedded, Load, any_of, text};
use crate::figures::Latencies;
use crate::table::Table;
use crate::{Result, item};

/// Clients that load the items.
const LOADERS: u64 = 32;
/// Waits of at least this length are counted.
const LONG: Duration = Duration::from_millis(50);

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    #[command(flatten)]
    load: Load,
    /// Number of clients that write, each with one request at a time.
    #[arg(long, default_value_t = 4)]
    writers: u64,
    /// Seconds of writes before the split.
    #[arg(long, default_value_t = 10)]
    rest_seconds: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            load: Load::default(),
            writers: 4,
            rest_seconds: 10,
        }
    }
}

/// The result of one phase.
struct Phase {
    name: &'static str,
    time: Duration,
    latencies: Vec<Duration>,
}

/// Runs the benchmark.
pub fn run(options: &Options) -> Result<String> {
    let dir = tempfile::tempdir()?;
    let engine = LsmEngine::open(dir.path(), Arc::new(Clock::System), LsmOptions::default())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let phases = runtime.block_on(async {
        let bench = Arc::new(Bench {
            embedded: Embedded::create(Arc::new(engine)).await?,
            items: options.load.items,
        });
        bench.load().await?;
        let rest = bench.writing(options.writers);
        tokio::time::sleep(Duration::from_secs(options.rest_seconds)).await;
        let rest = rest.end("at rest").await?;
        let splitting = bench.writing(options.writers);
        let split = bench.embedded.account.split(&bench.embedded.container, None).await;
        let splitting = splitting.end("while the range is split").await?;
        split.map_err(text)?;
        bench.embedded.close().await?;
        Ok::<_, crate::Error>([rest, splitting])
    })?;
    let mut table = Table::new([
        "phase",
        "seconds",
        "writes/s",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "longest ms",
        "above 50 ms",
    ]);
    for phase in phases {
        let long = phase.latencies.iter().filter(|latency| **latency >= LONG).count();
        let writes = phase.latencies.len() as f64;
        let latencies: Latencies = phase.latencies.into_iter().collect();
        let micros = |percent| format!("{:.0}", latencies.percentile(percent).as_secs_f64() * 1e6);
        table.row([
            phase.name.to_owned(),
            format!("{:.1}", phase.time.as_secs_f64()),
            format!("{:.0}", writes / phase.time.as_secs_f64()),
            micros(50.0),
            micros(99.0),
            micros(99.9),
            format!("{:.1}", latencies.percentile(100.0).as_secs_f64() * 1e3),
            long.to_string(),
        ]);
    }
    Ok(format!(
        "## Split\n\n{} writers, {} items of {} bytes in one range.\n\n{table}",
        options.writers,
        options.load.items,
        item::BYTES
    ))
}

struct Bench {
    embedded: Embedded,
    items: u64,
}

impl Bench {
    async fn load(self: &Arc<Self>) -> Result<()> {
        let next = Arc::new(AtomicU64::new(0));
        let loader = || {
            let (bench, next) = (self.clone(), next.clone());
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= bench.items {
                        return Ok::<_, crate::Error>(());
                    }
                    bench.embedded.create_item(number).await?;
                }
            })
        };
        let loaders: Vec<_> = (0..LOADERS).map(|_| loader()).collect();
        for loader in loaders {
            loader.await??;
        }
        Ok(())
    }

    /// Lets clients write until they are stopped.
    fn writing(self: &Arc<Self>, writers: u64) -> Writing {
        let is_over = Arc::new(AtomicBool::new(false));
        let writer = |writer| tokio::spawn(self.clone().write(writer, is_over.clone()));
        Writing {
            began: Instant::now(),
            writers: (0..writers).map(writer).collect(),
            is_over: is_over.clone(),
        }
    }

    async fn write(self: Arc<Self>, writer: u64, is_over: Arc<AtomicBool>) -> Result<Vec<Duration>> {
        let (mut number, mut latencies) = (writer << 32, Vec::new());
        while !is_over.load(Ordering::Relaxed) {
            number += 1;
            let at = any_of(self.items, number);
            let sent = Instant::now();
            self.embedded.update(at, None).await?;
            latencies.push(sent.elapsed());
        }
        Ok(latencies)
    }
}

/// Clients that write.
struct Writing {
    began: Instant,
    writers: Vec<JoinHandle<Result<Vec<Duration>>>>,
    is_over: Arc<AtomicBool>,
}

impl Writing {
    async fn end(self, name: &'static str) -> Result<Phase> {
        let time = self.began.elapsed();
        self.is_over.store(true, Ordering::Relaxed);
        let mut latencies = Vec::new();
        for writer in self.writers {
            latencies.extend(writer.await??);
        }
        Ok(Phase { name, time, latencies })
    }
}
