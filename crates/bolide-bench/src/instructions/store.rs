//! The stores of the operations, in this process.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use bolide_core::{Account, AccountOptions, Container, ItemTarget, PurgeMode, QueryItems, ReadItem, UpsertItem};
use bolide_cosmos::direct;
use bolide_cosmos::{ConsistencyLevel, CosmosOptions, CosmosService, Keys, Listener, Names, Origins, Purpose};
use bolide_model::UnixMillis;
use bolide_model::account_key::AccountKey;
use bolide_model::container::ContainerProperties;
use bolide_model::document::Document;
use bolide_model::partition_key::PartitionKey;
use bolide_model::time::{Clock, Monotonic};
use bolide_rntbd::frame::{Head, LENGTH_BYTES};
use bolide_storage::Engine;
use bolide_storage::memory::MemoryEngine;
use bolide_storage_lsm::{Durability, LsmEngine, LsmOptions};
use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode};
use serde_json::{Value, json};

use crate::cosmos::{self, Requests};
use crate::direct::frames::{Frames, Known};
use crate::embedded::text;
use crate::query::data;
use crate::{Result, item};

/// The time at which the clocks stand.
const NOW: UnixMillis = UnixMillis(1_700_000_000_000);
/// How long expiring items live.
const TTL_SECONDS: i32 = 60;
/// The address of the server, which no socket has.
const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8081);

/// How its requests arrive.
const LISTENER: Listener = Listener {
    purpose: Purpose::Database,
    is_tls: false,
    local: ADDRESS,
};

/// What a store holds at first.
pub struct Contents {
    items: u64,
    document: fn(u64) -> String,
    definition: Value,
}

impl Contents {
    /// Items of 1 KB.
    pub fn few(items: u64) -> Contents {
        Contents {
            items,
            document: |number| item::document(&item::id(number), None),
            definition: definition(&json!({})),
        }
    }

    /// Items of 1 KB that expire.
    pub fn expiring(items: u64) -> Contents {
        Contents {
            items,
            document: |number| item::document(&item::id(number), Some(TTL_SECONDS)),
            definition: definition(&json!({"defaultTtl": -1})),
        }
    }

    /// Orders of 1 KB, with an index of each of some paths, and no other.
    pub fn orders(items: u64, paths: &[&str]) -> Contents {
        let paths: Vec<Value> = paths.iter().map(|path| json!({"path": path})).collect();
        Contents {
            items,
            document: data::document,
            definition: definition(&json!({
                "indexingPolicy": {"includedPaths": paths, "excludedPaths": [{"path": "/*"}]},
            })),
        }
    }
}

fn definition(more: &Value) -> Value {
    let mut definition = json!({"id": "items", "partitionKey": {"paths": ["/id"], "kind": "Hash", "version": 2}});
    for (name, value) in more.as_object().into_iter().flatten() {
        definition[name] = value.clone();
    }
    definition
}

/// The read of an item by its id.
pub fn read_of(id: &str) -> Result<ReadItem> {
    Ok(ReadItem {
        target: ItemTarget::Id(id.into()),
        partition_key: PartitionKey::from_json(&json!([id])).ok_or("no partition key")?,
        if_none_match: None,
    })
}

/// An account with one container.
pub struct Store {
    account: Arc<Account>,
    container: Arc<Container>,
    clock: Arc<Clock>,
}

impl Store {
    /// A store on the memory engine.
    pub async fn in_memory(contents: &Contents) -> Result<Store> {
        let clock = Arc::new(Clock::virtual_at(NOW));
        Store::on(Arc::new(MemoryEngine::new(clock.clone())), clock, contents).await
    }

    /// A store on the embedded engine.
    pub async fn in_directory(dir: &Path, contents: &Contents) -> Result<Store> {
        let clock = Arc::new(Clock::virtual_at(NOW));
        let options = LsmOptions {
            durability: Durability::Buffered,
            monotonic: Monotonic::manual(),
            ..LsmOptions::default()
        };
        let engine = LsmEngine::open(dir, clock.clone(), options)?;
        Store::on(Arc::new(engine), clock, contents).await
    }

    async fn on(engine: Arc<dyn Engine>, clock: Arc<Clock>, contents: &Contents) -> Result<Store> {
        let options = AccountOptions {
            virtual_clock: true,
            background_purge: false,
            monotonic: Monotonic::manual(),
            ..AccountOptions::default()
        };
        let account = Account::open(engine, options).await.map_err(text)?;
        let ctx = account.begin().await.map_err(text)?;
        let database = account.create_database(&ctx, "bench", None).await.map_err(text)?;
        let properties = ContainerProperties::from_json(&contents.definition).map_err(text)?;
        let created = account.create_container(&ctx, database.rid, properties, None);
        let container = created.await.map_err(text)?;
        let store = Store {
            account,
            container,
            clock,
        };
        item::create_all(&store.account, &store.container, contents.items, contents.document).await?;
        Ok(store)
    }

    /// Reads an item.
    pub async fn read(&self, read: &ReadItem) -> Result<()> {
        let ctx = self.account.begin().await.map_err(text)?;
        let read = self.account.read_item(&ctx, &self.container, read).await;
        read.map_err(|refusal| refusal.error.to_string())?;
        Ok(())
    }

