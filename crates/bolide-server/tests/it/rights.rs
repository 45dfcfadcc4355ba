//! Data that can be read or changed only with the right to it.

mod walk;

use data_encoding::HEXLOWER;
use serde_json::{Value, json};

use crate::client::{Client, Request, Response, create_container, create_item};
use crate::server::Server;

const DOCS: &str = "/dbs/d/colls/c/docs";
/// The definition of `create_container`.
const DEFINITION: &str = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;

/// A server with item `a` under the key `p`, item `v` under `q`, and a user `u`.
fn started(options: &[&str]) -> (Server, Client) {
    let server = Server::in_memory(options);
    let mut client = server.client();
    create_container(&mut client);
    create_item(&mut client, "a");
    let others = Request::post(DOCS, r#"{"id":"v","pk":"q"}"#);
    client.send(&of_q(others)).expect(201);
    client.send(&Request::post("/dbs/d/users", r#"{"id":"u"}"#)).expect(201);
    (server, client)
}

/// Sets the partition key `q`.
fn of_q(request: Request) -> Request {
    request.header("x-ms-documentdb-partitionkey", r#"["q"]"#)
}

/// The token of a new permission; `name` makes it unique.
fn token(client: &mut Client, name: &str, mode: &str, resource: &str, key: Option<Value>) -> String {
    let mut permission = json!({"id": name, "permissionMode": mode, "resource": resource});
    if let Some(key) = key {
        permission["resourcePartitionKey"] = key;
    }
    let created = client.send(&Request::post("/dbs/d/users/u/permissions", permission.to_string()));
    token_of(&created.expect(201))
}

fn token_of_link(client: &mut Client, link: &str) -> String {
    token(client, "link", "All", link, None)
}

fn token_of(response: &Response) -> String {
    response.json()["_token"].as_str().expect("a token").to_owned()
}

/// The request with a token instead of a signature, escaped as SDKs do.
fn with(request: Request, token: &str) -> Request {
    let escaped = token.replace('=', "%3D").replace('&', "%26").replace(';', "%3B");
    request.header("authorization", &escaped)
}

fn bulk(operations: &Value) -> Request {
    Request::post(DOCS, operations.to_string())
        .header("x-ms-cosmos-is-batch-request", "True")
        .header("x-ms-cosmos-batch-continue-on-error", "True")
}

fn statuses(response: &Response) -> Vec<u64> {
    let results = response.json();
    let results = results.as_array().expect("a bulk is answered with an array");
    let status = |result: &Value| result["statusCode"].as_u64().expect("a status");
    results.iter().map(status).collect()
}

#[test]
fn a_bulk_stays_in_the_partition_key_of_its_token() {
    let (_server, mut client) = started(&[]);
    let token = token(&mut client, "p", "All", "dbs/d/colls/c", Some(json!(["p"])));
    let body = json!({"id": "v", "pk": "q", "stolen": true});
    let outside = json!([
        {"operationType": "Read", "id": "v", "partitionKey": "[\"q\"]"},
        {"operationType": "Replace", "id": "v", "partitionKey": "[\"q\"]", "resourceBody": body},
        {"operationType": "Upsert", "partitionKey": "[\"q\"]", "resourceBody": body},
        {"operationType": "Patch", "id": "v", "partitionKey": "[\"q\"]",
            "resourceBody": {"operations": [{"op": "add", "path": "/stolen", "value": true}]}},
        {"operationType": "Create", "resourceBody": {"id": "new", "pk": "q"}},
        {"operationType": "Upsert", "resourceBody": body},
        {"operationType": "Create", "partitionKey": "[]", "resourceBody": {"id": "new", "pk": "q"}},
        {"operationType": "Delete", "id": "v", "partitionKey": ["q"]},
        {"operationType": "Read", "id": "a", "partitionKey": "[\"p\"]"},
    ]);
    for request in [bulk(&outside).pk(), bulk(&outside)] {
        let response = client.send(&with(request, &token)).expect(207);
        assert_eq!(
            statuses(&response),
            [403, 403, 403, 403, 403, 403, 403, 403, 200],
            "{}",
            response.text()
        );
    }
    client.send(&with(of_q(bulk(&outside)), &token)).expect_error(403);
    // The header says `p`, so the document must say it too.
    let lying =
        json!([{"operationType": "Create", "partitionKey": "[\"p\"]", "resourceBody": {"id": "new", "pk": "q"}}]);
    let response = client.send(&with(bulk(&lying).pk(), &token)).expect(207);
    assert_eq!(statuses(&response), [400]);
    let victim = client
        .send(&of_q(Request::get("/dbs/d/colls/c/docs/v")))
        .expect(200)
        .json();
    assert_eq!(victim.get("stolen"), None);
    client
        .send(&of_q(Request::get("/dbs/d/colls/c/docs/new")))
        .expect_error(404);
}

/// Reads and deletes `v` under `q`, deletes it under no key, reads `a` under `p`: rows as the .NET SDK writes them, from
/// conformance/clients/dotnet/hybrid_row.py.
const ROWS: &str = "\
    81f0d8ff7f010a00000081f1d8ff7f16000000eb43042f817054e17f170200000002000000055b2271225d017681f1d8ff7f160000000f2a957c8170\
    54e17f170400000002000000055b2271225d017681f1d8ff7f10000000a0d74ed0817054e17f130400000002000000017681f1d8ff7f160000009cef\
    b791817054e17f170200000002000000055b2270225d0161\
";

#[test]
fn a_bulk_in_rows_stays_in_the_partition_key_of_its_token() {
    let (_server, mut client) = started(&[]);
    let token = token(&mut client, "p", "All", "dbs/d/colls/c", Some(json!(["p"])));
    let rows = HEXLOWER.decode(ROWS.as_bytes()).expect("the rows are hex");
    let rows = Request::post(DOCS, rows)
        .pk()
        .header("x-ms-cosmos-is-batch-request", "True")
        .header("x-ms-cosmos-batch-continue-on-error", "True");
    let response = client.send(&with(rows, &token)).expect(207);
    let shows = |text: &str| response.body.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(shows(r#""pk":"p""#), "what is its own is read");
    assert!(!shows(r#""pk":"q""#), "what is another's is not");
    client.send(&of_q(Request::get("/dbs/d/colls/c/docs/v"))).expect(200);
}

#[test]
fn a_batch_stays_in_the_partition_key_that_its_header_names() {
    let (_server, mut client) = started(&[]);
    let token = token(&mut client, "p", "All", "dbs/d/colls/c", Some(json!(["p"])));
    let atomic = |operations: &Value| bulk(operations).header("x-ms-cosmos-batch-atomic", "True");
    let delete = json!([{"operationType": "Delete", "id": "v", "partitionKey": "[\"q\"]"}]);
    client.send(&with(atomic(&delete), &token)).expect_error(403);
    client.send(&with(of_q(atomic(&delete)), &token)).expect_error(403);
    let response = client.send(&with(atomic(&delete).pk(), &token)).expect(207);
    assert_eq!(
        statuses(&response),
        [404],
        "the item is looked for under the header's key"
    );
    client.send(&of_q(Request::get("/dbs/d/colls/c/docs/v"))).expect(200);
}

#[test]
fn a_token_for_less_than_the_container_changes_and_shows_none_of_its_scripts() {
    let (_server, mut client) = started(&[]);
    let own = r#"{"id":"s","body":"function own() { getContext().getResponse().setBody('own') }"}"#;
    let trigger = r#"{"id":"s","body":"function own() {}","triggerType":"Pre","triggerOperation":"All"}"#;
    let places = [("sprocs", own), ("triggers", trigger), ("udfs", own)];
    for (kind, body) in places {
        client
            .send(&Request::post(&format!("/dbs/d/colls/c/{kind}"), body))
            .expect(201);
    }
    let tokens = [
        token(&mut client, "key", "All", "dbs/d/colls/c", Some(json!(["p"]))),
        token(&mut client, "item", "All", "dbs/d/colls/c/docs/a", None),
    ];
    for (kind, body) in places {
        let (feed, script) = (format!("/dbs/d/colls/c/{kind}"), format!("/dbs/d/colls/c/{kind}/s"));
        let other = body.replace("own", "stolen");
        let of_script = token(&mut client, kind, "All", script.trim_start_matches('/'), None);
        for token in tokens.iter().chain([&of_script]) {
            for refused in [
                Request::post(&feed, other.replace("\"s\"", "\"t\"")),
                Request::post(&feed, &other).header("x-ms-documentdb-is-upsert", "True"),
                Request::put(&script, &other),
                Request::new("DELETE", &script),
                Request::get(&feed),
            ] {
                client.send(&with(refused.pk(), token)).expect_error(403);
            }
        }
        for token in &tokens {
            client.send(&with(Request::get(&script).pk(), token)).expect_error(403);
        }
        client.send(&with(Request::get(&script), &of_script)).expect(200);
        let kept = client.send(&Request::get(&script)).expect(200).json();
        assert!(!kept["body"].to_string().contains("stolen"), "{kept}");
    }
}

#[test]
fn a_procedure_runs_where_the_token_is_for() {
    let (_server, mut client) = started(&[]);
    let deletes = r#"{"id":"s","body":"function s(id) {
        var c = getContext().getCollection();
        c.readDocument(c.getAltLink() + '/docs/' + id, {}, function (error, found) {
            getContext().getResponse().setBody(error ? 'none' : found.id);
        });
    }"}"#;
    client
        .send(&Request::post("/dbs/d/colls/c/sprocs", deletes.replace('\n', " ")))
        .expect(201);
    let of_key = token(&mut client, "key", "All", "dbs/d/colls/c", Some(json!(["p"])));
    let of_script = token(
        &mut client,
        "script",
        "All",
        "dbs/d/colls/c/sprocs/s",
        Some(json!(["p"])),
    );
    let reads = token(&mut client, "reads", "Read", "dbs/d/colls/c", None);
    let run = |id: &str| Request::post("/dbs/d/colls/c/sprocs/s", json!([id]).to_string());
    for token in [&of_key, &of_script] {
        let own = client.send(&with(run("a").pk(), token)).expect(200);
        assert_eq!(own.json(), "a");
        let others = client.send(&with(run("v").pk(), token)).expect(200);
        assert_eq!(others.json(), "none", "the procedure sees one partition key");
        client.send(&with(of_q(run("v")), token)).expect_error(403);
        client.send(&with(run("v"), token)).expect_error(403);
    }
    client.send(&with(run("a").pk(), &reads)).expect_error(403);
}

#[test]
fn a_token_for_an_item_runs_no_triggers() {
    let (_server, mut client) = started(&[]);
    let trigger = r#"{"id":"t","body":"function t() {}","triggerType":"Pre","triggerOperation":"All"}"#;
    client
        .send(&Request::post("/dbs/d/colls/c/triggers", trigger))
        .expect(201);
    let of_item = token(&mut client, "item", "All", "dbs/d/colls/c/docs/a", None);
    let of_key = token(&mut client, "key", "All", "dbs/d/colls/c", Some(json!(["p"])));
    let replace = || {
        Request::put("/dbs/d/colls/c/docs/a", r#"{"id":"a","pk":"p"}"#)
            .pk()
            .header("x-ms-documentdb-pre-trigger-include", "t")
    };
    client.send(&with(replace(), &of_item)).expect_error(403);
    client.send(&with(replace(), &of_key)).expect(200);
}

#[test]
fn a_token_for_an_item_renames_it_to_nothing_else() {
    let (_server, mut client) = started(&[]);
    create_item(&mut client, "b");
    let token = token(&mut client, "item", "All", "dbs/d/colls/c/docs/a", None);
    let item = client
        .send(&Request::get("/dbs/d/colls/c/docs/a").pk())
        .expect(200)
        .json();
    let link = item["_self"].as_str().expect("a link").trim_end_matches('/');
    let by_rid = token_of_link(&mut client, link);
    for (path, token) in [("/dbs/d/colls/c/docs/a", &token), (&*format!("/{link}"), &by_rid)] {
        for other in ["b", "free"] {
            let renamed = json!({"id": other, "pk": "p", "stolen": true});
            client
                .send(&with(Request::put(path, renamed.to_string()).pk(), token))
                .expect_error(403);
        }
        let kept = r#"{"id":"a","pk":"p","kept":true}"#;
        client.send(&with(Request::put(path, kept).pk(), token)).expect(200);
    }
    client
        .send(&Request::get("/dbs/d/colls/c/docs/free").pk())
        .expect_error(404);
    let b = client
        .send(&Request::get("/dbs/d/colls/c/docs/b").pk())
        .expect(200)
        .json();
    assert_eq!(b.get("stolen"), None);
}

#[test]
fn a_token_for_an_item_named_like_a_resource_id_does_not_cover_that_resource() {
    let (_server, mut client) = started(&[]);
    let victim = client
        .send(&of_q(Request::get("/dbs/d/colls/c/docs/v")))
        .expect(200)
        .json();
    let rid = victim["_rid"].as_str().expect("a resource id");
    create_item(&mut client, rid);
    let token = token(&mut client, "item", "All", &format!("dbs/d/colls/c/docs/{rid}"), None);
    let read = Request::get(&format!("/dbs/d/colls/c/docs/{rid}"));
    client.send(&with(of_q(read), &token)).expect_error(403);
}

#[test]
fn only_a_token_for_the_whole_container_shows_its_size() {
    let (_server, mut client) = started(&[]);
    let of_item = token(&mut client, "item", "All", "dbs/d/colls/c/docs/a", None);
    let of_container = token(&mut client, "container", "Read", "dbs/d/colls/c", None);
    for header in [
        "x-ms-documentdb-populatequotainfo",
        "x-ms-documentdb-populatepartitionstatistics",
    ] {
        let read = || Request::get("/dbs/d/colls/c").header(header, "True");
        client.send(&with(read(), &of_item)).expect_error(403);
        client.send(&with(read(), &of_container)).expect(200);
    }
}

#[test]
fn a_token_opens_no_container_made_after_it() {
    let (_server, mut client) = started(&[]);
    let old = token(&mut client, "c", "All", "dbs/d/colls/c", None);
    let early = token(&mut client, "later", "All", "dbs/d/colls/later", None);
    client.send(&with(Request::get(DOCS), &old)).expect(200);
    client.send(&Request::new("DELETE", "/dbs/d/colls/c")).expect(204);
    client.send(&with(Request::get(DOCS), &old)).expect_error(403);
    client.send(&Request::post("/dbs/d/colls", DEFINITION)).expect(201);
    client.send(&with(Request::get(DOCS), &old)).expect_error(403);
    client
        .send(&with(Request::get("/dbs/d/colls/c"), &old))
        .expect_error(403);
    let again = token_of(&client.send(&Request::get("/dbs/d/users/u/permissions/c")).expect(200));
    client.send(&with(Request::get(DOCS), &again)).expect(200);
    let later = DEFINITION.replace("\"c\"", "\"later\"");
    client.send(&Request::post("/dbs/d/colls", later)).expect(201);
    client
        .send(&with(Request::get("/dbs/d/colls/later/docs"), &early))
        .expect_error(403);
}

#[test]
fn a_container_of_another_database_cannot_be_reached_through_this_one() {
    let (_server, mut client) = started(&[]);
    client.send(&Request::post("/dbs", r#"{"id":"e"}"#)).expect(201);
    let other = client.send(&Request::get("/dbs/e")).expect(200).json();
    let container = client.send(&Request::get("/dbs/d/colls/c")).expect(200).json();
    let rid = |resource: &Value| resource["_rid"].as_str().expect("a resource id").to_owned();
    let crossed = format!("/dbs/{}/colls/{}/docs", rid(&other), rid(&container));
    client.send(&Request::get(&crossed)).expect_error(404);
}

#[test]
fn a_name_is_signed_with_everything_above_it() {
    let (_server, mut client) = started(&[]);
    for (request, last) in [
        (Request::get("/dbs/d/colls/c"), "c"),
        (Request::get("/dbs/d/colls/c/docs"), "c"),
        (Request::get("/dbs/d/colls/c/docs/a").pk(), "a"),
        (Request::get("/dbs/d"), "d"),
        (Request::get("/dbs/d/users/u"), "u"),
        (Request::new("DELETE", "/dbs/d/colls/c"), "c"),
    ] {
        client.send(&request.clone().signing(last)).expect_error(401);
        client
            .send(&request.signing(&format!("dbs/other/{last}")))
            .expect_error(401);
    }
}

#[test]
fn a_resource_id_may_be_signed_alone_where_all_of_the_path_is_resource_ids() {
    let (_server, mut client) = started(&[]);
    let container = client.send(&Request::get("/dbs/d/colls/c")).expect(200).json();
    let item = client
        .send(&Request::get("/dbs/d/colls/c/docs/a").pk())
        .expect(200)
        .json();
    let text = |resource: &Value, name: &str| resource[name].as_str().expect("text").trim_matches('/').to_owned();
    let (rid, link) = (text(&container, "_rid"), text(&container, "_self"));
    let ranges = Request::get(&format!("/{link}/pkranges"));
    client.send(&ranges.clone().signing(&rid.to_lowercase())).expect(200);
    client.send(&ranges.signing(&rid)).expect(200);
    let (item_rid, item_link) = (text(&item, "_rid"), text(&item, "_self"));
    let read = Request::get(&format!("/{item_link}")).pk();
    client.send(&read.signing(&item_rid.to_lowercase())).expect(200);
    // An item's name after resource ids still is a name, and a resource id after names still is one.
    let by_name = Request::get(&format!("/{link}/docs/a")).pk();
    client.send(&by_name.clone().signing("a")).expect_error(401);
    client.send(&by_name).expect(200);
    let mixed = Request::get(&format!("/dbs/d/colls/c/docs/{item_rid}")).pk();
    client.send(&mixed.signing(&item_rid.to_lowercase())).expect_error(401);
    // A database whose name looks like a resource id is found by its name.
    let database = client.send(&Request::post("/dbs", r#"{"id":"e"}"#)).expect(201).json();
    let database_rid = text(&database, "_rid");
    client.send(&Request::new("DELETE", "/dbs/e")).expect(204);
    let named = json!({"id": database_rid}).to_string();
    client.send(&Request::post("/dbs", named)).expect(201);
    let path = format!("/dbs/{database_rid}");
    client
        .send(&Request::get(&path).signing(&database_rid))
        .expect_error(401);
    client.send(&Request::get(&path)).expect(200);
}

#[test]
fn a_header_that_names_another_verb_changes_nothing() {
    let (_server, mut client) = started(&[]);
    let token = token(&mut client, "c", "Read", "dbs/d/colls/c", None);
    for name in ["x-http-method-override", "x-http-method", "x-method-override"] {
        let read = Request::get("/dbs/d/colls/c/docs/a").pk().header(name, "DELETE");
        client.send(&with(read, &token)).expect(200);
    }
    client.send(&Request::get("/dbs/d/colls/c/docs/a").pk()).expect(200);
}

#[test]
fn segments_of_a_path_are_decoded_once_and_lead_nowhere_up() {
    let (_server, mut client) = started(&[]);
    for path in [
        "/dbs/d/colls/c/docs/..",
        "/dbs/d/colls/c/docs/%2e%2e",
        "/dbs/d/colls/c/docs/.",
        "/dbs/d/colls/c/docs/..%2F..%2Fc%2Fdocs%2Fa",
        "/dbs/d/colls/c/docs/%2561",
        "/dbs/d/colls/c/docs//a",
        "/dbs/d/colls/%2e%2e",
        "/dbs/d/colls/c%2Fdocs",
        "/dbs/d%2Fcolls%2Fc",
        "/dbs/..",
        "/dbs/./d",
        "/dbs/d/../d",
        "/dbs//colls/c",
        "/DBS/d",
        "/dbs/d/colls/c/docs/a%00",
    ] {
        for method in ["GET", "DELETE"] {
            let response = client.send(&Request::new(method, path).pk());
            assert!(
                (400..500).contains(&response.status),
                "{method} {path}: {}",
                response.text()
            );
        }
    }
    client.send(&Request::get("/dbs/d/colls/c/docs/a").pk()).expect(200);
    let of_item = token(&mut client, "item", "All", "dbs/d/colls/c/docs/a", None);
    for path in [
        "/dbs/d/colls/c/docs/%2561",
        "/dbs/d/colls/c/docs/a%2F..%2Fb",
        "/dbs/d/colls/c/docs/a/",
        "/dbs/d/colls/c/docs/%61",
    ] {
        let response = client.send(&with(Request::get(path).pk(), &of_item));
        let is_a = path.ends_with("/a/") || path.ends_with("/%61");
        assert_eq!(
            response.status,
            if is_a { 200 } else { 403 },
            "{path}: {}",
            response.text()
        );
    }
}

/// Escaped, it is part of the id: it does not address another resource, and a token or signature for another resource does not cover it.
#[test]
fn a_slash_in_an_id_leads_to_that_item_only() {
    let (_server, mut client) = started(&[]);
    for id in ["a/b", "a/", "../sprocs/s", "s/a"] {
        let body = json!({"id": id, "pk": "p"}).to_string();
        client.send(&Request::post(DOCS, body).pk()).expect(201);
    }
    client
        .send(&Request::post(
            "/dbs/d/colls/c/sprocs",
            r#"{"id":"s","body":"function s() {}"}"#,
        ))
        .expect(201);
    let at = |id: &str| Request::get(&format!("{DOCS}/{id}")).pk();
    for (name, link) in [
        ("a", "dbs/d/colls/c/docs/a"),
        ("bare", "dbs/d/colls/c/docs/a/b"),
        ("escaped", "dbs/d/colls/c/docs/a%2Fb"),
        ("script", "dbs/d/colls/c/sprocs/s"),
    ] {
        let token = token(&mut client, name, "All", link, None);
        for id in ["a%2Fb", "a/b", "a%2F", "..%2Fsprocs%2Fs", "s%2Fa"] {
            client.send(&with(at(id), &token)).expect_error(403);
        }
    }
    let whole = token(&mut client, "container", "Read", "dbs/d/colls/c", None);
    for (path, id) in [("a%2Fb", "a/b"), ("a%2F", "a/"), ("..%2Fsprocs%2Fs", "../sprocs/s")] {
        assert_eq!(client.send(&with(at(path), &whole)).expect(200).json()["id"], id);
    }
    for (resource, link) in [
        ("docs", "dbs/d/colls/c/docs/a"),
        ("docs", "dbs/d/colls/c/docs/b"),
        ("sprocs", "dbs/d/colls/c/docs/a/b"),
        ("colls", "dbs/d/colls/c"),
        ("docs", "a/b"),
        ("docs", "b"),
    ] {
        client.send(&at("a%2Fb").signing_as(resource, link)).expect_error(401);
    }
    let of_script = at("..%2Fsprocs%2Fs").signing_as("sprocs", "dbs/d/colls/c/sprocs/s");
    client.send(&of_script).expect_error(401);
    // Names above items contain no slash, so the same link cannot mean something else.
    let deeper = Request::get("/dbs/d/colls/c%2Fdocs%2Fa/docs/b").pk();
    client.send(&deeper).expect_error(404);
}

#[test]
fn ids_must_be_valid_in_paths() {
    let (_server, mut client) = started(&[]);
    let long = "a".repeat(256);
    for id in [".", "..", "a\0b", "a\u{7}", "a/b", "a\\b", "a?", "a#", "a ", "", &long] {
        let named = |more: Value| {
            let mut body = json!({"id": id});
            body.as_object_mut()
                .expect("an object")
                .extend(more.as_object().cloned().expect("an object"));
            body.to_string()
        };
        let container: Value = serde_json::from_str(DEFINITION).expect("JSON");
        for (path, body) in [
            ("/dbs", named(json!({}))),
            (
                "/dbs/d/colls",
                named(json!({"partitionKey": container["partitionKey"]})),
            ),
            ("/dbs/d/users", named(json!({}))),
            (
                "/dbs/d/users/u/permissions",
                named(json!({"permissionMode": "All", "resource": "dbs/d/colls/c"})),
            ),
            ("/dbs/d/colls/c/sprocs", named(json!({"body": "function f() {}"}))),
            ("/dbs/d/colls/c/udfs", named(json!({"body": "function f() {}"}))),
        ] {
            client.send(&Request::post(path, body)).expect_error(400);
        }
        client
            .send(&Request::put("/dbs/d/users/u", named(json!({}))))
            .expect_error(400);
    }
    for (id, status) in [
        (".", 400),
        ("..", 400),
        ("a\\b", 400),
        ("a\0b", 201),
        ("a\u{7}", 201),
        ("...", 201),
        ("%2e%2e", 201),
    ] {
        let body = json!({"id": id, "pk": "p"}).to_string();
        assert_eq!(client.send(&Request::post(DOCS, body).pk()).status, status, "{id:?}");
        let body = json!({"id": id, "pk": "p"}).to_string();
        let upsert = Request::post(DOCS, body)
            .pk()
            .header("x-ms-documentdb-is-upsert", "True");
        assert_eq!(
            client.send(&upsert).status,
            if status == 201 { 200 } else { status },
            "{id:?}"
        );
    }
    for (path, id) in [
        ("a%00b", "a\0b"),
        ("a%07", "a\u{7}"),
        ("...", "..."),
        ("%252e%252e", "%2e%2e"),
    ] {
        let found = client.send(&Request::get(&format!("{DOCS}/{path}")).pk()).expect(200);
        assert_eq!(found.json()["id"], id);
    }
}

#[test]
fn feeds_and_queries_of_a_partition_key_show_its_items_whatever_else_is_asked_for() {
    let (_server, mut client) = started(&[]);
    let token = token(&mut client, "p", "Read", "dbs/d/colls/c", Some(json!(["p"])));
    let select = Request::post(DOCS, r#"{"query":"SELECT * FROM c"}"#).query();
    let union = Request::post(DOCS, r#"{"query":"SELECT * FROM c WHERE c.pk = 'q' OR true"}"#).query();
    let changes = Request::get(DOCS).header("a-im", "Incremental Feed");
    let whole = |request: Request| {
        request
            .header("x-ms-documentdb-partitionkeyrangeid", "0")
            .header("x-ms-start-epk", "")
            .header("x-ms-end-epk", "FF")
            .header("x-ms-read-key-type", "EffectivePartitionKeyRange")
    };
    let own = |response: Response| {
        let page = response.expect(200).json();
        let ids = page["Documents"].as_array().expect("documents").iter();
        ids.map(|item| item["id"].as_str().expect("an id").to_owned())
            .collect::<Vec<_>>()
    };
    for request in [Request::get(DOCS), select, union, changes] {
        assert_eq!(own(client.send(&with(request.clone().pk(), &token))), ["a"]);
        assert_eq!(own(client.send(&with(whole(request.clone().pk()), &token))), ["a"]);
        // If a header occurs twice, the first one counts, both for the check and for the read.
        assert_eq!(own(client.send(&with(of_q(request.clone().pk()), &token))), ["a"]);
        client.send(&with(of_q(request.clone()).pk(), &token)).expect_error(403);
        client.send(&with(whole(request.clone()), &token)).expect_error(403);
        let empty = request.header("x-ms-documentdb-partitionkey", "[]");
        client.send(&with(empty, &token)).expect_error(403);
    }
    // A continuation that the owner got for the whole container continues only within the key.
    let page = Request::get(DOCS).header("x-ms-max-item-count", "1");
    let page = client.send(&page).expect(200);
    let continuation = page.header("x-ms-continuation").expect("there is more").to_owned();
    let resumed = Request::get(DOCS).pk().header("x-ms-continuation", &continuation);
    let resumed = client.send(&with(resumed, &token)).expect(200).json();
    for item in resumed["Documents"].as_array().expect("documents") {
        assert_eq!(item["pk"], "p");
    }
}

#[test]
fn a_token_for_a_prefix_of_a_key_covers_the_keys_below_it() {
    let (_server, mut client) = started(&[]);
    let definition = r#"{"id":"tree","partitionKey":{"paths":["/tenant","/user"],"kind":"MultiHash","version":2}}"#;
    client.send(&Request::post("/dbs/d/colls", definition)).expect(201);
    let docs = "/dbs/d/colls/tree/docs";
    let of = |request: Request, key: &str| request.header("x-ms-documentdb-partitionkey", key);
    for (tenant, user) in [("t", "u"), ("t", "w"), ("other", "u")] {
        let item = json!({"id": "a", "tenant": tenant, "user": user}).to_string();
        client
            .send(&of(Request::post(docs, item), &json!([tenant, user]).to_string()))
            .expect(201);
    }
    let token = token(&mut client, "t", "All", "dbs/d/colls/tree", Some(json!(["t"])));
    let read = |key| of(Request::get("/dbs/d/colls/tree/docs/a"), key);
    client.send(&with(read(r#"["t","u"]"#), &token)).expect(200);
    client.send(&with(read(r#"["t","missing"]"#), &token)).expect_error(404);
    for key in [
        r#"["other","u"]"#,
        r#"["other","missing"]"#,
        r#"["T","u"]"#,
        r#"["","t"]"#,
    ] {
        client.send(&with(read(key), &token)).expect_error(403);
    }
    let select = |key| of(Request::post(docs, r#"{"query":"SELECT * FROM c"}"#).query(), key);
    let found = client.send(&with(select(r#"["t"]"#), &token)).expect(200).json();
    assert_eq!(found["_count"], 2);
    client.send(&with(select(r#"["other"]"#), &token)).expect_error(403);
    let smuggled = json!({"id": "b", "tenant": "other", "user": "u"}).to_string();
    client
        .send(&with(of(Request::post(docs, &smuggled), r#"["t","u"]"#), &token))
        .expect_error(400);
    client
        .send(&with(of(Request::post(docs, &smuggled), r#"["t"]"#), &token))
        .expect_error(400);
    client
        .send(&of(Request::get("/dbs/d/colls/tree/docs/b"), r#"["other","u"]"#))
        .expect_error(404);
}

#[test]
fn a_client_without_a_key_gets_the_same_response_whether_or_not_a_resource_exists() {
    let (_server, mut client) = started(&[]);
    let mut refusals = Vec::new();
    for path in [
        "/dbs/d/colls/c",
        "/dbs/d/colls/x",
        "/dbs/x",
        "/dbs/d/colls/c/docs/a",
        "/nowhere",
        "/addresses",
        "/_bolide/nowhere",
    ] {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"] {
            let request = Request::new(method, path).pk().header("authorization", "");
            let refused = client.send(&request).expect_error(401).json();
            let message = refused["message"].as_str().expect("a message");
            refusals.push(message.split("ActivityId").next().unwrap_or_default().to_owned());
        }
    }
    refusals.dedup();
    assert_eq!(refusals.len(), 1, "{refusals:?}");
}
