//! `bolide demo`: a server in memory with a sample database, in which a newcomer sees things expire.
//!
//! ```text
//!   codes      defaultTtl -1     every item has a ttl of its own: one ends every 5 seconds
//!   sessions   defaultTtl 180    some items have a ttl of their own, some never expire (-1)
//!   audit      defaultTtl -1     items stay, unless they have a ttl of their own
//!   orders     no defaultTtl     items stay, even those with a ttl
//!   carts      a MongoDB collection with a TTL index: one document ends every 10 seconds
//! ```

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bolide_core::{Account, CreateItem, RequestContext};
use bolide_model::container::ContainerProperties;
use bolide_model::document::Document;
use bolide_model::rid::DatabaseRid;
use bolide_mongo::authentication::Credentials;
use bolide_mongo::client::Peer;
use bolide_mongo::connection::{Activity, Timeouts};
use bolide_mongo::message;
use bolide_mongo::service::MongoService;
use bolide_mongo::state::{Host, MongoOptions};
use bson::{RawDocument, RawDocumentBuf, rawdoc};
use clap::Args;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use crate::options::{ServeOptions, Settings};
use crate::server::Failure;

/// The sample database.
pub const DATABASE: &str = "demo";
/// The container in which an item ends every few seconds.
pub const CODES: &str = "codes";
/// The collection with a TTL index.
pub const CARTS: &str = "carts";

/// Items of each container, and documents of the collection.
const CODE_COUNT: i64 = 60;
const SESSION_COUNT: i64 = 40;
const AUDIT_COUNT: i64 = 20;
const ORDER_COUNT: i64 = 12;
const CART_COUNT: i64 = 30;

/// Bytes of a message and a reply that fit into the pipe to MongoDB's front end.
const PIPE_BYTES: usize = 64 * 1024;
/// Length of the head of a reply: its header, flags, and the kind of its section.
const REPLY_HEAD_BYTES: usize = 21;
/// The front end runs in this process; it answers at once.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The options of `demo`.
#[derive(Debug, Clone, Args)]
pub struct DemoOptions {
    #[command(flatten)]
    serve: ServeOptions,
}

impl DemoOptions {
    /// The options of the server: everything is in memory.
    pub fn into_serve(self) -> Box<ServeOptions> {
        Box::new(ServeOptions {
            memory: true,
            is_demo: true,
            ..self.serve
        })
    }
}

/// Creates the sample database.
///
/// # Errors
/// A part that could not be created.
pub async fn fill(account: &Arc<Account>, settings: &Settings) -> Result<(), Failure> {
    let created = create_containers(account).await;
    created.map_err(|error| Failure::new(format!("cannot make the sample database: {error}")))?;
    if !settings.options.mongo.no_mongo {
        let created = create_collection(account).await;
        created.map_err(|error| Failure::new(format!("cannot make the sample collection: {error}")))?;
    }
    Ok(())
}

async fn create_containers(account: &Arc<Account>) -> bolide_model::Result<()> {
    let ctx = account.begin().await?;
    let database = account.create_database(&ctx, DATABASE, None).await?.rid;
    let samples = [
        (json!({"id": CODES, "defaultTtl": -1}), codes()),
        (json!({"id": "sessions", "defaultTtl": 180}), sessions()),
        (json!({"id": "audit", "defaultTtl": -1}), audit()),
        (json!({"id": "orders"}), orders()),
    ];
    for (definition, items) in samples {
        create_container(account, &ctx, database, definition, items).await?;
    }
    Ok(())
}

async fn create_container(
    account: &Arc<Account>,
    ctx: &RequestContext,
    database: DatabaseRid,
    mut definition: Value,
    items: Vec<Value>,
) -> bolide_model::Result<()> {
    definition["partitionKey"] = json!({"paths": ["/user"], "kind": "Hash", "version": 2});
    let properties = ContainerProperties::from_json(&definition)?;
    let container = account.create_container(ctx, database, properties, None).await?;
    for item in items {
        let create = CreateItem {
            document: Document::from_value(item)?,
            partition_key: None,
        };
        let created = account.create_item(ctx, &container, create).await;
        created.map_err(|refusal| refusal.error)?;
    }
    Ok(())
}

fn user(n: i64) -> &'static str {
    ["ada", "grace", "edsger", "barbara"][usize::try_from(n.rem_euclid(4)).unwrap_or(0)]
}

/// Sign-in codes: each has a ttl of its own.
fn codes() -> Vec<Value> {
    (1..=CODE_COUNT)
        .map(|n| json!({"id": format!("code-{n:02}"), "user": user(n), "code": (n * 7919) % 10_000, "ttl": 5 * n}))
        .collect()
}

