//! Systems that speak the Cosmos DB REST protocol: Bolide, Cosmium and `@vercel/cosmosdb-server`, all over HTTP without TLS.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use memchr::memmem;
use serde_json::json;
use tempfile::TempDir;

use super::document::{at, document, id, partition};
use super::plan::{Operation, Workload};
use super::system::{Client, System};
use crate::connection::{Connection, HttpResponse};
use crate::cosmos::{CONTAINER, Draft, Requests, account_key};
use crate::process::OwnedChild;
use crate::server::{Server, Store};
use crate::{Error, Result};

/// Timeout of a start.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);
/// The module's own command listens with TLS only, or closes every connection after one response.
const VERCEL: &str = "
    const server = require('@vercel/cosmosdb-server').createHttpServer({ keepAlive: true });
    server.keepAliveTimeout = 0;
    server.listen(Number(process.argv[1]), '127.0.0.1');";

/// A running server that speaks the protocol.
pub struct CosmosSystem {
    address: SocketAddr,
    process: Process,
}

enum Process {
    Bolide(Server),
    Peer {
        child: OwnedChild,
        // After the child: the directory is deleted after the process has ended.
        _home: TempDir,
    },
}

impl CosmosSystem {
    /// Bolide over a directory, with every write durable before its response.
    pub fn bolide(executable: &Path) -> Result<CosmosSystem> {
        let server = Server::start(executable, Store::Embedded)?;
        Ok(CosmosSystem {
            address: server.address,
            process: Process::Bolide(server),
        })
    }

    /// Cosmium, which keeps everything in memory.
    pub fn cosmium(executable: &Path) -> Result<CosmosSystem> {
        CosmosSystem::peer(Command::new(executable), |command, port| {
            let port = port.to_string();
            let key = account_key();
            command.args(["-Host", "127.0.0.1", "-Port", &port, "-AccountKey", &key]);
            command.args(["-DisableTls", "-LogLevel", "silent"]);
        })
    }

    /// `@vercel/cosmosdb-server` from a directory with node modules. It keeps everything in memory, and checks no key.
    pub fn vercel(directory: &Path) -> Result<CosmosSystem> {
        let mut node = Command::new("node");
        node.current_dir(directory);
        CosmosSystem::peer(node, |command, port| {
            command.args(["-e", VERCEL, &port.to_string()]);
        })
    }

    fn peer(mut command: Command, arguments: impl FnOnce(&mut Command, u16)) -> Result<CosmosSystem> {
        let home = tempfile::tempdir()?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        arguments(&mut command, port);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = OwnedChild(command.spawn()?);
        let deadline = Instant::now() + START_TIMEOUT;
        while std::net::TcpStream::connect(address).is_err() {
            if let Some(status) = child.0.try_wait()? {
                return Err(format!("it ended with {status}").into());
            }
            if Instant::now() > deadline {
                return Err("it did not get ready".into());
            }
            std::thread::sleep(POLL);
        }
        Ok(CosmosSystem {
            address,
            process: Process::Peer { child, _home: home },
        })
    }
}

impl System for CosmosSystem {
    type Client = CosmosClient;

