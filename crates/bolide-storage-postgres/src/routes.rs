//! Which server the statements of a home are sent to.
//!
//! ```text
//!   PostgreSQL              Citus
//!   ──────────────────      ───────────────────────────────────────────────────────────
//!   statement ──▶ entry     statement ──▶ the node that has the home, if it is reached
//!                                     └─▶ entry, which sends it on to that node
//! ```
//!
//! The entry is the server of the store's address. Every node of Citus carries out every statement, so a route that is out of date costs time and nothing else. What
//! is not of one home, such as the server's time, is always asked of the entry.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::time::Monotonic;
use bolide_storage::{EngineError, HomeId};
use deadpool::managed::PoolError;
use lru::LruCache;
use parking_lot::Mutex;
use tokio_postgres::{Config, Error};

use crate::connection::{Connection, Connections, Pooled, Target, refused, was_not_opened};
use crate::error::OpenError;
use crate::statements::Query;

/// Homes whose nodes are remembered.
const HOMES: NonZeroUsize = NonZeroUsize::new(4_096).expect("it is not zero");
/// Nodes to which connections are kept.
const NODES: usize = 256;
/// A node is asked for again after this time: shards move.
const KNOWN_FOR: Duration = Duration::from_secs(60);
/// A node that was not reached is tried again after this time.
const AWAY_FOR: Duration = Duration::from_secs(30);
/// How long a node may take to accept a connection. Nobody waits for the first one.
const CONNECT: Duration = Duration::from_secs(1);

/// Host and port, as the coordinator knows them.
type Node = (String, u16);

/// The connections of a store, by the server that they lead to.
pub(crate) struct Routes {
    entry: Connections,
    owners: Option<Arc<Owners>>,
}

/// The nodes of a Citus cluster.
struct Owners {
    target: Target,
    /// Connections to each node.
    size: usize,
    clock: Monotonic,
    homes: Mutex<LruCache<HomeId, (Node, Instant)>>,
    nodes: Mutex<HashMap<Node, State>>,
}

#[derive(Clone)]
enum State {
    /// It is not used while it is tried.
    Trying,
    Reached(Arc<Connections>),
    /// It was not reached, until this time.
    Away(Instant),
}

impl Routes {
    /// Connections to the server of an address, and on Citus to the nodes behind it. At most `size` to each, opened within `timeout`.
    pub(crate) fn new(
        target: &Target,
        (size, timeout): (usize, Duration),
        is_on_citus: bool,
        clock: Monotonic,
    ) -> Result<Routes, OpenError> {
        let owners = Owners {
            target: target.clone(),
            size,
            clock,
            homes: Mutex::new(LruCache::new(HOMES)),
            nodes: Mutex::default(),
        };
        Ok(Routes {
            entry: Connections::new(target, size, timeout)?,
            owners: is_on_citus.then(|| Arc::new(owners)),
        })
    }

    /// A connection for the statements of a home, on which nothing was begun.
    pub(crate) async fn get(&self, home: HomeId) -> Result<Pooled, EngineError> {
        let Some(owners) = &self.owners else {
            return self.entry.get().await;
        };
        let node = match owners.known(home) {
            Some(node) => node,
            None => {
                let mut entry = self.entry.get().await?;
                let asked = owner(&mut entry, home).await;
                drop(entry);
                let Some(node) = asked else {
                    return self.entry.get().await;
                };
                owners.learn(home, &node);
                node
            }
        };
        if let Some(connections) = owners.reached(&node) {
            match connections.take().await {
                Err(error) if was_not_opened(&error) => owners.lost(&node, &error),
                taken => return taken.map_err(refused),
            }
        }
        self.entry.get().await
    }

    /// The target of a home's connections that belong to no pool.
    pub(crate) fn target(&self, home: HomeId) -> Option<Target> {
        let owners = self.owners.as_ref()?;
        let node = owners.known(home)?;
        owners.reached(&node)?;
        Some(owners.target_of(&node))
    }

    /// Ends all connections that are not in use, and the others when they are given back.
    pub(crate) fn close(&self) {
        self.entry.close();
        if let Some(owners) = &self.owners {
            for state in owners.nodes.lock().drain() {
                if let (_, State::Reached(connections)) = state {
                    connections.close();
                }
            }
        }
    }
}

