//! Redis for comparison: a server of our own, with its protocol as bytes.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bolide_model::time::wall_clock;
use memchr::memmem;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Result;
use crate::expiry::{Arrivals, TIMEOUT, next_second, until};
use crate::process::OwnedChild;

const EXECUTABLE: &str = "redis-server";
/// Timeout of its start.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Keys of one pipelined write.
const PIPELINE: u64 = 1_000;
/// Seconds from the write of the probes to their expiry, and the lifetime of the other keys.
const LEAD_SECONDS: i64 = 2;
const LATER_TTL_SECONDS: u32 = 1_000_000;
/// As long as the padding of Bolide's items.
const VALUE: &str = "session-session-session-session";
const CHANNEL: &str = "__keyevent@0__:expired";
const PROBE: &str = "probe:";

/// A running Redis over its own directory; ends when dropped.
pub struct Redis {
    address: SocketAddr,
    child: OwnedChild,
    // After the child: the directory is deleted after the process has ended.
    _home: TempDir,
}

impl Redis {
    /// Whether Redis is installed.
    pub fn is_installed() -> bool {
        let version = Command::new(EXECUTABLE)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        version.is_ok_and(|status| status.success())
    }

    /// Starts Redis on a free port, with notifications of expired keys, and with every write durable before its response.
    pub fn start() -> Result<Redis> {
        let home = tempfile::tempdir()?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let child = Command::new(EXECUTABLE)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            .args(["--appendonly", "yes", "--appendfsync", "always"])
            .args(["--notify-keyspace-events", "Ex", "--daemonize", "no"])
            .arg("--dir")
            .arg(home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let child = OwnedChild(child);
        let deadline = Instant::now() + START_TIMEOUT;
        while std::net::TcpStream::connect(address).is_err() {
            if Instant::now() > deadline {
                return Err("Redis did not get ready".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(Redis {
            address,
            child,
            _home: home,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// See [`crate::expiry`]: keys that expire in one second, together with keys that expire later.
    pub async fn expiry(&self, probes: u64, beside: u64) -> Result<Arrivals> {
        let mut writer = TcpStream::connect(self.address).await?;
        for first in (0..beside).step_by(PIPELINE as usize) {
            let numbers = first..beside.min(first + PIPELINE);
            let sets = numbers.map(|number| format!("SET item:{number} {VALUE} EX {LATER_TTL_SECONDS}\r\n"));
            pipeline(&mut writer, sets).await?;
        }
        let mut listener = TcpStream::connect(self.address).await?;
        listener
            .write_all(format!("SUBSCRIBE {CHANNEL}\r\n").as_bytes())
            .await?;

        let due = next_second().await + LEAD_SECONDS;
        let due_ms = due * 1000;
        let sets = (0..probes).map(|number| format!("SET {PROBE}{number} {VALUE} PXAT {due_ms}\r\n"));
        pipeline(&mut writer, sets).await?;
        let deadline = tokio::time::Instant::now() + until(due) + TIMEOUT;
        let (mut lags, mut heard) = (Vec::new(), Vec::new());
        while (lags.len() as u64) < probes {
            let read = tokio::time::timeout_at(deadline, listener.read_buf(&mut heard)).await;
            let Ok(read) = read else { break };
            if read? == 0 {
                return Err("Redis closed the connection".into());
            }
            let lag = u64::try_from(wall_clock().0 - due_ms).unwrap_or(0);
            // Only complete lines are counted; the rest belongs to the next read.
            let whole = memchr::memrchr(b'\n', &heard).map_or(0, |at| at + 1);
            let ended = memmem::find_iter(&heard[..whole], PROBE).count();
            lags.extend(std::iter::repeat_n(Duration::from_millis(lag), ended));
            heard.drain(..whole);
        }
        Ok(Arrivals {
            lags: lags.into_iter().collect(),
            expected: probes,
        })
    }
}

/// Sends commands together, and waits for as many one-line responses.
async fn pipeline(stream: &mut TcpStream, commands: impl Iterator<Item = String>) -> Result<()> {
    let commands: Vec<String> = commands.collect();
    stream.write_all(commands.concat().as_bytes()).await?;
    let (mut responses, mut buffer) = (0, Vec::new());
    while responses < commands.len() {
        buffer.clear();
        if stream.read_buf(&mut buffer).await? == 0 {
            return Err("Redis closed the connection".into());
        }
        if buffer.contains(&b'-') {
            return Err(format!("Redis refused: {}", String::from_utf8_lossy(&buffer)).into());
        }
        responses += buffer.iter().filter(|byte| **byte == b'\n').count();
    }
    Ok(())
}
