//! A server process: started on free ports, stopped or killed by its process id.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bolide_postgres_server::Database;
use clap::ValueEnum;
use serde_json::Value;
use tempfile::TempDir;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::Result;

const START_LIMIT: Duration = Duration::from_secs(30);
const STOP_LIMIT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The engine of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// In memory; nothing survives the process.
    Memory,
    /// The embedded engine, in a directory.
    Lsm,
    /// A database of PostgreSQL, which is started for it.
    Postgres,
}

impl Engine {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Lsm => "lsm",
            Self::Postgres => "postgres",
        }
    }
}

/// A running server and its directory; both end when dropped.
pub struct Server {
    process: Child,
    endpoints: Endpoints,
    /// Other servers over the same store.
    replicas: Vec<(Child, Endpoints)>,
    settings: ServerSettings,
}

/// The addresses of a running server.
struct Endpoints {
    /// Of the Cosmos DB API and the admin API, such as `http://127.0.0.1:41234`.
    cosmos: String,
    /// Of the MongoDB API, such as `127.0.0.1:41235`.
    mongo: Option<String>,
}

/// The parameters that stay the same when a server is restarted.
struct ServerSettings {
    binary: PathBuf,
    engine: Engine,
    options: Vec<String>,
    directory: TempDir,
    /// Of [`Engine::Postgres`].
    database: Option<Database>,
}

impl Server {
    /// Starts a server on an empty directory with its wall clock at `clock_ms` (epoch milliseconds) and with more options, such as `--name=value`.
    pub fn start(binary: &Path, engine: Engine, clock_ms: i64, options: &[String]) -> Result<Self> {
        let settings = ServerSettings {
            binary: binary.to_path_buf(),
            engine,
            options: options.to_vec(),
            directory: tempfile::tempdir()?,
            database: (engine == Engine::Postgres).then(Database::create).transpose()?,
        };
        let (process, endpoints) = settings.start("ready.json", clock_ms)?;
        Ok(Self {
            process,
            endpoints,
            replicas: Vec::new(),
            settings,
        })
    }

    /// Starts another server over the same store and returns its endpoint.
    ///
    /// # Errors
    /// If it does not start, as with an engine of one process.
    pub fn add_replica(&mut self, clock_ms: i64) -> Result<&str> {
        let ready_file = format!("ready-{}.json", self.replicas.len() + 1);
        let started = self.settings.start(&ready_file, clock_ms)?;
        self.replicas.push(started);
        let (_, endpoints) = self.replicas.last().ok_or("it was just added")?;
        Ok(&endpoints.cosmos)
    }

    /// Its endpoint, such as `http://127.0.0.1:41234`.
    pub fn endpoint(&self) -> &str {
        &self.endpoints.cosmos
    }

    /// The address of its MongoDB API, such as `127.0.0.1:41235`.
    ///
    /// # Errors
    /// If the server has none.
    pub fn mongo_address(&self) -> Result<&str> {
        let address = self.endpoints.mongo.as_deref();
        address.ok_or_else(|| "the server has no address of the MongoDB API in its ready file".into())
    }

    /// Asks the server to stop, waits for it and starts it again on the same data.
    ///
    /// # Errors
    /// If it does not stop within [`STOP_LIMIT`], or not with status 0.
    pub fn restart_in_order(&mut self, clock_ms: i64) -> Result<()> {
        ask_to_stop(&self.process)?;
        let status = self.wait()?;
        if !status.success() {
            return Err(format!("the server stopped with {status}{}", self.settings.log_tail()).into());
        }
        self.start_again(clock_ms)
    }

    /// Kills the server, unless it has already exited, and starts it again on the same data.
    pub fn restart_after_crash(&mut self, clock_ms: i64) -> Result<()> {
        self.process.kill()?;
        self.wait()?;
        self.start_again(clock_ms)
    }

    /// Waits until the process has ended.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        wait_until(STOP_LIMIT, || Ok(self.process.try_wait()?))?
            .ok_or_else(|| format!("the server does not end{}", self.settings.log_tail()).into())
    }

    fn start_again(&mut self, clock_ms: i64) -> Result<()> {
        (self.process, self.endpoints) = self.settings.start("ready.json", clock_ms)?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.process);
        for (process, _) in &mut self.replicas {
            end(process);
        }
    }
}

