//! What remains of items of 1 KB after they expired and were purged: space on the disk, and the time of a scan.
//!
//! A store is filled; all of its items but a few expire in one second, and the background purge removes them. After the purge, disk use and the time
//! of a COUNT over the container are compared with those of a fresh store that holds the same live items. The core runs in the benchmark's process,
//! on the embedded engine as in the server.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_core::{Account, AccountOptions, Container, QueryItems};
use bolide_model::container::ContainerProperties;
use bolide_model::time::Clock;
use bolide_storage_lsm::{LsmEngine, LsmOptions};
use serde_json::{Value, json};

use crate::disk::DiskUse;
use crate::figures::{median, megabytes};
use crate::table::Table;
use crate::{Result, item};

/// Counts in one measurement.
const COUNTS: usize = 5;
/// How often to check whether the purge is finished.
const POLL: Duration = Duration::from_millis(200);

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Number of items loaded.
    #[arg(long, default_value_t = 1_000_000)]
    items: u64,
    /// Percent of them that do not expire.
    #[arg(long, default_value_t = 10)]
    kept_percent: u64,
    /// Seconds after the end of the purge at which to measure.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 10, 30, 60, 120])]
    after: Vec<u64>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            items: 1_000_000,
            kept_percent: 10,
            after: vec![0, 10, 30, 60, 120],
        }
    }
}

/// The measurements of a store.
struct Measurement {
    when: String,
    disk: DiskUse,
    count: Duration,
}

/// Runs the benchmark.
pub fn run(options: &Options) -> Result<String> {
    let dir = tempfile::tempdir()?;
    let (used, fresh) = (dir.path().join("used"), dir.path().join("fresh"));
    let mut measurements = looks_at_used(&used, options)?;
    let kept = options.items * options.kept_percent / 100;
    measurements.push(runtime()?.block_on(async {
        let store = Store::open(&used).await?;
        let look = store.look("after a restart", kept).await?;
        store.close().await?;
        Ok::<_, crate::Error>(look)
    })?);
    let reference = runtime()?.block_on(async {
        let store = Store::open(&fresh).await?;
        store.fill(kept, kept).await?;
        // The store flushes its memtables while it is idle.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let look = store.look("fresh store", kept).await?;
        store.close().await?;
        Ok::<_, crate::Error>(look)
    })?;
    let mut table = Table::new(["when", "tables MB", "of fresh", "journals MB", "COUNT ms", "of fresh"]);
    for look in measurements.iter().chain([&reference]) {
        table.row([
            look.when.clone(),
            megabytes(look.disk.tables_bytes),
            ratio(look.disk.tables_bytes as f64, reference.disk.tables_bytes as f64),
            megabytes(look.disk.journal_bytes),
            format!("{:.1}", look.count.as_secs_f64() * 1e3),
            ratio(look.count.as_secs_f64(), reference.count.as_secs_f64()),
        ]);
    }
    Ok(format!(
        "## Space after expiry\n\n{} items of {} bytes, of which {kept} do not expire. COUNT: median of {COUNTS}.\n\n{table}",
        options.items,
        item::BYTES,
    ))
}

fn looks_at_used(dir: &Path, options: &Options) -> Result<Vec<Measurement>> {
    runtime()?.block_on(async {
        let store = Store::open(dir).await?;
        let kept = options.items * options.kept_percent / 100;
        store.fill(options.items, kept).await?;
        let mut measurements = vec![store.look("loaded", options.items).await?];
        let began = Instant::now();
        store.expire_all().await?;
        while store.backlog().await? > 0 {
            tokio::time::sleep(POLL).await;
        }
        let purged = Instant::now();
        let took = purged.duration_since(began).as_secs_f64();
        for seconds in &options.after {
            tokio::time::sleep_until((purged + Duration::from_secs(*seconds)).into()).await;
            let when = match seconds {
                0 => format!("purged, in {took:.0} s"),
                _ => format!("{seconds} s later"),
            };
            measurements.push(store.look(&when, kept).await?);
        }
        store.close().await?;
        Ok(measurements)
    })
}