impl Owners {
    /// The node of a home, as it was of late.
    fn known(&self, home: HomeId) -> Option<Node> {
        let mut homes = self.homes.lock();
        let (node, until) = homes.get(&home)?;
        (self.clock.now() < *until).then(|| node.clone())
    }

    fn learn(&self, home: HomeId, node: &Node) {
        let until = self.clock.now() + KNOWN_FOR;
        self.homes.lock().put(home, (node.clone(), until));
    }

    /// The connections to a node, if it has been reached. One that has not been tried, or not of late, is tried in the background.
    fn reached(self: &Arc<Self>, node: &Node) -> Option<Arc<Connections>> {
        let mut nodes = self.nodes.lock();
        match nodes.get(node) {
            Some(State::Reached(connections)) => return Some(connections.clone()),
            Some(State::Trying) => return None,
            Some(State::Away(until)) if self.clock.now() < *until => return None,
            Some(State::Away(_)) | None => {}
        }
        if nodes.len() >= NODES && !nodes.contains_key(node) {
            // Those in use go on.
            nodes.clear();
        }
        nodes.insert(node.clone(), State::Trying);
        drop(nodes);
        let (owners, node) = (self.clone(), node.clone());
        tokio::spawn(async move {
            let state = owners.attempt(&node).await;
            owners.nodes.lock().insert(node, state);
        });
        None
    }

    async fn attempt(&self, node: &Node) -> State {
        let away = State::Away(self.clock.now() + AWAY_FOR);
        let Ok(connections) = Connections::new(&self.target_of(node), self.size, CONNECT) else {
            return away;
        };
        match connections.get().await {
            Ok(_) => State::Reached(Arc::new(connections)),
            Err(error) => {
                let (host, port) = node;
                tracing::warn!(host, port, %error, "a node of Citus is not reached, and its statements take the way through the coordinator");
                away
            }
        }
    }

    /// Statements for a node take the way through the entry for a while.
    fn lost(&self, node: &Node, why: &PoolError<Error>) {
        let (host, port) = node;
        tracing::warn!(host, port, %why, "a node of Citus is not reached any more, and its statements take the way through the coordinator");
        let away = State::Away(self.clock.now() + AWAY_FOR);
        self.nodes.lock().insert(node.clone(), away);
        // Another one may have its shards now.
        self.homes.lock().clear();
    }

    /// The same database of another server.
    fn target_of(&self, (host, port): &Node) -> Target {
        let entry = &self.target.config;
        let mut config = Config::new();
        config.host(host).port(*port).connect_timeout(CONNECT);
        config
            .ssl_mode(entry.get_ssl_mode())
            .channel_binding(entry.get_channel_binding());
        config
            .keepalives(entry.get_keepalives())
            .keepalives_idle(entry.get_keepalives_idle());
        if let Some(interval) = entry.get_keepalives_interval() {
            config.keepalives_interval(interval);
        }
        if let Some(retries) = entry.get_keepalives_retries() {
            config.keepalives_retries(retries);
        }
        if let Some(timeout) = entry.get_tcp_user_timeout() {
            config.tcp_user_timeout(*timeout);
        }
        if let Some(user) = entry.get_user() {
            config.user(user);
        }
        if let Some(password) = entry.get_password() {
            config.password(password);
        }
        if let Some(name) = entry.get_dbname() {
            config.dbname(name);
        }
        if let Some(options) = entry.get_options() {
            config.options(options);
        }
        if let Some(name) = entry.get_application_name() {
            config.application_name(name);
        }
        Target {
            config,
            tls: self.target.tls.clone(),
        }
    }
}

/// The node that has a home, as the entry knows it.
async fn owner(entry: &mut Connection, home: HomeId) -> Option<Node> {
    let found = entry.rows(Query::Owner, home, &[]).await.ok()?;
    let node = found.first()?;
    let port: i32 = node.try_get(1).ok()?;
    Some((node.try_get(0).ok()?, u16::try_from(port).ok()?))
}

#[cfg(test)]
mod tests;
