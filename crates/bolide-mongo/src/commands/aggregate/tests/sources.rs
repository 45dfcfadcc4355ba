use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};

use crate::commands::fixture::log_in::log_in;
use crate::commands::fixture::{self, KEY, NOW, READ_ONLY_KEY, Shell, code, only, run, without};

fn on(collection: &str, stage: RawDocumentBuf) -> RawDocumentBuf {
    rawdoc! { "aggregate": collection, "pipeline": [stage], "cursor": {} }
}

fn on_database(stage: RawDocumentBuf) -> RawDocumentBuf {
    rawdoc! { "aggregate": 1, "pipeline": [stage], "cursor": {} }
}

fn first_batch(reply: &RawDocument) -> Vec<RawDocumentBuf> {
    let cursor = reply.get_document("cursor").expect("a cursor");
    let batch = cursor.get_array("firstBatch").expect("a batch").into_iter();
    batch
        .map(|document| document.expect("valid").as_document().expect("a document").to_owned())
        .collect()
}

async fn filled() -> Shell {
    let shell = Shell::new().await;
    let index = rawdoc! { "key": { "d": 1 }, "name": "d_1", "expireAfterSeconds": 0 };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    let ends = DateTime::from_millis(NOW.0 + 1);
    shell
        .insert("c", &[rawdoc! { "_id": 1 }, rawdoc! { "_id": 2, "d": ends }])
        .await;
    shell
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_of_a_collection_do_not_count_what_has_ended() {
    let shell = filled().await;
    let stage = rawdoc! { "$collStats": { "storageStats": {}, "count": {} } };
    for expected in [2, 1] {
        let found = shell.first_batch(on("c", stage.clone())).await;
        let [found] = &found[..] else {
            panic!("one document: {found:?}")
        };
        let names = ["ns", "host", "count"];
        let is = rawdoc! { "ns": "db.c", "host": "machine:10255", "count": expected };
        assert_eq!(only(found, &names), is);
        let storage = found.get_document("storageStats").expect("statistics");
        let names = ["ns", "count", "nindexes", "capped", "scaleFactor"];
        let is = rawdoc! { "count": expected, "nindexes": 2, "capped": false, "scaleFactor": 1 };
        assert_eq!(only(storage, &names), is);
        shell.advance(1);
    }
    let none = shell
        .first_batch(on("none", rawdoc! { "$collStats": { "storageStats": { "scale": 2 } } }))
        .await;
    let storage = none[0].get_document("storageStats").expect("statistics");
    assert_eq!(
        only(storage, &["count", "scaleFactor"]),
        rawdoc! { "count": 0, "scaleFactor": 2 }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documents_of_statistics_pass_through_the_other_stages() {
    let shell = filled().await;
    let command = rawdoc! {
        "aggregate": "c",
        "pipeline": [{ "$collStats": { "count": {} } }, { "$project": { "_id": 0, "n": "$count" } }],
        "cursor": {},
    };
    assert_eq!(shell.first_batch(command).await, [rawdoc! { "n": 2 }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_index_has_statistics() {
    let shell = filled().await;
    let found = shell.first_batch(on("c", rawdoc! { "$indexStats": {} })).await;
    let shown: Vec<_> = found
        .iter()
        .map(|index| only(index, &["name", "key", "host"]))
        .collect();
    let host = "machine:10255";
    assert_eq!(
        shown,
        [
            rawdoc! { "name": "_id_", "key": { "_id": 1 }, "host": host },
            rawdoc! { "name": "d_1", "key": { "d": 1 }, "host": host },
        ]
    );
    let specification = found[1].get_document("spec").expect("a specification");
    let expected = rawdoc! { "v": 2, "key": { "d": 1 }, "name": "d_1", "expireAfterSeconds": 0 };
    assert_eq!(specification.to_owned(), expected);
    assert!(
        shell
            .first_batch(on("none", rawdoc! { "$indexStats": {} }))
            .await
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_itself_runs_while_it_looks() {
    let shell = filled().await;
    let mut command = on_database(rawdoc! { "$currentOp": { "allUsers": true, "idleConnections": false } });
    command.append(bson::raw::cstr!("$db"), "admin");
    let found = shell.first_batch(command).await;
    let [only_one] = &found[..] else {
        panic!("one command: {found:?}")
    };
    let expected = rawdoc! { "type": "op", "connectionId": 7, "ns": "admin", "command": { "aggregate": 1 } };
    assert_eq!(only(only_one, &["type", "connectionId", "ns", "command"]), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_listed_with_their_last_use() {
    let shell = filled().await;
    let id = Binary {
        subtype: BinarySubtype::Uuid,
        bytes: vec![7; 16],
    };
    shell.ok(rawdoc! { "ping": 1, "lsid": { "id": id.clone() } }).await;
    let mut listed = on("system.sessions", rawdoc! { "$listSessions": {} });
    listed.append(bson::raw::cstr!("$db"), "config");
    for command in [on_database(rawdoc! { "$listLocalSessions": {} }), listed] {
        let found = shell.first_batch(command).await;
        let [session] = &found[..] else {
            panic!("one session: {found:?}")
        };
        let key = session.get_document("_id").expect("an id");
        assert_eq!(only(key, &["id"]), rawdoc! { "id": id.clone() });
        // SHA-256 of nothing: there is no user.
        let digest = key.get_binary("uid").expect("a digest").bytes;
        assert_eq!(digest[..4], [0xe3, 0xb0, 0xc4, 0x42]);
        let at = rawdoc! { "lastUse": DateTime::from_millis(NOW.0) };
        assert_eq!(without(session, &["_id"]), at);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_of_a_pipeline_are_computed_from_its_literals() {
    let shell = filled().await;
    let documents = rawdoc! { "$documents": [{ "a": { "$add": [1, 2] } }, { "a": 5 }] };
    let found = shell.first_batch(on_database(documents)).await;
    assert_eq!(found, [rawdoc! { "a": 3 }, rawdoc! { "a": 5 }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_refused_clearly() {
    let shell = filled().await;
    let lookup = rawdoc! { "$lookup": { "from": "c", "pipeline": [{ "$indexStats": {} }], "as": "x" } };
    for (command, expected) in [
        (on("c", rawdoc! { "$collStats": { "latencyStats": {} } }), 238),
        (on("c", rawdoc! { "$collStats": { "queryExecStats": {} } }), 238),
        (on("c", rawdoc! { "$collStats": { "foo": {} } }), 40415),
        (on("c", rawdoc! { "$collStats": { "count": { "a": 1 } } }), 40480),
        (
            on("c", rawdoc! { "$collStats": { "storageStats": { "scale": 0 } } }),
            51024,
        ),
        (on("none", rawdoc! { "$collStats": { "count": {} } }), 40481),
        (on("c", rawdoc! { "$planCacheStats": {} }), 238),
        (on("c", rawdoc! { "$indexStats": { "a": 1 } }), 28803),
        (on("c", lookup), 238),
        (on("c", rawdoc! { "$documents": [] }), 73),
        (on("c", rawdoc! { "$listSessions": {} }), 73),
        (on("c", rawdoc! { "$listLocalSessions": {} }), 73),
        (on_database(rawdoc! { "$collStats": {} }), 73),
        // Not on `admin`.
        (on_database(rawdoc! { "$currentOp": {} }), 73),
        (on_database(rawdoc! { "$listLocalSessions": { "foo": 1 } }), 40415),
        (
            on_database(rawdoc! { "$listLocalSessions": { "allUsers": true, "users": [] } }),
            12,
        ),
    ] {
        assert_eq!(shell.code(command.clone()).await, expected, "{command:?}");
    }
    let strict = [
        (on("c", rawdoc! { "$collStats": { "count": {} } }), 0),
        (on("c", rawdoc! { "$collStats": { "storageStats": {} } }), 323),
        (on("c", rawdoc! { "$indexStats": {} }), 323),
        (on_database(rawdoc! { "$listLocalSessions": {} }), 323),
    ];
    for (mut command, expected) in strict {
        command.append(bson::raw::cstr!("apiVersion"), "1");
        command.append(bson::raw::cstr!("apiStrict"), true);
        assert_eq!(shell.code(command.clone()).await, expected, "{command:?}");
    }
    let mut idle = on_database(rawdoc! { "$currentOp": { "idleConnections": true } });
    idle.append(bson::raw::cstr!("$db"), "admin");
    assert_eq!(shell.code(idle).await, 238);
}

/// Who may begin a pipeline with a stage: `k` the read-only key, and users of `shop` with a role: `r` read, `d` dbAdmin, `u` userAdmin, and `m` one with
/// clusterMonitor. The full key may do everything. From MongoDB's manual.
#[tokio::test(flavor = "multi_thread")]
async fn each_stage_asks_for_its_own_rights() {
    let state = fixture::state(fixture::options()).await;
    let administrator = fixture::authenticated(&state, KEY);
    let mut clients = vec![('k', fixture::authenticated(&state, READ_ONLY_KEY))];
    for (letter, role, database) in [
        ('r', "read", "shop"),
        ('d', "dbAdmin", "shop"),
        ('u', "userAdmin", "shop"),
        ('m', "clusterMonitor", "admin"),
    ] {
        let name = role;
        let create = rawdoc! { "createUser": name, "pwd": "secret", "roles": [role], "$db": database };
        assert_eq!(code(&state, &administrator, create).await, 0);
        let client = fixture::client();
        assert_eq!(log_in(&state, &client, database, name, "secret").await, 0);
        clients.push((letter, client));
    }
    let insert = rawdoc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "shop" };
    assert_eq!(code(&state, &administrator, insert).await, 0);
    let joined = rawdoc! { "$unionWith": "c" };
    for (database, of_collection, stages, allowed) in [
        ("shop", true, vec![rawdoc! { "$match": {} }], "kr"),
        ("shop", true, vec![rawdoc! { "$collStats": { "count": {} } }], "krdm"),
        (
            "shop",
            true,
            vec![rawdoc! { "$collStats": { "count": {} } }, joined],
            "kr",
        ),
        ("shop", true, vec![rawdoc! { "$indexStats": {} }], "kdm"),
        ("admin", false, vec![rawdoc! { "$currentOp": {} }], "krdum"),
        (
            "admin",
            false,
            vec![rawdoc! { "$currentOp": { "allUsers": true } }],
            "m",
        ),
        ("shop", false, vec![rawdoc! { "$listLocalSessions": {} }], "krdum"),
        (
            "shop",
            false,
            vec![rawdoc! { "$listLocalSessions": { "allUsers": true } }],
            "m",
        ),
        (
            "shop",
            false,
            vec![rawdoc! { "$listLocalSessions": { "users": [{ "user": "read", "db": "shop" }] } }],
            "m",
        ),
    ] {
        let mut pipeline = RawArrayBuf::new();
        for stage in &stages {
            pipeline.push(stage.clone());
        }
        let command = match of_collection {
            true => rawdoc! { "aggregate": "c", "pipeline": pipeline, "cursor": {}, "$db": database },
            false => rawdoc! { "aggregate": 1, "pipeline": pipeline, "cursor": {}, "$db": database },
        };
        assert_eq!(code(&state, &administrator, command.clone()).await, 0, "{command:?}");
        for (letter, client) in &clients {
            let found = code(&state, client, command.clone()).await;
            let expected = if allowed.contains(*letter) { 0 } else { 13 };
            assert_eq!(found, expected, "{letter} {command:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_sees_its_own_sessions() {
    let state = fixture::state(fixture::options()).await;
    let administrator = fixture::authenticated(&state, KEY);
    let create = rawdoc! { "createUser": "ada", "pwd": "secret", "roles": ["read"], "$db": "shop" };
    assert_eq!(code(&state, &administrator, create).await, 0);
    let ada = fixture::client();
    assert_eq!(log_in(&state, &ada, "shop", "ada", "secret").await, 0);
    assert_eq!(code(&state, &administrator, rawdoc! { "startSession": 1 }).await, 0);
    assert_eq!(
        code(&state, &ada, rawdoc! { "startSession": 1, "$db": "shop" }).await,
        0
    );
    let list = |options: RawDocumentBuf| {
        let mut list = on_database(rawdoc! { "$listLocalSessions": options });
        list.append(bson::raw::cstr!("$db"), "shop");
        list
    };
    let users = |documents: Vec<RawDocumentBuf>| -> Vec<String> {
        let user = |document: &RawDocumentBuf| document.get_str("user").expect("a user").to_owned();
        let mut users: Vec<_> = documents.iter().map(user).collect();
        users.sort();
        users
    };
    let own = run(&state, &ada, list(rawdoc! {})).await;
    assert_eq!(users(first_batch(&own)), ["shop.ada"]);
    let all = run(&state, &administrator, list(rawdoc! { "allUsers": true })).await;
    assert_eq!(users(first_batch(&all)), ["localhost", "shop.ada"]);
    let named = list(rawdoc! { "users": [{ "user": "ada", "db": "shop" }] });
    let named = run(&state, &administrator, named).await;
    assert_eq!(users(first_batch(&named)), ["shop.ada"]);
}
