//! Servers and their store in network namespaces of this test, with a link from each server to the store that can be cut and slowed down.
//!
//! ```text
//!   namespace of a server                 namespace of the store
//!   server ─── 198.18.n.2 ═══ veth ═══ 198.18.n.1 ─── relay ──▶ PostgreSQL
//! ```
//!
//! A link is cut by switching its interface off: packets disappear without a word. The relay, a thread of the test, delays what passes.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::servers::inside;

/// The namespaces; removed when dropped.
pub struct Network {
    store: String,
    servers: Vec<String>,
    links: Vec<Link>,
}

struct Link {
    /// The interface on the store's side.
    interface: String,
    address: String,
    delay_ms: Arc<AtomicU64>,
}

impl Network {
    /// Makes namespaces and links for some servers, which lead to a port at 127.0.0.1 outside.
    ///
    /// # Errors
    /// The system does not permit it, or does not have `ip`.
    pub fn create(servers: usize, port: u16) -> Result<Network, String> {
        let name = |what: &str| format!("bolide-{}-{what}", std::process::id());
        let mut network = Network {
            store: name("store"),
            servers: Vec::new(),
            links: Vec::new(),
        };
        ip(&["netns", "add", &network.store])?;
        for number in 0..servers {
            let server = name(&number.to_string());
            ip(&["netns", "add", &server])?;
            network.servers.push(server.clone());
            let link = network.link(number, &server, port)?;
            network.links.push(link);
        }
        Ok(network)
    }

    fn link(&self, number: usize, server: &str, port: u16) -> Result<Link, String> {
        let (interface, address) = (format!("to{number}"), format!("198.18.{number}.1"));
        let (store, there) = (self.store.as_str(), format!("198.18.{number}.2/30"));
        let here = format!("{address}/30");
        let peer = ["type", "veth", "peer", "name", "store", "netns", server];
        ip(&[&["-n", store, "link", "add", &interface][..], &peer].concat())?;
        ip(&["-n", store, "address", "add", &here, "dev", &interface])?;
        ip(&["-n", store, "link", "set", &interface, "up"])?;
        ip(&["-n", server, "address", "add", &there, "dev", "store"])?;
        ip(&["-n", server, "link", "set", "store", "up"])?;
        ip(&["-n", server, "link", "set", "lo", "up"])?;
        let listener = inside(store, || TcpListener::bind((address.as_str(), 5432)));
        let listener = listener
            .and_then(|bound| bound)
            .map_err(|error| format!("{store}: {error}"))?;
        let delay_ms = Arc::new(AtomicU64::new(0));
        let delay = delay_ms.clone();
        // It ends with the process.
        std::thread::spawn(move || relay(&listener, port, &delay));
        Ok(Link {
            interface,
            address,
            delay_ms,
        })
    }

    /// The namespace of a server.
    pub fn namespace(&self, server: usize) -> String {
        self.servers[server].clone()
    }

    /// Where a server finds the store, at port 5432.
    pub fn store_of(&self, server: usize) -> &str {
        &self.links[server].address
    }

    /// Cuts the link of a server.
    pub fn cut(&self, server: usize) {
        self.switch(server, "down");
    }

    /// Undoes [`Network::cut`].
    pub fn restore(&self, server: usize) {
        self.switch(server, "up");
    }

    fn switch(&self, server: usize, how: &str) {
        let interface = &self.links[server].interface;
        ip(&["-n", &self.store, "link", "set", interface, how]).expect("it was permitted before");
    }

    /// Delays what passes a link, in each direction.
    pub fn delay(&self, server: usize, by: Duration) {
        let ms = u64::try_from(by.as_millis()).expect("short");
        self.links[server].delay_ms.store(ms, Ordering::Relaxed);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in self.servers.iter().chain([&self.store]) {
            // The links go with them.
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let command = format!("ip {}", arguments.join(" "));
    let run = Command::new("ip").args(arguments).output();
    let run = run.map_err(|error| format!("{command}: {error}"))?;
    match run.status.success() {
        true => Ok(()),
        false => Err(format!("{command}: {}", String::from_utf8_lossy(&run.stderr).trim())),
    }
}

fn relay(listener: &TcpListener, port: u16, delay: &Arc<AtomicU64>) {
    for inner in listener.incoming().flatten() {
        // While PostgreSQL is away, connections end.
        let Ok(outer) = TcpStream::connect(("127.0.0.1", port)) else {
            continue;
        };
        let (Ok(from), Ok(to)) = (inner.try_clone(), outer.try_clone()) else {
            continue;
        };
        for (from, to) in [(from, to), (outer, inner)] {
            let delay = delay.clone();
            std::thread::spawn(move || pass(from, to, &delay));
        }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, delay: &AtomicU64) {
    let _ = to.set_nodelay(true);
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        let delay = Duration::from_millis(delay.load(Ordering::Relaxed));
        if !delay.is_zero() {
            std::thread::sleep(delay);
        }
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
