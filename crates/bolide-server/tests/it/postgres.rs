//! Stores in PostgreSQL: making one, several servers over one, and what is refused.

use std::fs;
use std::time::{Duration, Instant};

use bolide_postgres_server::Database;
use bson::{RawDocumentBuf, rawdoc};
use serde_json::json;
use tempfile::TempDir;

use crate::client::{Client, Request, create_container, create_item};
use crate::mongo::port as mongo_port;
use crate::mongo_client::MongoClient;
use crate::server::{Server, run};

/// Longest time that background work may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(30);

fn database() -> Database {
    Database::create().expect("PostgreSQL is installed")
}

fn on(database: &Database) -> Server {
    Server::with_environment(&[("BOLIDE_STORE", &database.address())], &["--mongo-no-auth"])
}

fn read(client: &mut Client, id: &str) -> u16 {
    let response = client.send(&Request::get(&format!("/dbs/d/colls/c/docs/{id}")).pk());
    response.status
}

#[test]
fn what_one_server_makes_and_removes_the_next_request_to_another_finds() {
    let database = database();
    let (first, second) = (on(&database), on(&database));
    let (mut here, mut there) = (first.client(), second.client());
    create_container(&mut here);
    there.send(&Request::get("/_bolide/dbs/d/colls/c/ttl")).expect(200);
    create_item(&mut here, "a");
    assert_eq!(read(&mut there, "a"), 200);
    create_item(&mut there, "b");
    assert_eq!(read(&mut here, "b"), 200);
    let listed = there.send(&Request::get("/dbs")).expect(200).json();
    assert_eq!(listed["_count"], 1);

    here.send(&Request::new("DELETE", "/dbs/d/colls/c")).expect(204);
    assert_eq!(read(&mut there, "a"), 404);
    there.send(&Request::get("/dbs/d/colls/c")).expect(404);
    there
        .send(&Request::post(
            "/dbs/d/colls",
            r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash"}}"#,
        ))
        .expect(201);
    create_item(&mut there, "c");
    assert_eq!((read(&mut here, "a"), read(&mut here, "c")), (404, 200));
}

/// TTL-233: the next request to the other server uses the settings that one has acknowledged.
#[test]
fn settings_that_one_server_acknowledged_hold_on_the_other() {
    let database = database();
    let (first, second) = (on(&database), on(&database));
    let (mut here, mut there) = (first.client(), second.client());
    create_container(&mut here);
    create_item(&mut here, "a");
    let define = |client: &mut Client, default: &str| {
        let definition = format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"kind":"Hash"}}{default}}}"#);
        client.send(&Request::put("/dbs/d/colls/c", &definition)).expect(200);
    };
    for turn in 0..20 {
        let (one, other) = if turn % 2 == 0 {
            (&mut here, &mut there)
        } else {
            (&mut there, &mut here)
        };
        assert_eq!(read(other, "a"), 200, "turn {turn}");
        // Longer than the test takes. What follows shows that the other server counts by it: its answer says when the item ends.
        let default = 1_000 + turn;
        define(one, &format!(r#","defaultTtl":{default}"#));
        let why = other
            .send(&Request::get("/_bolide/dbs/d/colls/c/ttl/why?id=a&pk=p"))
            .expect(200)
            .json();
        assert_eq!(why["defaultTtl"], default, "{why}");
    }
    // An index of both servers.
    let policy = r#","indexingPolicy":{"indexingMode":"consistent","includedPaths":[{"path":"/*"}],"excludedPaths":[],
        "compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/b","order":"ascending"}]]}"#;
    define(&mut here, policy);
    create_item(&mut there, "b");
    let verified = here
        .send(&Request::post("/_bolide/dbs/d/colls/c/verify", ""))
        .expect(200)
        .json();
    assert_eq!(verified["problems"], json!([]), "{verified}");
    // Its items end on both at once.
    define(&mut here, r#","defaultTtl":1"#);
    assert_eq!(read(&mut there, "a"), read(&mut here, "a"));
}

