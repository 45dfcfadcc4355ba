//! `bolide reset-time`: resets a store whose clock was far ahead to the present, without its expired items (TTL-204).

use std::path::Path;
use std::process::Output;

use bolide_model::limits;
use bolide_model::time::wall_clock;
use bson::{DateTime, rawdoc};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, Request};
use crate::mongo;
use crate::mongo_client::MongoClient;
use crate::server::{Server, command};

const DOCS: &str = "/dbs/d/colls/c/docs";
const FAR: &str = "--virtual-clock=2100-01-01T00:00:00Z";

fn reset_time(from: &Path, to: &Path) -> Output {
    let output = command()
        .arg("reset-time")
        .arg("--data-dir")
        .arg(from)
        .arg("--to")
        .arg(to)
        .output();
    output.expect("the binary runs")
}

/// The line of a failure.
fn refusal(from: &Path, to: &Path) -> String {
    let output = reset_time(from, to);
    assert!(!output.status.success());
    String::from_utf8(output.stderr).expect("UTF-8")
}

/// A store in the year 2100, with an expired item, a live one, and objects of all other kinds.
fn fill(data: &Path) {
    let mut server = Server::on(data, &[FAR]);
    let mut client = server.client();
    let mut create = |path: &str, body: Value, key: &str| {
        let create = Request::post(path, body.to_string()).header("x-ms-documentdb-partitionkey", key);
        client.send(&create).expect(201);
    };
    create("/dbs", json!({"id": "d"}), "");
    let definition =
        |id: &str, ttl: Value| json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash"}, "defaultTtl": ttl});
    create("/dbs/d/colls", definition("c", json!(3600)), "");
    create("/dbs/d/colls", definition("empty", Value::Null), "");
    create(DOCS, json!({"id": "expired", "pk": "p", "ttl": 60}), r#"["p"]"#);
    create(DOCS, json!({"id": "live", "pk": "p"}), r#"["p"]"#);
    create("/dbs/d/colls/c/udfs", json!({"id": "f", "body": "function () {}"}), "");
    create("/dbs/d/users", json!({"id": "u"}), "");
    let permission = json!({"id": "r", "permissionMode": "Read", "resource": "dbs/d/colls/c"});
    create("/dbs/d/users/u/permissions", permission, "");
    let shared = Request::post("/dbs", r#"{"id":"shared"}"#).header("x-ms-offer-throughput", "1200");
    client.send(&shared).expect(201);
    let key = json!({"id": "key", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256", "wrappedDataEncryptionKey": "AAEC",
        "keyWrapMetadata": {"type": "t", "name": "n", "value": "v", "algorithm": "RSA-OAEP"}});
    let encrypted = json!({"id": "e", "partitionKey": {"paths": ["/a", "/b"], "kind": "MultiHash", "version": 2},
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
        "clientEncryptionPolicy": {"policyFormatVersion": 1, "includedPaths": [{"path": "/x", "clientEncryptionKeyId": "key",
            "encryptionType": "Deterministic", "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256"}]}});
    for (path, body) in [
        ("/dbs/shared/clientencryptionkeys", key),
        ("/dbs/shared/colls", encrypted),
    ] {
        client.send(&Request::post(path, body.to_string())).expect(201);
    }
    client
        .send(&Request::put("/_bolide/clock", r#"{"advanceMs": 60000}"#))
        .expect(200);
    client.send(&Request::get(&format!("{DOCS}/expired")).pk()).expect(404);
    server.stop();
}

#[test]
fn a_store_of_the_future_comes_back_to_the_present_without_what_had_expired() {
    let files = TempDir::new().expect("a temporary directory");
    let (old, new) = (files.path().join("old"), files.path().join("new"));
    fill(&old);
    let before = wall_clock().seconds().0;
    let output = reset_time(&old, &new);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(report.contains("3 containers with 1 live items"), "{report}");
    assert!(
        report.contains("1 items were written while the clock was ahead"),
        "{report}"
    );

    let server = Server::on(&new, &[]);
    let mut client = server.client();
    client.send(&Request::get(&format!("{DOCS}/expired")).pk()).expect(404);
    let live = client
        .send(&Request::get(&format!("{DOCS}/live")).pk())
        .expect(200)
        .json();
    let ts = live["_ts"].as_i64().expect("seconds");
    assert!((before..=wall_clock().seconds().0).contains(&ts), "{live}");
    for path in [
        "/dbs/d/colls/empty",
        "/dbs/d/colls/c/udfs/f",
        "/dbs/d/users/u/permissions/r",
    ] {
        client.send(&Request::get(path)).expect(200);
    }
    // The old store is unchanged, and the definitions are equal.
    let old = Server::on(&old, &[]);
    let mut before = old.client();
    before.send(&Request::get(&format!("{DOCS}/live")).pk()).expect(200);
    before.send(&Request::get(&format!("{DOCS}/expired")).pk()).expect(404);
    for path in [
        "/dbs/d/colls/c",
        "/dbs/shared/colls/e",
        "/dbs/shared/clientencryptionkeys/key",
    ] {
        assert_eq!(definition(&mut client, path), definition(&mut before, path));
    }
    assert_eq!(granted(&mut client), granted(&mut before));
    let container = client.send(&Request::get("/dbs/d/colls/c")).expect(200).json();
    assert_eq!(container["defaultTtl"], 3600);
    let create = Request::post(DOCS, r#"{"id":"new","pk":"p"}"#).pk();
    let written = client.send(&create).expect(201).json()["_ts"]
        .as_i64()
        .expect("seconds");
    assert!((ts..=wall_clock().seconds().0).contains(&written), "time goes on");
}

#[test]
fn collections_keep_their_documents_indexes_and_users() {
    const OPEN: &str = "--mongo-no-auth";
    let files = TempDir::new().expect("a temporary directory");
    let (old, new) = (files.path().join("old"), files.path().join("new"));
    let mut server = Server::on(&old, &[FAR, OPEN]);
    let mut client = MongoClient::connect(mongo::port(&server)).expect("the server listens");
    let date = DateTime::from_millis(4_200_000_000_000);
    let kept = rawdoc! {"_id": 1_i64, "at": date, "x": {"$date": 1.0}};
    let indexes = [
        rawdoc! {"key": {"at": 1}, "name": "at_1", "expireAfterSeconds": 7_200},
        rawdoc! {"key": {"x": 1}, "name": "x_1", "unique": true, "sparse": true},
    ];
    for command in [
        rawdoc! {"create": "c", "collation": {"locale": "de"}, "$db": "m"},
        rawdoc! {"createIndexes": "c", "indexes": [indexes[0].clone(), indexes[1].clone()], "$db": "m"},
        // The first has ended in the year 2100.
        rawdoc! {"insert": "c", "documents": [{"_id": 0, "at": DateTime::from_millis(0)}, kept.clone()], "$db": "m"},
        rawdoc! {"createUser": "ann", "pwd": "secret", "roles": ["read"], "$db": "m"},
    ] {
        let reply = client.run(&command).expect("a reply");
        assert_eq!(reply.get_f64("ok").ok(), Some(1.0), "{reply:?}");
    }
    let about = |client: &mut MongoClient| {
        let lists = [
            rawdoc! {"listCollections": 1, "$db": "m"},
            rawdoc! {"listIndexes": "c", "$db": "m"},
            rawdoc! {"usersInfo": 1, "showCredentials": true, "$db": "m"},
        ];
        lists.map(|list| {
            let reply = client.run(&list).expect("a reply");
            assert_eq!(reply.get_f64("ok").ok(), Some(1.0), "{reply:?}");
            let list = reply
                .get("cursor")
                .expect("valid")
                .or(reply.get("users").expect("valid"));
            format!("{:?}", list.expect("a list"))
        })
    };
    let before = about(&mut client);
    server.stop();
    let output = reset_time(&old, &new);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let server = Server::on(&new, &[OPEN]);
    let mut client = MongoClient::connect(mongo::port(&server)).expect("the server listens");
    assert_eq!(about(&mut client), before);
    let found = client.run(&rawdoc! {"find": "c", "$db": "m"}).expect("a reply");
    let cursor = found.get_document("cursor").expect("a cursor");
    let documents: Vec<_> = cursor.get_array("firstBatch").expect("an array").into_iter().collect();
    assert_eq!(documents.len(), 1);
    assert_eq!(documents[0].as_ref().expect("valid").as_document(), Some(&*kept));
}

/// A resource without members that the server added.
fn definition(client: &mut Client, path: &str) -> Value {
    let mut resource = client.send(&Request::get(path)).expect(200).json();
    let members = resource.as_object_mut().expect("an object");
    members.retain(|name, _| !name.starts_with('_'));
    resource
}

/// The throughput of the offers.
fn granted(client: &mut Client) -> Vec<Value> {
    let offers = client.send(&Request::get("/offers")).expect(200).json();
    let offers = offers["Offers"].as_array().expect("a feed").iter();
    offers
        .map(|offer| offer["content"]["offerThroughput"].clone())
        .collect()
}

#[test]
fn a_store_that_cannot_be_copied_is_refused_and_nothing_is_created() {
    let files = TempDir::new().expect("a temporary directory");
    let [old, new, nowhere] = ["old", "new", "nowhere"].map(|name| files.path().join(name));
    Server::on(&old, &[]).stop();
    assert!(refusal(&old, &new).contains("not ahead"));
    assert!(refusal(&nowhere, &new).contains("no store"));
    assert!(!nowhere.exists() && !new.exists());
    assert!(refusal(&old, &old).contains("already"));
    assert!(refusal(&old, &old.join("deep").join("new")).contains("inside the old store"));
    #[cfg(unix)]
    {
        // A dangling link would be replaced by the copy.
        let link = files.path().join("link");
        std::os::unix::fs::symlink(&nowhere, &link).expect("it can be made");
        assert!(refusal(&old, &link).contains("already"));
    }
    let running = Server::on(&old, &[]);
    assert!(refusal(&old, &new).contains("in use by another process"));
    drop(running);
    // A directory left by a crash is named in the error, and not used as a store.
    std::fs::create_dir(files.path().join("new.incomplete")).expect("it can be made");
    assert!(refusal(&old, &new).contains("new.incomplete"));
}

/// The store of the year 2100, with a first database deleted: its numbers are not used again, in either store.
#[test]
fn permissions_are_for_the_same_containers_and_old_tokens_for_none() {
    let files = TempDir::new().expect("a temporary directory");
    let (old, new) = (files.path().join("old"), files.path().join("new"));
    let mut server = Server::on(&old, &[FAR]);
    let mut client = server.client();
    let mut create = |path: &str, body: Value| client.send(&Request::post(path, body.to_string())).expect(201).json();
    for database in ["gone", "d", "e"] {
        create("/dbs", json!({"id": database}));
        let definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash"}});
        let container = create(&format!("/dbs/{database}/colls"), definition);
        if database == "d" {
            create("/dbs/d/users", json!({"id": "u"}));
            let permission = json!({"id": "r", "permissionMode": "Read", "resource": container["_self"]});
            create("/dbs/d/users/u/permissions", permission);
        }
    }
    let token_of = |client: &mut Client| {
        let permission = client
            .send(&Request::get("/dbs/d/users/u/permissions/r"))
            .expect(200)
            .json();
        let token = permission["_token"].as_str().expect("a token").to_owned();
        token.replace('=', "%3D").replace('&', "%26").replace(';', "%3B")
    };
    let old_token = token_of(&mut client);
    client.send(&Request::new("DELETE", "/dbs/gone")).expect(204);
    server.stop();
    let output = reset_time(&old, &new);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let server = Server::on(&new, &[]);
    let mut client = server.client();
    let token = token_of(&mut client);
    for (token, database, status) in [
        (&token, "d", 200),
        (&token, "e", 403),
        (&old_token, "d", 403),
        (&old_token, "e", 403),
    ] {
        let read = Request::get(&format!("/dbs/{database}/colls/c")).header("authorization", token);
        client.send(&read).expect(status);
    }
}

#[test]
fn an_item_as_large_as_may_be_is_copied() {
    let files = TempDir::new().expect("a temporary directory");
    let (old, new) = (files.path().join("old"), files.path().join("new"));
    let mut server = Server::on(&old, &[FAR]);
    let mut client = server.client();
    client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
    let definition = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash"}}"#;
    client.send(&Request::post("/dbs/d/colls", definition)).expect(201);
    let item = |filler: &str| json!({"id": "large", "pk": "p", "filler": filler}).to_string();
    let filler = "x".repeat(limits::ITEM_BYTES - item("").len());
    client.send(&Request::post(DOCS, item(&filler)).pk()).expect(201);
    server.stop();
    let output = reset_time(&old, &new);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let server = Server::on(&new, &[]);
    let copied = server.client().send(&Request::get(&format!("{DOCS}/large")).pk());
    assert_eq!(copied.expect(200).json()["filler"], filler);
}
