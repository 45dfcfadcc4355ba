//! PostgreSQL for tests and benchmarks: a server as an ordinary user, on a free port of 127.0.0.1, which ends when nobody uses it any more, or with its process.
//!
//! All databases for tests of a process are on one server, because starting one takes seconds. A benchmark has a server of its own, with durable commits.

use std::io;
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
/// Its own user and database.
const SUPERUSER: &str = "bolide";
const MAINTENANCE: &str = "postgres";
const SETTINGS: [&str; 3] = ["max_connections=300", "jit=off", "log_min_messages=fatal"];
const FOR_TESTS: [&str; 3] = [
    "ssl=on",
    // No test stops the machine.
    "fsync=off",
    "shared_buffers=64MB",
];
/// Commits are durable, as in production. Checkpoints follow their timeout, not the amount of writes, so that they do not depend on who writes most.
/// Without TLS, which PostgreSQL's own programs would use and other clients would not.
const DURABLE: [&str; 5] = [
    "fsync=on",
    "synchronous_commit=on",
    "full_page_writes=on",
    "shared_buffers=256MB",
    "max_wal_size=4GB",
];
/// Tries to connect while it starts.
const TRIES: usize = 600;
const TRY_INTERVAL: Duration = Duration::from_millis(50);

static SERVER: Mutex<Weak<Server>> = Mutex::new(Weak::new());
static DATABASES: AtomicU64 = AtomicU64::new(0);

/// Why there is no database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// PostgreSQL is not there.
    #[error("PostgreSQL is not installed (Debian: apt install postgresql)")]
    NotInstalled,
    /// The system refuses.
    #[error("PostgreSQL cannot be started: {0}")]
    Io(#[from] io::Error),
    /// One of its programs failed.
    #[error("{0}")]
    Failed(String),
}

/// A database of the server; removed when dropped.
pub struct Database {
    server: Arc<Server>,
    name: String,
}

impl Database {
    /// A new, empty one.
    ///
    /// # Errors
    /// If PostgreSQL is not installed, or does not start.
    pub fn create() -> Result<Database, Error> {
        Database::on(Server::shared()?)
    }

    /// A new, empty one on a server of its own, which makes each commit durable, as in production. `settings` of the server, as `name=value`, come last.
    ///
    /// # Errors
    /// If PostgreSQL is not installed, or does not start.
    pub fn create_durable(settings: &[&str]) -> Result<Database, Error> {
        Database::on(Arc::new(Server::start(&[&DURABLE[..], settings].concat())?))
    }

    fn on(server: Arc<Server>) -> Result<Database, Error> {
        let name = format!("test{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        server.run(MAINTENANCE, &format!("create database {name}"))?;
        Ok(Database { server, name })
    }

    /// The process id of the server, whose connections are its children.
    pub fn pid(&self) -> u32 {
        self.server.pid
    }

    /// The arguments by which PostgreSQL's own programs reach it, as the owner of all; the last one is the name of the database.
    pub fn arguments(&self) -> Vec<String> {
        self.server.arguments(&self.name)
    }

    /// How a client reaches it, as the owner of all.
    pub fn address(&self) -> String {
        self.address_of(SUPERUSER)
    }

    /// How a client reaches it, as another user.
    pub fn address_of(&self, user: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{}", self.server.port, self.name)
    }

    /// The certificate of the server, in PEM; nobody else has signed it.
    pub fn certificate(&self) -> &str {
        &self.server.certificate
    }

    /// Runs statements with `psql`, and returns what they print.
    ///
    /// # Errors
    /// What the server says.
    pub fn run(&self, statements: &str) -> Result<String, Error> {
        self.server.run(&self.name, statements)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // If it fails, the database ends with the server.
        let _ = self.server.run(
            MAINTENANCE,
            &format!("drop database if exists {} with (force)", self.name),
        );
    }
}

/// A running server.
struct Server {
    port: u16,
    pid: u32,
    certificate: String,
    /// Ends the thread that holds the process: a process that ends with its parent ends with the thread that started it.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    // After the process: the directory is removed after it has ended.
    _home: TempDir,
}

impl Server {
    /// The one that is running, or a new one.
    fn shared() -> Result<Arc<Server>, Error> {
        let mut running = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = running.upgrade() {
            return Ok(server);
        }
        let server = Arc::new(Server::start(&FOR_TESTS)?);
        *running = Arc::downgrade(&server);
        Ok(server)
    }

