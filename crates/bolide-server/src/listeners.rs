//! Listening sockets.
//!
//! `localhost` and [`ALL_ADDRESSES`] are two sockets, one for IPv4 and one for IPv6, on the same port; on a machine without IPv6 only the first.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket, lookup_host};

use crate::connection::{self, Door, Shared};
use crate::mongo;
use crate::rare::Rare;
use crate::server::Failure;
use crate::shutdown::Shutdown;
use crate::slots::Slot;

/// How often to try to find a port that is free on both loopback addresses.
const ATTEMPTS: usize = 20;
/// Pause after an error such as too many open files, which the next connection would only repeat.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Minimum time between two warnings about it in the log.
const WARNING_PAUSE: Duration = Duration::from_secs(60);

/// Number of connections that the system queues before they are accepted; more than these are refused or must retry.
const BACKLOG: u32 = 1024;

/// The host that means all addresses of this machine, IPv4 and IPv6.
pub const ALL_ADDRESSES: &str = "*";

/// Listening sockets, all on the same port.
#[derive(Debug)]
pub struct Listeners {
    listeners: Vec<TcpListener>,
    port: u16,
}

impl Listeners {
    /// Listens on `host`; `option` names the option of the port, for errors. The loopback names mean both IPv4 and IPv6, because clients resolve `localhost` to either.
    ///
    /// # Errors
    /// A name without address, or an address and port that cannot be used.
    pub async fn bind(host: &str, port: u16, option: PortOption) -> Result<Listeners, Failure> {
        let bound = Listeners::try_bind(host, port, option).await;
        bound.map_err(|unusable| unusable.failure)
    }

    /// As [`Listeners::bind`], but a port that another program has is left to it, with a warning.
    ///
    /// # Errors
    /// As those of [`Listeners::bind`], for other reasons.
    pub async fn bind_if_free(host: &str, port: u16, option: PortOption) -> Result<Option<Listeners>, Failure> {
        match Listeners::try_bind(host, port, option).await {
            Ok(listeners) => Ok(Some(listeners)),
            Err(Unusable {
                failure,
                is_taken: true,
            }) => {
                tracing::warn!("{failure}; the server goes on without this port");
                Ok(None)
            }
            Err(unusable) => Err(unusable.failure),
        }
    }

    async fn try_bind(host: &str, port: u16, option: PortOption) -> Result<Listeners, Unusable> {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host == ALL_ADDRESSES {
            return bind_both(Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED, port, option);
        }
        if host == "127.0.0.1" || host.eq_ignore_ascii_case("localhost") {
            return bind_both(Ipv4Addr::LOCALHOST, Ipv6Addr::LOCALHOST, port, option);
        }
        let addresses = lookup_host((host, port)).await;
        let addresses: Vec<SocketAddr> = addresses
            .map_err(|error| Failure::new(format!("--host {host}: no such address: {error}")))?
            .collect();
        let address = *addresses
            .first()
            .ok_or_else(|| Failure::new(format!("--host {host}: no such address")))?;
        let first = bind(address, option)?;
        Ok(Listeners::new(vec![first])?)
    }

    fn new(listeners: Vec<TcpListener>) -> Result<Listeners, Failure> {
        let address = listeners[0].local_addr();
        let port = address
            .map_err(|error| Failure::new(format!("cannot listen: {error}")))?
            .port();
        Ok(Listeners { listeners, port })
    }

    /// The port, chosen by the system if it was 0.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Accepts connections of these protocols until the server shuts down.
    fn accept(self, protocols: Protocols, shared: &Arc<Shared>, shutdown: &Shutdown) {
        for listener in self.listeners {
            tokio::spawn(accept(listener, protocols, shared.clone(), shutdown.clone()));
        }
    }
}

/// Why a port cannot be used.
struct Unusable {
    failure: Failure,
    /// Another program has it.
    is_taken: bool,
}

impl From<Failure> for Unusable {
    fn from(failure: Failure) -> Unusable {
        Unusable {
            failure,
            is_taken: false,
        }
    }
}

/// Serves the connections of all listeners until the server shuts down and every connection has ended.
pub async fn serve(all: Vec<(Listeners, Protocols)>, shared: Arc<Shared>, shutdown: Shutdown) {
    for (listeners, protocols) in all {
        listeners.accept(protocols, &shared, &shutdown);
    }
    shutdown.begun().await;
    if let Some(mongo) = shared.started_mongo() {
        mongo.stop();
    }
    // Every connection holds a slot; when all slots are free, all connections have ended.
    shared.slots().all_free().await;
}

/// What a listener speaks.
#[derive(Debug, Clone, Copy)]
pub enum Protocols {
    /// HTTP, HTTPS or both.
    Http(Door),
    /// MongoDB's protocol, with and without TLS.
    Mongo,
}

