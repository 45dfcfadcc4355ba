//! Steady writes of items that expire: after the first of them have expired, as many are purged as are written.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::filling::set_up;
use super::running::{Running, Use};
use super::{Options, document, progress};
use crate::connection::Connection;
use crate::cosmos::Requests;
use crate::figures::{Latencies, megabytes};
use crate::load::{OpenLoop, Planned};
use crate::table::Table;
use crate::{Result, item};

/// Connections that writes may use at the same time.
const CONNECTIONS: usize = 64;
const MINUTE: Duration = Duration::from_secs(60);
/// A figure has levelled off if its maximum in the last third of the time is at most this part of that in the second third.
const LEVEL: f64 = 1.1;

/// The state at the end of a minute.
struct Minute {
    live: u64,
    backlog: u64,
    used: Use,
    p99: Duration,
    /// Writes that had no response, or another one.
    failed: usize,
}

/// Writes for some minutes, and reports.
pub fn run(bolide: &Path, minutes: u32, options: &Options) -> Result<String> {
    let home = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let minutes = runtime.block_on(measure(bolide, &home.path().join("data"), minutes, options))?;
    let mut table = Table::new([
        "minute",
        "live items",
        "expired, not purged",
        "tables MB",
        "journals MB",
        "resident MB",
        "p99 ms",
        "failed",
    ]);
    for (number, minute) in minutes.iter().enumerate() {
        table.row(minute.cells(number));
    }
    let of_minutes = |figure: fn(&Minute) -> u64| -> Vec<u64> { minutes.iter().map(figure).collect() };
    let disk = verdict("Disk space", &of_minutes(|minute| minute.used.disk.bytes()));
    let memory = verdict("Memory", &of_minutes(|minute| minute.used.resident_bytes));
    Ok(format!(
        "## Scale: balance\n\n{} creates a second of items of {} bytes with a ttl of {} s, half of them by the container's default; p99 from the \
         intended start of each. {disk} {memory}\n\n{table}",
        options.rate, options.bytes, options.ttl
    ))
}

async fn measure(bolide: &Path, dir: &Path, minutes: u32, options: &Options) -> Result<Vec<Minute>> {
    let server = Running::start(bolide, dir, options).await?;
    set_up(&server, options.ttl).await?;
    let next = Arc::new(AtomicU64::new(0));
    let mut seen = Vec::new();
    for number in 0..minutes {
        let (address, next, bytes, ttl) = (server.address, next.clone(), options.bytes, options.ttl);
        let load = OpenLoop::start(address, options.rate, CONNECTIONS, move |_| {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let id = item::id(number);
            let own = number.is_multiple_of(2).then_some(ttl);
            Planned {
                kind: (),
                // The date of a request must not be old.
                request: Requests::to(address).create_document(&id, &document(&id, number, bytes, own)),
                expected: 201,
            }
        });
        tokio::time::sleep(MINUTE).await;
        // A run that takes long must not end because the machine stood still for a while.
        let samples = load.finish_with_failures().await?;
        let failed = samples.iter().filter(|sample| !sample.is_expected).count();
        let latencies: Latencies = samples.iter().map(|sample| sample.latency).collect();
        let minute = look(&server, latencies.percentile(99.0), failed).await?;
        progress(&minute.cells(number as usize));
        seen.push(minute);
    }
    server.stop()?;
    Ok(seen)
}

async fn look(server: &Running, p99: Duration, failed: usize) -> Result<Minute> {
    let (requests, mut connection) = (Requests::to(server.address), Connection::open(server.address).await?);
    let count = requests.query("SELECT VALUE COUNT(1) FROM c");
    let answer: serde_json::Value = serde_json::from_slice(connection.expect(200, &count).await?.body)?;
    let live = answer["Documents"][0].as_u64().ok_or("a COUNT without a number")?;
    Ok(Minute {
        live,
        backlog: requests.backlog(&mut connection).await?,
        used: server.resources()?,
        p99,
        failed,
    })
}

impl Minute {
    fn cells(&self, number: usize) -> [String; 8] {
        [
            (number + 1).to_string(),
            self.live.to_string(),
            self.backlog.to_string(),
            megabytes(self.used.disk.tables_bytes),
            megabytes(self.used.disk.journal_bytes),
            megabytes(self.used.resident_bytes),
            format!("{:.1}", self.p99.as_secs_f64() * 1e3),
            self.failed.to_string(),
        ]
    }
}

/// Whether a figure levelled off, in a sentence; bytes at the end of each minute.
fn verdict(what: &str, bytes: &[u64]) -> String {
    let third = bytes.len() / 3;
    let most = |part: &[u64]| part.iter().copied().max().unwrap_or_default();
    let (second, last) = (most(&bytes[third..2 * third]), most(&bytes[2 * third..]));
    let has = match last as f64 <= second as f64 * LEVEL {
        true => "levelled off",
        false => "**did not level off**",
    };
    format!(
        "{what} {has}: at most {} MB in the second third of the time, {} MB in the last.",
        megabytes(second),
        megabytes(last)
    )
}

#[cfg(test)]
mod tests;