/// Waits until `done`, for what happens in the background by the machine's clock.
fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < PATIENCE, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// TTL-293, TTL-002: what both servers have written is purged by those that live, and each server says who that is.
#[test]
fn servers_know_each_other_and_purge_what_any_of_them_has_written() {
    let database = database();
    let (first, second) = (on(&database), on(&database));
    let (mut here, mut there) = (first.client(), second.client());
    let nodes = |client: &mut Client| {
        let cluster = client.send(&Request::get("/_bolide/cluster")).expect(200).json();
        cluster["nodes"].as_array().expect("a list").clone()
    };
    let knows = |client: &mut Client, server: &Server| {
        let known = nodes(client);
        known.len() == 2 && known.iter().any(|node| node["endpoint"] == server.ready()["cosmos"])
    };
    wait("each knows the other", || {
        knows(&mut here, &second) && knows(&mut there, &first)
    });
    let known = nodes(&mut here);
    for node in &known {
        assert!(
            node["clock"]["loMs"].as_i64() <= node["clock"]["hiMs"].as_i64(),
            "{node}"
        );
    }
    let printed = run(&["nodes", "--endpoint", first.ready()["cosmos"].as_str().expect("a URL")]);
    assert!(printed.status.success(), "{}", printed.stderr);

    let definition = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash"},"defaultTtl":1}"#;
    here.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
    here.send(&Request::post("/dbs/d/colls", definition)).expect(201);
    let owned = |nodes: &[serde_json::Value]| {
        nodes
            .iter()
            .map(|node| node["partitionsOwned"].as_u64())
            .sum::<Option<u64>>()
    };
    wait("one of them purges the partition", || {
        owned(&nodes(&mut here)) == Some(1)
    });
    let purged = |client: &mut Client| {
        let report = client
            .send(&Request::get("/_bolide/dbs/d/colls/c/ttl"))
            .expect(200)
            .json();
        (report["purgedTotal"].clone(), report["backlogItems"].clone())
    };
    create_item(&mut here, "a");
    create_item(&mut there, "b");
    wait("both items are purged", || purged(&mut here) == (json!(2), json!(0)));
    wait("the other server knows that", || {
        purged(&mut there) == (json!(2), json!(0))
    });

    // Whoever purged them: the one that is left does.
    drop(second);
    create_item(&mut here, "c");
    wait("the dead server is found out", || nodes(&mut here).len() == 1);
    wait("the item is purged", || purged(&mut here) == (json!(3), json!(0)));
}

#[test]
fn collections_of_mongodb_are_found_on_another_server() {
    let database = database();
    let (first, second) = (on(&database), on(&database));
    let [mut here, mut there] =
        [&first, &second].map(|server| MongoClient::connect(mongo_port(server)).expect("the server listens"));
    let insert = rawdoc! { "insert": "m", "$db": "docs", "documents": [{"_id": 1}] };
    assert_eq!(here.run(&insert).expect("a reply").get_i32("n").ok(), Some(1));
    let count = rawdoc! { "count": "m", "$db": "docs" };
    assert_eq!(there.run(&count).expect("a reply").get_i32("n").ok(), Some(1));
    let insert = rawdoc! { "insert": "m", "$db": "docs", "documents": [{"_id": 1}, {"_id": 2}], "ordered": false };
    let reply = there.run(&insert).expect("a reply");
    assert_eq!(reply.get_i32("n").ok(), Some(1), "one is there already");
    assert_eq!(here.run(&count).expect("a reply").get_i32("n").ok(), Some(2));
}

fn ok(client: &mut MongoClient, command: &RawDocumentBuf) -> RawDocumentBuf {
    let reply = client.run(command).expect("a reply");
    assert_eq!(reply.get_f64("ok").ok(), Some(1.0), "{command:?}: {reply:?}");
    assert!(reply.get_array("writeErrors").is_err(), "{reply:?}");
    reply
}

