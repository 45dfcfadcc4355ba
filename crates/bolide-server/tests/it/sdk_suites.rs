//! Expectations of the SDKs' own test suites.

use serde_json::{Value, json};

use crate::client::{Client, Request, Response, create_container, create_item};
use crate::server::Server;

const DOCS: &str = "/dbs/d/colls/c/docs";

fn started() -> (Server, Client) {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    (server, client)
}

/// A container with several ranges, with an item for each of some keys. Keys are strings.
fn of_several_ranges(client: &mut Client, id: &str, definition: &Value, keys: &[&str]) {
    let create = Request::post("/dbs/d/colls", definition.to_string()).header("x-ms-offer-throughput", "25100");
    client.send(&create).expect(201);
    for key in keys {
        let item = json!({"id": key, "pk": key}).to_string();
        let create =
            Request::post(&format!("/dbs/d/colls/{id}/docs"), item).header("x-ms-documentdb-partitionkey", &of(key));
        client.send(&create).expect(201);
    }
}

fn of(key: &str) -> String {
    json!([key]).to_string()
}

fn ids(response: &Response) -> Vec<String> {
    let documents = response.json()["Documents"].clone();
    let documents = documents.as_array().expect("a page").clone();
    documents
        .iter()
        .map(|item| item["id"].as_str().expect("an id").to_owned())
        .collect()
}

