//! A server process: started on free ports, ended with its value or the process that started it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tempfile::TempDir;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::admin::Admin;
use crate::binary::find_binary;
use crate::clock::Clock;
use crate::error::Error;
use crate::options::{ClockOption, Options};

/// The key of the Azure Cosmos DB emulator. It is public, and works on this machine only.
const WELL_KNOWN_KEY: &str = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The server needs at most 13 s to end its requests and to close its store.
const STOP_LIMIT: Duration = Duration::from_secs(20);
const LOG_BYTES: usize = 64 * 1024;

/// A running server. It stops when it is dropped.
#[derive(Debug)]
pub struct Bolide {
    process: Child,
    folder: TempDir,
    endpoint: String,
    https_endpoint: String,
    mongo: Option<String>,
    key: String,
    admin: Admin,
    clock: Clock,
}

impl Bolide {
    /// Starts a server in memory, with a virtual clock that begins now, and returns when it is ready.
    ///
    /// # Errors
    /// [`Error::NoBinary`]; [`Error::Start`] if the server ends or is not ready in time.
    pub fn start() -> Result<Bolide, Error> {
        Options::default().start()
    }

    /// Other ways to start one.
    pub fn options() -> Options {
        Options::default()
    }

    pub(crate) fn start_with(options: &Options) -> Result<Bolide, Error> {
        let binary = find_binary(options.binary.as_deref())?;
        let failed = |error: std::io::Error| Error::Start(format!("cannot start {}: {error}", binary.display()));
        let folder = TempDir::with_prefix("bolide-").map_err(failed)?;
        let log = File::create(log_file(&folder)).map_err(failed)?;
        let key = options.key.clone().unwrap_or_else(|| WELL_KNOWN_KEY.to_owned());
        let mut command = command(&binary, options, &key);
        command.arg(ready_option(&folder)).stderr(log);
        let mut process = command.spawn().map_err(failed)?;
        match wait_until_ready(&mut process, &folder, options.start_timeout) {
            Ok(ready) => Ok(Bolide::new(process, folder, &ready, key)),
            Err(why) => {
                let _ = process.kill();
                let _ = process.wait();
                Err(Error::Start(format!("{why}\n{}", end_of(&log_file(&folder)))))
            }
        }
    }

    fn new(process: Child, folder: TempDir, ready: &Value, key: String) -> Bolide {
        let text = |name: &str| ready[name].as_str().map(str::to_owned);
        let endpoint = text("cosmos").unwrap_or_default();
        let admin = Admin::new(&endpoint, &key);
        Bolide {
            process,
            folder,
            endpoint,
            https_endpoint: text("cosmosTls").unwrap_or_default(),
            mongo: text("mongo"),
            key,
            clock: Clock::new(admin.clone()),
            admin,
        }
    }

    /// Such as `http://127.0.0.1:41234`, for clients of Cosmos DB.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The same port with TLS, under a certificate that the server made.
    pub fn https_endpoint(&self) -> &str {
        &self.https_endpoint
    }

    /// The account key, base64.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The connection string for clients of Cosmos DB.
    pub fn connection_string(&self) -> String {
        format!("AccountEndpoint={}/;AccountKey={};", self.endpoint, self.key)
    }

    /// The connection string for MongoDB's drivers; none if the server was started with `--no-mongo`.
    pub fn mongo_uri(&self) -> Option<String> {
        let address = self.mongo.as_deref()?.split("://").nth(1)?;
        let key = escaped(&self.key);
        Some(format!("mongodb://localhost:{key}@{address}/?replicaSet=globaldb"))
    }

    /// The id of the process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The clock of the server.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Removes what has expired in a container, and returns how many items that were.
    ///
    /// Clients cannot tell the difference, because expired items are absent before, too. With a virtual clock nothing else removes them.
    ///
    /// # Errors
    /// [`Error::Request`], with status 404 if there is no such container.
    pub fn purge(&self, database: &str, container: &str) -> Result<u64, Error> {
        let path = format!("dbs/{}/colls/{}/purge", escaped(database), escaped(container));
        let answer = self.admin.post(&path, &json!({"mode": "force"}))?;
        Ok(answer["purged"].as_u64().unwrap_or_default())
    }

