//! Loading and measuring one system.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;

use super::plan::{Operation, Planner, Popularity, Workload};
use super::report::{Percentiles, Round, Settings};
use super::system::{Client, System};
use crate::Result;
use crate::load::{Worker, closed_loop, paced};

/// Timeout of loading the items: a system that takes longer is not measured.
const LOAD_TIMEOUT: Duration = Duration::from_secs(300);
/// The part of wrong responses from which on figures are those of something else.
const WRONG: f64 = 0.01;
/// Timeout of a round beyond the time that is measured.
const ROUND_TIMEOUT: Duration = Duration::from_secs(60);

/// A worker with its own connection.
struct Actor<C> {
    client: C,
    planner: Planner,
    wrong: Arc<AtomicU64>,
}

impl<C: Client> Worker for Actor<C> {
    async fn step(&mut self) -> Result<()> {
        let operation = self.planner.next();
        let found = self.client.perform(&operation).await?;
        if found != operation.documents() {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
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
        let wrong = Arc::new(AtomicU64::new(0));
        let team = Team {
            workload,
            popularity,
            settings,
            wrong: &wrong,
        };
        let workers = team.actors(system, number * 2).await?;
        let closed = closed_loop(workers, time, system.pid()).await?;
        let mut workers = team.actors(system, number * 2 + 1).await?;
        // A first operation opens what the server keeps for a connection.
        for worker in &mut workers {
            worker.step().await?;
        }
        let open = paced(workers, workload.rate, time).await?;
        let wrong = wrong.load(Ordering::Relaxed);
        let operations = closed.latencies.count() + open.latencies.count();
        if wrong as f64 > WRONG * operations as f64 {
            return Err(
                format!("{wrong} of about {operations} operations did not get the documents that are stored").into(),
            );
        }
        Ok(Round {
            operations_per_second: closed.per_second(),
            wrong,
            latency: Percentiles::from(&open),
        })
    };
    let ended = tokio::time::timeout(time * 2 + ROUND_TIMEOUT, both).await;
    ended.map_err(|_| "a round did not end")?
}

/// What the workers of a round have in common.
struct Team<'a> {
    workload: &'static Workload,
    popularity: &'a Arc<Popularity>,
    settings: &'a Settings,
    wrong: &'a Arc<AtomicU64>,
}

impl Team<'_> {
    /// A worker for each client. `measurement`: its number, so that no two of them insert the same items.
    async fn actors<S: System>(&self, system: &S, measurement: u64) -> Result<Vec<Actor<S::Client>>> {
        let clients = self.settings.clients as u64;
        let mut actors = Vec::with_capacity(self.settings.clients);
        for client in 0..clients {
            let number = measurement * clients + client;
            actors.push(Actor {
                client: system.connect(self.workload).await?,
                planner: Planner::new(self.workload, self.popularity.clone(), self.settings.items, number),
                wrong: self.wrong.clone(),
            });
        }
        Ok(actors)
    }
}
