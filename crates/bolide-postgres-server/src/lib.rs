//! PostgreSQL for tests and benchmarks: a server as an ordinary user, on a free port of 127.0.0.1, which ends when nobody uses it any more, or with its process.
//!
//! All databases for tests of a process are on one server, because starting one takes seconds. A benchmark has a server with durable commits, and a test that
//! kills its server has one of its own: [`OwnServer`].
//!
//! With `BOLIDE_CITUS_WORKERS=2` the shared server is the coordinator of a Citus cluster with two workers, if its extension is installed.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
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
/// A server of a Citus cluster. Each database has a process of its own there, and a shard that moves is replicated to its new place.
const CITUS: [&str; 3] = [
    "shared_preload_libraries=citus",
    "wal_level=logical",
    "max_worker_processes=100",
];
const CITUS_WORKERS: &str = "BOLIDE_CITUS_WORKERS";
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

    /// Another new, empty one on the same server.
    ///
    /// # Errors
    /// What the server says.
    pub fn create_another(&self) -> Result<Database, Error> {
        Database::on(self.server.clone())
    }

    fn on(server: Arc<Server>) -> Result<Database, Error> {
        let name = format!("test{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let database = Database { server, name };
        database.create_on_all()?;
        Ok(database)
    }

    fn create_on_all(&self) -> Result<(), Error> {
        /// Two databases that join a cluster at once write the same rows about roles.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let (server, name) = (&self.server, &self.name);
        for server in server.all() {
            server.run(MAINTENANCE, &format!("create database {name}"))?;
        }
        if server.workers.is_empty() {
            return Ok(());
        }
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        for server in server.all() {
            server.run(name, "create extension citus")?;
        }
        for worker in &server.workers {
            self.run(&format!("select citus_add_node('127.0.0.1', {})", worker.port))?;
        }
        Ok(())
    }

    /// The process id of the server, whose connections are its children.
    pub fn pid(&self) -> u32 {
        let process = self.server.process.as_ref();
        process.map_or(0, |process| process.child.id())
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

    /// Runs statements on the server and on the workers of its Citus cluster, and returns what they print.
    ///
    /// # Errors
    /// What a server says.
    pub fn run_on_all(&self, statements: &str) -> Result<String, Error> {
        self.server
            .all()
            .map(|server| server.run(&self.name, statements))
            .collect()
    }

    /// Whether it is one of a Citus cluster.
    pub fn is_on_citus(&self) -> bool {
        !self.server.workers.is_empty()
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
        let statement = format!("drop database if exists {} with (force)", self.name);
        for server in self.server.all() {
            // If it fails, the database ends with the server.
            let _ = server.run(MAINTENANCE, &statement);
        }
    }
}

/// A server for one test, with its own directory, which may be killed and started again.
pub struct OwnServer(Server);

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Its first process is killed; the others notice that, and end.
    Killed,
    /// It is told to end at once, without a checkpoint.
    Immediate,
}

impl OwnServer {
    /// Starts one that writes its log through to the disk.
    ///
    /// # Errors
    /// If PostgreSQL is not installed, or does not start.
    pub fn start() -> Result<OwnServer, Error> {
        Ok(OwnServer(Server::start(&[
            "ssl=on",
            "fsync=on",
            "shared_buffers=64MB",
        ])?))
    }

    /// Its port at 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// How a client reaches its database at a host and port that lead to it.
    pub fn address_through(&self, host: &str, port: u16) -> String {
        format!("postgres://{SUPERUSER}@{host}:{port}/{MAINTENANCE}")
    }

    /// How a client reaches its database, as the owner of all.
    pub fn address(&self) -> String {
        self.address_through("127.0.0.1", self.port())
    }

    /// Ends it, if it runs. Returns when its first process is gone.
    ///
    /// # Errors
    /// If it cannot be told.
    pub fn end(&mut self, how: End) -> Result<(), Error> {
        let signal = match how {
            End::Killed => "-KILL",
            End::Immediate => "-QUIT",
        };
        match self.0.process.take() {
            Some(process) => process.end(signal),
            None => Ok(()),
        }
    }

