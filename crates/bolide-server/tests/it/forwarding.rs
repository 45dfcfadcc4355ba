//! Writes that one server lets another one commit, because both write a partition.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_model::account_key::WELL_KNOWN_KEY;
use bolide_model::time::wall_clock;
use bolide_postgres_server::Database;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use crate::client::{Client, Request, Response, create_container};
use crate::server::Server;

/// Longest time until servers know that both write.
const PATIENCE: Duration = Duration::from_secs(30);

fn on(database: &Database, arguments: &[&str]) -> Server {
    Server::with_environment(&[("BOLIDE_STORE", &database.address())], arguments)
}

fn create(client: &mut Client, id: &str) -> Response {
    let body = format!(r#"{{"id":"{id}","pk":"p"}}"#);
    client.send(&Request::post("/dbs/d/colls/c/docs", body).pk())
}

fn read(client: &mut Client, id: &str) -> u16 {
    let response = client.send(&Request::get(&format!("/dbs/d/colls/c/docs/{id}")).pk());
    response.status
}

/// The forwarded writes of a server with an outcome.
fn forwarded(client: &mut Client, outcome: &str) -> u64 {
    let metrics = client.send(&Request::get("/_bolide/metrics")).expect(200).text();
    let name = format!(r#"bolide_forwarded_writes_total{{outcome="{outcome}"}} "#);
    let value = metrics.lines().find_map(|line| line.strip_prefix(&name));
    value.map_or(0, |value| value.parse().expect("a number"))
}

/// Lets both servers write until one of them forwards. Returns that one and the owner of the partition. The first items are `0-0` of one and `1-0` of the other.
fn contend(servers: [Server; 2]) -> [Server; 2] {
    let is_over = AtomicBool::new(false);
    let (is_over, servers_of) = (&is_over, &servers);
    let writer = |number: usize| {
        let mut client = servers_of[number].client();
        let mut count = 0;
        while !is_over.load(Ordering::Relaxed) {
            create(&mut client, &format!("{number}-{count}")).expect(201);
            count += 1;
        }
    };
    let forwarding = thread::scope(|scope| {
        for number in [0, 1] {
            scope.spawn(move || writer(number));
        }
        let mut clients = [servers[0].client(), servers[1].client()];
        let started = Instant::now();
        let forwarding = loop {
            let found = clients.iter_mut().position(|client| forwarded(client, "answered") > 20);
            if found.is_some() || started.elapsed() > PATIENCE {
                break found;
            }
            thread::sleep(Duration::from_millis(20));
        };
        is_over.store(true, Ordering::Relaxed);
        forwarding
    });
    let [first, second] = servers;
    match forwarding.expect("one of them forwards") {
        0 => [first, second],
        _ => [second, first],
    }
}

fn names_of(response: &Response) -> Vec<&str> {
    let mut names = response.header_names();
    names.sort_unstable();
    names
}

#[test]
fn servers_that_write_one_partition_let_its_owner_commit() {
    let database = Database::create().expect("PostgreSQL is installed");
    let (first, second) = (on(&database, &[]), on(&database, &[]));
    create_container(&mut first.client());
    let [other, owner] = contend([first, second]);
    assert_eq!(forwarded(&mut owner.client(), "answered"), 0, "it owns the partition");
    let (mut here, mut there) = (other.client(), owner.client());
    for id in ["0-0", "1-0"] {
        assert_eq!((read(&mut here, id), read(&mut there, id)), (200, 200));
    }

    // Clients cannot tell.
    let before = forwarded(&mut here, "answered");
    let by_other = create(&mut here, "x").expect(201);
    assert_eq!(forwarded(&mut here, "answered"), before + 1);
    let by_owner = create(&mut there, "y").expect(201);
    assert_eq!(names_of(&by_other), names_of(&by_owner));
    let item = by_other.json();
    assert_eq!(by_other.header("etag"), item["_etag"].as_str());
    create(&mut here, "x").expect_error(409);
    let replace = |etag: &str| {
        let replace = Request::put("/dbs/d/colls/c/docs/x", r#"{"id":"x","pk":"p","n":1}"#);
        replace.pk().header("if-match", etag)
    };
    let etag = item["_etag"].as_str().expect("an etag");
    let replaced = here.send(&replace(etag).header("x-ms-activity-id", "11111111-2222-3333-4444-555555555555"));
    let replaced = replaced.expect(200);
    assert_eq!(
        replaced.header("x-ms-activity-id"),
        Some("11111111-2222-3333-4444-555555555555")
    );
    here.send(&replace(etag)).expect_error(412);
    here.send(&Request::new("DELETE", "/dbs/d/colls/c/docs/x").pk())
        .expect(204);
    assert_eq!((read(&mut here, "x"), read(&mut there, "x")), (404, 404));
    here.send(&Request::new("DELETE", "/dbs/d/colls/c/docs/x").pk())
        .expect_error(404);
    assert_eq!(forwarded(&mut here, "answered"), before + 6);

    // What may have a large answer, or is large, stays here.
    let batch =
        r#"[{"operationType":"Create","resourceBody":{"id":"z","pk":"p"}},{"operationType":"Delete","id":"z"}]"#;
    let batch = Request::post("/dbs/d/colls/c/docs", batch).pk();
    let batch = batch.header("x-ms-cosmos-is-batch-request", "True");
    here.send(&batch.header("x-ms-cosmos-batch-atomic", "True")).expect(200);
    let patch = r#"{"operations":[{"op":"set","path":"/n","value":1}]}"#;
    let patch = Request::new("PATCH", "/dbs/d/colls/c/docs/y").body(patch).pk();
    here.send(&patch).expect(200);
    let large = format!(r#"{{"id":"large","pk":"p","text":"{}"}}"#, "x".repeat(70_000));
    here.send(&Request::post("/dbs/d/colls/c/docs", large).pk()).expect(201);
    assert_eq!(forwarded(&mut here, "answered"), before + 6);
}

#[test]
fn a_server_that_is_told_so_commits_all_that_it_gets() {
    let database = Database::create().expect("PostgreSQL is installed");
    let (first, second) = (on(&database, &["--no-forwarding"]), on(&database, &["--no-forwarding"]));
    create_container(&mut first.client());
    thread::scope(|scope| {
        for (number, server) in [&first, &second].into_iter().enumerate() {
            scope.spawn(move || {
                let mut client = server.client();
                for count in 0..50 {
                    create(&mut client, &format!("{number}-{count}")).expect(201);
                }
            });
        }
    });
    for server in [&first, &second] {
        let metrics = server
            .client()
            .send(&Request::get("/_bolide/metrics"))
            .expect(200)
            .text();
        assert!(!metrics.contains("bolide_forwarded_writes_total"), "{metrics}");
    }
}

/// What four clients of a server get for creates until a while after the end of another one, which `end` waits for.
fn written_until(server: &Server, end: impl FnOnce()) -> Vec<(u16, String)> {
    let has_ended = AtomicBool::new(false);
    let has_ended = &has_ended;
    let write = |number: usize| {
        let mut client = server.client();
        let (mut answers, mut left) = (Vec::new(), 20);
        while left > 0 {
            left -= u32::from(has_ended.load(Ordering::Relaxed));
            let id = format!("w{number}-{}", answers.len());
            answers.push((create(&mut client, &id).status, id));
        }
        answers
    };
    thread::scope(|scope| {
        let writers: Vec<_> = (0..4).map(|number| scope.spawn(move || write(number))).collect();
        thread::sleep(Duration::from_millis(100));
        end();
        has_ended.store(true, Ordering::Relaxed);
        let ended = writers.into_iter().map(|writer| writer.join().expect("it ends"));
        ended.flatten().collect()
    })
}

/// A write that was sent to a server that has died may have been committed. No other one is in doubt, and none waits for long.
#[test]
fn writes_go_on_where_they_arrive_when_the_owner_has_died() {
    let database = Database::create().expect("PostgreSQL is installed");
    let (first, second) = (on(&database, &[]), on(&database, &[]));
    create_container(&mut first.client());
    let [other, owner] = contend([first, second]);
    // It is killed.
    let answers = written_until(&other, || drop(owner));
    let mut client = other.client();
    let doubtful = answers.iter().filter(|(status, _)| *status == 408).count();
    assert!(doubtful <= 4, "each writer has one under way: {doubtful}");
    for (status, id) in answers.iter().filter(|(status, _)| *status != 408) {
        assert_eq!(*status, 201, "{id}");
        assert_eq!(read(&mut client, id), 200, "{id}");
    }
}

/// Once its clients have gone, the owner writes nothing any more, and the other server commits again what it gets.
#[test]
fn a_server_that_writes_alone_commits_all_that_it_gets() {
    let database = Database::create().expect("PostgreSQL is installed");
    let (first, second) = (on(&database, &[]), on(&database, &[]));
    create_container(&mut first.client());
    let [other, _owner] = contend([first, second]);
    let mut client = other.client();
    let started = Instant::now();
    let mut count = 0;
    while started.elapsed() < PATIENCE {
        let before = forwarded(&mut client, "answered");
        for _ in 0..100 {
            create(&mut client, &format!("alone-{count}")).expect(201);
            count += 1;
        }
        if forwarded(&mut client, "answered") == before {
            return;
        }
    }
    panic!("it still forwards after {count} writes");
}

/// Unlike one that is killed.
#[test]
fn a_server_that_is_told_to_stop_leaves_no_write_in_doubt() {
    let database = Database::create().expect("PostgreSQL is installed");
    let (first, second) = (on(&database, &[]), on(&database, &[]));
    create_container(&mut first.client());
    let [other, mut owner] = contend([first, second]);
    let before = forwarded(&mut other.client(), "answered");
    let answers = written_until(&other, || {
        owner.stop();
    });
    let mut client = other.client();
    assert!(forwarded(&mut client, "answered") > before, "some were sent to it");
    assert_eq!(forwarded(&mut client, "unknown"), 0);
    for (status, id) in answers {
        assert_eq!((status, read(&mut client, &id)), (201, 200), "{id}");
    }
}

/// A connection on which a server sends requests, as `bolide_cosmos::forwarding` describes its frames.
struct PeerConnection {
    stream: TcpStream,
    number: u64,
}

impl PeerConnection {
    fn send(&mut self, request: &Request) -> (u16, String) {
        self.number += 1;
        let bytes = request.to_bytes();
        let end = bytes.windows(4).position(|end| end == b"\r\n\r\n").expect("a head");
        let head = str::from_utf8(&bytes[..end]).expect("ASCII");
        let (line, headers) = head.split_once("\r\n").expect("headers");
        let line: Vec<&str> = line.split(' ').collect();
        let headers: Vec<_> = headers.lines().filter_map(|line| line.split_once(": ")).collect();
        let text = |text: &str| [&(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
        let mut frame = self.number.to_le_bytes().to_vec();
        frame.extend([text(line[0]), text(line[1]), vec![headers.len() as u8]].concat());
        for (name, value) in headers {
            frame.extend([text(name), text(value)].concat());
        }
        frame.extend(&bytes[end + 4..]);
        let length = (frame.len() as u32).to_le_bytes();
        self.stream.write_all(&[&length[..], &frame].concat()).expect("sent");
        self.receive()
    }

    /// Status and body of a response.
    fn receive(&mut self) -> (u16, String) {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).expect("a frame");
        let mut frame = vec![0; u32::from_le_bytes(length) as usize];
        self.stream.read_exact(&mut frame).expect("a frame");
        assert_eq!(frame[..8], self.number.to_le_bytes());
        let status = u16::from_le_bytes([frame[8], frame[9]]);
        let mut at = 11;
        for _ in 0..2 * frame[10] {
            at += 2 + usize::from(u16::from_le_bytes([frame[at], frame[at + 1]]));
        }
        (status, String::from_utf8(frame[at..].to_vec()).expect("JSON"))
    }
}

/// The node of the only server of a store.
fn node_of(server: &Server) -> String {
    let cluster = server
        .client()
        .send(&Request::get("/_bolide/cluster"))
        .expect(200)
        .json();
    cluster["nodes"][0]["id"].as_str().expect("an id").to_owned()
}

fn mac(purpose: &str, named: &str) -> String {
    let key = STANDARD.decode(WELL_KNOWN_KEY).expect("a key");
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any key will do");
    mac.update(format!("{purpose}\n{}", named.replace(' ', "\n")).as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

fn opening(mark: &str) -> Request {
    let request = Request::get("/_bolide/forward").unsigned();
    let request = request
        .header("connection", "upgrade")
        .header("upgrade", "bolide-forward");
    request.header("x-bolide-forwarded", mark)
}

/// An opening to a node: its name, the time and a nonce that no other one has.
fn named(node: &str) -> String {
    static NONCES: AtomicU64 = AtomicU64::new(0);
    let nonce = NONCES.fetch_add(1, Ordering::Relaxed);
    format!("{node} {} {nonce}", wall_clock().0 / 1000)
}

fn mark(named: &str) -> String {
    format!("{named} {}", mac("bolide forwards to", named))
}

fn open_to(server: &Server, node: &str) -> PeerConnection {
    let (mut client, named) = (server.client(), named(node));
    let opened = client.send(&opening(&mark(&named))).expect(101);
    assert_eq!(
        opened.header("x-bolide-forwarded"),
        Some(&*mac("bolide receives as", &named))
    );
    PeerConnection {
        stream: client.into_stream(),
        number: 0,
    }
}

#[test]
fn only_servers_of_the_account_open_a_connection_for_requests() {
    let database = Database::create().expect("PostgreSQL is installed");
    let server = on(&database, &[]);
    let node = node_of(&server);
    let named_once = named(&node);
    let stranger = format!("{named_once} {}", mac("bolide receives as", &named_once));
    let old = format!("{node} {} once", wall_clock().0 / 1000 - 3_600);
    for wrong in ["", "x", &node, &format!("{named_once} "), &stranger, &mark(&old)] {
        let refused = server.client().send(&opening(wrong)).expect_error(401);
        assert_eq!(refused.header("x-bolide-forwarded"), None);
    }
    // Whoever has read an opening on its way cannot repeat it.
    server.client().send(&opening(&mark(&named_once))).expect(101);
    server.client().send(&opening(&mark(&named_once))).expect_error(401);
    // The key itself does not help: it would be shown to whoever is there.
    let keyed = Request::get("/_bolide/forward").header("upgrade", "bolide-forward");
    server.client().send(&keyed).expect_error(401);
    server
        .client()
        .send(&opening(&mark(&named("0000000000000000"))))
        .expect_error(421);
    let with_body = opening(&mark(&named(&node))).body("{}");
    server.client().send(&with_body).expect_error(400);
    // Without the upgrade it is no route.
    server
        .client()
        .send(&Request::get("/_bolide/forward"))
        .expect_error(404);
    // A server of its own has no others.
    let alone = Server::in_memory(&[]);
    alone.client().send(&opening(&mark(&named(&node)))).expect_error(421);
}

#[test]
fn other_servers_have_so_many_connections_and_no_more() {
    let database = Database::create().expect("PostgreSQL is installed");
    let server = on(&database, &[]);
    let node = node_of(&server);
    let mut open: Vec<_> = (0..64).map(|_| open_to(&server, &node)).collect();
    let one_more = opening(&mark(&named(&node)));
    server.client().send(&one_more).expect_error(503);
    open.pop();
    let started = Instant::now();
    while server.client().send(&opening(&mark(&named(&node)))).status != 101 {
        assert!(started.elapsed() < PATIENCE, "a connection that has ended still counts");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn each_forwarded_request_is_judged_again() {
    let database = Database::create().expect("PostgreSQL is installed");
    let server = on(&database, &[]);
    let mut client = server.client();
    create_container(&mut client);
    let mut peer = open_to(&server, &node_of(&server));
    let create = |id: &str| Request::post("/dbs/d/colls/c/docs", format!(r#"{{"id":"{id}","pk":"p"}}"#)).pk();
    for (request, status) in [
        (create("a"), 201),
        (create("a"), 409),
        (create("b").unsigned(), 401),
        (create("b").dated(-3_600), 403),
        (Request::get("/dbs/d/colls/c/docs/a").pk(), 200),
        (Request::get("/_bolide/health"), 200),
        (Request::get("/_bolide/metrics").unsigned(), 401),
        // No connection within this one.
        (
            Request::get("/_bolide/forward").header("upgrade", "bolide-forward"),
            404,
        ),
    ] {
        let (answered, body) = peer.send(&request);
        assert_eq!(answered, status, "{body}");
    }
    assert_eq!(["a", "b"].map(|id| read(&mut client, id)), [200, 404]);
    // What is no frame ends the connection.
    peer.stream.write_all(&[0; 4]).expect("sent");
    assert_eq!(peer.stream.read(&mut [0]).expect("it has ended"), 0);
}

/// Java's client asks for HTTP/2 in this way.
#[test]
fn a_client_that_asks_for_another_upgrade_is_answered_as_always() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    for _ in 0..2 {
        let asked = Request::get("/").header("connection", "Upgrade, HTTP2-Settings");
        let asked = asked
            .header("upgrade", "h2c")
            .header("http2-settings", "AAMAAABkAAQAAP__");
        client.send(&asked).expect(200);
    }
}
