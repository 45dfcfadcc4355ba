//! PostgreSQL for tests: one server for all of them, as an ordinary user on a free port, which ends when nobody uses it any more.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use tempfile::TempDir;

/// Where Debian installs programs that are not in PATH.
const VERSIONS: &str = "/usr/lib/postgresql";
/// The server refuses to run as root.
const USER: &str = "postgres";
const SETTINGS: [&str; 5] = [
    // No test stops the machine.
    "fsync=off",
    "max_connections=300",
    "shared_buffers=64MB",
    "jit=off",
    "log_min_messages=fatal",
];
/// Tries to connect while it starts, 50 ms apart.
const TRIES: usize = 600;

static SERVER: Mutex<Weak<Server>> = Mutex::new(Weak::new());
static DATABASES: AtomicU64 = AtomicU64::new(0);

/// A database of the server.
pub struct Database {
    server: Arc<Server>,
    name: String,
}

impl Database {
    /// A new, empty one.
    pub fn new() -> Database {
        let server = Server::shared();
        let name = format!("test{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        server.run(&["-d", "postgres", "-c", &format!("create database {name}")]);
        Database { server, name }
    }

    /// How a client reaches it.
    pub fn address(&self) -> String {
        format!("postgres://bolide@127.0.0.1:{}/{}", self.server.port, self.name)
    }

    /// Runs statements, as somebody with `psql` would, and returns what they print.
    pub fn psql(&self, statements: &str) -> String {
        self.server.run(&["-d", &self.name, "-At", "-c", statements])
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("drop database if exists {} with (force)", self.name);
        self.server.run(&["-d", "postgres", "-c", &drop]);
    }
}

/// A running server.
struct Server {
    port: u16,
    /// Ends the thread that holds the process: the process must not outlive the thread that started it.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _home: TempDir,
}

impl Server {
    /// The one that is running, or a new one.
    fn shared() -> Arc<Server> {
        let mut running = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = running.upgrade() {
            return server;
        }
        let server = Arc::new(Server::start());
        *running = Arc::downgrade(&server);
        server
    }

    fn start() -> Server {
        let home = tempfile::tempdir().unwrap();
        let is_root = output(Command::new("id").arg("-u")).trim() == "0";
        if is_root {
            output(Command::new("chown").arg(USER).arg(home.path()));
        }
        let data = home.path().join("data");
        let mut create = as_user("initdb", is_root);
        create.args(["--no-sync", "--auth=trust", "--username=bolide", "--encoding=UTF8", "--locale=C", "--pgdata"]);
        output(create.arg(&data));
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let mut child = serve(&data, port, is_root);
            // Either it is told, or its owner is gone.
            let _ = stopped.recv();
            output(Command::new("kill").args(["-INT", &child.id().to_string()]));
            child.wait().unwrap();
        });
        let server = Server {
            port,
            stop: Some(stop),
            thread: Some(thread),
            _home: home,
        };
        for _ in 0..TRIES {
            if server.psql(&["-d", "postgres", "-c", "select 1"]).status().unwrap().success() {
                return server;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("PostgreSQL does not start");
    }

    fn psql(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("psql"));
        command.args(["-X", "-q", "-h", "127.0.0.1", "-U", "bolide", "-p", &self.port.to_string()]);
        command.args(["-v", "ON_ERROR_STOP=1"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        let mut command = self.psql(arguments);
        output(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(data: &Path, port: u16, is_root: bool) -> Child {
    let mut command = as_user("postgres", is_root);
    command.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k", "", "-D"]).arg(data);
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// A program that ends with the thread that starts it, and does not run as root.
fn as_user(name: &str, is_root: bool) -> Command {
    let mut command = Command::new("setpriv");
    if is_root {
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
    }
    command.args(["--pdeathsig", "INT"]).arg(program(name));
    command
}

/// The path of a program of the newest version that is installed.
fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir(VERSIONS).expect("PostgreSQL is installed: `apt-get install postgresql`");
    let versions = versions.filter_map(|version| version.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let newest = versions.max().expect("PostgreSQL is installed: `apt-get install postgresql`");
    Path::new(VERSIONS).join(newest.to_string()).join("bin").join(name)
}

fn output(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
