//! Messages that no driver sends, to the MongoDB listener: the connection gets an error or is closed, and the server serves others.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use bson::raw::cstr;
use bson::{RawArrayBuf, RawBson, RawDocument, RawDocumentBuf, rawdoc};

use crate::mongo::port;
use crate::mongo_client::{MongoClient, message, op_msg};
use crate::server::Server;

const MIB: usize = 1024 * 1024;
const OP_MSG: i32 = 2013;
const OP_COMPRESSED: i32 = 2012;
/// `maxMessageSizeBytes`, and what is accepted above it.
const MESSAGE_BYTES: usize = 48_000_000 + 16 * 1024;

struct Fixture {
    server: Server,
    /// A connection that must be served whatever others send.
    healthy: MongoClient,
}

fn started(arguments: &[&str]) -> Fixture {
    let server = Server::in_memory(&[&["--mongo-no-auth"], arguments].concat());
    let mut healthy = MongoClient::connect(port(&server)).expect("it listens");
    let insert = rawdoc! { "insert": "c", "documents": [{ "_id": 1, "a": [1, 2] }], "$db": "db" };
    assert_eq!(code(&healthy.run(&insert).expect("a reply")), 0);
    Fixture { server, healthy }
}

impl Fixture {
    fn port(&self) -> u16 {
        port(&self.server)
    }

    fn connect(&self) -> MongoClient {
        MongoClient::connect(self.port()).expect("it listens")
    }

    /// A connection that has sent its first message, for which there is less time, and is counted.
    fn admitted(&self) -> MongoClient {
        let mut client = self.connect();
        client.run(&ping()).expect("a reply");
        client
    }

    /// Sends bytes and closes the sending half; the server must end the connection. Returns what it answered.
    #[track_caller]
    fn ends(&mut self, what: &str, bytes: &[u8]) -> Vec<u8> {
        let mut client = self.connect();
        // The server may close before it has read everything.
        let _ = client.send_bytes(bytes);
        let _ = client.stream().shutdown(Shutdown::Write);
        let answer = rest(client.stream(), what);
        self.still_serves(what);
        answer
    }

    /// Sends a command that must be refused with an error; the connection goes on.
    #[track_caller]
    fn refuses(&mut self, what: &str, command: &RawDocumentBuf, expected: &[i32]) {
        let mut client = self.connect();
        let reply = client.run(command).expect("a reply");
        assert!(expected.contains(&code(&reply)), "{what}: {}", brief(&reply));
        let reply = client.run(&ping()).expect("the connection goes on");
        assert_eq!(code(&reply), 0, "{what}");
        self.still_serves(what);
    }

