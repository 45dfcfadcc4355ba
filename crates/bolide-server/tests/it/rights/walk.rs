//! Every operation × every kind of sender, compared with the table in docs/security.md, which the code also uses.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{DEFINITION, bulk, of_q, token_of, with};
use crate::client::{Client, Request, create_container, create_item};
use crate::server::Server;

const PAGE: &str = include_str!("../../../../../docs/security.md");
const READONLY: &str = "cmVhZG9ubHktcmVhZG9ubHktcmVhZG9ubHk=";
const STRANGER: &str = "c3RyYW5nZXItc3RyYW5nZXItc3RyYW5nZXI=";
const KINDS: [&str; 4] = ["container", "key", "item", "script"];

/// Operations on items, which have a partition key.
const ABOUT_ITEMS: [&str; 12] = [
    "ReadItem",
    "ReadFeed",
    "QueryItems",
    "ReadChanges",
    "CreateItem",
    "UpsertItem",
    "ReplaceItem",
    "PatchItem",
    "DeleteItem",
    "Batch",
    "DeletePartitionKey",
    "ExecuteProcedure",
];
const ABOUT_ONE_ITEM: [&str; 4] = ["ReadItem", "ReplaceItem", "PatchItem", "DeleteItem"];
const ABOUT_ONE_SCRIPT: [&str; 4] = ["ReadScript", "ReplaceScript", "DeleteScript", "ExecuteProcedure"];

/// The rows of a table of the document, by their first cell.
fn table(head: &str) -> Vec<(&'static str, Vec<&'static str>)> {
    let rows = PAGE.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells = |line: &'static str| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        (cells.next().expect("a first cell"), cells.collect())
    };
    rows.map(cells).collect()
}

/// The target of a request.
#[derive(Clone, Copy)]
struct Target {
    container: &'static str,
    item: &'static str,
    script: &'static str,
    /// The partition key header.
    key: &'static str,
}

const OWN: Target = Target {
    container: "c",
    item: "a",
    script: "s",
    key: "p",
};

