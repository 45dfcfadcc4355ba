mod stalls;

use bolide_model::time::Monotonic;
use bson::{RawDocument, RawDocumentBuf, rawdoc};
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;

use super::*;
use crate::commands::fixture;
use crate::message::CHECKSUM_PRESENT;
use crate::state::MongoOptions;

struct Nobody;

impl Activity for Nobody {
    fn idle(&self) {}
    fn reading(&self) {}
    fn running(&self) {}
    fn answering(&self) {}
    fn admitted(&self) {}
}

const TIMEOUTS: Timeouts = Timeouts {
    request: Duration::from_secs(20),
    idle: Duration::from_secs(600),
};

/// The client's end of a connection, and its server.
struct Connected {
    stream: DuplexStream,
    state: Arc<MongoState>,
    serving: JoinHandle<()>,
}

/// A reply: the flags and the document of an OP_MSG, and its header.
struct Reply {
    header: Header,
    flags: u32,
    body: RawDocumentBuf,
}

impl Connected {
    async fn new(options: MongoOptions) -> Connected {
        Connected::at(options, Monotonic::system()).await
    }

    /// To a server without authentication.
    async fn open() -> Connected {
        Connected::new(MongoOptions {
            requires_authentication: false,
            ..fixture::options()
        })
        .await
    }

    async fn at(options: MongoOptions, monotonic: Monotonic) -> Connected {
        Connected::to(fixture::state_at(options, monotonic).await)
    }

    fn to(state: Arc<MongoState>) -> Connected {
        let (stream, server) = tokio::io::duplex(1024 * 1024);
        let peer = fixture::client().peer;
        let states = watch::Sender::new(state.clone());
        let serving = tokio::spawn(serve(states.subscribe(), server, peer, TIMEOUTS, Arc::new(Nobody)));
        Connected { stream, state, serving }
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the server reads");
    }

    async fn receive_bytes(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; Header::BYTES];
        self.stream.read_exact(&mut bytes).await.expect("a reply");
        let header = Header::parse(&bytes, 1 << 30).expect("well formed");
        bytes.resize(header.length, 0);
        let rest = &mut bytes[Header::BYTES..];
        self.stream.read_exact(rest).await.expect("a reply");
        bytes
    }

    async fn receive(&mut self) -> Reply {
        let bytes = self.receive_bytes().await;
        let header = Header::parse(&bytes, 1 << 30).expect("well formed");
        assert_eq!(header.op_code, 2013);
        assert_eq!(bytes[20], 0, "one document");
        let body = RawDocumentBuf::from_bytes(bytes[21..].to_vec()).expect("a document");
        Reply {
            header,
            flags: flags_of(&bytes),
            body,
        }
    }

    /// Resolves when the server has closed the connection, and returns what it sent before.
    async fn closed(mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).await.expect("an orderly end");
        self.serving.await.expect("no panic");
        rest
    }
}

/// An OP_MSG with this request id.
fn request(id: i32, flags: u32, command: &RawDocument) -> Vec<u8> {
    let mut bytes = message::op_msg(id, 0, flags, command);
    if flags & CHECKSUM_PRESENT != 0 {
        let length = u32::try_from(bytes.len() + 4).expect("short");
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        let sum = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
    }
    bytes
}

fn ping() -> RawDocumentBuf {
    rawdoc! { "ping": 1, "$db": "admin" }
}

fn code(bytes: &[u8]) -> i32 {
    let body = RawDocument::from_bytes(&bytes[21..]).expect("a document");
    body.get_i32("code").expect("an error")
}

#[tokio::test]
async fn replies_name_their_request() {
    let mut client = Connected::open().await;
    for id in [5, -7] {
        client.send(&request(id, 0, &ping())).await;
        let reply = client.receive().await;
        assert_eq!((reply.header.response_to, reply.flags), (id, 0));
        assert_eq!(reply.body.get_f64("ok").ok(), Some(1.0));
    }
    client.send(&request(9, CHECKSUM_PRESENT, &ping())).await;
    assert_eq!(client.receive().await.header.response_to, 9);
    let state = client.state.clone();
    assert_eq!(state.metrics.connections.get(), 1);
    drop(client.stream);
    client.serving.await.expect("no panic");
    assert_eq!((state.metrics.connections.get(), state.metrics.requests.get()), (0, 3));
}

