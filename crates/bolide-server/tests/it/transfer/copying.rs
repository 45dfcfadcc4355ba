//! Copies between two servers.

use bson::rawdoc;

use super::*;
use crate::mongo_client::MongoClient;

/// A server with two databases, and much in one of them.
fn source() -> Server {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    let container = json!({
        "id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}, "defaultTtl": 86400,
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/id2"]}]},
        "indexingPolicy": {"indexingMode": "consistent", "automatic": true, "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": "/secret/?"}], "compositeIndexes": [[{"path": "/a", "order": "ascending"}, {"path": "/b", "order": "descending"}]]},
    });
    create(&mut client, &container, "1200");
    let hierarchy = json!({"id": "h", "partitionKey": {"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2}});
    create(&mut client, &hierarchy, "30000");
    let bodies = [
        ("sprocs", json!({"id": "s", "body": "function () { return 1; }"})),
        ("udfs", json!({"id": "u", "body": "function () { return 2; }"})),
        (
            "triggers",
            json!({"id": "t", "body": "function () {}", "triggerType": "Pre", "triggerOperation": "All"}),
        ),
    ];
    for (kind, body) in bodies {
        client
            .send(&Request::post(&format!("/dbs/db/colls/c/{kind}"), body.to_string()))
            .expect(201);
    }
    client
        .send(&Request::post("/dbs/db/users", r#"{"id": "ada"}"#))
        .expect(201);
    let permission = r#"{"id": "may", "permissionMode": "Read", "resource": "dbs/db/colls/c"}"#;
    client
        .send(&Request::post("/dbs/db/users/ada/permissions", permission))
        .expect(201);
    client.send(&Request::post("/dbs", r#"{"id": "other"}"#)).expect(201);
    let files = Files::new();
    let endpoint = endpoint(&server);
    let with_unique = |mut item: Value| {
        item["id2"] = item["id"].clone();
        item
    };
    let rows: Vec<Value> = samples(400).into_iter().map(with_unique).collect();
    let file = files.write("c.jsonl", lines(&rows));
    succeeds(&[&["import", "--file", &file], &of(&endpoint, "c")[..]].concat());
    let keyed = |n: usize| json!({"id": format!("i{n:03}"), "a": n % 3, "b": format!("b{}", n % 7)});
    let file = files.write("h.jsonl", lines(&(0..200).map(keyed).collect::<Vec<_>>()));
    succeeds(&[&["import", "--file", &file], &of(&endpoint, "h")[..]].concat());
    server
}

/// A resource without what its server has added.
fn shown(server: &Server, path: &str) -> Value {
    let Value::Object(mut members) = server.client().send(&Request::get(path)).expect(200).json() else {
        panic!("{path} is no object");
    };
    members.retain(|name, _| !name.starts_with('_'));
    Value::Object(members)
}

fn throughputs(server: &Server) -> Vec<String> {
    let offers = server.client().send(&Request::get("/offers")).expect(200).json();
    let offers = offers["Offers"].as_array().expect("a list").iter();
    let mut all: Vec<String> = offers
        .map(|offer| offer["content"]["offerThroughput"].to_string())
        .collect();
    all.sort();
    all
}

#[test]
fn everything_is_copied_with_its_settings_and_once() {
    let (from, to) = (source(), Server::in_memory(&[]));
    let (from_url, to_url) = (endpoint(&from), endpoint(&to));
    let copy = ["copy", "--from", &from_url, "--to", &to_url];
    let summary = succeeds(&copy);
    assert_eq!(summary, "copied 2 databases, 2 containers, 600 items\n");
    for path in [
        "/dbs/db/colls/c",
        "/dbs/db/colls/h",
        "/dbs/db/colls/c/sprocs/s",
        "/dbs/db/colls/c/triggers/t",
        "/dbs/db/colls/c/udfs/u",
        "/dbs/db/users/ada",
        "/dbs/db/users/ada/permissions/may",
        "/dbs/other",
    ] {
        if path.contains("sprocs/") || path.contains("triggers/") || path.contains("udfs/") {
            let list = path.rsplit_once('/').map_or(path, |(list, _)| list);
            assert_eq!(bodies(&from, list), bodies(&to, list), "{path}");
            continue;
        }
        assert_eq!(shown(&from, path), shown(&to, path), "{path}");
    }
    assert_eq!(throughputs(&from), throughputs(&to));
    for container in ["c", "h"] {
        assert_eq!(items(&from, container), items(&to, container));
    }
    let again = succeeds(&copy);
    assert_eq!(
        again,
        "copied 2 databases, 2 containers, 0 items, 600 items were there already\n"
    );
}

fn bodies(server: &Server, list: &str) -> Vec<String> {
    let answer = server.client().send(&Request::get(list)).expect(200).json();
    let members = answer.as_object().expect("an object");
    let list = members.values().find_map(Value::as_array).expect("a list");
    list.iter()
        .map(|script| format!("{} {}", script["id"], script["body"]))
        .collect()
}

#[test]
fn a_copy_that_was_started_goes_on_and_changes_are_conflicts() {
    let (from, to) = (source(), Server::in_memory(&[]));
    let (from_url, to_url) = (endpoint(&from), endpoint(&to));
    let copy = [
        "copy",
        "--from",
        &from_url,
        "--to",
        &to_url,
        "--database",
        "db",
        "--container",
        "h",
    ];
    assert_eq!(succeeds(&copy), "copied 1 databases, 1 containers, 200 items\n");
    let changed = Request::put(
        "/dbs/db/colls/h/docs/i005",
        r#"{"id": "i005", "a": 2, "b": "b5", "changed": true}"#,
    )
    .header("x-ms-documentdb-partitionkey", r#"[2, "b5"]"#);
    to.client().send(&changed).expect(200);
    let failure = fails(&copy);
    assert!(failure.contains("id `i005` and partition key [2,\"b5\"]"), "{failure}");
    assert!(succeeds(&[&copy[..], &["--on-conflict", "skip"]].concat()).contains("200 items were there already"));
    succeeds(&[&copy[..], &["--on-conflict", "replace"]].concat());
    assert_eq!(items(&from, "h"), items(&to, "h"));
    // Another definition is no reason to mix items.
    let unlike = Server::in_memory(&[]);
    create_plain(&unlike, "h");
    let unlike_url = endpoint(&unlike);
    let failure = fails(&[
        "copy",
        "--from",
        &from_url,
        "--to",
        &unlike_url,
        "--database",
        "db",
        "--container",
        "h",
    ]);
    assert!(failure.contains("partitionKey"), "{failure}");
}

#[test]
fn a_copy_can_change_the_partition_key_and_keep_the_times() {
    let (from, to) = (source(), Server::in_memory(&[]));
    let (from_url, to_url) = (endpoint(&from), endpoint(&to));
    let copy = [
        "copy",
        "--from",
        &from_url,
        "--to",
        &to_url,
        "--database",
        "db",
        "--container",
        "h",
    ];
    let changed = [&copy[..], &["--partition-key", "/b,/a", "--keep-timestamps"]].concat();
    assert_eq!(succeeds(&changed), "copied 1 databases, 1 containers, 200 items\n");
    let key = &shown(&to, "/dbs/db/colls/h")["partitionKey"];
    assert_eq!(*key, json!({"paths": ["/b", "/a"], "kind": "MultiHash", "version": 2}));
    assert_eq!(items(&from, "h"), items(&to, "h"));
    let read = |server: &Server, key: &str| {
        let read = Request::get("/dbs/db/colls/h/docs/i005").header("x-ms-documentdb-partitionkey", key);
        server.client().send(&read).expect(200).json()["_ts"].clone()
    };
    assert_eq!(read(&from, r#"[2, "b5"]"#), read(&to, r#"["b5", 2]"#));
    assert!(succeeds(&changed).contains("200 items were there already"));
}

/// As items its documents would lose their types and their indexes.
#[test]
fn a_mongodb_collection_is_named_and_nothing_is_copied() {
    let (from, to) = (Server::in_memory(&["--mongo-no-auth"]), Server::in_memory(&[]));
    create_plain(&from, "c");
    let mut mongo = MongoClient::connect(from.mongo_port()).expect("the server listens");
    let insert = rawdoc! { "insert": "docs", "documents": [{ "_id": 1 }], "$db": "m" };
    mongo.run(&insert).expect("a reply");
    let (from_url, to_url) = (endpoint(&from), endpoint(&to));
    let copy = ["copy", "--from", &from_url, "--to", &to_url];
    let failure = fails(&copy);
    assert!(failure.contains("m/docs is a MongoDB collection"), "{failure}");
    let databases = to.client().send(&Request::get("/dbs")).expect(200).json();
    assert_eq!(databases["_count"], 0);
    let summary = succeeds(&[&copy[..], &["--database", "db"]].concat());
    assert_eq!(summary, "copied 1 databases, 1 containers, 0 items\n");
}
