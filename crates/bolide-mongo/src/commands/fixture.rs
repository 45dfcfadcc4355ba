//! A front end over an empty database in memory, for tests.

pub mod log_in;

use std::net::SocketAddr;
use std::sync::Arc;

use bolide_core::{Account, AccountOptions};
use bolide_model::UnixMillis;
use bolide_model::account_key::{Access, AccountKey};
use bolide_model::time::{Clock, Monotonic};
use bolide_storage::memory::MemoryEngine;
use bson::{RawDocument, RawDocumentBuf, rawdoc};

use super::dispatch::{Answer, Request, dispatch};
use crate::authentication::{Credentials, SaslStart};
use crate::client::{Client, Peer};
use crate::message::{Header, OpMsg};
use crate::state::{Host, MongoOptions, MongoState};

/// The key with all rights.
pub const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";
/// The key for reading.
pub const READ_ONLY_KEY: &str = "ZmVkY2JhOTg3NjU0MzIxMA==";
/// The time of the virtual clock.
pub const NOW: UnixMillis = UnixMillis(1_700_000_000_250);

/// The options of a server that requires authentication.
pub fn options() -> MongoOptions {
    let key = |text| AccountKey::parse(text).expect("a key");
    let keys = vec![(Access::Full, key(KEY)), (Access::ReadOnly, key(READ_ONLY_KEY))];
    MongoOptions {
        credentials: Credentials::new(["localhost".to_owned()], keys),
        requires_authentication: true,
        set_name: "globaldb".to_owned(),
        advertised: None,
        faults_enabled: true,
        max_connections: 10,
        host: Host {
            name: "machine".to_owned(),
            memory_mib: 1024,
            port: 10255,
        },
        recent_requests: Arc::default(),
    }
}

/// A front end with these options.
pub async fn state(options: MongoOptions) -> Arc<MongoState> {
    state_at(options, Monotonic::manual()).await
}

/// A front end with these options, and a clock for timeouts.
pub async fn state_at(options: MongoOptions, monotonic: Monotonic) -> Arc<MongoState> {
    let account_options = AccountOptions {
        monotonic,
        ..AccountOptions::default()
    };
    state_with(options, account_options).await
}

/// A front end with these options, over a database with those.
pub async fn state_with(options: MongoOptions, account_options: AccountOptions) -> Arc<MongoState> {
    let engine = Arc::new(MemoryEngine::new(Arc::new(Clock::virtual_at(NOW))));
    let account_options = AccountOptions {
        virtual_clock: true,
        ..account_options
    };
    let account = Account::open(engine, account_options).await.expect("an empty database");
    Arc::new(MongoState::new(account, options))
}

/// A client from the same machine; over TLS, so that it can authenticate with PLAIN.
pub fn client() -> Client {
    let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let peer = Peer {
        local: address(10255),
        remote: address(40000),
        is_tls: true,
    };
    Client::new(7, peer)
}

/// A client that has authenticated with a key.
pub fn authenticated(state: &MongoState, key: &str) -> Client {
    let client = client();
    let payload = format!("\0localhost\0{key}");
    let start = SaslStart {
        mechanism: "PLAIN",
        database: "$external",
        payload: payload.as_bytes(),
        skip_empty_exchange: true,
        created: None,
    };
    client
        .sasl_start(&state.options.credentials, &start)
        .expect("one of the keys");
    client
}

/// An OP_MSG with document sequences.
pub fn message(command: &RawDocument, sequences: &[(&str, &[RawDocumentBuf])]) -> OpMsg {
    let mut sections = vec![0];
    sections.extend_from_slice(command.as_bytes());
    for (name, documents) in sequences {
        let mut content = [name.as_bytes(), &[0]].concat();
        for document in *documents {
            content.extend_from_slice(document.as_bytes());
        }
        sections.push(1);
        let size = i32::try_from(content.len() + 4).expect("short");
        sections.extend_from_slice(&size.to_le_bytes());
        sections.extend_from_slice(&content);
    }
    let mut bytes = Vec::new();
    let header = Header {
        length: 20 + sections.len(),
        request_id: 1,
        response_to: 0,
        op_code: 2013,
    };
    header.write(&mut bytes);
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&sections);
    OpMsg::parse(bytes.into()).expect("well formed")
}

/// Sends a command to `admin`; returns the whole reply.
pub async fn run(state: &Arc<MongoState>, client: &Client, command: RawDocumentBuf) -> RawDocumentBuf {
    let mut command = command;
    if command.get("$db").expect("valid").is_none() {
        command.append(bson::raw::cstr!("$db"), "admin");
    }
    let message = message(&command, &[]);
    let request = Request {
        message: &message,
        database: None,
    };
    match dispatch(state, client, request, std::future::pending()).await {
        Answer::Reply(reply) => reply.body,
        Answer::Close => rawdoc! { "closed": true },
    }
}