    /// Writes an item again, from its text on.
    pub async fn write(&self, document: &str) -> Result<()> {
        let upsert = UpsertItem {
            document: Document::parse(document.as_bytes()).map_err(text)?,
            partition_key: None,
            if_match: None,
        };
        let ctx = self.account.begin().await.map_err(text)?;
        let upserted = self.account.upsert_item(&ctx, &self.container, upsert).await;
        upserted.map_err(|refusal| refusal.error.to_string())?;
        Ok(())
    }

    /// The number of rows of a query, which must end with its first page, and the number of items that it read.
    pub async fn query(&self, query: &str) -> Result<(u64, u64)> {
        self.query_with(query, &[]).await
    }

    /// As [`Store::query`], with parameters.
    pub async fn query_with(&self, query: &str, parameters: &[(&str, Value)]) -> Result<(u64, u64)> {
        let parameters = parameters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.clone()));
        let request = QueryItems {
            text: query.to_owned(),
            parameters: Arc::new(parameters.collect()),
            cross_partition: true,
            max_items: Some(1_000),
            ..QueryItems::default()
        };
        let ctx = self.account.begin().await.map_err(text)?;
        let page = self.account.query(&ctx, &self.container, &request).await;
        let page = page.map_err(|refusal| refusal.error.to_string())?.value;
        match page.continuation {
            None => Ok((page.count as u64, page.metrics.retrieved_items)),
            Some(_) => Err("the query has more than a page".into()),
        }
    }

    /// Makes all items expire that can.
    pub fn expire_all(&self) {
        self.clock.advance((i64::from(TTL_SECONDS) + 1) * 1_000);
    }

    /// Removes at most `most` expired items; returns how many.
    pub async fn purge(&self, most: u64) -> Result<u64> {
        let purged = self.account.purge(&self.container, PurgeMode::Force, Some(most));
        Ok(purged.await.map_err(text)?)
    }
}

/// A store behind the front end of Cosmos DB, without sockets.
pub struct WireStore {
    service: CosmosService,
    requests: Requests,
    frames: Frames,
}

impl WireStore {
    /// A store with items of 1 KB.
    pub async fn open(items: u64) -> Result<WireStore> {
        let store = Store::in_memory(&Contents::few(items)).await?;
        let known = Known {
            rid: store.container.rid().to_string(),
            session: String::new(),
        };
        let options = CosmosOptions {
            clock: store.clock,
            faults_enabled: false,
            certificate_pem: None,
            names: Names::All,
            origins: Origins::default(),
            consistency: ConsistencyLevel::Session,
            endpoint: None,
            log_headers: false,
            connections: Arc::default(),
            has_direct: false,
            has_gateway_v2: false,
            has_explorer: false,
            emulation: None,
            snapshots: None,
            peers: None,
            recent_requests: Arc::default(),
            mongo: None,
        };
        let key = AccountKey::parse(&cosmos::account_key()).map_err(|error| error.to_string())?;
        Ok(WireStore {
            service: CosmosService::new(store.account, Keys::new(key), options),
            requests: Requests::to(ADDRESS),
            frames: Frames::new(Requests::to(ADDRESS), known)?,
        })
    }

    /// The signed request that reads an item.
    pub fn read(&self, id: &str) -> Result<Request<Bytes>> {
        parsed(&self.requests.read(id))
    }

    /// The signed request that creates an item.
    pub fn create(&self, id: &str) -> Result<Request<Bytes>> {
        parsed(&self.requests.create(id, None))
    }

    /// The frame that reads an item: the head without its length, as a connection reads it.
    pub fn read_in_frame(&self, id: &str) -> Bytes {
        let mut bytes = Vec::new();
        self.frames.read(id).write(1, &mut bytes);
        Bytes::from(bytes).slice(LENGTH_BYTES..)
    }

    /// Answers the frame of a request without a payload; an error if its status is not 200.
    pub async fn send_frame(&self, head: &Bytes) -> Result<()> {
        let head = Head::read(head.clone())?;
        let parsed = direct::to_request(&head, &HeaderValue::from_static("2020-07-15"))?;
        let request = parsed.request.map_err(|refused| refused.why.0)?;
        let frame = self.service.handle_frame(request, Bytes::new(), LISTENER).await;
        let (head, _) = frame.ok_or("the response is too long")?;
        match head.get(LENGTH_BYTES..LENGTH_BYTES + 2) {
            Some([200, 0]) => Ok(()),
            status => Err(format!("status {status:?}").into()),
        }
    }

    /// Answers a request; an error if its status is another one.
    pub async fn send(&self, request: Request<Bytes>, expected: StatusCode) -> Result<()> {
        let response = self.service.handle(request, LISTENER).await;
        match response.status() {
            status if status == expected => Ok(()),
            status => Err(format!("{status}: {:?}", response.into_body()).into()),
        }
    }
}

/// A request as hyper passes it on, from one of our own as bytes.
fn parsed(request: &[u8]) -> Result<Request<Bytes>> {
    let text = std::str::from_utf8(request)?;
    let (head, body) = text
        .split_once("\r\n\r\n")
        .ok_or("a request without an end of its head")?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next().into_iter().flat_map(|line| line.split(' '));
    let (method, path) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    let mut parsed = Request::builder().method(method).uri(path);
    for line in lines {
        let (name, value) = line.split_once(": ").ok_or("a header without a value")?;
        parsed = parsed.header(name, value);
    }
    Ok(parsed.body(Bytes::copy_from_slice(body.as_bytes()))?)
}
