//! A server process over a directory that outlives it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::Options;
use crate::Result;
use crate::cosmos::Requests;
use crate::disk::DiskUse;
use crate::process::{OwnedChild, peak_kib, resident_kib};
use crate::server::command_on;
use crate::start::{free_address, is_answered};

/// Time between two attempts of the first request.
const POLL: Duration = Duration::from_millis(1);
/// Timeout of a start, and of a stop.
const TIMEOUT: Duration = Duration::from_secs(300);

/// A running server; killed when dropped.
pub struct Running {
    child: OwnedChild,
    pub address: SocketAddr,
    /// When the process was started.
    pub started: Instant,
    /// From then to the first answered request.
    pub first_answer: Duration,
    dir: PathBuf,
}

/// Memory and disk space of a running server.
#[derive(Debug, Clone, Copy)]
pub struct Use {
    pub resident_bytes: u64,
    /// The most since the start of the process.
    pub peak_bytes: u64,
    pub disk: DiskUse,
}

impl Running {
    /// Starts a server, and waits until it answers.
    pub async fn start(bolide: &Path, dir: &Path, options: &Options) -> Result<Running> {
        Running::start_with(bolide, dir, options, "sync").await
    }

    /// The same with a durability, as the server's option has it.
    pub async fn start_with(bolide: &Path, dir: &Path, options: &Options, durability: &str) -> Result<Running> {
        let address = free_address()?;
        let mut command = command_on(bolide, dir, address.port());
        command.args(["--cache-mb", &options.cache_mb.to_string(), "--durability", durability]);
        let request = Requests::to(address).list_databases();
        let started = Instant::now();
        let child = OwnedChild(command.spawn()?);
        while started.elapsed() < TIMEOUT {
            if is_answered(address, &request).await {
                return Ok(Running {
                    child,
                    address,
                    started,
                    first_answer: started.elapsed(),
                    dir: dir.to_owned(),
                });
            }
            tokio::time::sleep(POLL).await;
        }
        Err("the server did not respond".into())
    }

    /// Stops the server as an administrator does; the time until its process has ended.
    pub fn stop(mut self) -> Result<Duration> {
        let began = Instant::now();
        let pid = Pid::from_raw(i32::try_from(self.pid())?).ok_or("a process without an id")?;
        kill_process(pid, Signal::TERM)?;
        let status = self.child.0.wait()?;
        match status.success() {
            true => Ok(began.elapsed()),
            false => Err(format!("the server ended with {status}").into()),
        }
    }

    /// Ends the server at once, as a crash does.
    pub fn kill(mut self) -> Result<()> {
        self.child.0.kill()?;
        self.child.0.wait()?;
        Ok(())
    }

    pub fn resources(&self) -> Result<Use> {
        Ok(Use {
            resident_bytes: resident_kib(self.pid())? * 1024,
            peak_bytes: peak_kib(self.pid())? * 1024,
            disk: DiskUse::of(&self.dir)?,
        })
    }

    /// CPU time that the server has used.
    pub fn cpu(&self) -> Result<Duration> {
        crate::process::cpu_time(self.pid())
    }

    fn pid(&self) -> u32 {
        self.child.0.id()
    }
}
