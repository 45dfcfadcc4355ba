//! Invalid requests get a clear error, and the server keeps serving.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, Request, create_container, create_item};
use crate::server::Server;

const DOCS: &str = "/dbs/d/colls/c/docs";

struct Fixture {
    server: Server,
    client: Client,
}

fn started(arguments: &[&str]) -> Fixture {
    let server = Server::in_memory(arguments);
    let mut client = server.client();
    create_container(&mut client);
    create_item(&mut client, "good");
    Fixture { server, client }
}

impl Fixture {
    /// Sends an invalid request, checks the status, and checks that the same connection still works.
    #[track_caller]
    fn refuses(&mut self, what: &str, bad: &Request, status: u16) {
        let response = self.client.send(bad);
        assert_eq!(response.status, status, "{what}: {}", response.text());
        response.expect_error(status);
        self.still_serves(what);
    }

    #[track_caller]
    fn still_serves(&mut self, after: &str) {
        let good = self.client.try_send(&Request::get(&format!("{DOCS}/good")).pk());
        assert_eq!(
            good.map(|response| response.status).unwrap_or_default(),
            200,
            "after {after}"
        );
    }
}

fn create(body: impl AsRef<[u8]>) -> Request {
    Request::post(DOCS, body).pk()
}

#[test]
fn bodies_that_are_no_item() {
    let mut fixture = started(&[]);
    let deep = |levels: usize| {
        format!(
            r#"{{"id":"x","pk":"p","v":{}1{}}}"#,
            "[".repeat(levels),
            "]".repeat(levels)
        )
    };
    let long_id = |bytes: usize| format!(r#"{{"id":"{}","pk":"p"}}"#, "i".repeat(bytes));
    for (what, body, status) in [
        ("nothing", Vec::new(), 400),
        ("malformed JSON", br#"{"id":"x","pk":"p""#.to_vec(), 400),
        ("bytes after the item", br#"{"id":"x","pk":"p"} x"#.to_vec(), 400),
        (
            "invalid UTF-8",
            b"{\"id\":\"x\",\"pk\":\"p\",\"v\":\"\xFF\"}".to_vec(),
            400,
        ),
        ("an array", b"[]".to_vec(), 400),
        ("a string", br#""x""#.to_vec(), 400),
        ("1,000 levels", deep(1000).into_bytes(), 400),
        ("100,000 levels", deep(100_000).into_bytes(), 400),
        ("no id", br#"{"pk":"p"}"#.to_vec(), 400),
        ("a number as id", br#"{"id":1,"pk":"p"}"#.to_vec(), 400),
        ("an empty id", br#"{"id":"","pk":"p"}"#.to_vec(), 400),
        ("a backslash in the id", br#"{"id":"a\\b","pk":"p"}"#.to_vec(), 400),
        ("an id of 1,024 bytes", long_id(1024).into_bytes(), 400),
        (
            "a number no double holds",
            br#"{"id":"x","pk":"p","v":1e999}"#.to_vec(),
            400,
        ),
        ("binary JSON that is cut short", vec![0x80, 0xED, 0x0B], 400),
        ("2 MiB and a byte", create_of(2 * 1024 * 1024 + 1), 413),
        ("5 MiB", create_of(5 * 1024 * 1024), 413),
    ] {
        fixture.refuses(what, &create(body), status);
    }
}

/// An item of exactly `bytes` bytes on the wire.
fn create_of(bytes: usize) -> Vec<u8> {
    let head = r#"{"id":"big","pk":"p","v":""#;
    let tail = r#""}"#;
    format!("{head}{}{tail}", "v".repeat(bytes - head.len() - tail.len())).into_bytes()
}

#[test]
fn the_largest_item_is_accepted() {
    let mut fixture = started(&[]);
    fixture.client.send(&create(create_of(2 * 1024 * 1024))).expect(201);
}

#[test]
fn of_doubled_members_the_last_one_counts() {
    let mut fixture = started(&[]);
    let created = fixture
        .client
        .send(&create(br#"{"id":"x","pk":"p","v":1,"v":2}"#))
        .expect(201);
    assert_eq!(created.json()["v"], 2);
    assert_eq!(created.text().matches("\"v\"").count(), 1);
}

#[test]
fn ids_of_items_may_hold_what_paths_must_escape() {
    let mut fixture = started(&[]);
    for (id, path) in [
        ("a?b", "a%3Fb"),
        ("a#b", "a%23b"),
        ("50%", "50%25"),
        (" a ", "%20a%20"),
        ("a/b", "a%2Fb"),
        ("/", "%2f"),
        ("../c", "..%2Fc"),
        ("a/", "a%2F/"),
        ("a\\b", "a%5Cb"),
        ("日本", "%E6%97%A5%E6%9C%AC"),
    ] {
        let (item, path) = (json!({"id": id, "pk": "p"}).to_string(), format!("{DOCS}/{path}"));
        let create = create(&item).header("x-ms-version", "2020-11-05");
        fixture.client.send(&create).expect(201);
        // Some clients sign the decoded link, others the link as sent.
        let link = format!("dbs/d/colls/c/docs/{id}");
        for request in [
            Request::get(&path).pk(),
            Request::get(&path).pk().signing(&link),
            Request::put(&path, &item)
                .pk()
                .signing(&link)
                .header("x-ms-version", "2020-11-05"),
        ] {
            assert_eq!(fixture.client.send(&request).expect(200).json()["id"], id);
        }
        fixture.client.send(&Request::new("DELETE", &path).pk()).expect(204);
        fixture.refuses(id, &Request::get(&path).pk(), 404);
    }
}

/// .NET sends a slash unescaped, and its tests expect that nothing is found.
#[test]
fn an_id_with_a_bare_slash_leads_to_no_item() {
    let mut fixture = started(&[]);
    for id in ["a/b", "a/sprocs/b", "/a/b", "a"] {
        let item = json!({"id": id, "pk": "p"}).to_string();
        fixture.client.send(&create(item)).expect(201);
    }
    for path in ["a/b", "a/sprocs/b", "/a/b"] {
        let path = format!("{DOCS}/{path}");
        let item = json!({"id": "a", "pk": "p"}).to_string();
        fixture.refuses("read", &Request::get(&path).pk(), 404);
        fixture.refuses("replace", &Request::put(&path, item).pk(), 404);
        fixture.refuses("delete", &Request::new("DELETE", &path).pk(), 404);
    }
    let rows = fixture.client.send(&Request::get(DOCS)).expect(200).json();
    assert_eq!(rows["_count"], 5, "nothing was deleted");
}

/// Clients of 2020-07-15 (.NET, Java) expect a refusal, those of 2020-11-05 (Go) do not.
#[test]
fn a_backslash_in_an_id_is_for_newer_versions() {
    let mut fixture = started(&[]);
    let item = json!({"id": "a\\b", "pk": "p"});
    let batch = json!([{"operationType": "Create", "resourceBody": item}]).to_string();
    let batch = |version: &str| {
        Request::post(DOCS, &batch)
            .pk()
            .header("x-ms-cosmos-is-batch-request", "True")
            .header("x-ms-cosmos-batch-atomic", "True")
            .header("x-ms-version", version)
    };
    let upsert = |version: &str| {
        create(item.to_string())
            .header("x-ms-documentdb-is-upsert", "True")
            .header("x-ms-version", version)
    };
    fixture.client.send(&batch("2020-07-15")).expect(207);
    fixture.refuses("an upsert", &upsert("2020-07-15"), 400);
    fixture.client.send(&batch("2020-11-05")).expect(200);
    fixture.client.send(&upsert("2020-11-05")).expect(200);
}

#[test]
fn ids_of_other_resources_are_stricter() {
    let mut fixture = started(&[]);
    let long = "i".repeat(256);
    for id in ["a/b", "a\\b", "a?b", "a#b", "", "a ", &long] {
        fixture.refuses(id, &Request::post("/dbs", json!({ "id": id }).to_string()), 400);
        let container = json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash"}});
        fixture.refuses(id, &Request::post("/dbs/d/colls", container.to_string()), 400);
    }
    for body in ["", "{}", "[]", r#"{"id":1}"#, r#"{"id":null}"#] {
        fixture.refuses(body, &Request::post("/dbs", body), 400);
        fixture.refuses(body, &Request::post("/dbs/d/colls", body), 400);
    }
}

#[test]
fn partition_keys_that_do_not_fit() {
    let mut fixture = started(&[]);
    let read = |key: &str| Request::get(&format!("{DOCS}/good")).header("x-ms-documentdb-partitionkey", key);
    fixture.refuses("no key", &Request::get(&format!("{DOCS}/good")), 400);
    let long = format!("[\"{}\"]", "k".repeat(3000));
    for key in [
        "p",
        "\"p\"",
        "[",
        "[[]]",
        r#"[{"a":1}]"#,
        r#"["p","q"]"#,
        &long,
        "[\u{e9}",
    ] {
        fixture.refuses(key, &read(key), 400);
    }
    fixture.refuses("another key", &Request::post(DOCS, r#"{"id":"x","pk":"q"}"#).pk(), 400);
}

#[test]
fn every_property_of_a_container_has_its_type() {
    let mut fixture = started(&[]);
    let wrong = [
        (
            "partitionKey",
            vec![
                json!("/pk"),
                json!([]),
                json!({}),
                json!({"paths": "/pk"}),
                json!({"paths": [1]}),
                json!({"paths": ["pk"]}),
                json!({"paths": ["/a", "/b"], "kind": "Hash"}),
                json!({"paths": ["/pk"], "kind": 1}),
                json!({"paths": ["/pk"], "version": "x"}),
            ],
        ),
        (
            "indexingPolicy",
            vec![
                json!("none"),
                json!([]),
                json!({"indexingMode": 1}),
                json!({"indexingMode": "sometimes"}),
                json!({"automatic": "yes"}),
                json!({"includedPaths": {}}),
                json!({"includedPaths": [1]}),
                json!({"excludedPaths": "x"}),
            ],
        ),
        (
            "defaultTtl",
            vec![
                json!(0),
                json!(-2),
                json!(1.5),
                json!("10"),
                json!(true),
                json!([]),
                json!({}),
                json!(2_147_483_648_u64),
            ],
        ),
        (
            "uniqueKeyPolicy",
            vec![
                json!([]),
                json!("x"),
                json!({"uniqueKeys": {}}),
                json!({"uniqueKeys": [1]}),
                json!({"uniqueKeys": [{"paths": "/a"}]}),
                json!({"uniqueKeys": [{"paths": []}]}),
            ],
        ),
        (
            "conflictResolutionPolicy",
            vec![json!([]), json!("x"), json!({"mode": 1})],
        ),
        (
            "geospatialConfig",
            vec![json!([]), json!("x"), json!({"type": 1}), json!({"type": "Flat"})],
        ),
        ("computedProperties", vec![json!({}), json!("x"), json!([1])]),
        ("analyticalStorageTtl", vec![json!(-2), json!("x"), json!(1.5)]),
        ("ttlPropertyPath", vec![json!("/x")]),
    ];
    for (property, values) in wrong {
        for value in values {
            let mut container = json!({"id": "w", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}});
            container[property] = value.clone();
            fixture.refuses(
                &format!("{property}: {value}"),
                &Request::post("/dbs/d/colls", container.to_string()),
                400,
            );
        }
    }
    fixture.refuses("no partition key", &Request::post("/dbs/d/colls", r#"{"id":"w"}"#), 400);
}

#[test]
fn headers_that_make_no_sense() {
    let mut fixture = started(&[]);
    let feed = |name: &str, value: &str| Request::get(DOCS).header(name, value);
    for (name, value) in [
        ("x-ms-max-item-count", "-2"),
        ("x-ms-max-item-count", "many"),
        ("x-ms-max-item-count", "99999999999999999999"),
        ("x-ms-continuation", "garbage"),
        ("x-ms-documentdb-partitionkey", "garbage"),
        ("x-ms-documentdb-partitionkeyrangeid", "garbage"),
        ("x-ms-session-token", "garbage"),
        ("x-ms-consistency-level", "Strong"),
        ("x-ms-consistency-level", "garbage"),
        ("x-ms-start-epk", "00"),
        ("a-im", "garbage"),
    ] {
        fixture.refuses(&format!("{name}: {value}"), &feed(name, value), 400);
    }
    let epk = feed("x-ms-start-epk", "xyz").header("x-ms-read-key-type", "EffectivePartitionKeyRange");
    fixture.refuses("an interval that is not hex", &epk, 400);
    fixture.refuses(
        "a range that is gone",
        &feed("x-ms-documentdb-partitionkeyrangeid", "99"),
        410,
    );
    let changes = feed("a-im", "Incremental feed");
    fixture.refuses(
        "a foreign change feed continuation",
        &changes.clone().header("if-none-match", "garbage"),
        400,
    );
    fixture.refuses(
        "a date that is none",
        &changes.header("if-modified-since", "yesterday"),
        400,
    );
    let create = Request::post("/dbs/d/colls", r#"{"id":"w","partitionKey":{"paths":["/pk"]}}"#);
    for (name, value) in [
        ("x-ms-offer-throughput", "lots"),
        ("x-ms-offer-throughput", "-400"),
        ("x-ms-offer-throughput", "399"),
        ("x-ms-cosmos-offer-autopilot-settings", "{"),
        ("x-ms-cosmos-offer-autopilot-settings", "{}"),
        ("x-ms-cosmos-offer-autopilot-settings", r#"{"maxThroughput":-200}"#),
    ] {
        fixture.refuses(&format!("{name}: {value}"), &create.clone().header(name, value), 400);
    }
}

#[test]
fn invalid_queries_and_patches_are_refused() {
    let mut fixture = started(&[]);
    for body in [
        "",
        "{}",
        "[]",
        r#"{"query":1}"#,
        r#"{"query":"SELEKT"}"#,
        r#"{"query":"SELECT * FROM c","parameters":{}}"#,
    ] {
        fixture.refuses(body, &Request::post(DOCS, body).query(), 400);
    }
    for body in [
        "",
        "{}",
        r#"{"operations":[]}"#,
        r#"{"operations":{}}"#,
        r#"{"operations":[{"op":"sing","path":"/a"}]}"#,
        r#"{"operations":[{"op":"remove","path":"/a/b"}]}"#,
    ] {
        fixture.refuses(
            body,
            &Request::new("PATCH", &format!("{DOCS}/good")).body(body).pk(),
            400,
        );
    }
}

#[test]
fn compressed_bodies_are_refused_and_not_taken_for_plain_ones() {
    let mut fixture = started(&[]);
    let item = br#"{"id":"coded","pk":"p"}"#;
    fixture.refuses("gzip", &create(item).header("content-encoding", "gzip"), 415);
    let query = Request::post(DOCS, r#"{"query":"SELECT * FROM c"}"#).query().pk();
    fixture.refuses("a query", &query.header("content-encoding", "deflate"), 415);
    for (coding, status) in [("gzip, chunked", 501), ("chunked, chunked", 501), ("chunked", 201)] {
        let head = create(b"").to_bytes();
        let head = String::from_utf8(head).expect("a head is ASCII");
        let head = head.replace("content-length: 0\r\n", &format!("transfer-encoding: {coding}\r\n"));
        let chunked = [format!("{head}{:x}\r\n", item.len()).as_bytes(), item, b"\r\n0\r\n\r\n"].concat();
        let mut stream = fixture.server.client().into_stream();
        stream.write_all(&chunked).expect("sent");
        let mut client = Client::over(stream);
        let response = client.receive(false).expect("a response");
        assert_eq!(response.status, status, "{coding}: {}", response.text());
        let again = client.try_send(&Request::get(&format!("{DOCS}/good")).pk());
        assert_eq!(
            again.map(|response| response.status).unwrap_or_default(),
            200,
            "{coding}"
        );
    }
    let plain = create(br#"{"id":"plain","pk":"p"}"#).header("content-encoding", "identity");
    fixture.client.send(&plain).expect(201);
}

#[test]
fn paths_and_verbs_that_lead_nowhere() {
    let mut fixture = started(&[]);
    fixture.refuses("no such path", &Request::get("/nothing/here"), 404);
    fixture.refuses("no such verb here", &Request::put("/dbs/d", "{}"), 405);
    fixture.refuses("no such verb at all", &Request::new("BREW", "/dbs"), 405);
    fixture.refuses("a path that is not UTF-8", &Request::get("/dbs/%FF"), 400);
    fixture.refuses("direct mode", &Request::get("/addresses"), 400);
}

#[test]
fn giant_headers_are_refused() {
    let mut fixture = started(&[]);
    let giant = Request::get("/").header("x-giant", &"g".repeat(100 * 1024));
    fixture.refuses("100 KiB", &giant, 431);
    let mut other = fixture.server.client();
    let colossal = Request::get("/").header("x-giant", &"g".repeat(4 * 1024 * 1024));
    // If the request exceeds what is read at all, the connection ends after the response.
    other.send(&colossal).expect_error(431);
    fixture.still_serves("4 MiB of headers");
}

#[test]
fn invalid_http_heads_are_refused_in_the_protocols_format() {
    let mut fixture = started(&[]);
    for head in [
        "GET /dbs HTTP/9.9\r\n\r\n",
        "G@T /dbs HTTP/1.1\r\n\r\n",
        "GET /dbs HTTP/1.1\r\nno header\r\n\r\n",
        "GET /a b HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 1x\r\n\r\n",
    ] {
        let mut stream = fixture.server.client().into_stream();
        stream.write_all(head.as_bytes()).expect("sent");
        let mut client = Client::over(stream);
        let response = client.receive(false).unwrap_or_else(|error| panic!("{head}: {error}"));
        response.expect_error(400);
        assert!(client.receive(false).is_err(), "the connection ends: {head}");
    }
    fixture.still_serves("garbage");
}

#[test]
fn a_head_that_cannot_be_read_does_not_take_away_the_answer_before_it() {
    let fixture = started(&[]);
    let mut stream = fixture.server.client().into_stream();
    let good = Request::get(&format!("{DOCS}/good")).pk().to_bytes();
    stream.write_all(&good).expect("sent");
    let mut client = Client::over(stream);
    assert_eq!(
        client
            .receive(false)
            .map(|response| response.status)
            .unwrap_or_default(),
        200
    );
    let mut stream = client.into_stream();
    stream.write_all(b"garbage\r\n\r\n").expect("sent");
    let mut client = Client::over(stream);
    client.receive(false).expect("a response").expect_error(400);
}

#[test]
fn garbage_in_a_pipeline_ends_its_connection_only() {
    let mut fixture = started(&[]);
    let mut stream = fixture.server.client().into_stream();
    let good = Request::get("/").to_bytes();
    stream
        .write_all(&[&good[..], &good, b"\x00\x01garbage\r\n\r\n"].concat())
        .expect("it can be sent");
    stream.shutdown(Shutdown::Write).expect("we are done");
    let mut client = Client::over(stream);
    for _ in 0..2 {
        assert_eq!(client.receive(false).expect("a response").status, 200);
    }
    if let Ok(response) = client.receive(false) {
        assert_eq!(response.status, 400);
    }
    fixture.still_serves("garbage");
}

#[test]
fn connections_of_slow_clients_are_ended() {
    let mut fixture = started(&["--request-timeout", "1"]);
    let head = b"GET / HTTP/1.1\r\nhost: lo";
    let body = b"POST /dbs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{";
    let nothing = b"";
    for sent in [&head[..], body, nothing] {
        let mut stream = fixture.server.client().into_stream();
        stream.write_all(sent).expect("it can be sent");
        let started = Instant::now();
        let mut response = Vec::new();
        let end = stream.read_to_end(&mut response);
        assert!(
            end.is_ok() || !response.is_empty() || started.elapsed() < Duration::from_secs(20),
            "{end:?}"
        );
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "the connection is held open"
        );
        fixture.still_serves("a slow client");
    }
}

#[test]
fn an_idle_connection_is_not_a_slow_one() {
    let mut fixture = started(&["--request-timeout", "1"]);
    std::thread::sleep(Duration::from_millis(1800));
    fixture.still_serves("a rest longer than a request may take");
}

#[test]
fn errors_never_leak_another_shape() {
    let mut fixture = started(&[]);
    let response = fixture.client.send(&Request::get("/dbs/nothing"));
    let body: Value = response.json();
    let message = body["message"].as_str().expect("a message");
    let activity_id = response.header("x-ms-activity-id").expect("an activity id");
    assert!(message.contains(&format!("\r\nActivityId: {activity_id}")), "{message}");
}
