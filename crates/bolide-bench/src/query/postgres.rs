//! PostgreSQL for comparison: a server of our own over a new directory, with the same documents as `jsonb` and the indexes that fit the queries.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::SinkExt as _;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use crate::Result;
use crate::process::OwnedChild;

/// Timeout of its start.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Where distributions install programs that are not in PATH.
const VERSIONS: &str = "/usr/lib/postgresql";
/// It refuses to run as root.
const USER: &str = "postgres";
/// Documents of one message while it is filled.
const DOCUMENTS_AT_ONCE: u64 = 200;

const SCHEMA: &str = "
    CREATE TABLE items (doc jsonb NOT NULL);
    SET maintenance_work_mem = '512MB';";
/// The fitting index for each kind of condition.
const INDEXES: &str = "
    CREATE INDEX ON items (((doc->>'number')::bigint));
    CREATE INDEX ON items (((doc->>'created')::bigint));
    CREATE INDEX ON items ((doc->'customer'->>'name') text_pattern_ops);
    CREATE INDEX ON items USING gin ((doc->'words') jsonb_path_ops);
    CREATE INDEX ON items ((doc->>'status'));
    VACUUM ANALYZE items;";

/// A running PostgreSQL; ends when dropped.
pub struct Postgres {
    port: u16,
    child: OwnedChild,
    // After the child: the directory is deleted after the process has ended.
    _home: TempDir,
}

impl Postgres {
    /// Whether PostgreSQL is installed.
    pub fn is_installed() -> bool {
        program("initdb").is_some()
    }

    /// Starts PostgreSQL on a free port, with its default durability and memory for the data.
    pub async fn start() -> Result<Postgres> {
        let home = tempfile::tempdir()?;
        let is_root = stdout(Command::new("id").arg("-u"))?.trim() == "0";
        if is_root {
            stdout(Command::new("chown").arg(USER).arg(home.path()))?;
        }
        let data = home.path().join("data");
        let mut create = as_user("initdb", is_root)?;
        create.args([
            "--no-sync",
            "--auth=trust",
            "--username=bench",
            "--encoding=UTF8",
            "--locale=C",
            "--pgdata",
        ]);
        stdout(create.arg(&data))?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut serve = as_user("postgres", is_root)?;
        serve
            .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k", "", "-D"])
            .arg(&data);
        for setting in [
            "shared_buffers=2GB",
            "jit=off",
            "max_parallel_workers_per_gather=0",
            "max_wal_size=8GB",
        ] {
            serve.args(["-c", setting]);
        }
        let child = OwnedChild(
            serve
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?,
        );
        let server = Postgres {
            port,
            child,
            _home: home,
        };
        let deadline = Instant::now() + START_TIMEOUT;
        while let Err(error) = server.connect().await {
            if Instant::now() > deadline {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(server)
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// Connects.
    pub async fn connect(&self) -> Result<Client> {
        let address = format!("host=127.0.0.1 port={} user=bench dbname=postgres", self.port);
        let (client, connection) = tokio_postgres::connect(&address, NoTls).await?;
        // Ends with the client.
        tokio::spawn(connection);
        Ok(client)
    }

    /// Stores documents and builds the indexes.
    pub async fn fill(&self, items: u64, document: impl Fn(u64) -> String) -> Result<()> {
        let client = self.connect().await?;
        client.batch_execute(SCHEMA).await?;
        let mut sink = Box::pin(client.copy_in("COPY items FROM STDIN").await?);
        for first in (0..items).step_by(DOCUMENTS_AT_ONCE as usize) {
            let mut lines = String::new();
            for number in first..items.min(first + DOCUMENTS_AT_ONCE) {
                lines.push_str(&document(number).replace('\\', "\\\\"));
                lines.push('\n');
            }
            sink.send(bytes::Bytes::from(lines)).await?;
        }
        sink.as_mut().finish().await?;
        for statement in INDEXES
            .split_inclusive(';')
            .filter(|statement| !statement.trim().is_empty())
        {
            client.batch_execute(statement).await?;
        }
        Ok(())
    }
}

fn as_user(name: &str, is_root: bool) -> Result<Command> {
    let program = program(name).ok_or_else(|| format!("`{name}` is not installed"))?;
    if !is_root {
        return Ok(Command::new(program));
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--pdeathsig", "INT"]);
    command.arg(program);
    Ok(command)
}

/// The path of a program of the newest version that is installed.
fn program(name: &str) -> Option<PathBuf> {
    let versions = std::fs::read_dir(VERSIONS).ok()?;
    let mut versions: Vec<u32> = versions
        .filter_map(|version| version.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    versions.sort_unstable();
    let newest = versions.pop()?;
    let path = Path::new(VERSIONS).join(newest.to_string()).join("bin").join(name);
    path.is_file().then_some(path)
}

fn stdout(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
