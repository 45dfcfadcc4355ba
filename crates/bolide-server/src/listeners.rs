//! Listening sockets.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket, lookup_host};

use crate::connection::{self, Shared};
use crate::mongo;
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
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host == "127.0.0.1" || host.eq_ignore_ascii_case("localhost") {
            return bind_loopback(port, option);
        }
        let addresses = lookup_host((host, port)).await;
        let addresses: Vec<SocketAddr> = addresses
            .map_err(|error| Failure::new(format!("--host {host}: no such address: {error}")))?
            .collect();
        let address = *addresses
            .first()
            .ok_or_else(|| Failure::new(format!("--host {host}: no such address")))?;
        let first = bind(address, option)?;
        Listeners::new(vec![first])
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

/// Serves the connections of both listeners until the server shuts down and every connection has ended.
pub async fn serve(http: Listeners, mongo: Option<Listeners>, shared: Arc<Shared>, shutdown: Shutdown) {
    http.accept(Protocols::Http, &shared, &shutdown);
    if let Some(mongo) = mongo {
        mongo.accept(Protocols::Mongo, &shared, &shutdown);
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
enum Protocols {
    /// HTTP and HTTPS.
    Http,
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
}

impl PortOption {
    /// What a user can do if the port cannot be used.
    fn advice(self) -> &'static str {
        match self {
            PortOption::Http => "choose another port with --port",
            PortOption::Mongo => "choose another port for MongoDB with --mongo-port, or none with --no-mongo",
        }
    }
}

fn bind_loopback(port: u16, option: PortOption) -> Result<Listeners, Failure> {
    for attempt in 1..=ATTEMPTS {
        let v4 = bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port), option)?;
        let mut listeners = Listeners::new(vec![v4])?;
        let v6 = SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), listeners.port);
        match listen(v6) {
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
    Err(Failure::new("no port is free on both 127.0.0.1 and ::1"))
}

fn bind(address: SocketAddr, option: PortOption) -> Result<TcpListener, Failure> {
    listen(address).map_err(|error| cannot_listen(address, option, &error))
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    // A server that restarts can use its port although connections of the previous one are still closing.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn cannot_listen(address: SocketAddr, option: PortOption, error: &io::Error) -> Failure {
    let advice = option.advice();
    let hint = match error.kind() {
        ErrorKind::AddrInUse => format!(" (another server has it; {advice})"),
        ErrorKind::PermissionDenied => format!(" (ports below 1024 need privileges; {advice})"),
        _ => String::new(),
    };
    Failure::new(format!("cannot listen on {address}: {error}{hint}"))
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
            Protocols::Http => {
                let serving = connection::serve(stream, shared, shutdown, slot.activity());
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
    tokio::select! {
        () = serving => {}
        () = slot.must_end() => {}
    }
}
