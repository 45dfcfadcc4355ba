//! An account on the memory engine, with a few items.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bolide_core::{Account, AccountOptions, Container, CreateItem, RequestContext, Throughput};
use bolide_cosmos::{ConsistencyLevel, CosmosOptions, CosmosService, Keys, Listener, Names, Origins, Payload, Purpose};
use bolide_model::UnixMillis;
use bolide_model::account_key::{AccountKey, WELL_KNOWN_KEY};
use bolide_model::container::ContainerProperties;
use bolide_model::document::Document;
use bolide_model::time::Clock;
use bolide_storage::memory::MemoryEngine;
use bytes::Bytes;
use http::{Request, Response};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

/// Items of the container.
pub const ITEMS: usize = 8;
const LISTENER: Listener = Listener {
    purpose: Purpose::Database,
    is_tls: false,
    local: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8081),
};
const START: UnixMillis = UnixMillis(1_700_000_000_000);

/// See the module.
pub struct TestAccount {
    pub engine: Arc<MemoryEngine>,
    pub clock: Arc<Clock>,
    pub account: Arc<Account>,
    pub container: Arc<Container>,
    runtime: Runtime,
}

impl TestAccount {
    /// An account with one database `d` and one container `c` of `ranges` ranges, with unique keys and a default ttl.
    pub fn new(ranges: u32) -> TestAccount {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("one thread can be had");
        let clock = Arc::new(Clock::virtual_at(START));
        let engine = Arc::new(MemoryEngine::new(clock.clone()));
        let (account, container) = runtime.block_on(async {
            let account = TestAccount::open(&engine).await.expect("an empty engine can be opened");
            let ctx = account.begin().await.expect("memory is there");
            let container = create_container(&account, &ctx, ranges).await;
            for n in 0..ITEMS {
                create_item(&account, &ctx, &container, n).await;
            }
            (account, container)
        });
        TestAccount {
            engine,
            clock,
            account,
            container,
            runtime,
        }
    }

    /// Opens an account on an engine, as at a start.
    pub async fn open(engine: &Arc<MemoryEngine>) -> bolide_model::Result<Arc<Account>> {
        let options = AccountOptions {
            virtual_clock: true,
            ..AccountOptions::default()
        };
        Account::open(engine.clone(), options).await
    }

    /// The response of a front end over the account, which accepts the well-known key.
    pub fn answer(&self, request: Request<Bytes>) -> Response<Payload> {
        let key = AccountKey::parse(WELL_KNOWN_KEY).expect("the well-known key");
        let options = CosmosOptions {
            consistency: ConsistencyLevel::default(),
            endpoint: None,
            log_headers: false,
            clock: self.clock.clone(),
            faults_enabled: false,
            certificate_pem: None,
            names: Names::All,
            origins: Origins::default(),
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
        let service = CosmosService::new(self.account.clone(), Keys::new(key), options);
        self.run(service.handle(request, LISTENER))
    }

    /// Runs a future to its end.
    pub fn run<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }
}

/// The id of an item.
pub fn id(n: usize) -> String {
    format!("i{n}")
}

/// The partition key of an item.
pub fn partition_key(n: usize) -> String {
    format!("p{}", n % 3)
}

async fn create_container(account: &Account, ctx: &RequestContext, ranges: u32) -> Arc<Container> {
    let database = account.create_database(ctx, "d", None).await.expect("the first one");
    let definition = json!({
        "id": "c",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
        "defaultTtl": 50,
    });
    let definition = ContainerProperties::from_json(&definition).expect("a fixed definition");
    let throughput = (ranges > 1).then_some(Throughput::Manual { ru: 6_000 * ranges });
    account
        .create_container(ctx, database.rid, definition, throughput)
        .await
        .expect("the first one")
}

async fn create_item(account: &Account, ctx: &RequestContext, container: &Arc<Container>, n: usize) {
    let mut item = json!({"id": id(n), "pk": partition_key(n), "u": n, "n": n % 4, "tags": ["x", n]});
    if n % 2 == 1 {
        item["ttl"] = json!(60 * n);
    }
    let document = Document::parse(item.to_string().as_bytes()).expect("a fixed document");
    let created = account
        .create_item(
            ctx,
            container,
            CreateItem {
                document,
                partition_key: None,
            },
        )
        .await;
    created.map_err(|refusal| refusal.error).expect("an item like no other");
}