/// TTL-233 for collections: TTL indexes, other definitions, names.
#[test]
fn what_one_server_changes_of_a_collection_holds_on_the_other() {
    let database = database();
    let (first, second) = (on(&database), on(&database));
    let [mut here, mut there] =
        [&first, &second].map(|server| MongoClient::connect(mongo_port(server)).expect("the server listens"));
    let insert = |name: &str, id: i32, at: i64| {
        let at = bson::DateTime::from_millis(at);
        rawdoc! { "insert": name, "$db": "docs", "documents": [{"_id": id, "at": at}] }
    };
    let find = |client: &mut MongoClient, name: &str| {
        let reply = ok(client, &rawdoc! { "find": name, "$db": "docs" });
        let cursor = reply.get_document("cursor").expect("a cursor");
        cursor.get_array("firstBatch").expect("documents").into_iter().count()
    };
    ok(&mut here, &insert("m", 1, 1_000));
    assert_eq!(find(&mut there, "m"), 1);
    ok(
        &mut here,
        &rawdoc! {
            "createIndexes": "m", "$db": "docs",
            "indexes": [{"key": {"at": 1}, "name": "at_1", "expireAfterSeconds": 0}],
        },
    );
    let in_transaction = rawdoc! {
        "find": "m", "$db": "docs", "lsid": {"id": bson::Binary { subtype: bson::spec::BinarySubtype::Uuid, bytes: vec![7; 16] }},
        "txnNumber": 1_i64, "startTransaction": true, "autocommit": false,
    };
    let reply = ok(&mut there, &in_transaction);
    let cursor = reply.get_document("cursor").expect("a cursor");
    let batch = cursor.get_array("firstBatch").expect("documents");
    assert_eq!(batch.into_iter().count(), 0, "a transaction sees the same");
    assert_eq!(find(&mut there, "m"), 0, "it has ended by the new index");
    ok(&mut there, &insert("m", 2, i64::MAX));
    ok(
        &mut there,
        &rawdoc! { "dropIndexes": "m", "$db": "docs", "index": "at_1" },
    );
    ok(&mut here, &insert("m", 3, 1_000));
    assert_eq!((find(&mut here, "m"), find(&mut there, "m")), (2, 2));
    ok(
        &mut here,
        &rawdoc! { "collMod": "m", "$db": "docs", "validator": {"wanted": {"$exists": true}} },
    );
    let refused = there.run(&insert("m", 4, 1_000)).expect("a reply");
    assert!(
        refused.get_array("writeErrors").is_ok(),
        "the validator holds on the other server: {refused:?}"
    );

    let rename = rawdoc! { "renameCollection": "docs.m", "to": "docs.n", "$db": "admin" };
    ok(&mut here, &rename);
    assert_eq!((find(&mut there, "m"), find(&mut there, "n")), (0, 2));
    ok(&mut here, &rawdoc! { "drop": "n", "$db": "docs" });
    assert_eq!(find(&mut there, "n"), 0);
    ok(&mut here, &insert("n", 1, i64::MAX));
    assert_eq!(find(&mut there, "n"), 1);
    // A collection that is replaced by another one is gone on the other server, too.
    ok(&mut here, &insert("old", 1, i64::MAX));
    ok(&mut here, &insert("new", 1, i64::MAX));
    ok(&mut here, &insert("new", 2, i64::MAX));
    assert_eq!((find(&mut there, "old"), find(&mut there, "new")), (1, 2));
    let replace = rawdoc! { "renameCollection": "docs.new", "to": "docs.old", "dropTarget": true, "$db": "admin" };
    ok(&mut here, &replace);
    assert_eq!((find(&mut there, "old"), find(&mut there, "new")), (2, 0));
    ok(&mut there, &rawdoc! { "dropDatabase": 1, "$db": "docs" });
    assert_eq!(find(&mut here, "n"), 0);
}

/// A driver that gets no answer to a commit sends it again, to any server. Told that there is no such transaction, it makes it again: so what the first
/// server has not committed by then, it must not commit any more.
#[test]
fn a_commit_that_another_server_has_denied_does_not_happen() {
    let database = database();
    let (first, second) = (on(&database), on(&database));
    let [mut here, mut there] =
        [&first, &second].map(|server| MongoClient::connect(mongo_port(server)).expect("the server listens"));
    ok(
        &mut here,
        &rawdoc! { "insert": "m", "$db": "docs", "documents": [{"_id": 0}] },
    );
    let session = bson::Binary {
        subtype: bson::spec::BinarySubtype::Uuid,
        bytes: vec![9; 16],
    };
    let insert = |number: i64| {
        rawdoc! {
            "insert": "m", "$db": "docs", "documents": [{"_id": number}], "lsid": {"id": session.clone()},
            "txnNumber": number, "startTransaction": true, "autocommit": false,
        }
    };
    let commit = |number: i64| {
        rawdoc! {
            "commitTransaction": 1, "$db": "admin", "lsid": {"id": session.clone()}, "txnNumber": number, "autocommit": false,
        }
    };
    let code = |client: &mut MongoClient, command: &RawDocumentBuf| {
        let reply = client.run(command).expect("a reply");
        reply.get_i32("code").ok()
    };
    let count = |client: &mut MongoClient| {
        let reply = ok(client, &rawdoc! { "count": "m", "$db": "docs" });
        reply.get_i32("n").expect("a number")
    };
    ok(&mut here, &insert(1));
    assert_eq!(code(&mut there, &commit(1)), Some(251), "there is no such transaction");
    assert_eq!(
        code(&mut here, &commit(1)),
        Some(112),
        "a conflict, with which drivers make it again"
    );
    assert_eq!((count(&mut here), count(&mut there)), (1, 1));

    ok(&mut here, &insert(2));
    ok(&mut here, &commit(2));
    ok(&mut there, &commit(2));
    assert_eq!((count(&mut here), count(&mut there)), (2, 2));
    // An answer that comes too late ends nothing of what the session has done since.
    assert_eq!(code(&mut there, &commit(1)), Some(251));
    ok(&mut there, &commit(2));
}

