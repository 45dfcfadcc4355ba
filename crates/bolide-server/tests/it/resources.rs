//! Members and headers of databases, containers, items, ranges and offers that clients rely on.

use serde_json::{Value, json};

use crate::client::{Client, Request, Response, create_container, create_item};
use crate::server::Server;

const ITEM: &str = "/dbs/d/colls/c/docs/a";

fn started() -> (Server, Client) {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    (server, client)
}

#[test]
fn the_account_points_to_the_endpoint_the_client_used() {
    let server = Server::in_memory(&[]);
    let root = server.client().send(&Request::get("/")).expect(200).json();
    assert_eq!(
        root["writableLocations"][0]["databaseAccountEndpoint"],
        "http://localhost/"
    );
    // JavaScript's SDK drops the locations of an account with that name, and reads the account before each request.
    assert_ne!(root["id"], "localhost");
    assert_eq!(root["userConsistencyPolicy"]["defaultConsistencyLevel"], "Session");
}

#[test]
fn the_account_points_to_where_proxies_and_options_say() {
    let endpoint = |server: &Server, headers: &[(&str, &str)]| {
        let request = headers
            .iter()
            .fold(Request::get("/"), |request, (name, value)| request.header(name, value));
        let root = server.client().send(&request).expect(200).json();
        assert_eq!(root["readableLocations"], root["writableLocations"]);
        root["writableLocations"][0]["databaseAccountEndpoint"].clone()
    };
    let server = Server::in_memory(&[]);
    let proxied = [
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "db.example:444, inner"),
    ];
    assert_eq!(endpoint(&server, &proxied[..1]), "https://localhost/");
    assert_eq!(endpoint(&server, &proxied), "https://db.example:444/");
    for nonsense in [("x-forwarded-proto", "javascript"), ("x-forwarded-host", "a/b\"")] {
        assert_eq!(endpoint(&server, &[nonsense]), "http://localhost/", "{nonsense:?}");
    }
    let server = Server::in_memory(&["--public-endpoint", "https://db.example/"]);
    assert_eq!(endpoint(&server, &[]), "https://db.example/");
}

#[test]
fn the_accounts_consistency_is_shown_and_bounds_what_requests_ask_for() {
    for (level, stronger) in [
        ("Strong", None),
        ("BoundedStaleness", Some("Strong")),
        ("Session", Some("BoundedStaleness")),
        ("Eventual", Some("ConsistentPrefix")),
    ] {
        let server = Server::in_memory(&["--consistency", &level.to_lowercase()]);
        let mut client = server.client();
        create_container(&mut client);
        create_item(&mut client, "a");
        let root = client.send(&Request::get("/")).expect(200).json();
        let policy = &root["userConsistencyPolicy"];
        assert_eq!(policy["defaultConsistencyLevel"], level);
        assert_eq!(policy["maxIntervalInSeconds"].is_i64(), level == "BoundedStaleness");
        let read = |level| Request::get(ITEM).pk().header("x-ms-consistency-level", level);
        client.send(&read(level)).expect(200);
        client.send(&read("Eventual")).expect(200);
        if let Some(stronger) = stronger {
            let refused = client.send(&read(stronger)).expect_error(400);
            assert!(
                refused.text().contains(&format!("consistency level {level}")),
                "{}",
                refused.text()
            );
        }
    }
}

#[test]
fn reads_say_where_they_read() {
    let (_server, mut client) = started();
    create_item(&mut client, "a");
    for (path, location) in [
        (ITEM, "http://localhost/dbs/d/colls/c/docs/a"),
        // As Python sends it.
        ("/dbs/d/colls/c/docs/a/", "http://localhost/dbs/d/colls/c/docs/a"),
        ("/dbs/d/colls/c", "http://localhost/dbs/d/colls/c"),
    ] {
        let read = client.send(&Request::get(path).pk()).expect(200);
        assert_eq!(read.header("content-location"), Some(location), "{path}");
    }
    let missing = client
        .send(&Request::get("/dbs/d/colls/c/docs/b").pk())
        .expect_error(404);
    assert_eq!(missing.header("content-location"), None);
}