/// An option that names a port, for errors.
#[derive(Debug, Clone, Copy)]
pub enum PortOption {
    /// `--port`.
    Http,
    /// `--mongo-port`.
    Mongo,
    /// `--health-port`.
    Health,
    /// `--explorer-port`.
    Explorer,
}

impl PortOption {
    /// What a user can do if the port cannot be used.
    fn advice(self) -> &'static str {
        match self {
            PortOption::Http => "choose another port with --port",
            PortOption::Mongo => "choose another port for MongoDB with --mongo-port, or none with --no-mongo",
            PortOption::Health => "choose another port for health checks with --health-port",
            PortOption::Explorer => {
                "choose another port for the explorer with --explorer-port, or none with --no-explorer"
            }
        }
    }
}

/// Listens on an address of each family, on the same port.
fn bind_both(v4: Ipv4Addr, v6: Ipv6Addr, port: u16, option: PortOption) -> Result<Listeners, Unusable> {
    for attempt in 1..=ATTEMPTS {
        let first = bind(SocketAddr::new(IpAddr::V4(v4), port), option)?;
        let mut listeners = Listeners::new(vec![first])?;
        let v6 = SocketAddr::new(IpAddr::V6(v6), listeners.port);
        match listen(v6, Families::One) {
            Ok(listener) => {
                listeners.listeners.push(listener);
                return Ok(listeners);
            }
            // Another program uses the port on this address. Half of `localhost` would be a different server.
            Err(error) if error.kind() == ErrorKind::AddrInUse && (port != 0 || attempt == ATTEMPTS) => {
                return Err(cannot_listen(v6, option, &error));
            }
            Err(error) if error.kind() == ErrorKind::AddrInUse => {}
            // A machine without IPv6.
            Err(_) => return Ok(listeners),
        }
    }
    Err(Failure::new(format!("no port is free on both {v4} and {v6}")).into())
}

fn bind(address: SocketAddr, option: PortOption) -> Result<TcpListener, Unusable> {
    listen(address, Families::AsConfigured).map_err(|error| cannot_listen(address, option, &error))
}

/// The clients of a socket on `::`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Families {
    /// IPv6 only: there is another socket for IPv4.
    One,
    /// Those of IPv4 too, if the system is configured so, as Linux usually is.
    AsConfigured,
}

fn listen(address: SocketAddr, families: Families) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // A server that restarts can use its port although connections of the previous one are still closing.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    if address.is_ipv6() && families == Families::One {
        rustix::net::sockopt::set_ipv6_v6only(&socket, true)?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn cannot_listen(address: SocketAddr, option: PortOption, error: &io::Error) -> Unusable {
    let advice = option.advice();
    let hint = match error.kind() {
        ErrorKind::AddrInUse => format!(" (another server has it; {advice})"),
        ErrorKind::PermissionDenied => format!(" (ports below 1024 need privileges; {advice})"),
        _ => String::new(),
    };
    Unusable {
        failure: Failure::new(format!("cannot listen on {address}: {error}{hint}")),
        is_taken: error.kind() == ErrorKind::AddrInUse,
    }
}

async fn accept(listener: TcpListener, protocols: Protocols, shared: Arc<Shared>, shutdown: Shutdown) {
    let slots = shared.slots();
    let clock = shared.clock().monotonic().clone();
    let mut last_warning = None;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.begun() => return,
        };
        let (stream, remote) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Other parts of the process have used the descriptors reserved for connections.
                slots.end_one();
                if last_warning.is_none_or(|last: Instant| clock.since(last) > WARNING_PAUSE) {
                    tracing::warn!(%error, "a connection could not be accepted");
                    last_warning = Some(clock.now());
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Further clients wait in the system's queue meanwhile.
        let slot = tokio::select! {
            slot = slots.take() => slot,
            () = shutdown.begun() => return,
        };
        let (shared, shutdown) = (shared.clone(), shutdown.clone());
        match protocols {
            Protocols::Http(door) => {
                let serving = connection::serve(stream, door, shared, shutdown, slot.activity());
                tokio::spawn(until_it_must_end(serving, slot));
            }
            Protocols::Mongo => {
                let serving = mongo::serve(stream, remote, shared, shutdown, slot.activity());
                tokio::spawn(until_it_must_end(serving, slot));
            }
        }
    }
}

/// Serves a connection to its end, or until its slot is needed for another one.
async fn until_it_must_end(serving: impl Future<Output = ()>, slot: Slot) {
    let mut must_end = pin!(slot.must_end());
    let mut must_end = Rare::new(|cx| must_end.as_mut().poll(cx));
    tokio::select! {
        biased;
        () = serving => {}
        () = must_end.happens() => {}
    }
}