#[test]
fn an_answer_has_the_session_token_of_one_range() {
    // .NET: "The session token provided '-1#854,4' is invalid".
    let (_server, mut client) = started();
    let keys: Vec<String> = (0..20).map(|n| format!("k{n}")).collect();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let definition = json!({"id": "m", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    of_several_ranges(&mut client, "m", &definition, &keys);
    let docs = "/dbs/d/colls/m/docs";
    let requests = [
        Request::post(docs, r#"{"query":"SELECT * FROM c"}"#).query(),
        Request::post(docs, r#"{"query":"SELECT * FROM c WHERE c.pk = 'k7'"}"#).query(),
        Request::get(docs),
        Request::get(docs).header("a-im", "Incremental Feed"),
    ];
    for request in requests {
        let page = client.send(&request).expect(200);
        let token = page.header("x-ms-session-token").expect("a token");
        assert!(!token.contains(','), "{token}");
        let (_, lsn) = token.split_once("#").expect("a vector");
        assert_eq!(page.header("lsn"), Some(lsn));
    }
}

#[test]
fn a_page_of_a_query_is_of_one_range_though_it_be_empty() {
    // Python: test_cross_partition_query_response_hook. Both keys lie in the second of two ranges.
    let (_server, mut client) = started();
    let definition = json!({"id": "m", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    let create = Request::post("/dbs/d/colls", definition.to_string()).header("x-ms-offer-throughput", "12000");
    client.send(&create).expect(201);
    let docs = "/dbs/d/colls/m/docs";
    for (n, key) in ["0", "1", "0", "1"].iter().enumerate() {
        let item = json!({"id": n.to_string(), "pk": key}).to_string();
        client
            .send(&Request::post(docs, item).header("x-ms-documentdb-partitionkey", &of(key)))
            .expect(201);
    }
    let query = Request::post(docs, r#"{"query":"select * from c"}"#).query();
    let mut counts = Vec::new();
    let mut continuation: Option<String> = None;
    loop {
        let asked = match &continuation {
            Some(continuation) => query.clone().header("x-ms-continuation", continuation),
            None => query.clone(),
        };
        let page = client.send(&asked).expect(200);
        counts.push(ids(&page).len());
        continuation = page.header("x-ms-continuation").map(str::to_owned);
        if continuation.is_none() {
            break;
        }
    }
    assert_eq!(counts, [0, 4]);
}

#[test]
fn a_404_has_no_session_token_of_a_range_that_the_client_does_not_know() {
    // JavaScript: "New session token preserves tokens" reads without a partition key.
    let (_server, mut client) = started();
    let definition = json!({"id": "s", "partitionKey": {"paths": ["/id"]}});
    of_several_ranges(&mut client, "s", &definition, &["1"]);
    let read = Request::get("/dbs/d/colls/s/docs/1");
    let found = client
        .send(&read.clone().header("x-ms-documentdb-partitionkey", &of("1")))
        .expect(200);
    let token = found.header("x-ms-session-token").expect("a token").to_owned();
    let strange = read.header("x-ms-documentdb-partitionkey", "[{}]");
    let missing = client
        .send(&strange.clone().header("x-ms-session-token", &token))
        .expect_error(404);
    assert_eq!(missing.header("x-ms-session-token"), None);
    // A client without a session starts one.
    let missing = client.send(&strange).expect_error(404);
    assert!(missing.header("x-ms-session-token").is_some());
    let own = Request::get("/dbs/d/colls/s/docs/2").header("x-ms-documentdb-partitionkey", &of("1"));
    let missing = client.send(&own.header("x-ms-session-token", &token)).expect_error(404);
    assert_eq!(missing.header("x-ms-session-token"), Some(&*token));
}

#[test]
fn keys_of_version_1_are_as_long_as_others_and_differ_where_their_hashes_do_not() {
    // Python: test_hash_v1_partition_key; JavaScript's and .NET's containers have this version.
    let (_server, mut client) = started();
    let definition = json!({"id": "old", "partitionKey": {"paths": ["/pk"]}});
    client
        .send(&Request::post("/dbs/d/colls", definition.to_string()))
        .expect(201);
    let docs = "/dbs/d/colls/old/docs";
    let begin = "x".repeat(250);
    for end in ["a", "b"] {
        let key = format!("{begin}{end}");
        let item = json!({"id": "same", "pk": key, "n": end}).to_string();
        client
            .send(&Request::post(docs, item).header("x-ms-documentdb-partitionkey", &of(&key)))
            .expect(201);
    }
    for end in ["a", "b"] {
        let key = of(&format!("{begin}{end}"));
        let read = Request::get(&format!("{docs}/same")).header("x-ms-documentdb-partitionkey", &key);
        assert_eq!(client.send(&read).expect(200).json()["n"], end);
        let query = Request::post(docs, r#"{"query":"SELECT * FROM c"}"#).query();
        let page = client
            .send(&query.header("x-ms-documentdb-partitionkey", &key))
            .expect(200);
        assert_eq!(page.json()["Documents"][0]["n"], end);
        assert_eq!(page.json()["_count"], 1);
    }
    let long = of(&"x".repeat(2049));
    let item = json!({"id": "long", "pk": "x".repeat(2049)}).to_string();
    client
        .send(&Request::post(docs, item).header("x-ms-documentdb-partitionkey", &long))
        .expect_error(400);
}

#[test]
fn definitions_come_back_as_they_were_sent() {
    let (_server, mut client) = started();
    let definition = json!({
        "id": "x", "partitionKey": {"paths": ["/pk"], "kind": "Hash"},
        "indexingPolicy": {"automatic": false, "vectorIndexes": [
            {"path": "/v", "type": "diskANN", "vectorIndexShardKeys": ["/city"]}]},
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [
            {"path": "/v", "dataType": "float32", "dimensions": 8, "distanceFunction": "cosine"}]},
        "fullTextPolicy": {"package": "standard", "defaultSpec": {"language": "en-US", "filters": ["stop", "lowercase", "stem"]},
                           "fullTextPaths": [{"path": "/t", "tokenizer": "word"}]},
        "dataMaskingPolicy": {"isPolicyEnabled": true},
    });
    client
        .send(&Request::post("/dbs/d/colls", definition.to_string()))
        .expect(201);
    let read = client.send(&Request::get("/dbs/d/colls/x")).expect(200).json();
    assert_eq!(
        read["partitionKey"], definition["partitionKey"],
        "no version where none was sent"
    );
    assert_eq!(read["indexingPolicy"]["automatic"], true);
    assert_eq!(
        read["indexingPolicy"]["vectorIndexes"],
        definition["indexingPolicy"]["vectorIndexes"]
    );
    assert_eq!(read["fullTextPolicy"], definition["fullTextPolicy"]);
    assert_eq!(read["dataMaskingPolicy"], definition["dataMaskingPolicy"]);
    let blank = r#"{"id":"y","partitionKey":{"paths":["/id ds"]}}"#;
    let refused = client.send(&Request::post("/dbs/d/colls", blank)).expect_error(400);
    assert!(
        refused.text().contains("must contain only valid characters"),
        "{}",
        refused.text()
    );
}

#[test]
fn a_client_learns_from_a_304_that_its_encryption_key_is_still_good() {
    let (_server, mut client) = started();
    let key = json!({
        "id": "k", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256", "wrappedDataEncryptionKey": "AQID",
        "keyWrapMetadata": {"type": "t", "name": "n", "value": "v", "algorithm": "a"},
    });
    let path = "/dbs/d/clientencryptionkeys";
    let created = client.send(&Request::post(path, key.to_string())).expect(201);
    let etag = created.header("etag").expect("an etag").to_owned();
    let read = Request::get("/dbs/d/clientencryptionkeys/k");
    let known = client.send(&read.clone().header("if-none-match", &etag)).expect(304);
    assert_eq!((known.body.as_slice(), known.header("etag")), (&b""[..], Some(&*etag)));
    client.send(&read.header("if-none-match", "\"other\"")).expect(200);
}

#[test]
fn an_id_with_a_bare_question_mark_is_what_was_signed() {
    // JavaScript: IdWithDisallowedCharQuestionMark. It does not encode `?`, and signs the link as it is.
    let (_server, mut client) = started();
    let id = "Disallowed?Chars é";
    let item = json!({"id": id, "pk": "p"}).to_string();
    client.send(&Request::post(DOCS, &item).pk()).expect(201);
    let path = "/dbs/d/colls/c/docs/Disallowed?Chars%20%C3%A9";
    let signed = |request: Request| request.pk().signing(&format!("dbs/d/colls/c/docs/{id}"));
    assert_eq!(client.send(&signed(Request::get(path))).expect(200).json()["id"], id);
    client.send(&signed(Request::put(path, &item))).expect(200);
    client.send(&signed(Request::new("DELETE", path))).expect(204);
    // A signature for the path alone is valid for the item of that id; a signature for neither is refused.
    create_item(&mut client, "Disallowed");
    let plain = Request::get("/dbs/d/colls/c/docs/Disallowed?x=1").pk();
    let found = client
        .send(&plain.clone().signing("dbs/d/colls/c/docs/Disallowed"))
        .expect(200);
    assert_eq!(found.json()["id"], "Disallowed");
    client
        .send(&plain.signing("dbs/d/colls/c/docs/Disallowed?x=2"))
        .expect_error(401);
}

#[test]
fn clients_in_direct_mode_that_are_not_served_get_an_error_whatever_they_sign() {
    let server = Server::in_memory(&["--no-direct"]);
    let mut client = server.client();
    for path in [
        "/addresses/?$resolveFor=dbs&$filter=protocol%20eq%20rntbd",
        "//addresses/",
    ] {
        let refused = client
            .send(&Request::get(path).signing_as("docs", "x"))
            .expect_error(400);
        assert!(refused.text().contains("gateway mode"), "{}", refused.text());
    }
}

#[test]
fn messages_have_the_words_that_clients_look_for() {
    let (_server, mut client) = started();
    create_item(&mut client, "a");
    let bad = |request: Request| request.header("x-ms-continuation", "-RID:~x#RT:1").pk();
    for request in [
        bad(Request::post(DOCS, r#"{"query":"SELECT * FROM c"}"#).query()),
        bad(Request::get(DOCS)),
        bad(Request::get("/dbs")),
    ] {
        let refused = client.send(&request).expect_error(400);
        assert!(
            refused.text().contains("Invalid Continuation Token"),
            "{}",
            refused.text()
        );
    }
    let definition = r#"{"id":"h","partitionKey":{"paths":["/pk"]},"changeFeedPolicy":{"retentionDuration":10}}"#;
    client.send(&Request::post("/dbs/d/colls", definition)).expect(201);
    let feed = Request::get("/dbs/d/colls/h/docs").header("a-im", "Full-Fidelity Feed");
    for from in [None, Some("Thu, 01 Jan 2026 00:00:00 GMT")] {
        let feed = match from {
            Some(time) => feed.clone().header("if-modified-since", time),
            None => feed.clone(),
        };
        let refused = client.send(&feed).expect_error(400);
        let words = "You must read the change feed from within the retention period.";
        assert!(refused.text().contains(words), "{}", refused.text());
    }
}

#[test]
fn changes_come_from_strictly_after_a_second_that_may_be_utc() {
    // .NET: ValidateChangeFeedIfModifiedSince; Go writes UTC.
    let server = Server::in_memory(&["--virtual-clock=2026-01-01T00:00:00Z"]);
    let mut client = server.client();
    create_container(&mut client);
    create_item(&mut client, "one");
    client
        .send(&Request::put("/_bolide/clock", r#"{"advanceMs":2000}"#))
        .expect(200);
    create_item(&mut client, "two");
    let feed = Request::get(DOCS).header("a-im", "Incremental Feed");
    for (since, found) in [
        ("Wed, 31 Dec 2025 23:59:59 GMT", vec!["one", "two"]),
        ("Thu, 01 Jan 2026 00:00:00 GMT", vec!["two"]),
        ("Thu, 01 Jan 2026 00:00:00 UTC", vec!["two"]),
        ("Thu, 01 Jan 2026 00:00:01 UTC", vec!["two"]),
    ] {
        let page = client
            .send(&feed.clone().header("if-modified-since", since))
            .expect(200);
        assert_eq!(ids(&page), found, "{since}");
    }
    let end = feed.header("if-modified-since", "Thu, 01 Jan 2026 00:00:02 GMT");
    client.send(&end).expect(304);
}

#[test]
fn small_things_that_old_clients_parse_are_there() {
    let (_server, mut client) = started();
    // Java 3 parses these without checking whether they exist.
    let root = client.send(&Request::get("/")).expect(200);
    for name in ["x-ms-max-media-storage-usage-mb", "x-ms-media-storage-usage-mb"] {
        let value = root.header(name).expect(name);
        assert!(value.parse::<u64>().is_ok(), "{value}");
    }
    // Java 3: validateStoreHeader.
    let create = Request::post(DOCS, r#"{"id":"a","pk":"p"}"#).pk();
    let excluding = create.header("x-ms-exclude-system-properties", "true");
    let created = client.send(&excluding).expect(201).json();
    assert_eq!((created.get("_self"), created.get("_attachments")), (None, None));
    assert!(created["_rid"].is_string() && created["_etag"].is_string() && created["_ts"].is_i64());
    let read = client
        .send(&Request::get("/dbs/d/colls/c/docs/a").pk())
        .expect(200)
        .json();
    assert!(read["_self"].is_string());
}

#[test]
fn index_metrics_come_in_their_second_version_and_advice_does() {
    // JavaScript and .NET: both decode percent escapes.
    let (_server, mut client) = started();
    create_item(&mut client, "a");
    let query = Request::post(
        DOCS,
        r#"{"query":"SELECT * FROM c WHERE CONTAINS(c.name, 'x') OR c.id = 'a'"}"#,
    )
    .query()
    .pk();
    let asked = query
        .header("x-ms-cosmos-populateindexmetrics-V2", "true")
        .header("x-ms-cosmos-populatequeryadvice", "True");
    let page = client.send(&asked).expect(200);
    let decoded = |name: &str| -> Value {
        let text = page.header(name).expect(name);
        let text = percent_encoding::percent_decode_str(text).decode_utf8().expect("UTF-8");
        serde_json::from_str(&text).expect("JSON")
    };
    assert_eq!(
        decoded("x-ms-cosmos-index-utilization"),
        json!({
            "UtilizedIndexes": {"SingleIndexes": [{"IndexSpec": "/name/?"}, {"IndexSpec": "/id/?"}], "CompositeIndexes": []},
            "PotentialIndexes": {"SingleIndexes": [], "CompositeIndexes": []},
        })
    );
    assert_eq!(
        decoded("x-ms-cosmos-query-advice"),
        json!([{"Id": "QA1002", "Params": []}])
    );
    let plain = Request::post(DOCS, r#"{"query":"SELECT * FROM c"}"#).query().pk();
    let page = client.send(&plain).expect(200);
    assert_eq!(page.header("x-ms-cosmos-query-advice"), None);
}

#[test]
fn a_stale_client_hears_of_a_deleted_container_as_of_any_resource() {
    // Java: a client whose container was deleted expects 404 without a sub-status.
    let (_server, mut client) = started();
    let rid = client.send(&Request::get("/dbs/d/colls/c")).expect(200).json()["_rid"].clone();
    let rid = rid.as_str().expect("a resource id");
    client.send(&Request::new("DELETE", "/dbs/d/colls/c")).expect(204);
    for request in [
        Request::get("/dbs/d/colls/c/docs/a").pk(),
        Request::post(DOCS, r#"{"id":"a","pk":"p"}"#).pk(),
        Request::post(DOCS, r#"{"query":"SELECT * FROM c"}"#).query().pk(),
    ] {
        let request = request.header("x-ms-cosmos-intended-collection-rid", rid);
        let gone = client.send(&request).expect_error(404);
        assert_eq!(gone.header("x-ms-substatus"), None);
    }
}
