//! Containers without a partition key, made by old clients, and used by those and by newer clients.

use serde_json::{Value, json};

use crate::client::{Client, Request, Response};
use crate::server::Server;

const CONTAINER: &str = "/dbs/d/colls/c";
const DOCS: &str = "/dbs/d/colls/c/docs";
/// The partition key of the container as newer clients read it, without its version.
const KEY: &str = "/_partitionKey";

/// As a client from before 2018-12-31 sends it: without a partition key.
fn old(request: Request) -> Request {
    request.header("x-ms-version", "2018-08-31")
}

/// As newer clients send it for items without a key.
fn none(request: Request) -> Request {
    request.header("x-ms-documentdb-partitionkey", "[]")
}

/// For the items that newer clients wrote with a key.
fn of(request: Request, key: &str) -> Request {
    request.header("x-ms-documentdb-partitionkey", &json!([key]).to_string())
}

fn started(arguments: &[&str], throughput: &str) -> (Server, Client) {
    let server = Server::in_memory(arguments);
    let mut client = server.client();
    client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
    let container = old(Request::post(
        "/dbs/d/colls",
        r#"{"id":"c","partitionKey":{"paths":[],"kind":"Hash"}}"#,
    ));
    let created = client
        .send(&container.header("x-ms-offer-throughput", throughput))
        .expect(201);
    let created = created.json();
    assert_eq!(created.get("partitionKey"), None);
    let indexes = &created["indexingPolicy"]["includedPaths"][0]["indexes"];
    assert_eq!(
        indexes[0],
        json!({"kind": "Range", "dataType": "Number", "precision": -1})
    );
    (server, client)
}

/// The ids of all pages, in order.
fn ids(client: &mut Client, request: &Request) -> Vec<String> {
    let (mut ids, mut next) = (Vec::new(), request.clone());
    loop {
        let response = client.send(&next).expect(200);
        let rows = response.json()["Documents"].as_array().cloned().expect("rows");
        ids.extend(rows.iter().filter_map(|row| row["id"].as_str().map(str::to_owned)));
        match response.header("x-ms-continuation") {
            Some(continuation) => next = request.clone().header("x-ms-continuation", continuation),
            None => break,
        }
    }
    ids.sort();
    ids
}

fn query(text: &str) -> Request {
    Request::post(DOCS, json!({ "query": text }).to_string())
        .header("x-ms-documentdb-isquery", "True")
        .header("content-type", "application/query+json")
}

/// Limits a request to an interval of effective partition keys.
fn between(request: Request, start: &str, end: &str) -> Request {
    request
        .header("x-ms-read-key-type", "EffectivePartitionKeyRange")
        .header("x-ms-start-epk", start)
        .header("x-ms-end-epk", end)
}