#[test]
fn an_item_goes_through_its_life() {
    let (_server, mut client) = started();
    let created = create_item(&mut client, "a");
    let etag = created.header("etag").expect("an etag").to_owned();
    assert_eq!(created.json()["_etag"], etag);
    let read = client.send(&Request::get(ITEM).pk()).expect(200);
    assert_eq!(read.body, created.body);
    assert_eq!(
        client
            .send(&Request::get(ITEM).pk().header("if-none-match", &etag))
            .expect(304)
            .body,
        b""
    );
    let replace = Request::put(ITEM, r#"{"id":"a","pk":"p","n":1}"#).pk();
    client
        .send(&replace.clone().header("if-match", "\"other\""))
        .expect_error(412);
    client.send(&replace.header("if-match", &etag)).expect(200);
    let patch = Request::new("PATCH", ITEM)
        .body(r#"{"operations":[{"op":"incr","path":"/n","value":2}]}"#)
        .pk();
    assert_eq!(client.send(&patch).expect(200).json()["n"], 3);
    let upsert = Request::post("/dbs/d/colls/c/docs", r#"{"id":"a","pk":"p"}"#)
        .pk()
        .header("x-ms-documentdb-is-upsert", "True");
    client.send(&upsert).expect(200);
    create_again_conflicts(&mut client);
    let deleted = client.send(&Request::new("DELETE", ITEM).pk()).expect(204);
    assert_eq!((deleted.header("content-type"), deleted.text().as_str()), (None, ""));
    client.send(&Request::get(ITEM).pk()).expect_error(404);
}

fn create_again_conflicts(client: &mut Client) {
    let create = Request::post("/dbs/d/colls/c/docs", r#"{"id":"a","pk":"p"}"#).pk();
    client.send(&create).expect_error(409);
}

#[test]
fn writes_answer_without_a_body_when_asked_to() {
    let (_server, mut client) = started();
    let create = Request::post("/dbs/d/colls/c/docs", r#"{"id":"a","pk":"p"}"#)
        .pk()
        .header("prefer", "return=minimal");
    let created = client.send(&create).expect(201);
    assert_eq!(created.body, b"");
    assert!(created.header("etag").is_some());
}

/// Text as binary JSON in the longer forms that the Rust SDK writes; `"id"` as the system string that .NET writes.
fn binary(json: &Value) -> Vec<u8> {
    fn write(json: &Value, out: &mut Vec<u8>) {
        let string = |text: &str, out: &mut Vec<u8>| match text {
            "id" => out.push(0x2C),
            _ => {
                out.extend([0xC0, u8::try_from(text.len()).expect("short strings")]);
                out.extend(text.as_bytes());
            }
        };
        let mut elements = Vec::new();
        match json {
            Value::String(text) => return string(text, out),
            Value::Array(values) => values.iter().for_each(|value| write(value, &mut elements)),
            Value::Object(members) => members.iter().for_each(|(name, value)| {
                string(name, &mut elements);
                write(value, &mut elements);
            }),
            _ => {
                out.push(0xCC);
                return out.extend(json.as_f64().expect("a number").to_le_bytes());
            }
        }
        out.push(if json.is_array() { 0xE3 } else { 0xEB });
        out.extend(u16::try_from(elements.len()).expect("short values").to_le_bytes());
        out.extend(elements);
    }
    let mut out = vec![0x80];
    write(json, &mut out);
    out
}

#[test]
fn every_write_takes_binary_bodies_and_answers_text() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
    let tree = json!({"id": "c", "partitionKey": {"paths": ["/a", "/b/c"], "kind": "MultiHash", "version": 2}});
    client
        .send(&Request::post("/dbs/d/colls", tree.to_string()))
        .expect(201);
    let item = |n: f64| json!({"id": "a", "a": "x", "b": {"c": "y"}, "n": n, "list": ["id", [1.5]]});
    let mut send = |request: Request, status| {
        let request = request
            .header("x-ms-documentdb-partitionkey", r#"["x","y"]"#)
            .header("x-ms-cosmos-supported-serialization-formats", "CosmosBinary");
        client.send(&request).expect(status)
    };
    let create = |n| Request::post("/dbs/d/colls/c/docs", binary(&item(n)));
    let same = |response: &Response, n: f64| {
        let item = item(n);
        let answered = response.json();
        for name in ["id", "a", "b", "list"] {
            assert_eq!(answered[name], item[name], "{answered}");
        }
        assert_eq!(answered["n"].as_f64(), Some(n), "{answered}");
    };
    same(&send(create(1.5), 201), 1.5);
    same(&send(create(2.5).header("x-ms-documentdb-is-upsert", "True"), 200), 2.5);
    same(&send(Request::put(ITEM, binary(&item(3.5))), 200), 3.5);
    let patch = json!({"operations": [{"op": "set", "path": "/n", "value": 4.5}]});
    same(&send(Request::new("PATCH", ITEM).body(binary(&patch)), 200), 4.5);
    let batch = json!([
        {"operationType": "Replace", "id": "a", "resourceBody": item(5.5)},
        {"operationType": "Read", "id": "a"},
    ]);
    let batch = Request::post("/dbs/d/colls/c/docs", binary(&batch))
        .header("x-ms-cosmos-is-batch-request", "True")
        .header("x-ms-cosmos-batch-atomic", "True");
    let results = send(batch, 200).json();
    assert_eq!(results[1]["resourceBody"]["n"], 5.5, "{results}");
    same(&send(Request::get(ITEM), 200), 5.5);
    send(create(1.5), 409);
}

#[test]
fn reads_repeat_the_session_token_of_the_last_write() {
    let (_server, mut client) = started();
    let token = |response: &Response| {
        response
            .header("x-ms-session-token")
            .expect("a session token")
            .to_owned()
    };
    let created = create_item(&mut client, "a");
    let read = client
        .send(&Request::get(ITEM).pk().header("x-ms-session-token", &token(&created)))
        .expect(200);
    assert_eq!(token(&read), token(&created));
    assert_eq!(read.header("x-ms-alt-content-path"), Some("dbs/d/colls/c"));
    assert!(
        read.header("x-ms-request-charge")
            .expect("a charge")
            .parse::<f64>()
            .expect("a number")
            > 0.0
    );
    let second = create_item(&mut client, "b");
    let lsn = |response: &Response| {
        response
            .header("lsn")
            .expect("an lsn")
            .parse::<u64>()
            .expect("a number")
    };
    assert_eq!(lsn(&second), lsn(&created) + 1);
}

#[test]
fn answers_about_a_container_name_its_database() {
    let (_server, mut client) = started();
    let read = client.send(&Request::get("/dbs/d/colls/c")).expect(200);
    assert_eq!(read.header("x-ms-alt-content-path"), Some("dbs/d"));
}

#[test]
fn a_session_that_has_seen_more_gets_an_error() {
    let (_server, mut client) = started();
    create_item(&mut client, "a");
    let ahead = client
        .send(&Request::get(ITEM).pk().header("x-ms-session-token", "0:-1#1000000"))
        .expect_error(404);
    assert_eq!(ahead.header("x-ms-substatus"), Some("1002"));
    client
        .send(&Request::get(ITEM).pk().header("x-ms-session-token", "7:-1#1000000"))
        .expect(200);
    client
        .send(&Request::get(ITEM).pk().header("x-ms-session-token", "garbage"))
        .expect_error(400);
}

#[test]
fn a_client_that_knows_an_earlier_container_gets_an_error() {
    let (_server, mut client) = started();
    create_item(&mut client, "a");
    let stale = Request::get(ITEM)
        .pk()
        .header("x-ms-cosmos-intended-collection-rid", "SnxPAOM2VfM=");
    assert_eq!(
        client.send(&stale).expect_error(400).header("x-ms-substatus"),
        Some("1024")
    );
}

#[test]
fn missing_parents_differ_from_missing_resources() {
    let (_server, mut client) = started();
    for (path, sub_status) in [
        ("/dbs/x", None),
        ("/dbs/d/colls/x", None),
        ("/dbs/x/colls", Some("1003")),
        ("/dbs/d/colls/x/docs", Some("1003")),
        ("/dbs/x/colls/c/docs/a", Some("1003")),
        // For a single item the service does not say what is missing.
        ("/dbs/d/colls/x/docs/a", None),
        (ITEM, None),
    ] {
        let response = client.send(&Request::get(path).pk()).expect_error(404);
        assert_eq!(response.header("x-ms-substatus"), sub_status, "{path}");
        assert!(response.text().contains("Resource Not Found"), "{path}");
    }
}

#[test]
fn resources_are_reached_by_resource_id_too() {
    let (_server, mut client) = started();
    let item = create_item(&mut client, "a").json();
    let link = item["_self"].as_str().expect("a link").trim_end_matches('/').to_owned();
    // Signed by name: the test client signs the text of the path, which the server accepts as one form.
    assert_eq!(
        client.send(&Request::get(&format!("/{link}")).pk()).expect(200).json(),
        item
    );
    let database = link.split('/').nth(1).expect("a database").to_owned();
    let mixed = client
        .send(&Request::get(&format!("/dbs/{database}/colls/c")))
        .expect_error(400);
    assert!(mixed.text().contains("ResourceId"));
}

#[test]
fn ranges_are_not_modified_once_they_are_known() {
    let (_server, mut client) = started();
    let ranges = |client: &mut Client, seen: &str| {
        client.send(
            &Request::get("/dbs/d/colls/c/pkranges")
                .header("a-im", "Incremental feed")
                .header("if-none-match", seen),
        )
    };
    let first = ranges(&mut client, "").expect(200);
    let etag = first.header("etag").expect("an etag").to_owned();
    let body = first.json();
    assert_eq!(
        (
            &body["PartitionKeyRanges"][0]["minInclusive"],
            &body["PartitionKeyRanges"][0]["maxExclusive"]
        ),
        (&json!(""), &json!("FF"))
    );
    assert_eq!(
        ranges(&mut client, &etag).expect(304).header("etag"),
        Some(etag.as_str())
    );
    client
        .send(&Request::get("/dbs/d/colls/c/pkranges").header("if-none-match", &etag))
        .expect(200);
}

#[test]
fn throughput_makes_ranges_and_splits_are_seen() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
    let definition = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    client
        .send(&Request::post("/dbs/d/colls", definition).header("x-ms-offer-throughput", "30000"))
        .expect(201);
    let ranges = client.send(&Request::get("/dbs/d/colls/c/pkranges")).expect(200).json();
    let ends: Vec<&str> = ranges["PartitionKeyRanges"]
        .as_array()
        .expect("ranges")
        .iter()
        .map(|range| range["maxExclusive"].as_str().expect("hex"))
        .collect();
    // cosmos-rest §7.2
    assert_eq!(
        ends,
        [
            "0CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC",
            "19999999999999999999999999999998",
            "26666666666666666666666666666664",
            "33333333333333333333333333333330",
            "FF"
        ]
    );
    let split = client
        .send(&Request::post("/_bolide/dbs/d/colls/c/split", r#"{"range":"1"}"#))
        .expect(200)
        .json();
    assert_eq!(split, json!({"parents": ["1"], "children": ["5", "6"]}));
    let gone = Request::get("/dbs/d/colls/c/docs").header("x-ms-documentdb-partitionkeyrangeid", "1");
    assert_eq!(
        client.send(&gone).expect_error(410).header("x-ms-substatus"),
        Some("1002")
    );
}

/// Source: `create_database_and_container_through_driver` of the Rust SDK's tests.
#[test]
fn a_new_database_or_container_has_a_session_token_and_may_be_answered_without_a_body() {
    let (_server, mut client) = started();
    let definition = |id: &str| json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash"}}).to_string();
    let mut tokens = Vec::new();
    for (path, bodies) in [
        ("/dbs", [r#"{"id":"e"}"#.to_owned(), r#"{"id":"f"}"#.to_owned()]),
        ("/dbs/d/colls", [definition("e"), definition("f")]),
    ] {
        let [whole, minimal] = bodies.map(|body| Request::post(path, body));
        let whole = client.send(&whole).expect(201);
        assert_eq!(whole.json()["id"], "e");
        let minimal = client.send(&minimal.header("prefer", "return=minimal")).expect(201);
        assert_eq!((minimal.text().as_str(), minimal.header("content-type")), ("", None));
        assert!(minimal.header("etag").is_some());
        let token = |response: &Response| response.header("x-ms-session-token").expect("a token").to_owned();
        tokens.extend([token(&whole), token(&minimal)]);
    }
    // Clients may keep them and send them for the new container.
    for (token, id) in tokens.iter().zip(["e", "f", "e", "f"]) {
        let read = Request::get(&format!("/dbs/d/colls/{id}/docs")).header("x-ms-session-token", token);
        client.send(&read).expect(200);
    }
}

#[test]
fn an_offer_is_found_by_its_resource_and_replaced() {
    let (_server, mut client) = started();
    let container = client.send(&Request::get("/dbs/d/colls/c")).expect(200).json();
    let query = json!({"query": "SELECT * FROM root r WHERE r.resource=@link", "parameters": [{"name": "@link", "value": container["_self"]}]});
    let found = client
        .send(&Request::post("/offers", query.to_string()).query())
        .expect(200)
        .json();
    let mut offer = found["Offers"][0].clone();
    assert_eq!(offer["content"]["offerThroughput"], 400);
    offer["content"]["offerThroughput"] = json!(1000);
    let path = format!("/offers/{}", offer["_rid"].as_str().expect("a rid"));
    let replaced = client.send(&Request::put(&path, offer.to_string())).expect(200);
    assert_eq!(replaced.json()["content"]["offerThroughput"], 1000);
    assert_eq!(replaced.header("x-ms-offer-replace-pending"), Some("false"));
}

#[test]
fn quota_and_statistics_come_when_asked_for() {
    let (_server, mut client) = started();
    create_item(&mut client, "a");
    let read = Request::get("/dbs/d/colls/c")
        .header("x-ms-documentdb-populatequotainfo", "True")
        .header("x-ms-documentdb-populatepartitionstatistics", "True");
    let response = client.send(&read).expect(200);
    assert!(
        response
            .header("x-ms-resource-usage")
            .expect("usage")
            .contains("documentsCount=1;")
    );
    assert_eq!(response.json()["statistics"][0]["documentCount"], 1);
    let plain = client.send(&Request::get("/dbs/d/colls/c")).expect(200);
    assert!(plain.header("x-ms-resource-usage").is_none() && plain.json()["statistics"].is_null());
}

#[test]
fn the_change_feed_ends_with_a_continuation_for_later_changes() {
    let (_server, mut client) = started();
    create_item(&mut client, "a");
    let feed = |client: &mut Client, after: &str| {
        let request = Request::get("/dbs/d/colls/c/docs").header("a-im", "Incremental feed");
        client.send(&if after.is_empty() {
            request
        } else {
            request.header("if-none-match", after)
        })
    };
    let first = feed(&mut client, "").expect(200);
    assert!(first.json()["Documents"][0]["_lsn"].is_u64());
    let etag = first.header("etag").expect("a continuation").to_owned();
    let nothing = feed(&mut client, &etag).expect(304);
    assert_eq!(nothing.header("x-ms-item-count"), Some("0"));
    assert_eq!(nothing.header("etag"), Some(etag.as_str()));
    create_item(&mut client, "b");
    let second = feed(&mut client, &etag).expect(200).json();
    assert_eq!(ids(&second), ["b"]);
}

#[test]
fn feeds_are_paged_without_an_empty_last_page() {
    let (_server, mut client) = started();
    for id in ["a", "b", "c", "d"] {
        create_item(&mut client, id);
    }
    for request in [
        Request::get("/dbs/d/colls/c/docs"),
        Request::post("/dbs/d/colls/c/docs", r#"{"query":"SELECT * FROM c"}"#).query(),
    ] {
        let request = request.header("x-ms-max-item-count", "2");
        let first = client.send(&request).expect(200);
        assert_eq!(ids(&first.json()), ["a", "b"]);
        let next = first.header("x-ms-continuation").expect("more to come");
        let second = client
            .send(&request.clone().header("x-ms-continuation", next))
            .expect(200);
        assert_eq!(ids(&second.json()), ["c", "d"]);
        assert_eq!(second.header("x-ms-continuation"), None);
    }
}

#[test]
fn databases_are_queried_like_items() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    for id in ["x", "y"] {
        client
            .send(&Request::post("/dbs", json!({ "id": id }).to_string()))
            .expect(201);
    }
    let query = r#"{"query":"SELECT * FROM root r WHERE r.id=@id","parameters":[{"name":"@id","value":"y"}]}"#;
    let found = client
        .send(&Request::post("/dbs", query).header("content-type", "application/query+json"))
        .expect(200);
    let found = found.json();
    assert_eq!(
        (&found["_count"], &found["Databases"][0]["id"]),
        (&json!(1), &json!("y"))
    );
}

fn batch(body: impl AsRef<[u8]>) -> Request {
    Request::post("/dbs/d/colls/c/docs", body)
        .pk()
        .header("x-ms-cosmos-is-batch-request", "True")
}

fn statuses(results: &Value) -> Vec<u64> {
    let results = results.as_array().expect("a batch is answered with an array");
    results
        .iter()
        .filter_map(|result| result["statusCode"].as_u64())
        .collect()
}

#[test]
fn a_batch_is_answered_operation_by_operation() {
    let (_server, mut client) = started();
    let create = |id: &str| json!({"operationType": "Create", "resourceBody": {"id": id, "pk": "p"}});
    let read = |id: &str| json!({"operationType": "Read", "id": id});
    let atomic = |operations: Value| batch(operations.to_string()).header("x-ms-cosmos-batch-atomic", "True");

    let done = client.send(&atomic(json!([create("a"), read("a")]))).expect(200).json();
    assert_eq!(statuses(&done), [201, 200]);
    assert_eq!(done[1]["resourceBody"]["id"], "a");
    assert_eq!(done[1]["eTag"], done[0]["resourceBody"]["_etag"]);

    let refused = client
        .send(&atomic(json!([create("b"), create("a"), read("a")])))
        .expect(207)
        .json();
    assert_eq!(statuses(&refused), [424, 409, 424]);
    client
        .send(&Request::get("/dbs/d/colls/c/docs/b").pk())
        .expect_error(404);

    client.send(&atomic(json!([]))).expect_error(400);
    client.send(&atomic(json!({"operationType": "Read"}))).expect_error(400);
}

#[test]
fn bulk_continues_after_an_error_if_requested() {
    let (_server, mut client) = started();
    let create =
        |id: &str| json!({"operationType": "Create", "partitionKey": "[\"p\"]", "resourceBody": {"id": id, "pk": "p"}});
    let operations = json!([create("a"), create("a"), create("b")]).to_string();
    let stopped = client.send(&batch(&operations)).expect(207).json();
    assert_eq!(statuses(&stopped), [201, 409, 424]);
    let went_on = batch(&operations).header("x-ms-cosmos-batch-continue-on-error", "True");
    assert_eq!(statuses(&client.send(&went_on).expect(207).json()), [409, 409, 201]);
}

#[test]
fn a_container_without_history_says_that_it_must_be_enabled() {
    let (_server, mut client) = started();
    let definition = r#"{"id":"n","partitionKey":{"paths":["/pk"]},"changeFeedPolicy":{"retentionDuration":0}}"#;
    client.send(&Request::post("/dbs/d/colls", definition)).expect(201);
    let all_versions = Request::get("/dbs/d/colls/n/docs")
        .header("a-im", "Full-Fidelity Feed")
        .header("if-none-match", "*");
    assert!(
        client
            .send(&all_versions)
            .expect_error(400)
            .text()
            .contains("must be enabled")
    );
}

fn ids(feed: &Value) -> Vec<&str> {
    feed["Documents"]
        .as_array()
        .expect("documents")
        .iter()
        .map(|item| item["id"].as_str().expect("an id"))
        .collect()
}

#[test]
fn client_encryption_keys_are_stored_and_returned() {
    const KEYS: &str = "/dbs/d/clientencryptionkeys";
    let (_server, mut client) = started();
    let key = |wrapped: &str| {
        json!({
            "id": "k", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256", "wrappedDataEncryptionKey": wrapped,
            "keyWrapMetadata": {"type": "t", "name": "n", "value": "v", "algorithm": "RSA-OAEP"},
        })
    };
    let create = Request::post(KEYS, key("AAEC").to_string());
    let created = client.send(&create).expect(201);
    let etag = created.header("etag").expect("an etag").to_owned();
    assert_eq!(created.json()["_etag"], etag);
    client.send(&create).expect_error(409);
    let read = client.send(&Request::get(&format!("{KEYS}/k"))).expect(200).json();
    assert_eq!(read, created.json());
    assert_eq!(read["keyWrapMetadata"], key("")["keyWrapMetadata"]);
    let by_rid = format!("/{}", read["_self"].as_str().expect("a link"));
    client.send(&Request::get(&by_rid)).expect(200);
    let replace = Request::put(&format!("{KEYS}/k"), key("BBBB").to_string());
    client
        .send(&replace.clone().header("if-match", "\"other\""))
        .expect_error(412);
    let replaced = client.send(&replace.header("if-match", &etag)).expect(200).json();
    assert_eq!(replaced["wrappedDataEncryptionKey"], "BBBB");
    let feed = client.send(&Request::get(KEYS)).expect(200).json();
    assert_eq!(feed["ClientEncryptionKeys"], json!([replaced]));
    let query = Request::post(KEYS, r#"{"query":"SELECT VALUE r.id FROM root r"}"#).query();
    let found = client.send(&query).expect(200).json();
    assert_eq!(found["ClientEncryptionKeys"], json!(["k"]));
    client.send(&Request::post(KEYS, "{\"id\":\"x\"}")).expect_error(400);
    client.send(&Request::get(&format!("{KEYS}/none"))).expect_error(404);
    client
        .send(&Request::new("DELETE", &format!("{KEYS}/k")))
        .expect_error(405);
}
