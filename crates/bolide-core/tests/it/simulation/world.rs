//! The servers: some [`Account`]s over one store. They die and start again, and are cut off from the store.

use std::sync::Arc;
use std::time::Duration;

use bolide_core::{Account, AccountOptions, Container, IndexUse};
use bolide_model::UnixMillis;
use bolide_model::container::ContainerProperties;
use bolide_model::time::Monotonic;
use parking_lot::Mutex;

use super::network::{Link, Network};
use super::transactions::create_collections;
use crate::linear::track::shared_definition;

/// The world of a simulation; see the module.
pub struct World {
    pub network: Arc<Network>,
    servers: Mutex<Vec<Option<Server>>>,
    /// Number of starts of servers so far.
    starts: Mutex<u64>,
    seed: u64,
}

/// A server that runs.
#[derive(Clone)]
pub struct Server {
    pub link: Arc<Link>,
    pub account: Arc<Account>,
    pub container: Arc<Container>,
}

/// Returns the options of a server: as the binary has them, without threads.
fn options() -> AccountOptions {
    AccountOptions {
        query_threads: false,
        index_use: IndexUse::Always,
        catalog_interval: Some(Duration::from_millis(100)),
        heartbeat_interval: Some(Duration::from_millis(500)),
        // A page that waits for the store ends with what it has read, and another follows. Only what is read in one page is of one point in time.
        query_page_time: Duration::from_secs(3_600),
        ..AccountOptions::default()
    }
}

impl World {
    /// Creates a world of `servers` servers with one container.
    pub async fn begin(seed: u64, servers: usize) -> Arc<World> {
        let world = Arc::new(World {
            network: Network::new(seed),
            servers: Mutex::new(vec![None; servers]),
            starts: Mutex::new(0),
            seed,
        });
        let (_, account) = world.open(0).await;
        let ctx = account.begin().await.expect("a clock");
        let database = account.create_database(&ctx, "d", None).await.expect("a new database");
        let properties = ContainerProperties::from_json(&shared_definition()).expect("a definition");
        let created = account.create_container(&ctx, database.rid, properties, None).await;
        drop(created.expect("a new container"));
        create_collections(&account).await;
        for place in 0..servers {
            world.start(place).await;
        }
        world
    }

    /// Starts the server in a place, if there is none.
    pub async fn start(&self, place: usize) {
        if self.server_at(place).is_some() {
            return;
        }
        let (link, account) = self.open(place).await;
        let mut containers = account.all_containers().into_iter();
        let container = containers.find(|container| container.collection().is_none());
        let container = container.expect("it was created before all servers");
        self.servers.lock()[place] = Some(Server {
            link,
            account,
            container,
        });
    }

    async fn open(&self, place: usize) -> (Arc<Link>, Arc<Account>) {
        loop {
            let start = {
                let mut starts = self.starts.lock();
                *starts += 1;
                *starts
            };
            let name = format!("server {place}.{start}");
            self.network.note(&name, "starts");
            let link = Link::new(&self.network, name, self.seed * 1_000 + start);
            match Account::open(link.clone(), options()).await {
                Ok(account) => return (link, account),
                Err(error) => self.network.note(link.name(), &format!("does not start: {error}")),
            }
            pause(50).await;
        }
    }

    /// Kills the server in a place, in the middle of whatever it does.
    pub fn kill(&self, place: usize) {
        let server = self.servers.lock()[place].take();
        if let Some(server) = server {
            server.link.die();
        }
    }

    pub fn server_at(&self, place: usize) -> Option<Server> {
        self.servers.lock()[place].clone()
    }

    /// Returns the number of places of servers.
    pub fn places(&self) -> usize {
        self.servers.lock().len()
    }

    /// Returns the server in a place, or in the next one that has one. Waits until there is one.
    pub async fn server_near(&self, place: usize) -> Server {
        loop {
            let places = self.places();
            let mut near = (place..place + places).map(|place| place % places);
            if let Some(server) = near.find_map(|place| self.server_at(place)) {
                return server;
            }
            pause(10).await;
        }
    }

    pub fn now(&self) -> UnixMillis {
        self.network.now()
    }

    /// Ends all faults: all servers run and reach the store, and nothing is on its way any more.
    pub async fn calm_down(&self) {
        self.network.be_calm(true);
        for place in 0..self.places() {
            match self.server_at(place) {
                Some(server) => server.link.cut(false),
                None => self.start(place).await,
            }
        }
        // Longer than the servers wait for an answer of before.
        pause(1_500).await;
    }
}

/// Sleeps for a time in milliseconds.
pub async fn pause(ms: u64) {
    Monotonic::system().sleep(Duration::from_millis(ms)).await;
}
