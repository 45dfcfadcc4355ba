//! Bolide's side: fills a store, and queries it through the core or over HTTP.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_core::{Account, AccountOptions, Container, IndexUse, QueryItems};
use bolide_model::container::ContainerProperties;
use bolide_model::time::Clock;
use bolide_storage::Engine;
use bolide_storage::memory::MemoryEngine;
use bolide_storage_lsm::{Durability, LsmEngine, LsmOptions};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::data;
use super::questions::Rows;
use crate::connection::Connection;
use crate::cosmos::Requests;
use crate::server::Server;
use crate::{Result, item};

/// An account with the items.
pub struct Store {
    account: Arc<Account>,
    container: Arc<Container>,
}

fn home(dir: &Path) -> PathBuf {
    dir.join("bolide")
}

fn engine(dir: &Path) -> Result<Arc<dyn Engine>> {
    let options = LsmOptions {
        durability: Durability::Buffered,
        ..LsmOptions::default()
    };
    Ok(Arc::new(LsmEngine::open(dir, Arc::new(Clock::System), options)?))
}

/// A runtime of one thread. Dropping it ends the tasks of its accounts, and so their engines.
pub fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Fills a store in `dir`, unless it exists.
pub fn fill_embedded(dir: &Path, items: u64) -> Result<()> {
    if home(dir).exists() {
        return Ok(());
    }
    let unfinished = dir.join("bolide-unfinished");
    let _ = std::fs::remove_dir_all(&unfinished);
    std::fs::create_dir_all(&unfinished)?;
    runtime()?.block_on(async { Store::filled(engine(&unfinished)?, items).await?.close().await })?;
    // A second open lets it finish its tables before anything is measured.
    runtime()?.block_on(async {
        let store = Store::open(engine(&unfinished)?).await?;
        tokio::time::sleep(Duration::from_secs(5)).await;
        store.close().await
    })?;
    Ok(std::fs::rename(unfinished, home(dir))?)
}

impl Store {
    /// The store that [`fill_embedded`] made.
    pub async fn embedded(dir: &Path) -> Result<Store> {
        Store::open(engine(&home(dir))?).await
    }

    /// A new store on the memory engine, with all items.
    pub async fn memory(items: u64) -> Result<Store> {
        Store::filled(Arc::new(MemoryEngine::new(Arc::new(Clock::System))), items).await
    }

    async fn open(engine: Arc<dyn Engine>) -> Result<Store> {
        // Its peers have no indexes.
        let options = AccountOptions {
            index_use: IndexUse::Never,
            ..AccountOptions::default()
        };
        let account = Account::open(engine, options).await.map_err(text)?;
        let database = account.database_by_name("bench").map_err(text)?;
        let container = account.container_by_name(database.rid, "items").map_err(text)?;
        Ok(Store { account, container })
    }

    async fn filled(engine: Arc<dyn Engine>, items: u64) -> Result<Store> {
        let account = Account::open(engine, AccountOptions::default()).await.map_err(text)?;
        let ctx = account.begin().await.map_err(text)?;
        let database = account.create_database(&ctx, "bench", None).await.map_err(text)?;
        let definition = json!({"id": "items", "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2}});
        let properties = ContainerProperties::from_json(&definition).map_err(text)?;
        let container = account
            .create_container(&ctx, database.rid, properties, None)
            .await
            .map_err(text)?;
        let store = Store { account, container };
        item::create_all(&store.account, &store.container, items, data::document).await?;
        Ok(store)
    }

    /// Runs a query to its end, page by page; returns the time until the last row as JSON text.
    pub async fn ask(&self, query: &str) -> Result<(Duration, Rows)> {
        let mut request = QueryItems {
            text: query.to_owned(),
            cross_partition: true,
            ..QueryItems::default()
        };
        let started = Instant::now();
        let mut pages = Vec::new();
        loop {
            let ctx = self.account.begin().await.map_err(text)?;
            let page = self.account.query(&ctx, &self.container, &request).await;
            let page = page.map_err(|refusal| refusal.error.to_string())?.value;
            pages.push(page.rows);
            match page.continuation {
                Some(continuation) => request.continuation = Some(continuation),
                None => break,
            }
        }
        let time = started.elapsed();
        let mut rows = Rows::new();
        for page in pages {
            let page: Vec<Value> = serde_json::from_slice(&[b"[", &page[..], b"]"].concat())?;
            rows.extend(page.into_iter().map(values));
        }
        Ok((time, rows))
    }

    /// Ends the store.
    pub async fn close(self) -> Result<()> {
        Ok(self.account.close().await.map_err(text)?)
    }
}

fn values(row: Value) -> Vec<Value> {
    match row {
        Value::Object(members) => members.into_iter().map(|(_, value)| value).collect(),
        other => vec![other],
    }
}

fn text(error: bolide_model::Error) -> String {
    error.to_string()
}

/// The release server on a filled directory, and a connection to it.
pub struct OverHttp {
    connection: Connection,
    requests: Requests,
    _server: Server,
}

impl OverHttp {
    /// Starts the server.
    pub async fn start(bolide: &Path, dir: &Path) -> Result<OverHttp> {
        let server = Server::start_on(bolide, &home(dir))?;
        Ok(OverHttp {
            connection: Connection::open(server.address).await?,
            requests: Requests::to(server.address),
            _server: server,
        })
    }

    /// Runs a query of one page.
    pub async fn ask(&mut self, query: &str) -> Result<Duration> {
        let request = self.requests.query(query);
        let started = Instant::now();
        self.connection.expect(200, &request).await?;
        Ok(started.elapsed())
    }
}