    fn start(settings: &[&str]) -> Result<Server, Error> {
        let home = tempfile::tempdir()?;
        let is_root = output(Command::new("id").arg("-u"))?.trim() == "0";
        if is_root {
            output(Command::new("chown").arg(USER).arg(home.path()))?;
        }
        let data = home.path().join("data");
        let mut create = as_user("initdb", is_root)?;
        create.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        create.args(["--username", SUPERUSER, "--pgdata"]).arg(&data);
        output(&mut create)?;
        let certificate = write_certificate(&data, is_root)?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let (stop, stopped) = channel::<()>();
        let (started, start) = channel();
        let mut serve = serve(&data, port, is_root, settings)?;
        let thread = std::thread::spawn(move || {
            let child = serve.spawn();
            let is_started = child.as_ref().map(Child::id).map_err(|error| error.kind());
            let _ = started.send(is_started);
            // Either it is told, or its owner is gone.
            let _ = stopped.recv();
            if let Ok(mut child) = child {
                let _ = output(Command::new("kill").args(["-INT", &child.id().to_string()]));
                let _ = child.wait();
            }
        });
        let pid = start
            .recv()
            .unwrap_or(Err(io::ErrorKind::Other))
            .map_err(io::Error::from)?;
        let server = Server {
            port,
            pid,
            certificate,
            stop: Some(stop),
            thread: Some(thread),
            _home: home,
        };
        let mut refusal = Error::NotInstalled;
        for _ in 0..TRIES {
            match server.run(MAINTENANCE, "select 1") {
                Ok(_) => return Ok(server),
                Err(error) => refusal = error,
            }
            std::thread::sleep(TRY_INTERVAL);
        }
        Err(refusal)
    }

    fn run(&self, database: &str, statements: &str) -> Result<String, Error> {
        let mut psql = Command::new(program("psql")?);
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statements]);
        psql.args(self.arguments(database));
        output(&mut psql)
    }

    fn arguments(&self, database: &str) -> Vec<String> {
        let port = self.port.to_string();
        ["-h", "127.0.0.1", "-p", &port, "-U", SUPERUSER, database]
            .map(str::to_owned)
            .to_vec()
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

/// Makes a certificate where the server looks for one, and returns it.
fn write_certificate(data: &Path, is_root: bool) -> Result<String, Error> {
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).map_err(|error| Error::Failed(error.to_string()))?;
    let certificate = made.cert.pem();
    for (name, text) in [
        ("server.crt", &certificate),
        ("server.key", &made.signing_key.serialize_pem()),
    ] {
        let file = data.join(name);
        std::fs::write(&file, text)?;
        // Others may not read the key.
        output(Command::new("chmod").arg("600").arg(&file))?;
        if is_root {
            output(Command::new("chown").arg(USER).arg(&file))?;
        }
    }
    Ok(certificate)
}

fn serve(data: &Path, port: u16, is_root: bool, settings: &[&str]) -> Result<Command, Error> {
    let mut command = as_user("postgres", is_root)?;
    command.args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k", "", "-D"]);
    command.arg(data);
    for setting in SETTINGS.iter().chain(settings) {
        command.args(["-c", setting]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Ok(command)
}

/// A program that ends with the thread that starts it, and does not run as root.
fn as_user(name: &str, is_root: bool) -> Result<Command, Error> {
    let mut command = Command::new("setpriv");
    if is_root {
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups"]);
    }
    command.args(["--pdeathsig", "INT"]).arg(program(name)?);
    Ok(command)
}

/// The path of a program of PostgreSQL, of the newest version that is installed.
///
/// # Errors
/// If PostgreSQL is not installed.
pub fn program(name: &str) -> Result<PathBuf, Error> {
    let versions = std::fs::read_dir(VERSIONS).map_err(|_| Error::NotInstalled)?;
    let versions = versions.filter_map(|version| version.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let newest = versions.max().ok_or(Error::NotInstalled)?;
    Ok(Path::new(VERSIONS).join(newest.to_string()).join("bin").join(name))
}

fn output(command: &mut Command) -> Result<String, Error> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Failed(format!("{command:?}: {}", said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
