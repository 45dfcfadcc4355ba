//! Users, permissions, and the rights of their tokens.

use serde_json::{Value, json};

use crate::client::{Client, Request, Response, create_container, create_item};
use crate::server::Server;

const CONTAINER: &str = "/dbs/d/colls/c";
const DOCS: &str = "/dbs/d/colls/c/docs";
const ITEM: &str = "/dbs/d/colls/c/docs/a";
const READONLY: &str = "cmVhZG9ubHktcmVhZG9ubHktcmVhZG9ubHk=";

/// A server with an item `a`, and a user `u`.
fn started(options: &[&str]) -> (Server, Client) {
    let server = Server::in_memory(options);
    let mut client = server.client();
    create_container(&mut client);
    create_item(&mut client, "a");
    client.send(&Request::post("/dbs/d/users", r#"{"id":"u"}"#)).expect(201);
    (server, client)
}

fn grant(client: &mut Client, permission: &Value) -> Response {
    client.send(&Request::post("/dbs/d/users/u/permissions", permission.to_string()))
}

/// The token of a new permission.
fn token(client: &mut Client, mode: &str, resource: &str) -> String {
    let permission = json!({"id": resource.replace('/', "-"), "permissionMode": mode, "resource": resource});
    token_of(&grant(client, &permission).expect(201))
}

fn token_of(response: &Response) -> String {
    response.json()["_token"].as_str().expect("a token").to_owned()
}

/// The request with a token instead of a signature, escaped as SDKs do.
fn with(request: Request, token: &str) -> Request {
    let escaped = token.replace('=', "%3D").replace('&', "%26").replace(';', "%3B");
    request.header("authorization", &escaped)
}

#[test]
fn a_user_goes_through_its_life() {
    let (_server, mut client) = started(&[]);
    let user = client.send(&Request::get("/dbs/d/users/u")).expect(200).json();
    assert_eq!(
        (&user["id"], &user["_permissions"]),
        (&json!("u"), &json!("permissions/"))
    );
    client
        .send(&Request::post("/dbs/d/users", r#"{"id":"u"}"#))
        .expect_error(409);
    client
        .send(&Request::post("/dbs/d/users", r#"{"id":"u/v"}"#))
        .expect_error(400);
    client
        .send(&Request::post("/dbs/x/users", r#"{"id":"u"}"#))
        .expect_error(404);
    let by_rid = format!("/{}", user["_self"].as_str().expect("a link"));
    let found = client.send(&Request::get(by_rid.trim_end_matches('/'))).expect(200);
    assert_eq!(found.json(), user);
    let renamed = client
        .send(&Request::put("/dbs/d/users/u", r#"{"id":"v"}"#))
        .expect(200)
        .json();
    assert_eq!((&renamed["id"], &renamed["_rid"]), (&json!("v"), &user["_rid"]));
    let list = client.send(&Request::get("/dbs/d/users")).expect(200).json();
    assert_eq!((&list["_count"], &list["Users"][0]["id"]), (&json!(1), &json!("v")));
    let query = Request::post("/dbs/d/users", r#"{"query":"SELECT * FROM r WHERE r.id = 'v'"}"#).query();
    assert_eq!(client.send(&query).expect(200).json()["_count"], 1);
    client.send(&Request::new("DELETE", "/dbs/d/users/v")).expect(204);
    client.send(&Request::get("/dbs/d/users/v")).expect_error(404);
}

#[test]
fn a_permission_goes_through_its_life_and_shows_a_new_token_each_time() {
    let (_server, mut client) = started(&["--virtual-clock"]);
    let sent =
        json!({"id": "p", "permissionMode": "All", "resource": "dbs/d/colls/none", "resourcePartitionKey": ["p"]});
    let created = grant(&mut client, &sent).expect(201).json();
    for member in ["id", "permissionMode", "resource", "resourcePartitionKey"] {
        assert_eq!(created[member], sent[member], "{member}");
    }
    grant(&mut client, &sent).expect_error(409);
    client
        .send(&Request::put("/_bolide/clock", r#"{"advanceMs":1000}"#))
        .expect(200);
    let read = client
        .send(&Request::get("/dbs/d/users/u/permissions/p"))
        .expect(200)
        .json();
    assert_eq!(read["_etag"], created["_etag"]);
    assert_ne!(read["_token"], created["_token"]);
    let upsert =
        Request::post("/dbs/d/users/u/permissions", sent.to_string()).header("x-ms-documentdb-is-upsert", "True");
    assert_eq!(client.send(&upsert).expect(200).json()["_rid"], created["_rid"]);
    let renamed = json!({"id": "q", "permissionMode": "Read", "resource": "dbs/d/colls/none"});
    client
        .send(&Request::put("/dbs/d/users/u/permissions/p", renamed.to_string()))
        .expect(200);
    let list = client
        .send(&Request::get("/dbs/d/users/u/permissions"))
        .expect(200)
        .json();
    assert_eq!(list["Permissions"][0]["id"], "q");
    assert!(list["Permissions"][0]["_token"].is_string());
    client
        .send(&Request::new("DELETE", "/dbs/d/users/u/permissions/q"))
        .expect(204);
    client
        .send(&Request::get("/dbs/d/users/u/permissions/q"))
        .expect_error(404);
}

#[test]
fn malformed_permissions_are_refused_by_name() {
    let (_server, mut client) = started(&[]);
    let good = json!({"id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c"});
    for (member, value) in [
        ("id", json!(1)),
        ("permissionMode", json!("Write")),
        ("permissionMode", Value::Null),
        ("resource", json!("dbs/d")),
        ("resource", Value::Null),
        ("resourcePartitionKey", json!("p")),
        ("resourcePartitionKey", json!([])),
        ("resourcePartitionKey", json!([["p"]])),
    ] {
        let mut permission = good.clone();
        permission[member] = value;
        let refused = grant(&mut client, &permission).expect_error(400);
        assert!(refused.text().contains(member), "{}", refused.text());
    }
    for seconds in ["9", "18001", "soon"] {
        let request = Request::post("/dbs/d/users/u/permissions", good.to_string())
            .header("x-ms-documentdb-expiry-seconds", seconds);
        client.send(&request).expect_error(400);
    }
}

#[test]
fn a_token_to_read_a_container_reads_what_is_in_it_and_nothing_else() {
    let (_server, mut client) = started(&[]);
    client
        .send(&Request::post(
            "/dbs/d/colls",
            r#"{"id":"other","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#,
        ))
        .expect(201);
    let token = token(&mut client, "Read", "dbs/d/colls/c");
    let select = Request::post(DOCS, r#"{"query":"SELECT * FROM c"}"#).query();
    for allowed in [
        Request::get("/"),
        Request::get(CONTAINER),
        Request::get("/dbs/d/colls/c/pkranges"),
        Request::get(DOCS),
        Request::get(ITEM).pk(),
        Request::get("/dbs/d/colls/c/conflicts"),
        select,
    ] {
        client.send(&with(allowed, &token)).expect(200);
    }
    for refused in [
        Request::post(DOCS, r#"{"id":"b","pk":"p"}"#).pk(),
        Request::put(ITEM, r#"{"id":"a","pk":"p"}"#).pk(),
        Request::new("DELETE", ITEM).pk(),
        Request::new("DELETE", CONTAINER),
        Request::get("/dbs"),
        Request::get("/dbs/d"),
        Request::get("/dbs/d/colls"),
        Request::get("/offers"),
        Request::get("/dbs/d/users/u/permissions"),
        Request::get("/dbs/d/colls/other"),
        Request::get("/dbs/d/colls/other/docs"),
        Request::get("/dbs/d/colls/missing"),
    ] {
        client.send(&with(refused, &token)).expect_error(403);
    }
    client
        .send(&with(Request::get("/_bolide/clock"), &token))
        .expect_error(401);
}

#[test]
fn a_token_for_all_of_a_container_writes_its_items_and_not_the_container() {
    let (_server, mut client) = started(&[]);
    let token = token(&mut client, "All", "dbs/d/colls/c");
    client
        .send(&with(Request::post(DOCS, r#"{"id":"b","pk":"p"}"#).pk(), &token))
        .expect(201);
    let batch = Request::post(DOCS, r#"[{"operationType":"Read","id":"b"}]"#)
        .pk()
        .header("x-ms-cosmos-is-batch-request", "True")
        .header("x-ms-cosmos-batch-atomic", "True");
    client.send(&with(batch, &token)).expect(200);
    client
        .send(&with(Request::new("DELETE", ITEM).pk(), &token))
        .expect(204);
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    client
        .send(&with(Request::put(CONTAINER, container), &token))
        .expect_error(403);
    client
        .send(&with(Request::new("DELETE", CONTAINER), &token))
        .expect_error(403);
}

#[test]
fn a_token_for_an_item_opens_that_item_and_shows_its_container() {
    let (_server, mut client) = started(&[]);
    create_item(&mut client, "b");
    let token = token(&mut client, "All", "dbs/d/colls/c/docs/a");
    client.send(&with(Request::get(CONTAINER), &token)).expect(200);
    client
        .send(&with(Request::get("/dbs/d/colls/c/pkranges"), &token))
        .expect(200);
    client.send(&with(Request::get(ITEM).pk(), &token)).expect(200);
    for refused in [
        Request::get(DOCS),
        Request::get("/dbs/d/colls/c/docs/b").pk(),
        Request::get("/dbs/d/colls/c/docs/ab").pk(),
        Request::post(DOCS, r#"{"id":"a","pk":"p"}"#)
            .pk()
            .header("x-ms-documentdb-is-upsert", "True"),
    ] {
        client.send(&with(refused, &token)).expect_error(403);
    }
    client
        .send(&with(Request::new("DELETE", ITEM).pk(), &token))
        .expect(204);
}

#[test]
fn a_token_for_a_partition_key_opens_its_items_only() {
    let (_server, mut client) = started(&[]);
    let permission =
        json!({"id": "p", "permissionMode": "All", "resource": "dbs/d/colls/c", "resourcePartitionKey": ["p"]});
    let token = token_of(&grant(&mut client, &permission).expect(201));
    client.send(&with(Request::get(CONTAINER), &token)).expect(200);
    client.send(&with(Request::get(ITEM).pk(), &token)).expect(200);
    let select = || Request::post(DOCS, r#"{"query":"SELECT * FROM c"}"#).query();
    client.send(&with(select().pk(), &token)).expect(200);
    let other = |request: Request| request.header("x-ms-documentdb-partitionkey", r#"["q"]"#);
    for refused in [
        select(),
        Request::get(DOCS),
        other(Request::get(ITEM)),
        other(Request::post(DOCS, r#"{"id":"b","pk":"q"}"#)),
        Request::post(DOCS, r#"{"id":"b","pk":"p"}"#),
    ] {
        client.send(&with(refused, &token)).expect_error(403);
    }
    // The item's own key determines its partition.
    client
        .send(&with(Request::post(DOCS, r#"{"id":"b","pk":"q"}"#).pk(), &token))
        .expect_error(400);
}

#[test]
fn a_token_for_a_long_key_opens_none_that_begins_alike() {
    let (_server, mut client) = started(&[]);
    for kind in ["Hash", "Range"] {
        let definition = json!({"id": kind, "partitionKey": {"paths": ["/pk"], "kind": kind, "version": 1}});
        client
            .send(&Request::post("/dbs/d/colls", definition.to_string()))
            .expect(201);
        let (docs, long) = (format!("/dbs/d/colls/{kind}/docs"), "x".repeat(150));
        let keys = [format!("{long}a"), format!("{long}b")];
        let of =
            |request: Request, key: &str| request.header("x-ms-documentdb-partitionkey", &json!([key]).to_string());
        for key in &keys {
            let item = json!({"id": "i", "pk": key});
            client
                .send(&of(Request::post(&docs, item.to_string()), key))
                .expect(201);
        }
        let resource = format!("dbs/d/colls/{kind}");
        let permission = json!({
            "id": kind, "permissionMode": "All", "resource": resource, "resourcePartitionKey": [keys[0]],
        });
        let token = token_of(&grant(&mut client, &permission).expect(201));
        for (key, status) in [(&keys[0], 200), (&keys[1], 403)] {
            let item = Request::get(&format!("{docs}/i"));
            client.send(&with(of(item, key), &token)).expect(status);
        }
        let listed = client
            .send(&with(of(Request::get(&docs), &keys[0]), &token))
            .expect(200);
        assert_eq!(listed.json()["_count"], 1);
        assert_eq!(listed.json()["Documents"][0]["pk"], keys[0]);
    }
}

#[test]
fn a_token_expires_by_server_time() {
    let (_server, mut client) = started(&["--virtual-clock=2030-01-01T00:00:00Z"]);
    let permission = json!({"id": "p", "permissionMode": "Read", "resource": "dbs/d/colls/c"});
    let request = Request::post("/dbs/d/users/u/permissions", permission.to_string())
        .header("x-ms-documentdb-expiry-seconds", "10");
    let token = token_of(&client.send(&request).expect(201));
    let mut after = |ms: u64| {
        let body = format!(r#"{{"advanceMs":{ms}}}"#);
        client.send(&Request::put("/_bolide/clock", body)).expect(200);
        client.send(&with(Request::get(ITEM).pk(), &token)).status
    };
    assert_eq!((after(9_999), after(1)), (200, 403));
}

#[test]
fn a_token_outlives_its_permission_but_not_its_account_key() {
    let (_server, mut client) = started(&[]);
    let token = token(&mut client, "Read", "dbs/d/colls/c");
    client.send(&Request::new("DELETE", "/dbs/d/users/u")).expect(204);
    client.send(&with(Request::get(ITEM).pk(), &token)).expect(200);
    let stranger = Server::in_memory(&["--key", "c3RyYW5nZXItc3RyYW5nZXItc3RyYW5nZXI="]);
    stranger
        .client()
        .send(&with(Request::get("/"), &token))
        .expect_error(401);
}

#[test]
fn names_and_resource_ids_open_the_same_container() {
    let (_server, mut client) = started(&[]);
    let container = client.send(&Request::get(CONTAINER)).expect(200).json();
    let link = container["_self"].as_str().expect("a link").trim_end_matches('/');
    let token = token(&mut client, "Read", link);
    client.send(&with(Request::get(ITEM).pk(), &token)).expect(200);
    client
        .send(&with(Request::get(&format!("/{link}/docs/a")).pk(), &token))
        .expect(200);
}

#[test]
fn a_read_only_key_gets_no_tokens() {
    let (_server, mut client) = started(&["--readonly-key", READONLY]);
    token(&mut client, "All", "dbs/d/colls/c");
    client.send(&Request::get("/dbs/d/users/u").key(READONLY)).expect(200);
    client
        .send(&Request::get("/dbs/d/users/u/permissions").key(READONLY))
        .expect_error(403);
}

#[test]
fn tampered_tokens_are_refused() {
    let (_server, mut client) = started(&[]);
    let token = token(&mut client, "Read", "dbs/d/colls/c");
    for tampered in [
        "type=resource&ver=1.0&sig=".to_owned(),
        "type=resource&ver=1.0&sig=a;b;".to_owned(),
        token.replace("sig=", "sig=A"),
        token.replace("type=resource", "type=master"),
    ] {
        client.send(&with(Request::get(ITEM).pk(), &tampered)).expect_error(401);
    }
}
