//! Snapshots: what a restore and a reset bring back, remove, and leave in place; on both engines.

mod crashes;
mod load;

use std::path::Path;

use bolide_model::account_key::WELL_KNOWN_KEY;
use bson::{RawDocumentBuf, rawdoc};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, Request, Response, create_container, create_item};
use crate::mongo::port as mongo_port;
use crate::mongo_client::MongoClient;
use crate::server::{Server, run};

/// Runs a test on the memory engine and on the embedded one.
fn on_both_engines(options: &[&str], test: impl Fn(&Server)) {
    test(&Server::in_memory(options));
    let dir = TempDir::new().expect("a directory");
    test(&Server::on(&data(&dir), options));
}

fn data(dir: &TempDir) -> std::path::PathBuf {
    dir.path().join("data")
}

fn admin(method: &str, route: &str) -> Request {
    Request::new(method, &format!("/_bolide/{route}"))
}

fn take(client: &mut Client, name: &str) {
    client.send(&admin("POST", &format!("snapshots/{name}"))).expect(200);
}

fn restore(client: &mut Client, name: &str) {
    client
        .send(&admin("POST", &format!("snapshots/{name}/restore")))
        .expect(200);
}

fn read(client: &mut Client, id: &str) -> Response {
    client.send(&Request::get(&format!("/dbs/d/colls/c/docs/{id}")).pk())
}

fn names(client: &mut Client) -> Vec<String> {
    let list = client.send(&admin("GET", "snapshots")).expect(200).json();
    let list = list["snapshots"].as_array().expect("a list").clone();
    list.iter()
        .map(|one| one["name"].as_str().expect("a name").to_owned())
        .collect()
}

fn mongo(server: &Server) -> MongoClient {
    MongoClient::connect(mongo_port(server)).expect("the server listens")
}

fn ask(client: &mut MongoClient, command: &RawDocumentBuf) -> RawDocumentBuf {
    client.run(command).expect("a reply")
}

fn code(reply: &RawDocumentBuf) -> i32 {
    reply.get_i32("code").expect("an error")
}