    /// Waits until the server has ended all but this many connections. There is no clock to move in another process.
    fn wait_for_connections(&mut self, most: i64) {
        let status = rawdoc! { "serverStatus": 1, "$db": "admin" };
        for _ in 0..2_000 {
            let reply = self.healthy.run(&status).expect("a reply");
            let connections = reply.get_document("connections").expect("counts");
            if connections.get_i64("current").expect("a count") <= most {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("connections are still open");
    }

    #[track_caller]
    fn still_serves(&mut self, after: &str) {
        let count = rawdoc! { "count": "c", "query": { "a": 2 }, "$db": "db" };
        let reply = self.healthy.run(&count).expect("the other connection goes on");
        assert_eq!(reply.get_i32("n").ok(), Some(1), "after {after}");
        let reply = self.connect().run(&ping()).expect("new connections are served");
        assert_eq!(code(&reply), 0, "after {after}");
    }
}

/// Reads until the server has closed the connection. A timeout is a failure.
#[track_caller]
fn rest(stream: &mut TcpStream, what: &str) -> Vec<u8> {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{what}: {error}"),
    }
    rest
}

fn ping() -> RawDocumentBuf {
    rawdoc! { "ping": 1, "$db": "admin" }
}

/// The code of an error of the command or of its first statement; 0 if there is none.
fn code(reply: &RawDocument) -> i32 {
    if let Ok(errors) = reply.get_array("writeErrors") {
        return errors
            .get_document(0)
            .and_then(|error| error.get_i32("code"))
            .expect("a code");
    }
    reply.get_i32("code").unwrap_or(0)
}

fn brief(reply: &RawDocument) -> String {
    format!("{reply:?}").chars().take(300).collect()
}

fn insert() -> Vec<u8> {
    op_msg(rawdoc! { "insert": "c", "documents": [{ "_id": 9, "s": "text" }], "$db": "db" }.as_bytes())
}

#[test]
fn truncated_messages_end_their_connection() {
    let mut fixture = started(&[]);
    let whole = insert();
    for length in 1..whole.len() {
        let answer = fixture.ends(&format!("the first {length} bytes"), &whole[..length]);
        assert!(answer.is_empty(), "{length}");
    }
    let find = rawdoc! { "count": "c", "query": { "_id": 9 }, "$db": "db" };
    assert_eq!(fixture.healthy.run(&find).expect("a reply").get_i32("n").ok(), Some(0));
}

#[test]
fn lengths_that_lie_end_their_connection() {
    let mut fixture = started(&[]);
    let with = |at: usize, length: i32| {
        let mut bytes = insert();
        bytes[at..at + 4].copy_from_slice(&length.to_le_bytes());
        bytes
    };
    let real = i32::try_from(insert().len()).expect("short");
    for length in [0, 15, 16, 20, 21, real - 1, -1, i32::MIN, i32::MAX, 48_016_385] {
        fixture.ends(&format!("a message of {length}"), &with(0, length));
    }
    for length in [0, 4, 5, real - 22, real - 20, real, -1, i32::MIN, i32::MAX] {
        let answer = fixture.ends(&format!("a document of {length}"), &with(21, length));
        assert!(answer.len() > 21, "a document of {length} gets an error");
    }
    // A document sequence: its size, its name without an end, and documents longer than it.
    let command = rawdoc! { "insert": "c", "$db": "db" };
    for (size, content) in [
        (0, &b"documents\0"[..]),
        (3, b"documents\0"),
        (4, b""),
        (i32::MAX, b"documents\0"),
        (-1, b"documents\0"),
        (13, b"documents"),
        (19, b"documents\0\xff\0\0\0\0"),
        (19, b"documents\0\x04\0\0\0\0"),
    ] {
        let body = [
            &[0, 0, 0, 0, 0],
            command.as_bytes(),
            &[1],
            &i32::to_le_bytes(size),
            content,
        ]
        .concat();
        fixture.ends(&format!("a sequence of {size}"), &message(OP_MSG, &body));
    }
}

#[test]
fn op_codes_that_no_client_sends_end_their_connection() {
    let mut fixture = started(&[]);
    let body = insert()[16..].to_vec();
    for op_code in [
        0,
        1,
        1000,
        2001,
        2002,
        2003,
        2004,
        2005,
        2006,
        2007,
        2010,
        2011,
        2012,
        2014,
        -1,
        i32::MAX,
        i32::MIN,
    ] {
        fixture.ends(&format!("op code {op_code}"), &message(op_code, &body));
    }
}

/// A command whose field `x` has these bytes as its type and value.
fn with_element(element: &[u8]) -> Vec<u8> {
    let (kind, value) = element.split_first().expect("a type");
    let mut fields = rawdoc! { "insert": "c", "$db": "db" }.into_bytes();
    fields.pop();
    fields.push(*kind);
    fields.extend_from_slice(b"x\0");
    fields.extend_from_slice(value);
    fields.push(0);
    let length = i32::try_from(fields.len()).expect("short");
    fields[..4].copy_from_slice(&length.to_le_bytes());
    op_msg(&fields)
}

#[test]
fn invalid_bson_gets_an_error() {
    let mut fixture = started(&[]);
    for (what, element) in [
        ("an unknown type", &[0x14, 0, 0][..]),
        ("a type of 0", &[0, 0]),
        ("a string without its length", &[2]),
        ("a string of length 0", &[2, 0, 0, 0, 0]),
        ("a negative string", &[2, 0xff, 0xff, 0xff, 0xff, b'a', 0]),
        ("a string longer than the document", &[2, 0xff, 0xff, 0, 0, b'a', 0]),
        ("a string without end", &[2, 2, 0, 0, 0, b'a', b'b']),
        ("a string that is not UTF-8", &[2, 2, 0, 0, 0, 0xff, 0]),
        ("half a double", &[1, 0, 0, 0]),
        ("a boolean of 2", &[8, 2]),
        ("a document of 4 bytes", &[3, 4, 0, 0, 0]),
        ("a document without end", &[3, 5, 0, 0, 0, 1]),
        ("a document longer than its parent", &[3, 0xff, 0, 0, 0, 0]),
        ("an array with a negative length", &[4, 0xfe, 0xff, 0xff, 0xff, 0]),
        ("a binary longer than the document", &[5, 0xff, 0, 0, 0, 0]),
        ("a negative binary", &[5, 0xff, 0xff, 0xff, 0xff, 0]),
        ("a regular expression without end", &[0x0b, b'a', 0, b'i']),
        (
            "code with a scope of a wrong length",
            &[0x0f, 20, 0, 0, 0, 2, 0, 0, 0, b'a', 0, 5, 0, 0, 0, 0],
        ),
        ("a decimal of 8 bytes", &[0x13, 0, 0, 0, 0, 0, 0, 0, 0]),
    ] {
        let answer = fixture.ends(what, &with_element(element));
        let reply = RawDocument::from_bytes(answer.get(21..).unwrap_or_default());
        let reply = reply.unwrap_or_else(|_| panic!("{what}: no reply but {answer:?}"));
        assert_ne!(code(reply), 0, "{what}: {reply:?}");
    }
}

/// OP_COMPRESSED with a stated size, whatever is in it.
fn compressed(size: i32, compressor: u8, content: &[u8]) -> Vec<u8> {
    message(
        OP_COMPRESSED,
        &[&OP_MSG.to_le_bytes(), &size.to_le_bytes(), &[compressor][..], content].concat(),
    )
}

#[test]
fn compression_bombs_do_not_become_large() {
    let mut fixture = started(&["--memory-limit", "256"]);
    let zeros = vec![0; 40_000_000];
    let snappy = snap::raw::Encoder::new().compress_vec(&zeros).expect("compressed");
    let zlib = {
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&zeros).expect("compressed");
        encoder.finish().expect("compressed")
    };
    let zstd = zstd::bulk::compress(&zeros, 1).expect("compressed");
    for (compressor, content) in [(1, &snappy), (2, &zlib), (3, &zstd)] {
        for size in [1, 100, 40_000_000, 47_000_000, 48_100_000, i32::MAX, -1] {
            fixture.ends(
                &format!("compressor {compressor}, size {size}"),
                &compressed(size, compressor, content),
            );
        }
        fixture.ends(
            "half of it",
            &compressed(40_000_000, compressor, &content[..content.len() / 2]),
        );
    }
    for compressor in [0, 4, 255] {
        fixture.ends("nothing", &compressed(100, compressor, &[]));
    }
    // A compressed message in a compressed message.
    let inner = compressed(100, 0, &[0; 100]);
    let outer = message(
        OP_COMPRESSED,
        &[
            &OP_COMPRESSED.to_le_bytes()[..],
            &200_i32.to_le_bytes(),
            &[0],
            &inner[16..],
        ]
        .concat(),
    );
    fixture.ends("two layers", &outer);
}