#[test]
fn a_store_outlives_its_servers_and_has_no_snapshots() {
    let database = database();
    let mut server = on(&database);
    create_container(&mut server.client());
    create_item(&mut server.client(), "a");
    assert!(server.stop().success());
    let server = on(&database);
    let mut client = server.client();
    assert_eq!(read(&mut client, "a"), 200);
    let status = client.send(&Request::get("/_bolide/health")).json();
    assert_eq!(status["engine"], json!("postgres"), "{status}");
    for (method, route) in [("GET", "snapshots"), ("POST", "snapshots/a"), ("POST", "reset")] {
        let refused = client.send(&Request::new(method, &format!("/_bolide/{route}")));
        assert!((400..500).contains(&refused.status), "{route}: {}", refused.status);
    }
    let verified = client
        .send(&Request::new("POST", "/_bolide/dbs/d/colls/c/verify"))
        .expect(200);
    assert_eq!(verified.json()["ok"], json!(true), "{}", verified.text());
}

#[test]
fn init_makes_a_store_once_and_says_why_it_cannot() {
    let database = database();
    let store = format!("--store={}", database.address());
    for _ in 0..2 {
        let made = run(&["init", &store]);
        assert!(made.status.success(), "{}", made.stderr);
    }
    let refused = run(&["init", "--store=postgres://bolide:secret@127.0.0.1:1/shop"]);
    assert!(!refused.status.success());
    assert!(
        refused.stderr.contains("--store") && !refused.stderr.contains("secret"),
        "{}",
        refused.stderr
    );
    database.run("comment on table bolide_kv is null").expect("it is ours");
    let foreign = run(&["init", &store]);
    assert!(foreign.stderr.contains("bolide_kv"), "{}", foreign.stderr);
    let both = run(&["serve", "--memory", "--port=0", &store]);
    assert!(
        both.stderr.contains("--memory") && both.stderr.contains("--store"),
        "{}",
        both.stderr
    );
    let nobody = run(&["serve", "--port=0", "--memory", "--store-ca=/no/such/file"]);
    assert!(nobody.stderr.contains("--store-ca"), "{}", nobody.stderr);
}

#[test]
fn connections_to_the_store_are_encrypted_if_the_address_says_so() {
    let database = database();
    let files = TempDir::new().expect("a directory");
    let authorities = files.path().join("ca.pem");
    fs::write(&authorities, database.certificate()).expect("it can be written");
    let address = format!("{}?sslmode=require", database.address());
    let stranger = run(&["init", "--store", &address]);
    assert!(stranger.stderr.contains("certificate"), "{}", stranger.stderr);
    let file = authorities.to_str().expect("UTF-8");
    let server = Server::with_environment(&[("BOLIDE_STORE", &address), ("BOLIDE_STORE_CA", file)], &[]);
    create_container(&mut server.client());
    let clear = "select count(*) from pg_stat_ssl join pg_stat_activity using (pid)
                 where datname = current_database() and application_name = 'bolide' and not ssl";
    assert_eq!(database.run(clear).expect("it is there").trim(), "0");
}

#[cfg(target_os = "linux")]
#[test]
fn the_arguments_of_the_process_show_no_address_of_the_store() {
    let database = database();
    let address = database.address().replace("bolide@", "bolide:secret@");
    let server = Server::with_environment(&[], &["--store", &address]);
    let arguments = fs::read(format!("/proc/{}/cmdline", server.pid())).expect("it can be read");
    assert!(!String::from_utf8_lossy(&arguments).contains("secret"));
}
