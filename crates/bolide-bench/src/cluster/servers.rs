//! Servers over one database, and their clients.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bolide_postgres_server::Database;

use super::{Operation, Processes, Sample};
use crate::connection::Connection;
use crate::cosmos::Requests;
use crate::figures::{Latencies, micros};
use crate::load::{Client, watched_loop};
use crate::reads::in_turn;
use crate::server::Server;
use crate::{Result, item};

/// Servers over one database, with a container.
pub struct Servers {
    servers: Vec<Server>,
    items: u64,
    connections: usize,
    /// The PostgreSQL process.
    postgres: u32,
    /// The number of the next item that is created.
    next: Arc<AtomicU64>,
}

impl Servers {
    /// Starts `count` of them, creates a container with so many items, and lets each server read each of them.
    pub async fn start(
        bolide: &Path,
        database: &Database,
        count: usize,
        ranges: u32,
        items: u64,
        connections: usize,
    ) -> Result<Servers> {
        // They would make the table one after the other.
        let starts = (0..count).map(|_| Server::start_on_postgres(bolide, &database.address()));
        let servers = starts.collect::<Result<Vec<_>>>()?;
        let first = servers[0].address;
        let requests = Requests::to(first);
        requests
            .set_up_ranges(&mut Connection::open(first).await?, ranges)
            .await?;
        let create = move |id: &str| requests.create(id, None);
        for_all(first, items, connections, 201, Arc::new(create)).await?;
        for server in &servers {
            // A server remembers where the items are that it has read: without this, the first measurement would be the slowest.
            let requests = Requests::to(server.address);
            let read = move |id: &str| requests.read(id);
            for_all(server.address, items, connections, 200, Arc::new(read)).await?;
        }
        Ok(Servers {
            servers,
            items,
            connections,
            postgres: database.pid(),
            next: Arc::new(AtomicU64::new(items)),
        })
    }

    /// Lets clients of all servers repeat an operation.
    pub async fn measure(&self, operation: Operation, time: Duration) -> Result<Sample> {
        let (servers, count) = (&self.servers, self.servers.len());
        let processes = Processes {
            client: std::process::id(),
            servers: servers.iter().map(Server::pid).collect(),
            postgres: self.postgres,
        };
        let look = || processes.cpu();
        let (latencies, [before, after]) = match operation {
            Operation::Read => {
                let mut clients = Vec::with_capacity(self.connections);
                for (server, connections) in servers.iter().zip(spread(self.connections, count)) {
                    let requests = Requests::to(server.address);
                    let reads = (0..self.items).map(|number| requests.read(&item::id(number)));
                    let reads = Arc::new(reads.collect::<Vec<_>>());
                    clients.extend(Client::connect(server.address, connections, 200, |at| in_turn(&reads, at)).await?);
                }
                watched_loop(clients, time, look).await?
            }
            Operation::Create => {
                let mut clients = Vec::with_capacity(self.connections);
                for (server, connections) in servers.iter().zip(spread(self.connections, count)) {
                    let requests = Arc::new(Requests::to(server.address));
                    let connected = Client::connect(server.address, connections, 201, |_| {
                        let (requests, next) = (requests.clone(), self.next.clone());
                        move || requests.create(&item::id(next.fetch_add(1, Ordering::Relaxed)), None)
                    });
                    clients.extend(connected.await?);
                }
                watched_loop(clients, time, look).await?
            }
        };
        let operations = latencies.count() as f64;
        let sample = Sample::of(operations / time.as_secs_f64(), operations, after.since(before));
        Ok(Sample {
            latencies: Some(percentiles(&latencies)),
            ..sample
        })
    }
}

fn percentiles(latencies: &Latencies) -> [f64; 2] {
    [50.0, 99.0].map(|percent| micros(latencies.percentile(percent)) / 1e3)
}

/// Sends a request for each item, over several connections.
async fn for_all(
    address: SocketAddr,
    items: u64,
    connections: usize,
    expected: u16,
    request: Arc<impl Fn(&str) -> Vec<u8> + Send + Sync + 'static>,
) -> Result<()> {
    let mut tasks = tokio::task::JoinSet::new();
    for first in 0..connections as u64 {
        let request = request.clone();
        tasks.spawn(async move {
            let mut connection = Connection::open(address).await?;
            for number in (first..items).step_by(connections) {
                connection.expect(expected, &request(&item::id(number))).await?;
            }
            Result::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

/// The connections of each of `servers`: as equal as possible.
pub fn spread(connections: usize, servers: usize) -> impl Iterator<Item = usize> {
    (0..servers).map(move |server| connections / servers + usize::from(server < connections % servers))
}
