//! Time from the start of the process to its first response on an empty directory; idle memory; size of the binary.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Result;
use crate::connection::Connection;
use crate::cosmos::Requests;
use crate::figures::median;
use crate::process::{OwnedChild, resident_kib};
use crate::server::{Server, Store, command};
use crate::table::Table;

/// Time between two attempts.
const POLL: Duration = Duration::from_millis(1);
const TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which a server without requests is idle.
const REST: Duration = Duration::from_secs(2);

/// The size of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Number of starts.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { rounds: 10 }
    }
}

/// Runs the benchmark.
pub fn run(bolide: &Path, options: &Options) -> Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut starts = Vec::new();
    for _ in 0..options.rounds {
        starts.push(runtime.block_on(first_answer(bolide))?.as_secs_f64() * 1e3);
    }
    let slowest = starts.iter().copied().fold(0.0, f64::max);
    let mut table = Table::new(["figure", "measured", "goal"]);
    let mut row = |name: &str, measured: String, goal: &str| table.row([name.to_owned(), measured, goal.to_owned()]);
    row(
        "start to first answered request, median",
        format!("{:.0} ms", median(starts)),
        "≤ 100 ms",
    );
    row(
        "start to first answered request, slowest",
        format!("{slowest:.0} ms"),
        "",
    );
    row(
        "resident memory at rest",
        format!("{:.1} MB", megabytes(idle_kib(bolide)? * 1024)),
        "≤ 40 MB",
    );
    row(
        "release binary",
        format!("{:.1} MB", megabytes(std::fs::metadata(bolide)?.len())),
        "≤ 30 MB",
    );
    Ok(format!(
        "## Start\n\n{} starts on empty directories.\n\n{table}",
        options.rounds
    ))
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

async fn first_answer(bolide: &Path) -> Result<Duration> {
    let home = tempfile::tempdir()?;
    let address = free_address()?;
    let request = Requests::to(address).list_databases();
    let started = Instant::now();
    let _child = OwnedChild(command(bolide, Store::Embedded, home.path(), address.port()).spawn()?);
    while started.elapsed() < TIMEOUT {
        if is_answered(address, &request).await {
            return Ok(started.elapsed());
        }
        tokio::time::sleep(POLL).await;
    }
    Err("the server did not respond".into())
}

/// No response if nobody listens yet, or if the store is not open yet.
pub async fn is_answered(address: SocketAddr, request: &[u8]) -> bool {
    match Connection::open(address).await {
        Ok(mut connection) => connection.expect(200, request).await.is_ok(),
        Err(_) => false,
    }
}

/// A free address.
pub fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

fn idle_kib(bolide: &Path) -> Result<u64> {
    let server = Server::start(bolide, Store::Embedded)?;
    std::thread::sleep(REST);
    resident_kib(server.pid())
}