/// As many threads as the server's runtime has. Dropping it ends the tasks of its accounts, and so their engines.
fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

struct Store {
    account: Arc<Account>,
    container: Arc<Container>,
    dir: std::path::PathBuf,
}

/// Items live by the default, unless they have their own ttl.
fn definition(default_ttl: i64) -> Value {
    json!({
        "id": "items",
        "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2},
        "defaultTtl": default_ttl,
    })
}

impl Store {
    /// The store in a directory; created if there is none.
    async fn open(dir: &Path) -> Result<Store> {
        let engine = LsmEngine::open(dir, Arc::new(Clock::System), LsmOptions::default())?;
        let account = Account::open(Arc::new(engine), AccountOptions::default());
        let account = account.await.map_err(text)?;
        let container = match account.all_containers().pop() {
            Some(container) => container,
            None => {
                let ctx = account.begin().await.map_err(text)?;
                let database = account.create_database(&ctx, "bench", None).await.map_err(text)?;
                let properties = ContainerProperties::from_json(&definition(-1)).map_err(text)?;
                let created = account.create_container(&ctx, database.rid, properties, None);
                created.await.map_err(text)?
            }
        };
        Ok(Store {
            account,
            container,
            dir: dir.to_owned(),
        })
    }

    /// Creates `items` items, `kept` of which never expire.
    async fn fill(&self, items: u64, kept: u64) -> Result<()> {
        let every = items.checked_div(kept).unwrap_or(u64::MAX);
        let ttl = |number: u64| number.is_multiple_of(every).then_some(-1);
        let document = |number| item::document(&item::id(number), ttl(number));
        item::create_all(&self.account, &self.container, items, document).await
    }

    /// Makes all items expire that live by the default.
    async fn expire_all(&self) -> Result<()> {
        let (ctx, definition) = (self.account.begin().await.map_err(text)?, definition(1));
        let replaced = self.account.replace_container(&ctx, &self.container, &definition, None);
        replaced.await.map_err(text)?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        Ok(())
    }

    async fn backlog(&self) -> Result<u64> {
        Ok(self
            .account
            .ttl_report(&self.container)
            .await
            .map_err(text)?
            .backlog_items)
    }

    async fn look(&self, when: &str, live: u64) -> Result<Measurement> {
        let mut counts = Vec::new();
        for _ in 0..COUNTS {
            let (counted, time) = self.count().await?;
            if counted != live {
                return Err(format!("{when}: COUNT is {counted}, and {live} items live").into());
            }
            counts.push(time.as_secs_f64());
        }
        Ok(Measurement {
            when: when.to_owned(),
            disk: DiskUse::of(&self.dir)?,
            count: Duration::from_secs_f64(median(counts)),
        })
    }

    /// The number of items, and the time to count them.
    async fn count(&self) -> Result<(u64, Duration)> {
        let mut request = QueryItems {
            text: "SELECT VALUE COUNT(1) FROM c WHERE c.visits = 17".to_owned(),
            cross_partition: true,
            ..QueryItems::default()
        };
        let (started, mut counted) = (Instant::now(), 0);
        loop {
            let ctx = self.account.begin_admin().await.map_err(text)?;
            let page = self.account.query(&ctx, &self.container, &request).await;
            let page = page.map_err(|refusal| refusal.error.to_string())?.value;
            let rows: Vec<u64> = serde_json::from_slice(&[b"[", &page.rows[..], b"]"].concat())?;
            counted += rows.iter().sum::<u64>();
            request.continuation = page.continuation;
            if request.continuation.is_none() {
                return Ok((counted, started.elapsed()));
            }
        }
    }

    async fn close(self) -> Result<()> {
        Ok(self.account.close().await.map_err(text)?)
    }
}

fn ratio(part: f64, whole: f64) -> String {
    format!("{:.2}", part / whole)
}

fn text(error: bolide_model::Error) -> String {
    error.to_string()
}