    async fn set_up(&self, workload: &Workload) -> Result<()> {
        let requests = Requests::to(self.address);
        let mut connection = Connection::open(self.address).await?;
        let mut definition = json!({"id": "items", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        if workload.ttl.is_some() {
            // Items bring their own.
            definition["defaultTtl"] = json!(-1);
        }
        for (path, resource_type, link, body) in [
            ("dbs", "dbs", "", json!({"id": "bench"})),
            ("dbs/bench/colls", "colls", "dbs/bench", definition),
        ] {
            let request = requests.request(&Draft {
                method: "POST",
                path,
                resource_type,
                link,
                headers: "",
                body: &body.to_string(),
            });
            connection.expect(201, &request).await?;
        }
        Ok(())
    }

    async fn connect(&self, workload: &Workload) -> Result<CosmosClient> {
        Ok(CosmosClient {
            connection: Connection::open(self.address).await?,
            requests: Requests::to(self.address),
            ttl: workload.ttl,
        })
    }

    fn pid(&self) -> u32 {
        match &self.process {
            Process::Bolide(server) => server.pid(),
            Process::Peer { child, .. } => child.0.id(),
        }
    }
}

/// A connection with signed requests.
pub struct CosmosClient {
    connection: Connection,
    requests: Requests,
    ttl: Option<i32>,
}

impl CosmosClient {
    async fn read(&mut self, key: u64) -> Result<u64> {
        let path = format!("{CONTAINER}/docs/{}", id(key));
        let request = self.requests.request(&Draft {
            method: "GET",
            path: &path,
            resource_type: "docs",
            link: &path,
            headers: &partition_header(key),
            body: "",
        });
        let response = self.connection.ask(&request).await?;
        match response.status {
            200 if memmem::find(response.body, id(key).as_bytes()).is_some() => Ok(1),
            404 => Ok(0),
            _ => Err(refusal(&response)),
        }
    }

    /// Replaces an item.
    async fn replace(&mut self, key: u64, version: u64) -> Result<u64> {
        let path = format!("{CONTAINER}/docs/{}", id(key));
        let request = self.requests.request(&Draft {
            method: "PUT",
            path: &path,
            resource_type: "docs",
            link: &path,
            headers: &partition_header(key),
            body: &document(key, version, self.ttl),
        });
        let response = self.connection.ask(&request).await?;
        match response.status {
            // Cosmium says that it created the item.
            200 | 201 => Ok(0),
            _ => Err(refusal(&response)),
        }
    }

    /// Creates an item, or replaces it too if `is_upsert`.
    async fn write(&mut self, key: u64, version: u64, is_upsert: bool) -> Result<u64> {
        let mut headers = partition_header(key);
        if is_upsert {
            headers.push_str("x-ms-documentdb-is-upsert: True\r\n");
        }
        let request = self.requests.request(&Draft {
            method: "POST",
            path: &format!("{CONTAINER}/docs"),
            resource_type: "docs",
            link: CONTAINER,
            headers: &headers,
            body: &document(key, version, self.ttl),
        });
        let response = self.connection.ask(&request).await?;
        match response.status {
            201 => Ok(0),
            200 if is_upsert => Ok(0),
            _ => Err(refusal(&response)),
        }
    }

    /// Runs a query in the partition of an item; returns the number of its documents.
    async fn query(&mut self, key: u64, body: &str) -> Result<u64> {
        let headers = format!(
            "{}x-ms-documentdb-isquery: true\r\nx-ms-max-item-count: 100\r\n",
            partition_header(key)
        );
        let request = self.requests.request(&Draft {
            method: "POST",
            path: &format!("{CONTAINER}/docs"),
            resource_type: "docs",
            link: CONTAINER,
            headers: &headers,
            body,
        });
        let response = self.connection.expect(200, &request).await?;
        Ok(memmem::find_iter(response.body, b"\"version\":").count() as u64)
    }
}

impl Client for CosmosClient {
    async fn perform(&mut self, operation: &Operation) -> Result<u64> {
        match *operation {
            Operation::Read { key } => self.read(key).await,
            Operation::Insert { key } => self.write(key, 0, false).await,
            Operation::Update { key, version } => self.replace(key, version).await,
            Operation::Upsert { key, version } => self.write(key, version, true).await,
            Operation::ReadModifyWrite { key, version } => {
                let documents = self.read(key).await?;
                self.replace(key, version).await?;
                Ok(documents)
            }
            Operation::Scan { from, items } => {
                let query = json!({
                    "query": format!("SELECT TOP {items} * FROM c WHERE c.id >= @from ORDER BY c.id"),
                    "parameters": [{"name": "@from", "value": id(from)}],
                });
                self.query(from, &query.to_string()).await
            }
            Operation::Range { from, items } => {
                let query = json!({
                    "query": "SELECT * FROM c WHERE c.at >= @from AND c.at < @to",
                    "parameters": [{"name": "@from", "value": at(from)}, {"name": "@to", "value": at(from + items)}],
                });
                self.query(from, &query.to_string()).await
            }
        }
    }
}

fn partition_header(key: u64) -> String {
    format!("x-ms-documentdb-partitionkey: [\"{}\"]\r\n", partition(key))
}

fn refusal(response: &HttpResponse<'_>) -> Error {
    format!("status {}: {}", response.status, String::from_utf8_lossy(response.body)).into()
}
