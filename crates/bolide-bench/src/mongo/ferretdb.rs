//! FerretDB over SQLite for comparison: built from its module, run over a directory of its own.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::Result;
use crate::process::OwnedChild;

/// The last version with the SQLite backend.
pub const VERSION: &str = "v1.24.0";
const MODULE: &str = "github.com/FerretDB/FerretDB";
/// The address space that it may use, in KiB.
const MEMORY_KIB: usize = 12 * 1024 * 1024;
/// Timeout of its start.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a process that is being killed may take to end: it has much memory to give back.
const END_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// A running FerretDB; ends when dropped.
pub struct FerretDb {
    pub address: SocketAddr,
    child: OwnedChild,
    // After the child: the directory is deleted after the process has ended.
    _home: TempDir,
}

impl FerretDb {
    /// Starts FerretDB on a free port. SQLite syncs its log with every commit.
    pub fn start(executable: &Path) -> Result<FerretDb> {
        let home = tempfile::tempdir()?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let data = home.path().join("data");
        std::fs::create_dir(&data)?;
        // Without a limit, the machine stands still when it uses more than there is.
        let limit = format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\"");
        let child = Command::new("sh")
            .args(["-c", &limit])
            .arg(executable)
            .args([
                "--handler=sqlite",
                "--telemetry=disable",
                "--debug-addr=-",
                "--log-level=error",
            ])
            .arg(format!(
                "--sqlite-url=file:{}/?_pragma=synchronous(full)",
                data.display()
            ))
            .arg(format!("--listen-addr={address}"))
            .arg(format!("--state-dir={}", home.path().display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let child = OwnedChild(child);
        let deadline = Instant::now() + START_TIMEOUT;
        while TcpStream::connect(address).is_err() {
            if Instant::now() > deadline {
                return Err("FerretDB did not get ready".into());
            }
            std::thread::sleep(POLL);
        }
        Ok(FerretDb {
            address,
            child,
            _home: home,
        })
    }

    /// Returns whether the process has ended by itself, or was killed. Waits a moment for it: the connections close first.
    pub fn has_ended(&mut self) -> bool {
        let deadline = Instant::now() + END_TIMEOUT;
        while Instant::now() < deadline {
            if matches!(self.child.0.try_wait(), Ok(Some(_))) {
                return true;
            }
            std::thread::sleep(POLL);
        }
        false
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }
}

/// The executable: as given, or built with Go below `shared` if it is not there yet.
pub fn find(given: Option<PathBuf>, shared: &Path) -> Result<PathBuf> {
    if let Some(path) = given {
        return Ok(path);
    }
    let executable = std::path::absolute(shared)?.join("ferretdb");
    if !executable.exists() {
        build(&executable)?;
    }
    Ok(executable)
}

fn build(executable: &Path) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let go = |directory: &Path, arguments: &[&str]| {
        let mut command = Command::new("go");
        command.args(arguments).current_dir(directory).stdin(Stdio::null());
        command
    };
    succeed(&mut go(scratch.path(), &["mod", "init", "scratch"]))?;
    let module = format!("{MODULE}@{VERSION}");
    let downloaded = go(scratch.path(), &["mod", "download", "-json", &module]).output()?;
    let downloaded: Value = serde_json::from_slice(&downloaded.stdout)?;
    let directory = downloaded["Dir"].as_str().ok_or("Go could not download FerretDB")?;
    let source = scratch.path().join("source");
    // What Go downloads is read-only.
    succeed(
        Command::new("cp")
            .args(["-r", "--no-preserve=mode", directory])
            .arg(&source),
    )?;
    // Its own build writes this file, without which it does not start.
    std::fs::write(source.join("build/version/version.txt"), VERSION)?;
    std::fs::create_dir_all(executable.parent().ok_or("no directory for FerretDB")?)?;
    succeed(go(&source, &["build", "-o"]).arg(executable).arg("./cmd/ferretdb"))
}

fn succeed(command: &mut Command) -> Result<()> {
    match command.status()?.success() {
        true => Ok(()),
        false => Err(format!("failed: {command:?}").into()),
    }
}
