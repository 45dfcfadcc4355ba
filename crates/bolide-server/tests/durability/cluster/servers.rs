//! The servers over one store: each with its port, which changes with its process, and the times at which it was killed.

use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::client::Client;
use crate::server::{Server, ServerFiles, Start};

/// Tries to start a server, which ends if the store is away.
const STARTS: usize = 20;

/// A server that may run.
pub struct Node {
    files: ServerFiles,
    namespace: Option<String>,
    options: Vec<String>,
    process: Mutex<Option<Server>>,
    /// 0 while it does not run.
    port: AtomicU16,
    kills: AtomicU64,
}

/// A connection to one process of a node.
pub struct Connection {
    pub client: Client,
    /// How often its node had been killed before.
    kills: u64,
}

impl Node {
    /// A node with its files in a directory, in a network namespace or not.
    pub fn new(root: &Path, number: usize, store: &str, timeout: u64, namespace: Option<String>) -> Node {
        let root = root.join(format!("server{number}"));
        std::fs::create_dir_all(&root).expect("a directory");
        let files = ServerFiles::new(&root);
        Node {
            files: match &namespace {
                Some(name) => files.in_namespace(name),
                None => files,
            },
            namespace,
            options: vec![format!("--store={store}"), format!("--store-timeout={timeout}")],
            process: Mutex::new(None),
            port: AtomicU16::new(0),
            kills: AtomicU64::new(0),
        }
    }

    fn process(&self) -> MutexGuard<'_, Option<Server>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts it, and waits until it is ready. The store is there.
    pub fn start(&self) {
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        let mut process = self.process();
        for _ in 0..STARTS {
            match self.files.try_start(&options) {
                Start::Ready(server) => {
                    self.port.store(server.port(), Ordering::Relaxed);
                    *process = Some(server);
                    return;
                }
                Start::Ended { stderr, .. } => println!("a server could not start: {stderr}"),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the server does not start: {}", self.files.stderr());
    }

    /// Kills it while it starts.
    pub fn start_and_kill(&self, after: Duration) {
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        self.files.start_and_kill(after, &options);
    }

    /// Kills it. Fails if it had ended by itself.
    pub fn kill(&self) {
        self.kills.fetch_add(1, Ordering::SeqCst);
        self.port.store(0, Ordering::Relaxed);
        if let Some(server) = self.process().take() {
            server.kill();
        }
    }

    /// Asks it to stop, and waits for that.
    pub fn stop(&self) {
        if let Some(server) = self.process().take() {
            server.stop();
        }
    }

    /// What it wrote if it ended by itself.
    pub fn has_ended(&self) -> Option<String> {
        let mut process = self.process();
        process.as_mut()?.has_ended().then(|| self.files.stderr())
    }

    /// Connects to it.
    ///
    /// # Errors
    /// It does not run, or does not take the connection.
    pub fn connect(&self) -> io::Result<Connection> {
        let kills = self.kills.load(Ordering::SeqCst);
        let port = match self.port.load(Ordering::Relaxed) {
            0 => return Err(io::ErrorKind::ConnectionRefused.into()),
            port => port,
        };
        let connect = || TcpStream::connect(("127.0.0.1", port));
        let stream = match &self.namespace {
            Some(name) => inside(name, connect)??,
            None => connect()?,
        };
        stream.set_nodelay(true)?;
        Ok(Connection {
            client: Client::over(stream),
            kills,
        })
    }

    /// Whether the process of a connection has not been killed.
    pub fn is_same(&self, connection: &Connection) -> bool {
        connection.kills == self.kills.load(Ordering::SeqCst)
    }
}

/// Calls a function in a network namespace. What it opens stays in there.
///
/// # Errors
/// The namespace cannot be entered.
pub fn inside<T: Send>(namespace: &str, call: impl FnOnce() -> T + Send) -> io::Result<T> {
    let file = File::open(format!("/run/netns/{namespace}"))?;
    // A thread of its own, because the others stay outside.
    std::thread::scope(|scope| {
        let entered = scope.spawn(|| {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
            Ok(call())
        });
        entered.join().expect("it does not panic")
    })
}