#[test]
fn what_was_made_later_is_gone_and_what_was_removed_is_back() {
    on_both_engines(&["--mongo-no-auth"], |server| {
        let mut client = server.client();
        let mut mongo = mongo(server);
        create_container(&mut client);
        create_item(&mut client, "a");
        client.send(&Request::post("/dbs/d/users", r#"{"id":"u"}"#)).expect(201);
        let insert = rawdoc! { "insert": "m", "$db": "docs", "documents": [{"_id": 1}] };
        assert_eq!(ask(&mut mongo, &insert).get_i32("n").ok(), Some(1));
        take(&mut client, "base");

        create_item(&mut client, "b");
        client
            .send(&Request::new("DELETE", "/dbs/d/colls/c/docs/a").pk())
            .expect(204);
        client.send(&Request::new("DELETE", "/dbs/d/users/u")).expect(204);
        client.send(&Request::post("/dbs", r#"{"id":"later"}"#)).expect(201);
        client
            .send(&Request::put("/_bolide/settings", r#"{"mongoDocumentTtl":false}"#))
            .expect(200);
        let insert = rawdoc! { "insert": "m", "$db": "docs", "documents": [{"_id": 2}] };
        assert_eq!(ask(&mut mongo, &insert).get_i32("n").ok(), Some(1));
        ask(
            &mut mongo,
            &rawdoc! { "insert": "later", "$db": "docs", "documents": [{"_id": 1}] },
        );

        restore(&mut client, "base");
        read(&mut client, "a").expect(200);
        read(&mut client, "b").expect(404);
        client.send(&Request::get("/dbs/d/users/u")).expect(200);
        client.send(&Request::get("/dbs/later")).expect(404);
        let count = rawdoc! { "count": "m", "$db": "docs" };
        assert_eq!(
            ask(&mut mongo, &count).get_i32("n").ok(),
            Some(1),
            "on the connection of before"
        );
        let count = rawdoc! { "count": "later", "$db": "docs" };
        assert_eq!(ask(&mut mongo, &count).get_i32("n").ok(), Some(0));
        let verified = client.send(&admin("POST", "dbs/d/colls/c/verify")).expect(200).json();
        assert_eq!(verified["ok"], json!(true), "{verified}");
    });
}

#[test]
fn a_reset_removes_everything_but_the_snapshots() {
    on_both_engines(&["--mongo-no-auth"], |server| {
        let mut client = server.client();
        let mut mongo = mongo(server);
        create_container(&mut client);
        create_item(&mut client, "a");
        ask(
            &mut mongo,
            &rawdoc! { "insert": "m", "$db": "docs", "documents": [{"_id": 1}] },
        );
        take(&mut client, "base");
        client.send(&admin("POST", "reset")).expect(200);
        client.send(&Request::get("/dbs/d")).expect(404);
        let listed = ask(
            &mut mongo,
            &rawdoc! { "listDatabases": 1, "nameOnly": true, "$db": "admin" },
        );
        let databases = listed.get_array("databases").expect("a list");
        let has_docs = databases
            .into_iter()
            .flatten()
            .any(|one| format!("{one:?}").contains("docs"));
        assert!(!has_docs, "{listed:?}");
        create_container(&mut client);
        create_item(&mut client, "b");
        assert_eq!(names(&mut client), ["base"]);
        restore(&mut client, "base");
        read(&mut client, "a").expect(200);
        read(&mut client, "b").expect(404);
    });
}

#[test]
fn a_virtual_clock_goes_back_and_items_live_again() {
    let start = 1_700_000_000_000_i64;
    on_both_engines(&["--virtual-clock=2023-11-14T22:13:20Z"], |server| {
        let mut client = server.client();
        let now = |client: &mut Client| client.send(&admin("GET", "clock")).expect(200).json()["nowMs"].as_i64();
        let advance = |client: &mut Client, by: i64| {
            let body = json!({ "advanceMs": by }).to_string();
            client.send(&Request::put("/_bolide/clock", body)).expect(200);
        };
        client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
        let container = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},"defaultTtl":60}"#;
        client.send(&Request::post("/dbs/d/colls", container)).expect(201);
        advance(&mut client, 5_000);
        create_item(&mut client, "a");
        take(&mut client, "base");
        advance(&mut client, 90_000_000);
        read(&mut client, "a").expect(404);
        client.send(&admin("POST", "dbs/d/colls/c/purge")).expect(200);
        restore(&mut client, "base");
        assert_eq!(now(&mut client), Some(start + 5_000));
        read(&mut client, "a").expect(200);
        advance(&mut client, 59_000);
        read(&mut client, "a").expect(200);
        advance(&mut client, 1_000);
        read(&mut client, "a").expect(404);
        client.send(&admin("POST", "reset")).expect(200);
        assert_eq!(now(&mut client), Some(start), "as at the start of the server");
    });
}

#[test]
fn the_systems_clock_goes_on() {
    on_both_engines(&[], |server| {
        let mut client = server.client();
        let now = |client: &mut Client| client.send(&admin("GET", "clock")).expect(200).json()["nowMs"].as_i64();
        take(&mut client, "base");
        let before = now(&mut client);
        restore(&mut client, "base");
        let after = now(&mut client);
        assert!(after >= before, "{before:?} {after:?}");
        client.send(&admin("POST", "reset")).expect(200);
        assert!(now(&mut client) >= after);
    });
}

#[test]
fn etags_positions_and_resource_ids_of_before_are_never_given_again() {
    on_both_engines(&[], |server| {
        let mut client = server.client();
        create_container(&mut client);
        create_item(&mut client, "a");
        take(&mut client, "base");
        let replace = |client: &mut Client, value: u32| {
            let body = json!({"id": "a", "pk": "p", "v": value}).to_string();
            client
                .send(&Request::put("/dbs/d/colls/c/docs/a", body).pk())
                .expect(200)
        };
        let mut undone = Vec::new();
        for value in 0..5 {
            undone.push(replace(&mut client, value));
        }
        let later = r#"{"id":"later","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
        let first = client.send(&Request::post("/dbs/d/colls", later)).expect(201).json()["_rid"].clone();
        restore(&mut client, "base");
        // A client that has seen more goes on in its session, and reads all changes from where it was.
        let seen = undone[4].header("x-ms-session-token").expect("a token").to_owned();
        let request = Request::get("/dbs/d/colls/c/docs/a").pk();
        client.send(&request.header("x-ms-session-token", &seen)).expect(200);
        replace(&mut client, 7);
        let position = seen.rsplit('#').next().expect("a number");
        let changes = Request::get("/dbs/d/colls/c/docs")
            .pk()
            .header("a-im", "Incremental feed")
            .header("if-none-match", &format!("\"{position}\""));
        let changes = client.send(&changes).expect(200).json();
        assert_eq!(changes["Documents"][0]["v"], json!(7), "{changes}");
        for response in &undone {
            let etag = response.json()["_etag"].as_str().expect("an etag").to_owned();
            let body = json!({"id": "a", "pk": "p", "v": 9}).to_string();
            let request = Request::put("/dbs/d/colls/c/docs/a", body).pk();
            client.send(&request.header("if-match", &etag)).expect(412);
        }
        let second = client.send(&Request::post("/dbs/d/colls", later)).expect(201).json()["_rid"].clone();
        assert_ne!(first, second);
        client.send(&Request::get("/dbs/d")).expect(200);
        let database = |client: &mut Client| client.send(&Request::get("/dbs/d")).expect(200).json()["_rid"].clone();
        let before = database(&mut client);
        client.send(&admin("POST", "reset")).expect(200);
        create_container(&mut client);
        assert_ne!(before, database(&mut client));
    });
}

#[test]
fn a_container_that_was_never_written_can_still_be_loaded_after_a_restore() {
    on_both_engines(&[], |server| {
        let mut client = server.client();
        create_container(&mut client);
        take(&mut client, "base");
        create_item(&mut client, "a");
        let load = Request::post(
            "/_bolide/dbs/d/colls/c/import",
            r#"{"id":"b","pk":"p","_ts":1700000000}"#,
        );
        client.send(&load).expect(400);
        restore(&mut client, "base");
        client.send(&load).expect(200);
        read(&mut client, "b").expect(200);
    });
}

#[test]
fn cursors_and_transactions_of_before_get_the_errors_of_mongodb() {
    on_both_engines(&["--mongo-no-auth"], |server| {
        let mut client = server.client();
        let mut mongo = mongo(server);
        let documents = rawdoc! { "insert": "m", "$db": "d", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}] };
        ask(&mut mongo, &documents);
        take(&mut client, "base");
        let found = ask(&mut mongo, &rawdoc! { "find": "m", "$db": "d", "batchSize": 1 });
        let cursor = found
            .get_document("cursor")
            .expect("a cursor")
            .get_i64("id")
            .expect("an id");
        let session = bson::Binary {
            subtype: bson::spec::BinarySubtype::Uuid,
            bytes: vec![7; 16],
        };
        let lsid = rawdoc! { "id": session };
        let begun = ask(
            &mut mongo,
            &rawdoc! { "insert": "m", "$db": "d", "documents": [{"_id": 4}], "lsid": lsid.clone(), "txnNumber": 1_i64,
            "autocommit": false, "startTransaction": true },
        );
        assert_eq!(begun.get_f64("ok").ok(), Some(1.0), "{begun:?}");
        restore(&mut client, "base");
        let more = ask(
            &mut mongo,
            &rawdoc! { "getMore": cursor, "collection": "m", "$db": "d" },
        );
        assert_eq!(code(&more), 43, "CursorNotFound: {more:?}");
        let next = ask(
            &mut mongo,
            &rawdoc! { "insert": "m", "$db": "d", "documents": [{"_id": 5}], "lsid": lsid, "txnNumber": 1_i64, "autocommit": false },
        );
        assert_eq!(code(&next), 251, "NoSuchTransaction: {next:?}");
        let count = ask(&mut mongo, &rawdoc! { "count": "m", "$db": "d" });
        assert_eq!(count.get_i32("n").ok(), Some(3));
    });
}

#[test]
fn a_snapshot_of_the_same_name_is_replaced_and_others_are_listed_and_removed() {
    on_both_engines(&[], |server| {
        let mut client = server.client();
        create_container(&mut client);
        take(&mut client, "b");
        create_item(&mut client, "a");
        take(&mut client, "b");
        take(&mut client, "a.1");
        assert_eq!(names(&mut client), ["a.1", "b"]);
        client
            .send(&Request::new("DELETE", "/dbs/d/colls/c/docs/a").pk())
            .expect(204);
        restore(&mut client, "b");
        read(&mut client, "a").expect(200);
        client.send(&admin("DELETE", "snapshots/b")).expect(200);
        client.send(&admin("DELETE", "snapshots/b")).expect_error(404);
        client.send(&admin("POST", "snapshots/b/restore")).expect_error(404);
        assert_eq!(names(&mut client), ["a.1"]);
        read(&mut client, "a").expect(200);
    });
}

#[test]
fn snapshots_need_a_key_with_all_rights_and_a_harmless_name() {
    let read_only = "cmVhZCBvbmx5IGtleSBmb3IgdGVzdHM=";
    on_both_engines(&["--readonly-key", read_only], |server| {
        let mut client = server.client();
        let changes = [
            ("POST", "snapshots/base"),
            ("POST", "snapshots/base/restore"),
            ("DELETE", "snapshots/base"),
            ("POST", "reset"),
        ];
        for (method, route) in changes {
            client.send(&admin(method, route).key(read_only)).expect_error(403);
            client
                .send(&admin(method, route).header("authorization", "Bearer bm90IGEga2V5IG9mIHRoaXMgc2VydmVy"))
                .expect_error(401);
        }
        client.send(&admin("GET", "snapshots").key(read_only)).expect(200);
        let long = "x".repeat(65);
        for name in [
            "..",
            ".hidden",
            "a%2Fb",
            "..%2F..%2Fetc",
            "a%00b",
            "%E4",
            "a%20b",
            "%0A",
            long.as_str(),
        ] {
            client
                .send(&admin("POST", &format!("snapshots/{name}")))
                .expect_error(400);
            client
                .send(&admin("POST", &format!("snapshots/{name}/restore")))
                .expect_error(400);
            client
                .send(&admin("DELETE", &format!("snapshots/{name}")))
                .expect_error(400);
        }
        assert_eq!(names(&mut client), Vec::<String>::new());
    });
}

#[test]
fn snapshots_in_a_directory_outlive_the_server() {
    let dir = TempDir::new().expect("a directory");
    let mut server = Server::on(&data(&dir), &[]);
    let mut client = server.client();
    create_container(&mut client);
    create_item(&mut client, "a");
    take(&mut client, "base");
    create_item(&mut client, "b");
    drop(client);
    assert!(server.stop().success());
    let mut server = Server::on(&data(&dir), &["--verify-on-start"]);
    let mut client = server.client();
    assert_eq!(names(&mut client), ["base"]);
    read(&mut client, "b").expect(200);
    restore(&mut client, "base");
    read(&mut client, "b").expect(404);
    create_item(&mut client, "c");
    drop(client);
    assert!(server.stop().success());
    let server = Server::on(&data(&dir), &["--verify-on-start"]);
    let mut client = server.client();
    for (id, status) in [("a", 200), ("b", 404), ("c", 200)] {
        read(&mut client, id).expect(status);
    }
    assert_only_its_owner_may_enter(&data(&dir).join("snapshots"));
}

#[cfg(unix)]
fn assert_only_its_owner_may_enter(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = path.metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[cfg(not(unix))]
fn assert_only_its_owner_may_enter(_path: &Path) {}

#[test]
fn the_commands_do_what_the_admin_api_does() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    let endpoint = format!("http://127.0.0.1:{}", server.port());
    let bolide = |arguments: &[&str]| run(&[arguments, &["--endpoint", &endpoint, "--key", WELL_KNOWN_KEY]].concat());
    assert!(bolide(&["snapshot", "base"]).status.success());
    create_item(&mut client, "a");
    assert!(bolide(&["restore", "base"]).status.success());
    read(&mut client, "a").expect(404);
    assert!(bolide(&["reset"]).status.success());
    client.send(&Request::get("/dbs/d")).expect(404);
    let missing = bolide(&["restore", "other"]);
    assert!(!missing.status.success());
    assert!(
        missing.stderr.contains("no such snapshot. name=`other`"),
        "{}",
        missing.stderr
    );
    let hostile = bolide(&["snapshot", "../x"]);
    assert!(!hostile.status.success());
    assert!(hostile.stderr.contains("../x"), "{}", hostile.stderr);
    let wrong = run(&["reset", "--endpoint", &endpoint, "--key", "bm8="]);
    assert!(!wrong.status.success());
}

/// The items `0` to `count - 1` are there and nothing else.
fn assert_items(client: &mut Client, count: u64) {
    let verified: Value = client.send(&admin("POST", "dbs/d/colls/c/verify")).expect(200).json();
    assert_eq!(
        (&verified["ok"], &verified["live"]),
        (&json!(true), &json!(count)),
        "{verified}"
    );
}