#[test]
fn only_old_clients_make_them_and_see_no_key() {
    let (_server, mut client) = started(&[], "400");
    let unkeyed = Request::post("/dbs/d/colls", r#"{"id":"new"}"#);
    client
        .send(&unkeyed.header("x-ms-version", "2018-12-31"))
        .expect_error(400);
    client
        .send(&Request::post("/dbs/d/colls", r#"{"id":"new"}"#))
        .expect_error(400);

    let read = client.send(&Request::get(CONTAINER)).expect(200).json();
    assert_eq!(
        (&read["partitionKey"]["paths"], &read["partitionKey"]["systemKey"]),
        (&json!([KEY]), &json!(true))
    );
    assert_eq!(
        client
            .send(&old(Request::get(CONTAINER)))
            .expect(200)
            .json()
            .get("partitionKey"),
        None
    );
    let listed = |response: Response| response.json()["DocumentCollections"][0].get("partitionKey").cloned();
    assert!(listed(client.send(&Request::get("/dbs/d/colls"))).is_some());
    assert_eq!(listed(client.send(&old(Request::get("/dbs/d/colls")))), None);

    let replaced = client
        .send(&old(Request::put(CONTAINER, r#"{"id":"c","defaultTtl":5}"#)))
        .expect(200)
        .json();
    assert_eq!(
        (replaced.get("partitionKey"), &replaced["defaultTtl"]),
        (None, &json!(5))
    );
    assert_eq!(read["indexingPolicy"]["includedPaths"], json!([{"path": "/*"}]));
    let again = client
        .send(&Request::put(CONTAINER, read.to_string()))
        .expect(200)
        .json();
    assert_eq!(again["partitionKey"], read["partitionKey"]);
}

#[test]
fn items_without_a_key_are_the_same_to_old_and_new_clients() {
    for throughput in ["400", "30000"] {
        let (_server, mut client) = started(&[], throughput);
        let item = |id: &str| format!(r#"{{"id":"{id}","n":1}}"#);
        client.send(&old(Request::post(DOCS, item("old")))).expect(201);
        client.send(&none(Request::post(DOCS, item("new")))).expect(201);
        client.send(&none(Request::post(DOCS, item("old")))).expect_error(409);
        let keyed = r#"{"id":"old","_partitionKey":"k"}"#;
        client.send(&none(Request::post(DOCS, keyed))).expect_error(400);
        client.send(&of(Request::post(DOCS, keyed), "k")).expect(201);

        let at = |id: &str| format!("{DOCS}/{id}");
        let old_one = client.send(&none(Request::get(&at("old")))).expect(200).json();
        assert_eq!(old_one, client.send(&old(Request::get(&at("old")))).expect(200).json());
        assert_eq!(
            client.send(&of(Request::get(&at("old")), "k")).expect(200).json()["_partitionKey"],
            "k"
        );
        let undefined = Request::get(&at("new")).header("x-ms-documentdb-partitionkey", "[{}]");
        client.send(&undefined).expect(200);

        client.send(&old(Request::put(&at("new"), item("new")))).expect(200);
        let upsert = |request: Request| request.header("x-ms-documentdb-is-upsert", "True");
        client.send(&upsert(none(Request::post(DOCS, item("new"))))).expect(200);
        let patch = r#"{"operations":[{"op":"incr","path":"/n","value":2}]}"#;
        let patched = client
            .send(&none(Request::new("PATCH", &at("new")).body(patch)))
            .expect(200);
        assert_eq!(patched.json()["n"], 3);

        parts_are_told_apart(&mut client);
        for (key, count) in [(json!([]), 2), (json!(["k"]), 1)] {
            let query = json!({"query": "SELECT * FROM c", "partitionKey": key}).to_string();
            let response = client
                .send(&Request::post("/_bolide/dbs/d/colls/c/query", query))
                .expect(200);
            let rows = response.json()["rows"].as_array().map(Vec::len);
            assert_eq!(rows, Some(count), "{key}");
        }

        client.send(&none(Request::new("DELETE", &at("old")))).expect(204);
        client.send(&of(Request::get(&at("old")), "k")).expect(200);
        client.send(&old(Request::new("DELETE", &at("new")))).expect(204);
        client.send(&none(Request::get(&at("new")))).expect_error(404);
    }
}

/// `old` and `new` without a key, `old` with key `k`: in feeds, changes and queries.
fn parts_are_told_apart(client: &mut Client) {
    let all = ["new", "old", "old"];
    let changes = |request: Request| request.header("a-im", "Incremental feed");
    for (request, expected) in [
        (none(Request::get(DOCS)), &all[..2]),
        (of(Request::get(DOCS), "k"), &all[2..]),
        (none(changes(Request::get(DOCS))), &all[..2]),
        (of(changes(Request::get(DOCS)), "k"), &all[2..]),
        (none(query("SELECT * FROM c")), &all[..2]),
        (none(query("SELECT * FROM c ORDER BY c.id")), &all[..2]),
        (of(query("SELECT * FROM c"), "k"), &all[2..]),
        (old(query("SELECT * FROM c")), &all[..2]),
        (query("SELECT * FROM c").query(), &all),
        (query("SELECT * FROM c WHERE c._partitionKey = 'k'"), &all[2..]),
        (
            none(query("SELECT * FROM c WHERE NOT IS_DEFINED(c._partitionKey)")),
            &all[..2],
        ),
        (between(changes(Request::get(DOCS)), "", "00"), &all[..2]),
        (between(Request::get(DOCS), "00", "FF"), &all[2..]),
        // Where newer clients expect items without a key.
        (
            none(query("SELECT * FROM c")).header("x-ms-documentdb-partitionkeyrangeid", "0"),
            &all[..2],
        ),
    ] {
        assert_eq!(
            ids(client, &request),
            expected,
            "{:?}",
            String::from_utf8_lossy(&request.to_bytes())
        );
    }
}

#[test]
fn batches_and_procedures_work_on_items_without_a_key() {
    let (_server, mut client) = started(&[], "400");
    let operations = |id: &str, key: Option<&str>| {
        let mut create = json!({"operationType": "Create", "resourceBody": {"id": id}});
        if let Some(key) = key {
            create["partitionKey"] = key.into();
        }
        json!([create]).to_string()
    };
    let batch = |body: String| Request::post(DOCS, body).header("x-ms-cosmos-is-batch-request", "True");
    let atomic = |request: Request| request.header("x-ms-cosmos-batch-atomic", "True");
    client.send(&none(atomic(batch(operations("a", None))))).expect(200);
    client.send(&old(atomic(batch(operations("b", None))))).expect(200);
    client.send(&batch(operations("c", Some("[]")))).expect(200);

    let script = json!({
        "id": "s",
        "body": "function () { __.createDocument(__.getSelfLink(), { id: 'd' }, () => getContext().getResponse().setBody(1)) }",
    });
    client
        .send(&Request::post(&format!("{CONTAINER}/sprocs"), script.to_string()))
        .expect(201);
    let execute = none(Request::post(&format!("{CONTAINER}/sprocs/s"), "[]"));
    assert_eq!(client.send(&execute).expect(200).text(), "1");
    assert_eq!(ids(&mut client, &none(Request::get(DOCS))), ["a", "b", "c", "d"]);
    let all = none(Request::post(&format!("{CONTAINER}/operations/partitionkeydelete"), ""))
        .signing_as("colls", "dbs/d/colls/c");
    client.send(&all).expect(200);
    assert_eq!(ids(&mut client, &old(Request::get(DOCS))), [""; 0]);
}

#[test]
fn items_without_a_key_expire() {
    let (_server, mut client) = started(&["--virtual-clock=2023-11-14T22:13:20Z"], "400");
    client
        .send(&old(Request::put(CONTAINER, r#"{"id":"c","defaultTtl":5}"#)))
        .expect(200);
    client.send(&old(Request::post(DOCS, r#"{"id":"a"}"#))).expect(201);
    client
        .send(&none(Request::post(DOCS, r#"{"id":"b","ttl":-1}"#)))
        .expect(201);
    client
        .send(&Request::put("/_bolide/clock", r#"{"advanceMs":5000}"#))
        .expect(200);
    client.send(&old(Request::get(&format!("{DOCS}/a")))).expect_error(404);
    client.send(&none(Request::get(&format!("{DOCS}/b")))).expect(200);
    let why: Value = client
        .send(&Request::get("/_bolide/dbs/d/colls/c/ttl/why?id=b&pk=%5B%5D"))
        .expect(200)
        .json();
    assert_eq!(why["state"], "live");
}

#[test]
fn a_token_for_items_without_a_key_opens_them_however_the_request_says_so() {
    let (_server, mut client) = started(&[], "400");
    client.send(&none(Request::post(DOCS, r#"{"id":"a"}"#))).expect(201);
    let keyed = Request::post(DOCS, r#"{"id":"a","_partitionKey":"k"}"#);
    client.send(&of(keyed, "k")).expect(201);
    let at = || Request::get("/dbs/d/colls/c/docs/a");
    for (user, key) in [("u", json!([])), ("v", json!([{}]))] {
        client
            .send(&Request::post("/dbs/d/users", json!({"id": user}).to_string()))
            .expect(201);
        let permission = json!({
            "id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c", "resourcePartitionKey": key,
        });
        let permission = Request::post(&format!("/dbs/d/users/{user}/permissions"), permission.to_string());
        let created = client.send(&permission).expect(201).json();
        let token = created["_token"].as_str().expect("a token").replace('=', "%3D");
        let with = |request: Request| request.header("authorization", &token.replace('&', "%26").replace(';', "%3B"));
        client.send(&with(none(at()))).expect(200);
        client
            .send(&with(at().header("x-ms-documentdb-partitionkey", "[{}]")))
            .expect(200);
        assert_eq!(ids(&mut client, &with(none(Request::get(DOCS)))), ["a"]);
        let read = |key: &str| json!([{"operationType": "Read", "id": "a", "partitionKey": key}]).to_string();
        let bulk = |key: &str| Request::post(DOCS, read(key)).header("x-ms-cosmos-is-batch-request", "True");
        let status = |response: Response| response.json()[0]["statusCode"].clone();
        assert_eq!(status(client.send(&with(bulk("[]")))), 200);
        assert_eq!(status(client.send(&with(bulk("[\"k\"]")))), 403);
        client.send(&with(of(at(), "k"))).expect_error(403);
        client.send(&with(old(Request::get(DOCS)))).expect_error(403);
    }
}

#[test]
fn items_without_a_key_stay_where_they_are_found_when_their_range_is_split() {
    let (_server, mut client) = started(&[], "400");
    client.send(&old(Request::post(DOCS, r#"{"id":"a"}"#))).expect(201);
    for key in ["k", "l", "m", "n"] {
        let keyed = json!({"id": key, "_partitionKey": key}).to_string();
        client.send(&of(Request::post(DOCS, keyed), key)).expect(201);
    }
    let changes = |request: Request| request.header("a-im", "Incremental feed");
    let mut first = json!("0");
    for _ in 0..3 {
        let split = Request::post("/_bolide/dbs/d/colls/c/split", json!({"range": first}).to_string());
        first = client.send(&split).expect(200).json()["children"][0].clone();
        client.send(&none(Request::get("/dbs/d/colls/c/docs/a"))).expect(200);
        for request in [
            none(Request::get(DOCS)),
            none(changes(Request::get(DOCS))),
            none(query("SELECT * FROM c")),
            old(query("SELECT * FROM c")),
            query("SELECT * FROM c WHERE NOT IS_DEFINED(c._partitionKey)").query(),
            between(Request::get(DOCS), "", "00"),
        ] {
            assert_eq!(
                ids(&mut client, &request),
                ["a"],
                "{:?}",
                String::from_utf8_lossy(&request.to_bytes())
            );
        }
    }
}

#[test]
fn what_an_old_client_reads_of_a_container_it_can_write_back() {
    let (_server, mut client) = started(&[], "400");
    for mode in ["none", "consistent"] {
        let definition = json!({"id": "c", "indexingPolicy": {"indexingMode": mode, "automatic": mode != "none"}});
        client
            .send(&old(Request::put(CONTAINER, definition.to_string())))
            .expect(200);
        let new = client.send(&Request::get(CONTAINER)).expect(200).json();
        let read = client.send(&old(Request::get(CONTAINER))).expect(200).json();
        let names = |policy: &Value| {
            policy
                .as_object()
                .map(|policy| policy.keys().cloned().collect::<Vec<_>>())
        };
        assert_eq!(names(&read["indexingPolicy"]), names(&new["indexingPolicy"]), "{mode}");
        let written = client
            .send(&old(Request::put(CONTAINER, read.to_string())))
            .expect(200)
            .json();
        assert_eq!(written["indexingPolicy"], read["indexingPolicy"], "{mode}");
        assert_eq!(written.get("partitionKey"), None);
    }
}
