//! The tour of Bolide with `azure_data_cosmos`: `bolide-rust-tour --endpoint URL --key KEY`.
//!
//!   resources   account, databases, containers, throughput
//!   items       writes, reads, conditions, patches, ids, sessions, change feed
//!   queries     the same queries on one range and on several, in pages of several sizes
//!   kinds       queries of every kind, on one range and on several, in pages of several sizes
//!   ttl         items expire at their exact second, with the clock moved by hand
//!
//! The client keeps the SDK's defaults, so item bodies are sent as Cosmos binary JSON and writes respond without a body. Calls that the SDK does not
//! have (reading many items at once, patch conditions) are not tested here; it refuses aggregates over several partitions before it sends them, so
//! those run within one partition.

mod checks;
mod clock;
mod items;
mod kinds;
mod queries;
mod resources;
mod ttl;
mod world;

use std::error::Error;
use std::process::ExitCode;

use checks::Tour;
use world::World;

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error>> {
    let (endpoint, key) = arguments()?;
    let world = World::open(&endpoint, &key).await?;
    let mut tour = Tour::default();
    resources::run(&mut tour, &world).await;
    items::run(&mut tour, &world).await;
    queries::run(&mut tour, &world).await;
    kinds::run(&mut tour, &world).await;
    ttl::run(&mut tour, &world).await;
    world.close().await?;
    Ok(if tour.finish() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Reads `--endpoint URL` and `--key KEY` in any order.
fn arguments() -> Result<(String, String), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let place = words.iter().position(|word| word == name);
        place
            .and_then(|at| words.get(at + 1).cloned())
            .ok_or_else(|| format!("missing option. name=`{name}`"))
    };
    Ok((value("--endpoint")?, value("--key")?))
}
