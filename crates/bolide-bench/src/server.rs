//! The server under test: the `bolide` binary as a child process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Result;
use crate::cosmos::account_key;
use crate::process::OwnedChild;

/// Timeout of a start.
const TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);

/// The server's engine.
#[derive(Debug, Clone, Copy)]
pub enum Store {
    /// In memory.
    Memory,
    /// The embedded engine, with every write durable before its response.
    Embedded,
}

/// A running server over its own directory; ends when dropped.
pub struct Server {
    child: OwnedChild,
    pub address: SocketAddr,
    /// Where it speaks MongoDB's protocol.
    pub mongo: Option<SocketAddr>,
    // After the child: the directory is deleted after the process has ended.
    _home: TempDir,
}

impl Server {
    /// Starts a server on a free port and waits until it is ready.
    pub fn start(bolide: &Path, store: Store) -> Result<Server> {
        let home = tempfile::tempdir()?;
        let command = command(bolide, store, home.path(), 0);
        Server::started(command, home)
    }

    /// As [`Server::start`], over an existing directory.
    pub fn start_on(bolide: &Path, data_dir: &Path) -> Result<Server> {
        Server::started(command_on(bolide, data_dir, 0), tempfile::tempdir()?)
    }

    /// As [`Server::start`], over a database of PostgreSQL, which other servers may use too.
    pub fn start_on_postgres(bolide: &Path, address: &str) -> Result<Server> {
        let mut command = base_command(bolide, 0);
        // Not an argument: it may have a password.
        command.env("BOLIDE_STORE", address);
        Server::started(command, tempfile::tempdir()?)
    }

    /// As [`Server::start`] on the embedded engine, with more arguments, and with a limit of open files.
    pub fn start_limited(bolide: &Path, open_files: u32, arguments: &[String]) -> Result<Server> {
        let home = tempfile::tempdir()?;
        let limited = format!("ulimit -S -n {open_files}; exec \"$@\"");
        let mut command = Command::new("sh");
        // The shell executes the server, so the process id stays the same.
        command.args(["-c", &limited, "sh"]).arg(bolide);
        let mut command = base_arguments(command, 0);
        command.arg("--data-dir").arg(home.path().join("data")).args(arguments);
        Server::started(command, home)
    }

    /// As [`Server::start`] on the embedded engine, with the well-known key, so that MongoDB's clients need not authenticate.
    pub fn start_with_mongo(bolide: &Path) -> Result<Server> {
        let home = tempfile::tempdir()?;
        let mut command = Command::new(bolide);
        command
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .args(["--port", "0", "--mongo-port", "0", "--mongo-no-auth"])
            .arg("--data-dir")
            .arg(home.path().join("data"));
        Server::started(command, home)
    }

    fn started(mut command: Command, home: TempDir) -> Result<Server> {
        let ready = home.path().join("ready.json");
        let child = OwnedChild(command.arg("--ready-file").arg(&ready).spawn()?);
        let deadline = Instant::now() + TIMEOUT;
        while !ready.exists() {
            if Instant::now() > deadline {
                return Err("the server did not get ready".into());
            }
            std::thread::sleep(POLL);
        }
        let ready: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&ready)?)?;
        let mongo = ready["mongo"].as_str().map(address_in).transpose()?;
        Ok(Server {
            address: address_in(ready["cosmos"].as_str().ok_or("the ready file has no endpoint")?)?,
            mongo,
            child,
            _home: home,
        })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }
}

/// The command that starts a server with its data below `home`, without this process's environment.
pub fn command(bolide: &Path, store: Store, home: &Path, port: u16) -> Command {
    let mut command = base_command(bolide, port);
    match store {
        Store::Memory => command.arg("--memory"),
        Store::Embedded => command.arg("--data-dir").arg(home.join("data")),
    };
    command
}

/// The command that starts a server over a data directory.
pub fn command_on(bolide: &Path, data_dir: &Path, port: u16) -> Command {
    let mut command = base_command(bolide, port);
    command.arg("--data-dir").arg(data_dir);
    command
}

fn base_command(bolide: &Path, port: u16) -> Command {
    base_arguments(Command::new(bolide), port)
}

fn base_arguments(mut command: Command, port: u16) -> Command {
    command
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit());
    command.args([
        "--key",
        &account_key(),
        "--port",
        &port.to_string(),
        "--mongo-port",
        "0",
    ]);
    command
}

/// The server to measure: as given, or the one built next to this executable.
pub fn find(given: Option<PathBuf>) -> Result<PathBuf> {
    let path = match given {
        Some(path) => path,
        None => std::env::current_exe()?.with_file_name("bolide"),
    };
    if path.is_file() {
        return Ok(path);
    }
    Err(format!(
        "no server at {}; build it with `cargo build --release -p bolide-server`",
        path.display()
    )
    .into())
}

fn address_in(url: &str) -> Result<SocketAddr> {
    let (_, address) = url.split_once("://").ok_or("an endpoint without a scheme")?;
    Ok(address.trim_end_matches('/').parse()?)
}