/// A document of exactly this size.
fn document_of(bytes: usize) -> RawDocumentBuf {
    let empty = rawdoc! { "_id": "big", "s": "" }.as_bytes().len();
    rawdoc! { "_id": "big", "s": "x".repeat(bytes - empty) }
}

#[test]
fn the_largest_document_is_stored_and_a_byte_more_is_refused() {
    let mut fixture = started(&[]);
    let insert = |document: RawDocumentBuf| rawdoc! { "insert": "big", "documents": [document], "$db": "db" };
    fixture.refuses("16 MiB and a byte", &insert(document_of(16 * MIB + 1)), &[2, 10334]);
    let reply = fixture.healthy.run(&insert(document_of(16 * MIB))).expect("a reply");
    assert_eq!(
        (reply.get_i32("n").ok(), code(&reply)),
        (Some(1), 0),
        "{}",
        brief(&reply)
    );
    // An update that makes it too large.
    let grow = rawdoc! { "q": {}, "u": { "$set": { "more": 1 } } };
    fixture.refuses(
        "growth",
        &rawdoc! { "update": "big", "updates": [grow], "$db": "db" },
        &[2, 10334, 17419],
    );
}

#[test]
fn messages_over_the_limit_end_their_connection() {
    let mut fixture = started(&[]);
    let head = |length: usize| {
        let mut bytes = i32::try_from(length).expect("in range").to_le_bytes().to_vec();
        bytes.extend_from_slice(&insert()[4..16]);
        bytes
    };
    fixture.ends("a message that is too large", &head(MESSAGE_BYTES + 1));
    fixture.ends("a large message that never comes", &head(MESSAGE_BYTES));
}

