//! Loads items by bulk requests over several connections.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use memchr::memmem;

use super::running::{Running, Use};
use super::{Options, document, progress};
use crate::connection::Connection;
use crate::cosmos::Requests;
use crate::figures::megabytes;
use crate::table::Table;
use crate::{Result, item};

/// Connections that send bulk requests.
const CONNECTIONS: usize = 8;
/// Items of a bulk request.
const TOGETHER: u64 = 100;
/// Items between two rows of the report, and at least that part of all.
const STEP: u64 = 1_000_000;
const STEPS: u64 = 10;
const POLL: Duration = Duration::from_millis(20);

/// The path that has a property index.
const INDEXED: &str = "/number/?";

/// Loads a new store, stops the server, and reports.
pub fn run(bolide: &Path, dir: &Path, options: &Options) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut table = Table::new(["items", "items/s", "resident MB", "peak MB", "tables MB", "journals MB"]);
    runtime.block_on(async {
        // A load of millions of items would mostly measure the disk's syncs.
        let server = Running::start_with(bolide, dir, options, "buffered").await?;
        set_up(&server, -1).await?;
        let step = STEP.min(options.items.div_ceil(STEPS)).max(1);
        let (loaded, began) = (Arc::new(AtomicU64::new(0)), Instant::now());
        let (items, bytes) = (options.items, options.bytes);
        let filling = fill(server.address, items, loaded.clone(), move |number| {
            item_of(number, bytes)
        });
        let filling = tokio::spawn(filling);
        let (mut from, mut since) = (0, began);
        while from < items {
            let until = (from + step).min(items);
            while loaded.load(Ordering::Relaxed) < until && !filling.is_finished() {
                tokio::time::sleep(POLL).await;
            }
            let now = loaded.load(Ordering::Relaxed);
            if now < until {
                break;
            }
            let rate = (now - from) as f64 / since.elapsed().as_secs_f64();
            (from, since) = (now, Instant::now());
            report(&mut table, now, rate, server.resources()?);
        }
        filling.await??;
        let rate = items as f64 / began.elapsed().as_secs_f64();
        report(&mut table, items, rate, server.resources()?);
        server.stop()
    })?;
    Ok(format!(
        "## Scale: loading\n\nBulk requests of {TOGETHER} items of {} bytes over {CONNECTIONS} connections, an index on `{INDEXED}`, a block cache of {} MiB, without \
         syncs. The last row is the whole.\n\n{table}",
        options.bytes, options.cache_mb
    ))
}

/// Creates the container. Its items live for `ttl` seconds, if they have no own.
pub async fn set_up(server: &Running, ttl: i32) -> Result<()> {
    let (requests, mut connection) = (Requests::to(server.address), Connection::open(server.address).await?);
    requests.set_up(&mut connection, Some(ttl)).await?;
    connection
        .expect(200, &requests.set_ttl_and_index(ttl, INDEXED))
        .await?;
    Ok(())
}

/// The id and the document of an item.
pub fn item_of(number: u64, bytes: usize) -> (String, String) {
    let id = item::id(number);
    let document = document(&id, number, bytes, None);
    (id, document)
}

/// Creates or replaces `count` items, which `item_of` makes from numbers below; counts them in `done`.
pub async fn fill(
    address: SocketAddr,
    count: u64,
    done: Arc<AtomicU64>,
    item_of: impl Fn(u64) -> (String, String) + Copy + Send + 'static,
) -> Result<()> {
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (next, done) = (next.clone(), done.clone());
        tasks.spawn(async move {
            let mut connection = Connection::open(address).await?;
            loop {
                let from = next.fetch_add(TOGETHER, Ordering::Relaxed);
                if from >= count {
                    return Result::Ok(());
                }
                let items: Vec<_> = (from..count.min(from + TOGETHER)).map(item_of).collect();
                // The date of a request must not be old.
                let request = Requests::to(address).bulk_upsert(&items);
                let response = connection.expect(200, &request).await?;
                let stored = memmem::find_iter(response.body, b"\"statusCode\":20").count();
                if stored != items.len() {
                    return Err(format!("{stored} of {} items were stored", items.len()).into());
                }
                done.fetch_add(items.len() as u64, Ordering::Relaxed);
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task??;
    }
    Ok(())
}

fn report(table: &mut Table, items: u64, rate: f64, used: Use) {
    let cells = [
        items.to_string(),
        format!("{rate:.0}"),
        megabytes(used.resident_bytes),
        megabytes(used.peak_bytes),
        megabytes(used.disk.tables_bytes),
        megabytes(used.disk.journal_bytes),
    ];
    progress(&cells);
    table.row(cells);
}
