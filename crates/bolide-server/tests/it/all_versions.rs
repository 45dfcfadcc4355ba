//! The all-versions change feed as clients see it.

use serde_json::{Value, json};

use crate::client::{Client, Request, Response, create_container};
use crate::server::Server;

const DOCS: &str = "/dbs/d/colls/c/docs";

fn started(partition_key: Value) -> (Server, Client) {
    let server = Server::in_memory(&["--virtual-clock=2023-11-14T22:13:20Z"]);
    let mut client = server.client();
    client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
    let container = json!({
        "id": "c", "partitionKey": partition_key, "defaultTtl": 10, "changeFeedPolicy": {"retentionDuration": 10},
    });
    client
        .send(&Request::post("/dbs/d/colls", container.to_string()))
        .expect(201);
    (server, client)
}

fn key_of_pk() -> Value {
    json!({"paths": ["/pk"], "kind": "Hash", "version": 2})
}

fn feed(from: &str) -> Request {
    Request::get(DOCS)
        .header("a-im", "Full-Fidelity Feed")
        .header("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15")
        .header("if-none-match", from)
}

fn etag(response: &Response) -> String {
    response.header("etag").expect("a continuation").to_owned()
}

fn rows(response: &Response) -> Vec<Value> {
    response.json()["Documents"].as_array().expect("rows").clone()
}

fn advance(client: &mut Client, seconds: i64) {
    let body = json!({"advanceMs": seconds * 1000}).to_string();
    let clock = Request::put("/_bolide/clock", body);
    client.send(&clock).expect(200);
}

#[test]
fn rows_say_what_happened_to_an_item() {
    // TTL-250
    let (_server, mut client) = started(key_of_pk());
    let nothing = client.send(&feed("*")).expect(304);
    assert_eq!(nothing.header("x-ms-item-count"), Some("0"));
    let start = etag(&nothing);
    let item = r#"{"id":"a","pk":"p","n":1}"#;
    client.send(&Request::post(DOCS, item).pk()).expect(201);
    let upsert = Request::post(DOCS, item)
        .pk()
        .header("x-ms-documentdb-is-upsert", "True");
    client.send(&upsert).expect(200);
    advance(&mut client, 10);
    client
        .send(&Request::post("/_bolide/dbs/d/colls/c/purge", r#"{"mode":"force"}"#))
        .expect(200);
    let page = client.send(&feed(&start)).expect(200);
    let rows = rows(&page);
    let lsn = |row: &Value| row["metadata"]["lsn"].as_u64().expect("an lsn");
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0]["metadata"]["operationType"], "create");
    assert_eq!(rows[0]["current"]["n"], 1);
    assert_eq!(rows[1]["metadata"]["operationType"], "replace");
    assert_eq!(rows[1]["metadata"]["previousImageLSN"], lsn(&rows[0]));
    assert_eq!(rows[1]["metadata"]["crts"], rows[1]["current"]["_ts"]);
    let crts = rows[1]["metadata"]["crts"].as_i64().expect("seconds") + 10;
    let purged = json!({"current": {}, "metadata": {
        "operationType": "delete", "lsn": lsn(&rows[2]), "crts": crts, "previousImageLSN": lsn(&rows[1]),
        "timeToLiveExpired": true, "id": "a", "partitionKey": {"pk": "p"},
    }});
    assert_eq!(rows[2], purged);
    assert!(rows.iter().all(|row| row.get("previous").is_none()));
    assert_eq!(page.header("x-ms-item-count"), Some("3"));
    client.send(&feed(&etag(&page))).expect(304);
}