/// A request for each operation. Requests that would delete what later ones need have a condition that never holds, which is checked only after the right.
fn request(operation: &str, target: Target) -> Request {
    let coll = format!("/dbs/d/colls/{}", target.container);
    let docs = format!("{coll}/docs");
    let item = format!("{docs}/{}", target.item);
    let sprocs = format!("{coll}/sprocs");
    let script = format!("{sprocs}/{}", target.script);
    let key = format!("[\"{}\"]", target.key);
    let in_key = |request: Request| request.header("x-ms-documentdb-partitionkey", &key);
    let never = |request: Request| request.header("if-match", "\"never\"");
    let query =
        |path: &str| Request::post(path, r#"{"query":"SELECT * FROM c"}"#).header("x-ms-documentdb-isquery", "True");
    let upsert = |path: &str, body: &str| never(Request::post(path, body)).header("x-ms-documentdb-is-upsert", "True");
    let delete = |path: &str| never(Request::new("DELETE", path));
    let replace = |path: &str, body: &str| never(Request::put(path, body));
    let document = |id: &str| json!({"id": id, "pk": target.key, "by": "walk"}).to_string();
    let procedure = |id: &str| json!({"id": id, "body": "function s() { /* by walk */ }"}).to_string();
    let permission = r#"{"id":"made","permissionMode":"Read","resource":"dbs/d/colls/none"}"#;
    let (user, users) = ("/dbs/d/users/idle", "/dbs/d/users");
    let permissions = "/dbs/d/users/idle/permissions";
    let keys = "/dbs/d/clientencryptionkeys";
    match operation {
        "ReadAccount" => Request::get("/"),
        "CreateDatabase" => Request::post("/dbs", r#"{"id":"made"}"#),
        "ListDatabases" => Request::get("/dbs"),
        "QueryDatabases" => query("/dbs"),
        "ReadDatabase" => Request::get("/dbs/d"),
        "DeleteDatabase" => delete("/dbs/d"),
        "CreateContainer" => Request::post("/dbs/d/colls", DEFINITION.replace("\"c\"", "\"made\"")),
        "ListContainers" => Request::get("/dbs/d/colls"),
        "QueryContainers" => query("/dbs/d/colls"),
        "ReadContainer" => Request::get(&coll),
        "ReplaceContainer" => replace(&coll, DEFINITION),
        "DeleteContainer" => delete(&coll),
        "CreateItem" => in_key(Request::post(&docs, document("made"))),
        "UpsertItem" => in_key(Request::post(&docs, document("made"))).header("x-ms-documentdb-is-upsert", "True"),
        "ReadItem" => in_key(Request::get(&item)),
        "ReplaceItem" => in_key(replace(&item, &document(target.item))),
        "PatchItem" => in_key(never(Request::new("PATCH", &item)))
            .body(r#"{"operations":[{"op":"add","path":"/by","value":"walk"}]}"#),
        "DeleteItem" => in_key(delete(&item)),
        "Batch" => {
            let key = json!([target.key]).to_string();
            let read = json!([{"operationType": "Read", "id": target.item, "partitionKey": key}]).to_string();
            in_key(Request::post(&docs, read)).header("x-ms-cosmos-is-batch-request", "True")
        }
        "ReadFeed" => in_key(Request::get(&docs)),
        "QueryItems" => in_key(query(&docs)),
        "QueryPlan" => query(&docs).header("x-ms-cosmos-is-query-plan-request", "True"),
        "ReadChanges" => in_key(Request::get(&docs)).header("a-im", "Incremental Feed"),
        "ListPartitionKeyRanges" => Request::get(&format!("{coll}/pkranges")),
        "ListOffers" => Request::get("/offers"),
        "QueryOffers" => query("/offers"),
        "ReadOffer" => Request::get("/offers/AAAA").signing("aaaa"),
        "ReplaceOffer" => Request::put("/offers/AAAA", "{}").signing("aaaa"),
        "ListConflicts" => in_key(Request::get(&format!("{coll}/conflicts"))),
        "QueryConflicts" => in_key(query(&format!("{coll}/conflicts"))),
        "ReadConflict" => in_key(Request::get(&format!("{coll}/conflicts/x"))),
        "DeleteConflict" => in_key(delete(&format!("{coll}/conflicts/x"))),
        "CreateEncryptionKey" => Request::post(keys, r#"{"id":"made"}"#),
        "ListEncryptionKeys" => Request::get(keys),
        "QueryEncryptionKeys" => query(keys),
        "ReadEncryptionKey" => Request::get(&format!("{keys}/made")),
        "ReplaceEncryptionKey" => replace(&format!("{keys}/made"), "{}"),
        "CreateUser" => Request::post(users, r#"{"id":"made"}"#),
        "UpsertUser" => upsert(users, r#"{"id":"idle"}"#),
        "ListUsers" => Request::get(users),
        "QueryUsers" => query(users),
        "ReadUser" => Request::get(user),
        "ReplaceUser" => replace(user, r#"{"id":"idle"}"#),
        "DeleteUser" => delete(user),
        "CreatePermission" => Request::post(permissions, permission),
        "UpsertPermission" => upsert(permissions, permission),
        "ListPermissions" => Request::get(permissions),
        "QueryPermissions" => query(permissions),
        "ReadPermission" => Request::get(&format!("{permissions}/made")),
        "ReplacePermission" => replace(&format!("{permissions}/made"), permission),
        "DeletePermission" => delete(&format!("{permissions}/made")),
        "DeletePartitionKey" => {
            let path = format!("{coll}/operations/partitionkeydelete");
            let link = format!("dbs/d/colls/{}", target.container);
            in_key(Request::post(&path, "")).signing_as("colls", &link)
        }
        "CreateScript" => Request::post(&sprocs, procedure("made")),
        "ListScripts" => Request::get(&sprocs),
        "QueryScripts" => query(&sprocs),
        "ReadScript" => Request::get(&script),
        "ReplaceScript" => replace(&script, &procedure(target.script)),
        "DeleteScript" => delete(&script),
        "ExecuteProcedure" => in_key(Request::post(&script, "[]")),
        other => panic!("the walk has no request for {other}"),
    }
}

/// All kinds of senders.
struct Senders {
    _server: Server,
    client: Client,
    /// By kind and mode, such as `key All`.
    tokens: BTreeMap<String, String>,
    expired: String,
    other: String,
    before: String,
}

impl Senders {
    fn new() -> Senders {
        let server = Server::in_memory(&["--readonly-key", READONLY, "--virtual-clock", "--enable-faults"]);
        let mut client = server.client();
        create_container(&mut client);
        let before = grant(&mut client, "before", "All", "dbs/d/colls/c", Value::Null, "3600");
        client.send(&Request::new("DELETE", "/dbs/d/colls/c")).expect(204);
        client.send(&Request::post("/dbs/d/colls", DEFINITION)).expect(201);
        let other = DEFINITION.replace("\"c\"", "\"other\"");
        client.send(&Request::post("/dbs/d/colls", other)).expect(201);
        for id in ["a", "b"] {
            create_item(&mut client, id);
            let body = format!(r#"{{"id":"{id}","pk":"p"}}"#);
            client
                .send(&Request::post("/dbs/d/colls/other/docs", body).pk())
                .expect(201);
        }
        let victim = Request::post("/dbs/d/colls/c/docs", r#"{"id":"a","pk":"q"}"#);
        client.send(&of_q(victim)).expect(201);
        for id in ["s", "t"] {
            let body = json!({"id": id, "body": "function s() {}"}).to_string();
            client.send(&Request::post("/dbs/d/colls/c/sprocs", body)).expect(201);
        }
        client
            .send(&Request::post("/dbs/d/users", r#"{"id":"idle"}"#))
            .expect(201);
        let mut tokens = BTreeMap::new();
        for mode in ["Read", "All"] {
            for (kind, resource, key) in [
                ("container", "dbs/d/colls/c", Value::Null),
                ("key", "dbs/d/colls/c", json!(["p"])),
                ("item", "dbs/d/colls/c/docs/a", Value::Null),
                ("script", "dbs/d/colls/c/sprocs/s", Value::Null),
            ] {
                let name = format!("{kind} {mode}");
                let token = grant(&mut client, &name, mode, resource, key, "3600");
                tokens.insert(name, token);
            }
        }
        let expired = grant(&mut client, "expired", "All", "dbs/d/colls/c", Value::Null, "10");
        let other = grant(&mut client, "other", "All", "dbs/d/colls/other", Value::Null, "3600");
        client
            .send(&Request::put("/_bolide/clock", r#"{"advanceMs":11000}"#))
            .expect(200);
        Senders {
            _server: server,
            client,
            tokens,
            expired,
            other,
            before,
        }
    }

    /// Whether a request is authorized: only 401 and 403 mean that it is not.
    fn is_let_in(&mut self, request: &Request, name: &str) -> Result<(), u16> {
        let response = self.client.send(request);
        assert!(response.status < 500, "{name}: {}", response.text());
        match response.status {
            401 | 403 => Err(response.status),
            _ => Ok(()),
        }
    }

    /// Data that no sender in these tests may change.
    fn of_others(&mut self) -> Vec<Value> {
        let items = ["/dbs/d/colls/other/docs/a", "/dbs/d/colls/other/docs/b"].map(|path| Request::get(path).pk());
        let victim = of_q(Request::get("/dbs/d/colls/c/docs/a"));
        let scripts = ["s", "t"].map(|id| Request::get(&format!("/dbs/d/colls/c/sprocs/{id}")));
        let requests = items.into_iter().chain([victim]).chain(scripts);
        requests
            .map(|request| self.client.send(&request).expect(200).json())
            .collect()
    }
}

/// The token of a new permission of a new user: a user has only one permission for a resource.
fn grant(client: &mut Client, user: &str, mode: &str, resource: &str, key: Value, seconds: &str) -> String {
    let user = user.replace(' ', "-");
    client
        .send(&Request::post("/dbs/d/users", json!({"id": user}).to_string()))
        .expect(201);
    let mut permission = json!({"id": "p", "permissionMode": mode, "resource": resource});
    if !key.is_null() {
        permission["resourcePartitionKey"] = key;
    }
    let request = Request::post(&format!("/dbs/d/users/{user}/permissions"), permission.to_string())
        .header("x-ms-documentdb-expiry-seconds", seconds);
    token_of(&client.send(&request).expect(201))
}

/// The right of a token according to the table, as a status.
fn by_table(cells: &[&str], kind: &str, mode: &str) -> Result<(), u16> {
    let column = 1 + KINDS.iter().position(|known| *known == kind).expect("a kind of token");
    match (cells[column], mode) {
        ("Read", _) | ("All", "All") => Ok(()),
        ("All", "Read") | ("–", _) => Err(403),
        (other, _) => panic!("the table says `{other}`"),
    }
}

fn open_if(is_open: bool, otherwise: u16) -> Result<(), u16> {
    if is_open { Ok(()) } else { Err(otherwise) }
}

#[test]
fn every_sender_may_do_what_the_table_says_and_nothing_else() {
    let rows = table("| operation ");
    assert!(rows.len() > 50, "the page has the table");
    let mut world = Senders::new();
    let before = world.of_others();
    for (operation, cells) in &rows {
        let request = request(operation, OWN);
        let every = *operation == "ReadAccount";
        let mut expect = |request: Request, sender: &str, expected: Result<(), u16>| {
            let name = format!("{operation} by {sender}");
            assert_eq!(world.is_let_in(&request, &name), expected, "{name}");
        };
        expect(request.clone().header("authorization", ""), "nobody", Err(401));
        expect(request.clone().key(STRANGER), "another key", Err(401));
        let reads = cells[0] == "read-only";
        assert!(reads || cells[0] == "read-write", "{operation}: {cells:?}");
        expect(request.clone().key(READONLY), "a read-only key", open_if(reads, 403));
        let tokens: Vec<_> = world.tokens.clone().into_iter().collect();
        let (expired, other, made_before) = (world.expired.clone(), world.other.clone(), world.before.clone());
        let mut expect = |request: Request, sender: &str, expected: Result<(), u16>| {
            let name = format!("{operation} by {sender}");
            assert_eq!(world.is_let_in(&request, &name), expected, "{name}");
        };
        for (name, token) in &tokens {
            let (kind, mode) = name.split_once(' ').expect("kind and mode");
            expect(with(request.clone(), token), name, by_table(cells, kind, mode));
            expect(
                with(request.clone(), &token.replace("sig=", "sig=A")),
                "a forger",
                Err(401),
            );
        }
        expect(with(request.clone(), &expired), "an expired token", Err(403));
        expect(
            with(request.clone(), &other),
            "another container's token",
            open_if(every, 403),
        );
        expect(
            with(request.clone(), &made_before),
            "a token of a container before this one",
            open_if(every, 403),
        );
        // Last, because it may do everything.
        expect(request, "the account key", Ok(()));
        restore(&mut world.client, operation);
    }
    assert_eq!(world.of_others(), before);
}

/// Restores what the account key deleted.
fn restore(client: &mut Client, operation: &str) {
    if operation == "DeletePartitionKey" {
        for id in ["a", "b"] {
            create_item(client, id);
        }
    }
}

#[test]
fn resources_outside_a_token_are_forbidden_whether_or_not_they_exist() {
    let mut world = Senders::new();
    let before = world.of_others();
    let aims = [
        (
            "another container",
            Target {
                container: "other",
                ..OWN
            },
        ),
        (
            "no container",
            Target {
                container: "missing",
                ..OWN
            },
        ),
        ("another key", Target { key: "q", ..OWN }),
        ("no item's key", Target { key: "missing", ..OWN }),
        ("another item", Target { item: "b", ..OWN }),
        ("no item", Target { item: "missing", ..OWN }),
        ("another script", Target { script: "t", ..OWN }),
        (
            "no script",
            Target {
                script: "missing",
                ..OWN
            },
        ),
    ];
    for (operation, cells) in table("| operation ") {
        for (what, target) in aims {
            for (name, token) in world.tokens.clone() {
                let (kind, mode) = name.split_once(' ').expect("kind and mode");
                let is_elsewhere = match kind {
                    _ if target.container != OWN.container => operation != "ReadAccount",
                    "key" => target.key != OWN.key && ABOUT_ITEMS.contains(&operation),
                    "item" => target.item != OWN.item && ABOUT_ONE_ITEM.contains(&operation),
                    "script" => target.script != OWN.script && ABOUT_ONE_SCRIPT.contains(&operation),
                    _ => false,
                };
                // An authorized request reads or changes the token's resource, which the other test shows.
                if is_elsewhere {
                    let request = with(request(operation, target), &token);
                    let label = format!("{operation} of {what} by {name}");
                    assert_eq!(world.is_let_in(&request, &label), Err(403), "{label}");
                } else if by_table(&cells, kind, mode).is_err() {
                    let request = with(request(operation, target), &token);
                    assert_eq!(world.is_let_in(&request, operation), Err(403), "{operation} by {name}");
                }
            }
        }
    }
    assert_eq!(world.of_others(), before);
}

#[test]
fn the_table_itself_gives_tokens_no_more_than_they_are_for() {
    let rows: BTreeMap<_, _> = table("| operation ").into_iter().collect();
    let row = |operation: &str, cells: &str| {
        let expected: Vec<&str> = cells.split(' ').collect();
        assert_eq!(rows.get(operation), Some(&expected), "{operation}");
    };
    // account key, token for a container, a partition key, an item, a script
    row("ReadAccount", "read-only Read Read Read Read");
    row("ReadContainer", "read-only Read Read Read Read");
    row("ReplaceContainer", "read-write – – – –");
    row("DeleteContainer", "read-write – – – –");
    row("DeleteDatabase", "read-write – – – –");
    row("ListDatabases", "read-only – – – –");
    row("ListContainers", "read-only – – – –");
    row("ReadItem", "read-only Read Read Read –");
    row("QueryItems", "read-only Read Read – –");
    row("ReadChanges", "read-only Read Read – –");
    row("CreateItem", "read-write All All – –");
    row("UpsertItem", "read-write All All – –");
    row("ReplaceItem", "read-write All All All –");
    row("DeleteItem", "read-write All All All –");
    row("Batch", "read-write All All – –");
    row("DeletePartitionKey", "read-write All All – –");
    row("ExecuteProcedure", "read-write All All – All");
    row("ReadScript", "read-only Read – – Read");
    row("ListScripts", "read-only Read – – –");
    row("CreateScript", "read-write All – – –");
    row("ReplaceScript", "read-write All – – –");
    row("DeleteScript", "read-write All – – –");
    row("ReadPermission", "read-write – – – –");
    row("ListPermissions", "read-write – – – –");
    row("QueryPermissions", "read-write – – – –");
    row("CreatePermission", "read-write – – – –");
    row("ReadUser", "read-only – – – –");
    row("ReplaceOffer", "read-write – – – –");
    let routes: BTreeMap<_, _> = table("| route ").into_iter().collect();
    let open = routes.iter().filter(|(_, cells)| cells[0] == "none");
    let open: Vec<&str> = open.map(|(route, _)| *route).collect();
    assert_eq!(
        open,
        [
            "GET /_bolide/health",
            "GET /_explorer/emulator.pem",
            "GET /_explorer/{file}"
        ]
    );
    assert_eq!(routes["POST /_bolide/dbs/{db}/colls/{c}/import"], ["read-write"]);
    assert_eq!(routes["PUT /_bolide/clock"], ["read-write"]);
}

#[test]
fn the_admin_api_opens_what_its_table_says() {
    let mut world = Senders::new();
    let token = world.tokens["container All"].clone();
    for (route, cells) in table("| route ") {
        let (method, path) = route.split_once(' ').expect("verb and path");
        let path = path.replace("{db}", "d").replace("{c}", "c");
        // A body that no route accepts: rights are checked first.
        let request = Request::new(method, &path).body(if method == "GET" { "" } else { "{\"no\":" });
        let mut expect = |request: Request, sender: &str, expected: Result<(), u16>| {
            let name = format!("{route} by {sender}");
            assert_eq!(world.is_let_in(&request, &name), expected, "{name}");
        };
        let is_open = cells[0] == "none";
        expect(
            request.clone().header("authorization", ""),
            "nobody",
            open_if(is_open, 401),
        );
        if !is_open {
            expect(request.clone().key(STRANGER), "another key", Err(401));
            expect(with(request.clone(), &token), "a token", Err(401));
            expect(
                request.clone().key(READONLY),
                "a read-only key",
                open_if(cells[0] == "read-only", 403),
            );
        }
        expect(request, "the account key", Ok(()));
    }
}

#[test]
fn a_bulk_without_a_key_in_its_header_is_judged_by_its_operations() {
    let mut world = Senders::new();
    let token = world.tokens["key All"].clone();
    let read = |key: &str| json!([{"operationType": "Read", "id": "a", "partitionKey": json!([key]).to_string()}]);
    let own = world.client.send(&with(bulk(&read("p")), &token)).expect(200).json();
    assert_eq!(own[0]["resourceBody"]["pk"], "p");
    let others = world.client.send(&with(bulk(&read("q")), &token)).expect(207).json();
    assert_eq!(
        (&others[0]["statusCode"], others[0].get("resourceBody")),
        (&json!(403), None)
    );
}