    /// Removes all databases with everything in them. Clients stay connected.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub fn reset(&self) -> Result<(), Error> {
        self.admin.post("reset", &json!({})).map(|_| ())
    }

    /// The end of what the server wrote to standard error.
    pub fn log(&self) -> String {
        end_of(&log_file(&self.folder))
    }

    /// Stops the server: running requests end, a data directory is complete.
    ///
    /// # Errors
    /// [`Error::Stop`] if it did not end with status 0; it has ended in any case.
    pub fn stop(mut self) -> Result<(), Error> {
        let how = match self.end() {
            Some(status) if status.success() => return Ok(()),
            Some(status) => format!("the server ended with {status}"),
            None => format!("the server did not end within {STOP_LIMIT:?}"),
        };
        Err(Error::Stop(format!("{how}\n{}", self.log())))
    }

    /// Ends the process: the end of its standard input asks it to stop. None if it had to be killed.
    fn end(&mut self) -> Option<ExitStatus> {
        drop(self.process.stdin.take());
        let begun = Instant::now();
        while begun.elapsed() < STOP_LIMIT {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Some(status);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
        None
    }
}

impl Drop for Bolide {
    fn drop(&mut self) {
        self.end();
    }
}

fn command(binary: &Path, options: &Options, key: &str) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BOLIDE_")) {
        command.env_remove(name);
    }
    command
        .args(["--port=0", "--mongo-port=0", "--stop-with-stdin"])
        .args(clock_option(options.clock))
        .envs(options.env.iter().map(|(name, value)| (name, value)))
        // In the environment, because every user of the machine may read arguments.
        .env("BOLIDE_KEY", key)
        // The pipe closes with this process, however that ends, and so ends the server.
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    match &options.data_dir {
        Some(directory) => command.arg("--data-dir").arg(directory),
        None => command.arg("--memory"),
    };
    command.args(&options.args);
    // Ctrl-C is for the tests; the server ends after them.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
}

fn clock_option(clock: ClockOption) -> Option<String> {
    match clock {
        ClockOption::System => None,
        ClockOption::Virtual(None) => Some("--virtual-clock".to_owned()),
        ClockOption::Virtual(Some(start)) => Some(format!("--virtual-clock={}", rfc_3339(start))),
    }
}

/// An instant as the option takes it. One that has no such form, after the year 9999, is passed on as it is shown, and the server refuses it.
fn rfc_3339(instant: SystemTime) -> String {
    let date = OffsetDateTime::from(instant);
    date.format(&Rfc3339).unwrap_or_else(|_| date.to_string())
}

fn ready_option(folder: &TempDir) -> OsString {
    let mut option = OsString::from("--ready-file=");
    option.push(ready_file(folder));
    option
}

fn ready_file(folder: &TempDir) -> PathBuf {
    folder.path().join("ready.json")
}

/// The content of the ready file, or why there is none.
fn wait_until_ready(process: &mut Child, folder: &TempDir, limit: Duration) -> Result<Value, String> {
    let begun = Instant::now();
    loop {
        let status = process
            .try_wait()
            .map_err(|error| format!("cannot wait for the server: {error}"))?;
        let ready = fs::read(ready_file(folder)).ok();
        if let Some(ready) = ready.and_then(|text| serde_json::from_slice(&text).ok()) {
            return Ok(ready);
        }
        if let Some(status) = status {
            return Err(format!("the server ended with {status} while starting"));
        }
        if begun.elapsed() >= limit {
            return Err(format!("the server was not ready within {limit:?}"));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn log_file(folder: &TempDir) -> PathBuf {
    folder.path().join("server.log")
}

fn end_of(log: &Path) -> String {
    let content = fs::read(log).unwrap_or_default();
    let start = content.len().saturating_sub(LOG_BYTES);
    String::from_utf8_lossy(&content[start..]).trim().to_owned()
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