/// Kills a process and waits for it; it may have ended already.
fn end(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}

impl ServerSettings {
    /// Starts the process and waits for its endpoints.
    fn start(&self, ready_file: &str, clock_ms: i64) -> Result<(Child, Endpoints)> {
        let ready_file = self.path(ready_file);
        // A file from an earlier run would name the wrong port.
        let _ = std::fs::remove_file(&ready_file);
        let mut process = self.command(&ready_file, clock_ms)?.spawn()?;
        let started = wait_until(START_LIMIT, || match process.try_wait()? {
            Some(status) => Err(format!("the server ended with {status} while starting{}", self.log_tail()).into()),
            None => Ok(endpoints_in(&ready_file)),
        });
        match started {
            Ok(Some(endpoints)) => Ok((process, endpoints)),
            outcome => {
                end(&mut process);
                Err(outcome
                    .err()
                    .unwrap_or_else(|| format!("the server does not get ready{}", self.log_tail()).into()))
            }
        }
    }

    fn command(&self, ready_file: &Path, clock_ms: i64) -> Result<Command> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.path("server.log"))?;
        let mut command = Command::new(&self.binary);
        // Options come only from here, whatever is set in the caller's environment.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BOLIDE_")) {
            command.env_remove(name);
        }
        command
            .current_dir(self.directory.path())
            .args(["--port=0", "--mongo-port=0", "--enable-faults"])
            .arg(format!("--virtual-clock={}", rfc_3339(clock_ms)?))
            .arg(option("--ready-file", ready_file))
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        match &self.database {
            Some(database) => command.arg(format!("--store={}", database.address())),
            None if self.engine == Engine::Memory => command.arg("--memory"),
            None => command.arg(option("--data-dir", &self.path("data"))),
        };
        Ok(command)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The end of the server's log, for error messages.
    fn log_tail(&self) -> String {
        let log = std::fs::read_to_string(self.path("server.log")).unwrap_or_default();
        let lines: Vec<&str> = log
            .lines()
            .rev()
            .filter(|line| !line.trim().is_empty())
            .take(3)
            .collect();
        lines.iter().rev().map(|line| format!(" | {}", line.trim())).collect()
    }
}

/// Calls `ask` repeatedly until it returns something, or gives up after `limit`.
fn wait_until<T>(limit: Duration, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
    let deadline = Instant::now() + limit;
    while Instant::now() < deadline {
        if let Some(answer) = ask()? {
            return Ok(Some(answer));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(None)
}

/// The endpoints in a ready file, once it is written completely.
fn endpoints_in(ready_file: &Path) -> Option<Endpoints> {
    let ready: Value = serde_json::from_str(&std::fs::read_to_string(ready_file).ok()?).ok()?;
    Some(Endpoints {
        cosmos: ready["cosmos"].as_str()?.to_owned(),
        mongo: ready["mongo"].as_str().and_then(host_and_port),
    })
}

/// Host and port in a connection string, such as `mongodb://user@127.0.0.1:10255/?replicaSet=globaldb`.
fn host_and_port(connection_string: &str) -> Option<String> {
    let (_, rest) = connection_string.split_once("://")?;
    let hosts = rest.split(['/', '?']).next()?;
    let host = hosts.rsplit('@').next()?;
    Some(host.to_owned())
}

fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push("=");
    option.push(path);
    option
}

fn rfc_3339(epoch_ms: i64) -> Result<String> {
    let instant = OffsetDateTime::from_unix_timestamp_nanos(i128::from(epoch_ms) * 1_000_000)?;
    Ok(instant.format(&Rfc3339)?)
}

/// Sends SIGTERM, with the program that every Unix has for it.
#[cfg(unix)]
fn ask_to_stop(process: &Child) -> Result<()> {
    let status = Command::new("kill")
        .args(["-TERM", &process.id().to_string()])
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("kill -TERM failed ({status})").into())
    }
}

#[cfg(not(unix))]
fn ask_to_stop(_process: &Child) -> Result<()> {
    Err("an orderly stop needs SIGTERM, which this system does not have".into())
}

#[cfg(test)]
mod tests;