/// Sessions: of each four, two have the container's default, one ends earlier, and one never.
fn sessions() -> Vec<Value> {
    (1..=SESSION_COUNT)
        .map(|n| {
            let mut session = json!({"id": format!("session-{n:02}"), "user": user(n), "device": "browser"});
            match n % 4 {
                0 => session["ttl"] = json!(3 * n),
                1 => session["ttl"] = json!(-1),
                _ => {}
            }
            session
        })
        .collect()
}

/// Entries of an audit log: every second one ends.
fn audit() -> Vec<Value> {
    (1..=AUDIT_COUNT)
        .map(|n| {
            let mut entry = json!({"id": format!("entry-{n:02}"), "user": user(n), "action": "sign-in"});
            if n % 2 == 0 {
                entry["ttl"] = json!(15 * n);
            }
            entry
        })
        .collect()
}

/// Orders: their container has no TTL, so the ttl of some of them has no effect.
fn orders() -> Vec<Value> {
    (1..=ORDER_COUNT)
        .map(|n| {
            let mut order = json!({"id": format!("order-{n:02}"), "user": user(n), "total": 9 * n});
            if n % 3 == 0 {
                order["ttl"] = json!(10);
            }
            order
        })
        .collect()
}

/// Creates the collection as a driver would: with commands, through a front end of its own that needs no authentication and that nobody else reaches.
async fn create_collection(account: &Arc<Account>) -> Result<(), String> {
    let service = MongoService::new(account.clone(), private_options());
    let (mut client, server) = tokio::io::duplex(PIPE_BYTES);
    let nowhere = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    let peer = Peer {
        local: nowhere,
        remote: nowhere,
        is_tls: false,
    };
    let timeouts = Timeouts {
        request: TIMEOUT,
        idle: TIMEOUT,
    };
    let serving = tokio::spawn(async move { service.serve(server, peer, timeouts, Arc::new(Unobserved)).await });
    let index = rawdoc! {"createIndexes": CARTS, "$db": DATABASE, "indexes": [
        {"key": {"expireAt": 1}, "name": "expireAt_1", "expireAfterSeconds": 0},
    ]};
    run_command(&mut client, &index).await?;
    run_command(&mut client, &carts(account.server_time().0)).await?;
    drop(client);
    serving.await.map_err(|error| error.to_string())
}

/// The command that inserts the documents.
fn carts(now_millis: i64) -> RawDocumentBuf {
    let documents = (1..=CART_COUNT).map(|n| {
        let expire_at = bson::DateTime::from_millis(now_millis + 10_000 * n);
        bson::RawBson::Document(rawdoc! {
            "_id": format!("cart-{n:02}"), "user": user(n), "items": ["tea"], "expireAt": expire_at,
        })
    });
    let documents = documents.fold(bson::RawArrayBuf::new(), |mut array, document| {
        array.push(document);
        array
    });
    rawdoc! {"insert": CARTS, "$db": DATABASE, "documents": documents}
}

fn private_options() -> MongoOptions {
    MongoOptions {
        credentials: Credentials::new(std::iter::empty(), Vec::new()),
        requires_authentication: false,
        set_name: DATABASE.to_owned(),
        advertised: None,
        faults_enabled: false,
        max_connections: 1,
        host: Host::default(),
        recent_requests: Arc::default(),
    }
}

/// Sends a command, and checks its reply.
async fn run_command(stream: &mut DuplexStream, command: &RawDocument) -> Result<(), String> {
    let lost = |error: std::io::Error| error.to_string();
    stream
        .write_all(&message::op_msg(1, 0, 0, command))
        .await
        .map_err(lost)?;
    let mut head = [0; REPLY_HEAD_BYTES];
    stream.read_exact(&mut head).await.map_err(lost)?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
    let rest = usize::try_from(length).unwrap_or_default().saturating_sub(head.len());
    let mut body = vec![0; rest];
    stream.read_exact(&mut body).await.map_err(lost)?;
    let reply = RawDocumentBuf::from_bytes(body).map_err(|error| error.to_string())?;
    let is_done = reply.get_f64("ok").is_ok_and(|ok| ok > 0.0) && !matches!(reply.get("writeErrors"), Ok(Some(_)));
    match is_done {
        true => Ok(()),
        false => Err(format!("{reply:?}")),
    }
}

/// The connection of this module is not counted among those of clients.
struct Unobserved;

impl Activity for Unobserved {
    fn idle(&self) {}
    fn reading(&self) {}
    fn running(&self) {}
    fn answering(&self) {}
    fn admitted(&self) {}
}