#[test]
fn an_explicit_delete_is_unmarked_and_names_a_nested_key_by_its_paths() {
    let key = json!({"paths": ["/tenant", "/user/name"], "kind": "MultiHash", "version": 2});
    let (_server, mut client) = started(key);
    let start = etag(&client.send(&feed("*")).expect(304));
    let key = r#"["t",7]"#;
    let create = Request::post(DOCS, r#"{"id":"a","tenant":"t","user":{"name":7}}"#);
    client
        .send(&create.header("x-ms-documentdb-partitionkey", key))
        .expect(201);
    let delete = Request::new("DELETE", "/dbs/d/colls/c/docs/a").header("x-ms-documentdb-partitionkey", key);
    client.send(&delete).expect(204);
    let rows = rows(&client.send(&feed(&start)).expect(200));
    assert_eq!(
        rows[1]["metadata"]["partitionKey"],
        json!({"tenant": "t", "user/name": 7})
    );
    assert!(rows[1]["metadata"].get("timeToLiveExpired").is_none());
}

#[test]
fn the_previous_version_is_shown_on_request() {
    let (_server, mut client) = started(key_of_pk());
    let start = etag(&client.send(&feed("*")).expect(304));
    client
        .send(&Request::post(DOCS, r#"{"id":"a","pk":"p","n":1}"#).pk())
        .expect(201);
    client
        .send(&Request::put("/dbs/d/colls/c/docs/a", r#"{"id":"a","pk":"p","n":2}"#).pk())
        .expect(200);
    let asking = feed(&start).header("x-bolide-previous-images", "true");
    let rows = rows(&client.send(&asking).expect(200));
    assert!(rows[0].get("previous").is_none());
    assert_eq!(
        (&rows[1]["previous"]["n"], &rows[1]["current"]["n"]),
        (&json!(1), &json!(2))
    );
}

#[test]
fn it_cannot_start_in_the_past() {
    let (_server, mut client) = started(key_of_pk());
    let mode = Request::get(DOCS).header("a-im", "Full-Fidelity Feed");
    let refused = client.send(&mode.clone()).expect_error(400);
    assert!(
        refused.text().contains("Start from beginning is not supported"),
        "{}",
        refused.text()
    );
    let time = mode.header("if-modified-since", "Thu, 01 Jan 1970 00:01:00 GMT");
    client.send(&time).expect_error(400);
}

#[test]
fn a_container_without_a_policy_keeps_its_history_once_the_feed_has_begun() {
    // The service's samples of the feed use such containers.
    let (_server, mut client) = started(key_of_pk());
    let definition = json!({"id": "plain", "partitionKey": key_of_pk()}).to_string();
    let created = client.send(&Request::post("/dbs/d/colls", &definition)).expect(201);
    let docs = "/dbs/d/colls/plain/docs";
    let feed = |from: &str| {
        Request::get(docs)
            .header("a-im", "Full-Fidelity Feed")
            .header("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15")
            .header("if-none-match", from)
    };
    client
        .send(&Request::post(docs, r#"{"id":"old","pk":"p"}"#).pk())
        .expect(201);
    let start = etag(&client.send(&feed("*")).expect(304));
    client
        .send(&Request::post(docs, r#"{"id":"a","pk":"p"}"#).pk())
        .expect(201);
    client
        .send(&Request::new("DELETE", "/dbs/d/colls/plain/docs/a").pk())
        .expect(204);
    let kinds = |response: &Response| -> Vec<Value> {
        let kind = |row: Value| row["metadata"]["operationType"].clone();
        rows(response).into_iter().map(kind).collect()
    };
    let page = client.send(&feed(&start)).expect(200);
    assert_eq!(kinds(&page), ["create", "delete"]);
    // The definition keeps the policy, so a replace does not end the retention.
    let read = client.send(&Request::get("/dbs/d/colls/plain")).expect(200);
    assert_eq!(read.json(), created.json());
    client
        .send(&Request::put("/dbs/d/colls/plain", &definition))
        .expect(200);
    assert_eq!(kinds(&client.send(&feed(&start)).expect(200)), ["create", "delete"]);
    // It ends after seven days.
    advance(&mut client, 7 * 24 * 3600);
    let gone = client.send(&feed(&start)).expect_error(400);
    assert!(gone.text().contains("within the retention period"), "{}", gone.text());
    // An explicit policy of no retention is used.
    let off = json!({"id": "plain", "partitionKey": key_of_pk(), "changeFeedPolicy": {"retentionDuration": 0}});
    client
        .send(&Request::put("/dbs/d/colls/plain", off.to_string()))
        .expect(200);
    client.send(&feed("*")).expect_error(400);
}

#[test]
fn a_read_only_client_begins_no_history() {
    const READONLY: &str = "cmVhZG9ubHkgcmVhZG9ubHkgcmVhZG9ubHk=";
    let server = Server::in_memory(&["--readonly-key", READONLY]);
    let mut client = server.client();
    create_container(&mut client);
    client.send(&feed("*").key(READONLY)).expect_error(400);
    client.send(&feed("*")).expect(304);
    client.send(&feed("*").key(READONLY)).expect(304);
}
