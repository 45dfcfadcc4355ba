//! Loading and measuring one system.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use super::plan::{Operation, Planner, Popularity, Workload};
use super::report::{Percentiles, Round, Settings};
use super::system::{Client, System};
use crate::Result;
use crate::load::{Worker, closed_loop, paced};

/// Timeout of loading the items: a system that takes longer is not measured.
const LOAD_TIMEOUT: Duration = Duration::from_secs(300);
/// Timeout of a round beyond the time that is measured.
const ROUND_TIMEOUT: Duration = Duration::from_secs(60);

/// A worker with its own connection.
struct Actor<C> {
    client: C,
    planner: Planner,
}

impl<C: Client> Worker for Actor<C> {
    async fn step(&mut self) -> Result<()> {
        let operation = self.planner.next();
        let found = self.client.perform(&operation).await?;
        match found == operation.documents() {
            true => Ok(()),
            false => Err(format!("{operation:?} found {found} documents").into()),
        }
    }
}

/// Makes the store of a workload, and loads its items.
pub async fn prepare<S: System>(system: &S, workload: &'static Workload, settings: &Settings) -> Result<()> {
    let all = async {
        system.set_up(workload).await?;
        load(system, workload, settings).await
    };
    let ended = tokio::time::timeout(LOAD_TIMEOUT, all).await;
    ended.map_err(|_| format!("loading took more than {} s", LOAD_TIMEOUT.as_secs()))?
}

async fn load<S: System>(system: &S, workload: &'static Workload, settings: &Settings) -> Result<()> {
    let mut tasks = JoinSet::new();
    for first in 0..settings.clients as u64 {
        let mut client = system.connect(workload).await?;
        let keys = (first..settings.items).step_by(settings.clients);
        tasks.spawn(async move {
            for key in keys {
                client.perform(&Operation::Insert { key }).await?;
            }
            Result::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

/// Measures one round: first as fast as responses come, then at the workload's rate. `number`: of the round.
pub async fn round<S: System>(
    system: &S,
    workload: &'static Workload,
    popularity: &Arc<Popularity>,
    settings: &Settings,
    number: u64,
) -> Result<Round> {
    let time = Duration::from_secs_f64(settings.seconds);
    let both = async {
        let workers = actors(system, workload, popularity, settings, number * 2).await?;
        let closed = closed_loop(workers, time, system.pid()).await?;
        let mut workers = actors(system, workload, popularity, settings, number * 2 + 1).await?;
        // A first operation opens what the server keeps for a connection.
        for worker in &mut workers {
            worker.step().await?;
        }
        let open = paced(workers, workload.rate, time).await?;
        Ok(Round {
            operations_per_second: closed.per_second(),
            latency: Percentiles::from(&open),
        })
    };
    let ended = tokio::time::timeout(time * 2 + ROUND_TIMEOUT, both).await;
    ended.map_err(|_| "a round did not end")?
}

/// A worker for each client. `measurement`: its number, so that no two of them insert the same items.
async fn actors<S: System>(
    system: &S,
    workload: &'static Workload,
    popularity: &Arc<Popularity>,
    settings: &Settings,
    measurement: u64,
) -> Result<Vec<Actor<S::Client>>> {
    let mut actors = Vec::with_capacity(settings.clients);
    for client in 0..settings.clients as u64 {
        let number = measurement * settings.clients as u64 + client;
        actors.push(Actor {
            client: system.connect(workload).await?,
            planner: Planner::new(workload, popularity.clone(), settings.items, number),
        });
    }
    Ok(actors)
}