/// As [`run`], with all rights; returns the code of the error, 0 if there is none.
pub async fn code(state: &Arc<MongoState>, client: &Client, command: RawDocumentBuf) -> i32 {
    code_of(&run(state, client, command).await)
}

/// The code of an error, 0 if there is none.
pub fn code_of(reply: &RawDocument) -> i32 {
    let is_ok = reply.get_f64("ok").is_ok_and(|ok| ok == 1.0);
    let code = reply.get_i32("code").unwrap_or(0);
    assert_eq!(is_ok, code == 0, "{reply:?}");
    code
}

/// A client with all rights, on a database of its own in memory with a virtual clock.
pub struct Shell {
    /// The front end.
    pub state: Arc<MongoState>,
    client: Client,
    clock: Arc<Clock>,
    engine: Arc<MemoryEngine>,
}

impl Shell {
    /// Connects to an empty database.
    pub async fn new() -> Shell {
        let clock = Arc::new(Clock::virtual_at(NOW));
        let engine = Arc::new(MemoryEngine::new(clock.clone()));
        Shell::over(engine, clock).await
    }

    /// Connects to a server that knows no more than what is stored.
    pub async fn reopened(&self) -> Shell {
        Shell::over(self.engine.clone(), self.clock.clone()).await
    }

    async fn over(engine: Arc<MemoryEngine>, clock: Arc<Clock>) -> Shell {
        Shell {
            state: open(engine.clone()).await,
            client: client(),
            clock,
            engine,
        }
    }

    /// Starts the front end and the database again, over what is stored.
    pub async fn restart(&mut self) {
        self.state.account.close().await.expect("closed");
        self.state = open(self.engine.clone()).await;
        self.client = client();
    }

    /// Sends a command to the database `db`, if it names no other; returns the whole reply.
    pub async fn run(&self, command: RawDocumentBuf) -> RawDocumentBuf {
        let mut command = command;
        if command.get("$db").expect("valid").is_none() {
            command.append(bson::raw::cstr!("$db"), "db");
        }
        run(&self.state, &self.client, command).await
    }

    /// Sends a command that must succeed; returns the reply without the fields that every reply has.
    pub async fn ok(&self, command: RawDocumentBuf) -> RawDocumentBuf {
        let text = format!("{command:?}");
        let reply = self.run(command).await;
        assert_eq!(code_of(&reply), 0, "{text}: {reply:?}");
        without(&reply, &["ok", "$clusterTime", "operationTime"])
    }

    /// Sends a command; returns the code of the error, 0 if there is none.
    pub async fn code(&self, command: RawDocumentBuf) -> i32 {
        code_of(&self.run(command).await)
    }

    /// Inserts documents into a collection.
    pub async fn insert(&self, collection: &str, documents: &[RawDocumentBuf]) {
        let mut array = bson::RawArrayBuf::new();
        for document in documents {
            array.push(document.clone());
        }
        self.ok(rawdoc! { "insert": collection, "documents": array }).await;
    }

    /// Sends a command whose reply has a cursor; returns the first batch.
    pub async fn first_batch(&self, command: RawDocumentBuf) -> Vec<RawDocumentBuf> {
        let reply = self.ok(command).await;
        let cursor = reply.get_document("cursor").expect("a cursor");
        let batch = cursor.get_array("firstBatch").expect("a batch");
        let documents = batch.into_iter().map(|document| {
            let document = document.expect("valid").as_document().expect("a document");
            document.to_owned()
        });
        documents.collect()
    }

    /// Server time, in milliseconds.
    pub fn now(&self) -> i64 {
        self.clock.now().0
    }

    /// Lets server time pass.
    pub fn advance(&self, by_ms: i64) {
        assert!(self.clock.advance(by_ms), "the clock is virtual");
    }
}

/// A front end without authentication, over a database with what is stored.
async fn open(engine: Arc<MemoryEngine>) -> Arc<MongoState> {
    let account_options = AccountOptions {
        virtual_clock: true,
        monotonic: Monotonic::manual(),
        ..AccountOptions::default()
    };
    let account = Account::open(engine, account_options).await.expect("a database");
    let options = MongoOptions {
        requires_authentication: false,
        ..options()
    };
    Arc::new(MongoState::new(account, options))
}

/// Returns a document without some of its fields.
pub fn without(document: &RawDocument, names: &[&str]) -> RawDocumentBuf {
    let mut rest = RawDocumentBuf::new();
    for field in document {
        let (name, value) = field.expect("valid");
        if !names.contains(&name.as_str()) {
            rest.append(name, value);
        }
    }
    rest
}

/// Returns some fields of a document, in the order of the names.
pub fn only(document: &RawDocument, names: &[&str]) -> RawDocumentBuf {
    let mut some = RawDocumentBuf::new();
    for name in names {
        let value = document.get(name).expect("valid");
        if let (Ok(name), Some(value)) = (<&bson::raw::CStr>::try_from(*name), value) {
            some.append(name, value);
        }
    }
    some
}