fn aggregate(pipeline: RawArrayBuf) -> RawDocumentBuf {
    rawdoc! { "aggregate": "c", "pipeline": pipeline, "cursor": {}, "$db": "db" }
}

#[test]
fn long_pipelines_and_filters_are_refused_or_run() {
    let mut fixture = started(&[]);
    let mut pipeline = RawArrayBuf::new();
    (0..100_000).for_each(|_| pipeline.push(rawdoc! { "$match": { "a": 1 } }));
    fixture.refuses("100,000 stages", &aggregate(pipeline), &[16389, 7_749_501]);
    // `$facet` and `$lookup` count the stages of their pipelines.
    let mut inner = RawArrayBuf::new();
    (0..100_000).for_each(|_| inner.push(rawdoc! { "$skip": 1 }));
    let mut facet = RawArrayBuf::new();
    facet.push(rawdoc! { "$facet": { "a": inner } });
    fixture.refuses("100,000 stages in a facet", &aggregate(facet), &[16389, 7_749_501]);
    let mut update = RawArrayBuf::new();
    (0..100_000).for_each(|_| update.push(rawdoc! { "$set": { "b": 1 } }));
    let statement = rawdoc! { "q": { "_id": 1 }, "u": update };
    let reply = fixture
        .healthy
        .run(&rawdoc! { "update": "c", "updates": [statement], "$db": "db" })
        .expect("a reply");
    assert_ne!(code(&reply), 0, "{}", brief(&reply));
    let mut branches = RawArrayBuf::new();
    (0..100_000).for_each(|n| branches.push(rawdoc! { "a": n }));
    let find = rawdoc! { "find": "c", "filter": { "$or": branches }, "$db": "db" };
    let reply = fixture.healthy.run(&find).expect("a reply");
    assert!(reply.get_f64("ok").is_ok(), "{}", brief(&reply));
    fixture.still_serves("long filters");
}

/// `levels` documents in each other, under a field that starts with `name` and goes on with `inner`.
fn nested(levels: usize, name: &str, inner: &RawBson) -> RawDocumentBuf {
    let name = <&bson::raw::CStr>::try_from(name).expect("a name");
    let mut value = inner.clone();
    for _ in 0..levels {
        let mut document = RawDocumentBuf::new();
        document.append(name, value);
        value = RawBson::Document(document);
    }
    let RawBson::Document(document) = value else {
        panic!("at least one level");
    };
    document
}

#[test]
fn deep_nesting_is_refused() {
    let mut fixture = started(&[]);
    for levels in [200, 2_000, 100_000] {
        let deep = nested(levels, "a", &RawBson::Int32(1));
        let not = nested(levels, "$not", &RawBson::Boolean(true));
        let mut and = RawBson::Document(rawdoc! { "a": 1 });
        for _ in 0..levels.min(2_000) {
            let mut branches = RawArrayBuf::new();
            branches.push(and);
            and = RawBson::Document(rawdoc! { "$and": branches });
        }
        let statement = rawdoc! { "q": { "_id": 1 }, "u": { "$set": { "b": deep.clone() } } };
        let mut pipeline = RawArrayBuf::new();
        pipeline.push(rawdoc! { "$project": { "b": not.clone() } });
        for (what, command) in [
            (
                "a document",
                rawdoc! { "insert": "c", "documents": [{ "_id": 2, "b": deep.clone() }], "$db": "db" },
            ),
            ("a filter", rawdoc! { "find": "c", "filter": { "a": not }, "$db": "db" }),
            ("branches", rawdoc! { "find": "c", "filter": and, "$db": "db" }),
            (
                "an update",
                rawdoc! { "update": "c", "updates": [statement], "$db": "db" },
            ),
            ("an expression", aggregate(pipeline)),
        ] {
            let mut client = fixture.connect();
            let what = format!("{what} of {levels} levels");
            // Very deep documents are no valid messages, and end the connection.
            if let Ok(reply) = client.run(&command) {
                assert_ne!(code(&reply), 0, "{what}: {}", brief(&reply));
            }
            fixture.still_serves(&what);
        }
    }
}