    /// Starts it again after [`OwnServer::end`]. Returns when it has recovered and answers.
    ///
    /// # Errors
    /// If it does not start in half a minute.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.0.serve()
    }

    /// Runs statements with `psql`, and returns what they print.
    ///
    /// # Errors
    /// What the server says.
    pub fn run(&self, statements: &str) -> Result<String, Error> {
        self.0.run(MAINTENANCE, statements)
    }
}

/// A server.
struct Server {
    port: u16,
    certificate: String,
    is_root: bool,
    /// As `name=value`, beside [`SETTINGS`].
    settings: Vec<String>,
    /// The workers of its Citus cluster.
    workers: Vec<Server>,
    process: Option<Process>,
    // After the process: the directory is removed after it has ended.
    home: TempDir,
}

/// Its first process.
struct Process {
    child: Child,
    /// Ends the thread that started it: a process that ends with its parent ends with that thread.
    _started: Sender<()>,
}

impl Process {
    fn start(mut command: Command) -> Result<Process, Error> {
        let (started, ended) = channel::<()>();
        let (send, child) = channel();
        std::thread::spawn(move || {
            let _ = send.send(command.spawn());
            // Until its owner is gone.
            let _ = ended.recv();
        });
        let child = child.recv().map_err(io::Error::other)??;
        Ok(Process {
            child,
            _started: started,
        })
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn end(mut self, signal: &str) -> Result<(), Error> {
        if !self.has_ended() {
            output(Command::new("kill").args([signal, &self.child.id().to_string()]))?;
            self.child.wait()?;
        }
        Ok(())
    }
}

impl Server {
    /// The one that is running, or a new one.
    fn shared() -> Result<Arc<Server>, Error> {
        let mut running = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(server) = running.upgrade() {
            return Ok(server);
        }
        let server = Arc::new(Server::for_tests()?);
        *running = Arc::downgrade(&server);
        Ok(server)
    }

    fn for_tests() -> Result<Server, Error> {
        let Ok(workers) = std::env::var(CITUS_WORKERS) else {
            return Server::start(&FOR_TESTS);
        };
        let workers: usize = workers
            .parse()
            .map_err(|_| Error::Failed(format!("{CITUS_WORKERS} must be a number: {workers}")))?;
        let settings = [&FOR_TESTS[..], &CITUS].concat();
        let mut coordinator = Server::start(&settings)?;
        for _ in 0..workers {
            coordinator.workers.push(Server::start(&settings)?);
        }
        Ok(coordinator)
    }

    /// Itself and its workers.
    fn all(&self) -> impl Iterator<Item = &Server> {
        std::iter::once(self).chain(&self.workers)
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
        let mut server = Server {
            port,
            certificate,
            is_root,
            settings: settings.iter().map(|setting| (*setting).to_owned()).collect(),
            workers: Vec::new(),
            process: None,
            home,
        };
        server.serve()?;
        Ok(server)
    }

    /// Starts its process, and waits until it answers.
    fn serve(&mut self) -> Result<(), Error> {
        let mut refusal = Error::NotInstalled;
        for _ in 0..TRIES {
            // After a kill it does not start before all processes of before have ended.
            if self.process.as_mut().is_none_or(Process::has_ended) {
                self.process = Some(Process::start(self.command()?)?);
            }
            match self.run(MAINTENANCE, "select 1") {
                Ok(_) => return Ok(()),
                Err(error) => refusal = error,
            }
            std::thread::sleep(TRY_INTERVAL);
        }
        Err(refusal)
    }

    fn command(&self) -> Result<Command, Error> {
        let mut command = as_user("postgres", self.is_root)?;
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-k", "", "-D"]);
        command.arg(self.home.path().join("data"));
        let own = self.settings.iter().map(String::as_str);
        for setting in SETTINGS.into_iter().chain(own) {
            command.args(["-c", setting]);
        }
        // Where a coordinator looks for its certificate as a client of the workers.
        command.env("HOME", self.home.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command)
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
        if let Some(process) = self.process.take() {
            let _ = process.end("-INT");
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
