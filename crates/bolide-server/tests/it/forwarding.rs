//! Writes that one server lets another one commit, because both write a partition.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_model::account_key::WELL_KNOWN_KEY;
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
    let batch =
        r#"[{"operationType":"Create","resourceBody":{"id":"z","pk":"p"}},{"operationType":"Delete","id":"z"}]"#;
    let batch = Request::post("/dbs/d/colls/c/docs", batch).pk();
    let batch = batch
        .header("x-ms-cosmos-is-batch-request", "True")
        .header("x-ms-cosmos-batch-atomic", "True");
    let done = here.send(&batch).expect(200).json();
    assert_eq!(
        (&done[0]["statusCode"], &done[1]["statusCode"]),
        (&201.into(), &204.into())
    );
    assert_eq!(forwarded(&mut here, "answered"), before + 7);

    // What has no place in a group of small writes stays here.
    let large = format!(r#"{{"id":"large","pk":"p","text":"{}"}}"#, "x".repeat(70_000));
    here.send(&Request::post("/dbs/d/colls/c/docs", large).pk()).expect(201);
    assert_eq!(forwarded(&mut here, "answered"), before + 7);
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

/// A write that was sent to a server that has died may have been committed. No other one is in doubt, and none waits for long.
#[test]
fn writes_go_on_where_they_arrive_when_the_owner_has_died() {
    let database = Database::create().expect("PostgreSQL is installed");
    let (first, second) = (on(&database, &[]), on(&database, &[]));
    create_container(&mut first.client());
    let [other, owner] = contend([first, second]);
    let is_dead = AtomicBool::new(false);
    let answers = thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|number| {
                let (is_dead, other) = (&is_dead, &other);
                scope.spawn(move || {
                    let mut client = other.client();
                    let (mut answers, mut left) = (Vec::new(), 20);
                    while left > 0 {
                        left -= u32::from(is_dead.load(Ordering::Relaxed));
                        let id = format!("w{number}-{}", answers.len());
                        answers.push((create(&mut client, &id).status, id));
                    }
                    answers
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(100));
        // It is killed.
        drop(owner);
        is_dead.store(true, Ordering::Relaxed);
        writers
            .into_iter()
            .flat_map(|writer| writer.join().expect("it ends"))
            .collect::<Vec<_>>()
    });
    let mut client = other.client();
    let doubtful = answers.iter().filter(|(status, _)| *status == 408).count();
    assert!(doubtful <= 4, "each writer has one under way: {doubtful}");
    for (status, id) in answers.iter().filter(|(status, _)| *status != 408) {
        assert_eq!(*status, 201, "{id}");
        assert_eq!(read(&mut client, id), 200, "{id}");
    }
}

/// Who has no key of the account, and what is no write of an item.
#[test]
fn only_servers_forward_and_only_writes_of_items() {
    let database = Database::create().expect("PostgreSQL is installed");
    let server = on(&database, &[]);
    let mut client = server.client();
    create_container(&mut client);
    let cluster = client.send(&Request::get("/_bolide/cluster")).expect(200).json();
    let node = cluster["nodes"][0]["id"].as_str().expect("an id").to_owned();
    let mac = |node: &str| {
        let key = STANDARD.decode(WELL_KNOWN_KEY).expect("a key");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any key will do");
        mac.update(format!("bolide forwards writes to\n{node}").as_bytes());
        format!("type=peer&sig={}", STANDARD.encode(mac.finalize().into_bytes()))
    };
    let post = |node: &str, authorization: &str, body: &[u8]| {
        let post = Request::post(&format!("/_bolide/forwarded-writes/{node}"), body);
        post.header("authorization", authorization)
    };
    for stranger in [
        "",
        "Bearer x",
        &format!("Bearer {WELL_KNOWN_KEY}"),
        &mac("0000000000000000"),
    ] {
        client.send(&post(&node, stranger, b"")).expect_error(401);
    }
    client
        .send(&post("0000000000000000", &mac("0000000000000000"), b""))
        .expect_error(421);
    client.send(&post(&node, &mac(&node), b"")).expect(200);
    let garbage: [&[u8]; 3] = [b"x", &[0xff; 16], &[0, 0, 0, 2, 0, 0, 0, 0, b'\r', b'\n']];
    for garbage in garbage {
        client.send(&post(&node, &mac(&node), garbage)).expect_error(400);
    }
    client
        .send(&Request::get(&format!("/_bolide/forwarded-writes/{node}")))
        .expect_error(404);

    // Inside: each is judged as if its client had sent it here.
    let message = |request: &Request| {
        let bytes = request.to_bytes();
        let end = bytes.windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4;
        let lengths = [end as u32, (bytes.len() - end) as u32];
        [&lengths[0].to_be_bytes()[..], &lengths[1].to_be_bytes(), &bytes].concat()
    };
    let create = |id: &str| Request::post("/dbs/d/colls/c/docs", format!(r#"{{"id":"{id}","pk":"p"}}"#)).pk();
    let inside = [
        (create("a"), "201"),
        (create("a"), "409"),
        (create("b").unsigned(), "401"),
        (create("b").dated(-3_600), "403"),
        (Request::get("/dbs/d/colls/c/docs/a").pk(), "400"),
        (
            Request::post("/dbs/d/colls/c/docs", r#"{"query":"select * from c"}"#).query(),
            "400",
        ),
        (Request::post("/dbs", r#"{"id":"e"}"#), "400"),
        (Request::new("DELETE", "/dbs/d/colls/c"), "400"),
        (Request::get("/_bolide/cluster"), "40"),
        (post(&node, &mac(&node), &message(&create("c"))), "40"),
    ];
    let body: Vec<u8> = inside.iter().flat_map(|(request, _)| message(request)).collect();
    let answered = client.send(&post(&node, &mac(&node), &body)).expect(200).body;
    let mut rest = &answered[..];
    for (request, status) in &inside {
        let length = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().expect("four bytes")) as usize;
        let (head, whole) = (length(0), 8 + length(0) + length(4));
        let head = String::from_utf8_lossy(&rest[8..8 + head]).into_owned();
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{request:?}: {head}");
        rest = &rest[whole..];
    }
    assert!(rest.is_empty());
    assert_eq!(["a", "b", "c"].map(|id| read(&mut client, id)), [200, 404, 404]);
    // More than a server sends.
    let many: Vec<u8> = (0..65)
        .flat_map(|number| message(&create(&format!("m{number}"))))
        .collect();
    client.send(&post(&node, &mac(&node), &many)).expect_error(400);
    assert_eq!(read(&mut client, "m0"), 404);
}