#[test]
fn slow_and_half_open_connections_end_and_disturb_nobody() {
    let mut fixture = started(&["--request-timeout", "1"]);
    let whole = insert();
    let mut slow: Vec<MongoClient> = (0..50).map(|_| fixture.admitted()).collect();
    for (at, client) in slow.iter_mut().enumerate() {
        client
            .send_bytes(&whole[..1 + at % (whole.len() - 1)])
            .expect("it reads");
    }
    fixture.still_serves("half of many messages");
    for client in &mut slow {
        assert!(rest(client.stream(), "a half message").is_empty());
    }
    fixture.still_serves("slow clients");
}

#[test]
fn clients_that_do_not_take_their_replies_are_disconnected() {
    let mut fixture = started(&["--request-timeout", "1"]);
    let text = "x".repeat(MIB);
    let documents = (0..12).map(|id| rawdoc! { "_id": id, "s": text.as_str() });
    for document in documents {
        let insert = rawdoc! { "insert": "large", "documents": [document], "$db": "db" };
        assert_eq!(code(&fixture.healthy.run(&insert).expect("a reply")), 0);
    }
    let find = rawdoc! { "find": "large", "$db": "db" };
    let mut greedy: Vec<MongoClient> = (0..8).map(|_| fixture.admitted()).collect();
    for client in &mut greedy {
        client
            .stream()
            .set_write_timeout(Some(Duration::from_secs(20)))
            .expect("a timeout");
        for _ in 0..10 {
            // The server may have ended the connection already.
            let _ = client.send(&find);
        }
    }
    fixture.still_serves("unread replies");
    fixture.wait_for_connections(1);
    for client in &mut greedy {
        // What was on its way already, and then the end.
        let taken = rest(client.stream(), "unread replies").len();
        assert!(taken < 10 * 12 * MIB, "{taken}");
    }
}

#[test]
fn many_connections_before_authentication_leave_room_for_clients_with_a_key() {
    let server = Server::in_memory(&["--max-connections", "30"]);
    let mut client = MongoClient::connect(port(&server)).expect("it listens");
    assert_eq!(code(&client.run(&ping()).expect("a reply")), 0);
    let hello = op_msg(rawdoc! { "hello": 1, "$db": "admin" }.as_bytes());
    let held: Vec<TcpStream> = (0..300)
        .map(|at| {
            let mut stream = TcpStream::connect(("127.0.0.1", port(&server))).expect("it listens");
            // Nothing, a part of a first message, or a whole one without reading the reply.
            let _ = stream.write_all(&hello[..[0, 10, hello.len()][at % 3]]);
            stream
        })
        .collect();
    for _ in 0..20 {
        let mut new = MongoClient::connect(port(&server)).expect("it listens");
        assert_eq!(code(&new.run(&ping()).expect("a new connection has a place")), 0);
    }
    let mut other = server.client();
    other.send(&crate::client::Request::get("/")).expect(200);
    assert_eq!(held.len(), 300);
}

#[test]
fn bytes_of_other_protocols_end_their_connection() {
    let mut fixture = started(&["--request-timeout", "2"]);
    let mut oversized = vec![0x16, 3, 1, 0xff, 0xff];
    oversized.extend_from_slice(&[0; 100]);
    for (what, bytes) in [
        ("HTTP", &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..]),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("SSH", b"SSH-2.0-OpenSSH_9.6\r\n"),
        ("TLS of a wrong length", &oversized),
        ("a first byte of TLS", &[0x16]),
        ("zeros", &[0; 64]),
        ("ones", &[0xff; 64]),
    ] {
        fixture.ends(what, bytes);
    }
}

#[test]
fn arguments_of_wrong_types_are_refused() {
    let mut fixture = started(&[]);
    let mut wrong = RawDocumentBuf::new();
    wrong.append(cstr!("find"), "c");
    wrong.append(cstr!("filter"), 5);
    wrong.append(cstr!("$db"), "db");
    fixture.refuses("a number as filter", &wrong, &[14]);
    fixture.refuses(
        "a number as pipeline",
        &rawdoc! { "aggregate": "c", "pipeline": 5, "cursor": {}, "$db": "db" },
        &[14],
    );
    fixture.refuses("no database", &rawdoc! { "ping": 1 }, &[40571]);
    fixture.refuses("no command", &rawdoc! {}, &[59, 40571]);
    fixture.refuses("a database with a dot", &rawdoc! { "ping": 1, "$db": "a.b" }, &[73]);
}