#[tokio::test]
async fn requests_may_come_together_and_in_parts() {
    let mut client = Connected::open().await;
    let two = [request(1, 0, &ping()), request(2, 0, &ping())].concat();
    client.send(&two).await;
    for id in [1, 2] {
        assert_eq!(client.receive().await.header.response_to, id);
    }
    for byte in request(3, 0, &ping()) {
        client.send(&[byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.receive().await.header.response_to, 3);
}

#[tokio::test]
async fn unacknowledged_commands_get_no_reply() {
    let mut client = Connected::open().await;
    let end = rawdoc! { "endSessions": [], "$db": "admin" };
    for command in [&end, &rawdoc! { "nonsense": 1, "$db": "admin" }] {
        client.send(&request(1, MORE_TO_COME, command)).await;
    }
    client.send(&request(2, 0, &ping())).await;
    assert_eq!(client.receive().await.header.response_to, 2);
}

#[tokio::test]
async fn malformed_messages_get_an_error_and_end_the_connection() {
    let valid = request(1, 0, &ping());
    let flagged = request(1, 1 << 3, &ping());
    let mut bad_sum = request(1, CHECKSUM_PRESENT, &ping());
    bad_sum[25] ^= 1;
    let mut bad_document = valid.clone();
    bad_document[21] = 0xff;
    for (name, bytes, expected) in [
        ("an unknown flag", flagged, 223),
        ("a wrong checksum", bad_sum, 288),
        ("a wrong length", bad_document, 22),
    ] {
        let mut client = Connected::open().await;
        client.send(&bytes).await;
        assert_eq!(code(&client.closed().await), expected, "{name}");
    }
}

#[tokio::test]
async fn messages_that_nobody_understands_end_the_connection() {
    let valid = request(1, 0, &ping());
    let with_length = |length: i32| [&length.to_le_bytes(), &valid[4..]].concat();
    let with_op_code = |code: i32| [&valid[..12], &code.to_le_bytes(), &valid[16..]].concat();
    for (name, bytes) in [
        ("too short", with_length(15)),
        ("negative", with_length(-1)),
        ("too long", with_length(48_016_385)),
        ("insert", with_op_code(2002)),
        ("a reply", with_op_code(1)),
        ("unknown", with_op_code(0)),
    ] {
        let mut client = Connected::open().await;
        client.send(&bytes).await;
        assert!(client.closed().await.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn unauthenticated_clients_send_short_messages() {
    let long = rawdoc! { "ping": 1, "$db": "admin", "comment": "x".repeat(64 * 1024) };
    let mut client = Connected::new(fixture::options()).await;
    client.send(&request(1, 0, &long)[..1000]).await;
    assert!(client.closed().await.is_empty());

    let mut client = Connected::new(fixture::options()).await;
    let payload = bson::Binary {
        subtype: bson::spec::BinarySubtype::Generic,
        bytes: format!("\0localhost\0{}", fixture::KEY).into_bytes(),
    };
    let start = rawdoc! { "saslStart": 1, "mechanism": "PLAIN", "payload": payload, "$db": "$external" };
    client.send(&request(1, 0, &start)).await;
    assert_eq!(client.receive().await.body.get_bool("done").ok(), Some(true));
    client.send(&request(2, 0, &long)).await;
    assert_eq!(client.receive().await.body.get_f64("ok").ok(), Some(1.0));
}

#[tokio::test]
async fn a_connection_ends_after_many_failed_authentications() {
    let mut client = Connected::new(fixture::options()).await;
    let payload = bson::Binary {
        subtype: bson::spec::BinarySubtype::Generic,
        bytes: b"\0localhost\0wrong".to_vec(),
    };
    let start = rawdoc! { "saslStart": 1, "mechanism": "PLAIN", "payload": payload, "$db": "$external" };
    for _ in 0..limits::FAILED_AUTHENTICATIONS {
        client.send(&request(1, 0, &start)).await;
        assert_eq!(client.receive().await.body.get_i32("code").ok(), Some(18));
    }
    assert!(client.closed().await.is_empty());
}

#[tokio::test]
async fn compressed_requests_get_compressed_replies() {
    for compressor in [Compressor::Snappy, Compressor::Zlib, Compressor::Zstd] {
        let mut client = Connected::open().await;
        let list = rawdoc! { "listCommands": 1, "$db": "admin", "comment": "x".repeat(1000) };
        let bytes = compressor.compress(&request(1, 0, &list)).expect("shorter");
        client.send(&bytes).await;
        let reply = client.receive_bytes().await;
        let header = Header::parse(&reply, 1 << 30).expect("well formed");
        assert_eq!((header.op_code, header.response_to), (2012, 1), "{compressor:?}");
        let reply = Compressed::parse(header, reply.into(), 1 << 30).expect("well formed");
        assert_eq!(reply.compressor, compressor);
        let (_, reply) = reply.decompress().expect("well formed");
        let body = RawDocument::from_bytes(&reply[21..]).expect("a document");
        assert!(body.get_document("commands").is_ok());
        // A small reply is not compressed.
        let small = rawdoc! { "ping": 1, "$db": "admin", "comment": "x".repeat(1000) };
        let bytes = compressor.compress(&request(2, 0, &small)).expect("shorter");
        client.send(&bytes).await;
        assert_eq!(client.receive().await.header.response_to, 2);
    }
}

/// A hello in the old form.
fn query(command: &RawDocument) -> Vec<u8> {
    let content = [
        &0_i32.to_le_bytes()[..],
        b"admin.$cmd\0",
        &0_i32.to_le_bytes(),
        &(-1_i32).to_le_bytes(),
    ]
    .concat();
    let mut bytes = Vec::new();
    let header = Header {
        length: Header::BYTES + content.len() + command.as_bytes().len(),
        request_id: 3,
        response_to: 0,
        op_code: 2004,
    };
    header.write(&mut bytes);
    bytes.extend_from_slice(&content);
    bytes.extend_from_slice(command.as_bytes());
    bytes
}

#[tokio::test]
async fn only_hello_and_authentication_may_have_the_old_form() {
    let mut client = Connected::new(fixture::options()).await;
    let mut ask = async |command: RawDocumentBuf| {
        client.send(&query(&command)).await;
        let reply = client.receive_bytes().await;
        let header = Header::parse(&reply, 1 << 30).expect("well formed");
        assert_eq!((header.op_code, header.response_to), (1, 3));
        RawDocumentBuf::from_bytes(reply[36..].to_vec()).expect("a document")
    };
    let reply = ask(rawdoc! { "ismaster": 1, "helloOk": true, "compression": ["none"] }).await;
    assert_eq!(reply.get_bool("ismaster").ok(), Some(true));
    let reply = ask(rawdoc! { "hello": 1 }).await;
    assert_eq!(reply.get_bool("isWritablePrimary").ok(), Some(true));
    let proceed = rawdoc! { "saslContinue": 1, "conversationId": 1, "payload": "" };
    assert_eq!(ask(proceed).await.get_i32("code").ok(), Some(17));
    for command in [rawdoc! { "ping": 1 }, rawdoc! { "nonsense": 1 }, rawdoc! {}] {
        assert_eq!(ask(command).await.get_i32("code").ok(), Some(352));
    }
}

/// Lets other tasks run until they wait.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_awaitable_hello_is_answered_again_and_again() {
    let clock = Monotonic::manual();
    let mut client = Connected::at(fixture::options(), clock.clone()).await;
    let version = client.state.topology_version().to_document();
    let hello = rawdoc! { "hello": 1, "$db": "admin", "topologyVersion": version, "maxAwaitTimeMS": 10_000 };
    client.send(&request(7, EXHAUST_ALLOWED, &hello)).await;
    let mut previous = 7;
    for _ in 0..3 {
        settle().await;
        clock.advance(Duration::from_secs(10));
        let reply = client.receive().await;
        assert_eq!((reply.header.response_to, reply.flags), (previous, MORE_TO_COME));
        assert_eq!(reply.body.get_f64("ok").ok(), Some(1.0));
        previous = reply.header.request_id;
    }
    settle().await;
    client.state.stop();
    let last = client.receive().await;
    assert_eq!((last.header.response_to, last.flags), (previous, 0));
    assert_eq!(last.body.get_i32("code").ok(), Some(91));
    assert!(client.closed().await.is_empty());
}

#[tokio::test]
async fn an_awaitable_hello_without_the_flag_is_answered_once() {
    let clock = Monotonic::manual();
    let mut client = Connected::at(fixture::options(), clock.clone()).await;
    let version = client.state.topology_version().to_document();
    let hello = rawdoc! { "hello": 1, "$db": "admin", "topologyVersion": version, "maxAwaitTimeMS": 10_000 };
    client.send(&request(7, 0, &hello)).await;
    settle().await;
    clock.advance(Duration::from_secs(10));
    assert_eq!(client.receive().await.flags, 0);
    client.send(&request(8, 0, &ping())).await;
    assert_eq!(client.receive().await.header.response_to, 8);
}

#[tokio::test]
async fn a_hello_ends_when_its_client_leaves() {
    let clock = Monotonic::manual();
    let mut client = Connected::at(fixture::options(), clock).await;
    let version = client.state.topology_version().to_document();
    let hello = rawdoc! { "hello": 1, "$db": "admin", "topologyVersion": version, "maxAwaitTimeMS": 10_000 };
    client.send(&request(7, EXHAUST_ALLOWED, &hello)).await;
    settle().await;
    drop(client.stream);
    client.serving.await.expect("no panic");
    assert!(client.state.operations.all().is_empty());
}

#[tokio::test]
async fn a_stopping_server_closes_idle_connections_and_refuses_new_commands() {
    let mut client = Connected::open().await;
    client.send(&request(1, 0, &ping())).await;
    client.receive().await;
    client.state.stop();
    assert!(client.closed().await.is_empty());

    let mut client = Connected::open().await;
    let bytes = request(1, 0, &ping());
    client.send(&bytes[..20]).await;
    settle().await;
    client.state.stop();
    settle().await;
    client.send(&bytes[20..]).await;
    assert_eq!(code(&client.closed().await), 91);
}

#[tokio::test]
async fn slow_clients_are_disconnected() {
    let bytes = request(1, 0, &ping());
    // Nothing, a part of a header, a part of a message: each within 10 seconds after the connection was opened.
    for sent in [0, 5, 30] {
        let clock = Monotonic::manual();
        let mut client = Connected::at(fixture::options(), clock.clone()).await;
        client.send(&bytes[..sent]).await;
        settle().await;
        clock.advance(limits::FIRST_MESSAGE - Duration::from_millis(1));
        settle().await;
        assert!(!client.serving.is_finished(), "{sent}");
        clock.advance(Duration::from_millis(1));
        assert!(client.closed().await.is_empty(), "{sent}");
    }
    // Later messages have the timeouts of requests, and connections may be idle for long.
    for (sent, limit) in [(0, TIMEOUTS.idle), (5, TIMEOUTS.request), (30, TIMEOUTS.request)] {
        let clock = Monotonic::manual();
        let mut client = Connected::at(fixture::options(), clock.clone()).await;
        client.send(&bytes).await;
        client.receive().await;
        client.send(&bytes[..sent]).await;
        settle().await;
        clock.advance(limit - Duration::from_millis(1));
        settle().await;
        assert!(!client.serving.is_finished(), "{sent}");
        clock.advance(Duration::from_millis(1));
        assert!(client.closed().await.is_empty(), "{sent}");
    }
}

#[tokio::test]
async fn a_message_for_which_there_is_no_memory_is_read_over_and_refused() {
    let options = MongoOptions {
        requires_authentication: false,
        ..fixture::options()
    };
    let account_options = bolide_core::AccountOptions {
        memory_bytes: 1024 * 1024,
        ..bolide_core::AccountOptions::default()
    };
    let mut client = Connected::to(fixture::state_with(options, account_options).await);
    let long = rawdoc! { "ping": 1, "$db": "admin", "comment": "x".repeat(2 * 1024 * 1024) };
    client.send(&request(1, 0, &long)).await;
    let refused = client.receive().await;
    assert_eq!(
        (refused.header.response_to, refused.body.get_i32("code").ok()),
        (1, Some(10334))
    );
    client.send(&request(2, MORE_TO_COME, &long)).await;
    client.send(&request(3, 0, &ping())).await;
    assert_eq!(client.receive().await.header.response_to, 3);
}

#[tokio::test]
async fn a_fail_point_closes_the_connection() {
    let mut client = Connected::open().await;
    let data = rawdoc! { "failCommands": ["ping"], "closeConnection": true };
    let set = rawdoc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data, "$db": "admin" };
    client.send(&request(1, 0, &set)).await;
    client.receive().await;
    client.send(&request(2, 0, &ping())).await;
    assert!(client.closed().await.is_empty());
}

#[tokio::test]
async fn a_compression_bomb_ends_the_connection() {
    // 60 KiB that say they are 48 MB, before authentication.
    let mut bytes = Vec::new();
    let header = Header {
        length: 25 + 1000,
        request_id: 1,
        response_to: 0,
        op_code: 2012,
    };
    header.write(&mut bytes);
    bytes.extend_from_slice(&2013_i32.to_le_bytes());
    bytes.extend_from_slice(&48_000_000_i32.to_le_bytes());
    bytes.push(2);
    bytes.extend_from_slice(&[0; 1000]);
    let mut client = Connected::new(fixture::options()).await;
    client.send(&bytes).await;
    assert_eq!(code(&client.closed().await), 17);
}
