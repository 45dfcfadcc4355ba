use bson::raw::cstr;
use bson::rawdoc;
use serde_json::{Value, json};

use super::*;
use crate::commands::fixture::{self, KEY, authenticated};
use crate::commands::table::COMMANDS;
use crate::state::MongoOptions;

async fn service(options: MongoOptions) -> MongoService {
    let state = fixture::state(options).await;
    MongoService::over(state)
}

async fn sent(service: &MongoService, access: Access, command: &Value) -> JsonReply {
    let text = Bytes::from(command.to_string());
    let reply = service.run_without_connection("d".to_owned(), text, access).await;
    reply.expect("enough memory")
}

/// The reply of a command that succeeds.
async fn done(service: &MongoService, command: &Value) -> Value {
    let reply = sent(service, Access::Full, command).await;
    assert!(reply.failure.is_none(), "{command}: {:?}", reply.failure);
    serde_json::from_slice(&reply.body).expect("JSON")
}

async fn code(service: &MongoService, access: Access, command: &Value) -> i32 {
    let reply = sent(service, access, command).await;
    reply.failure.map_or(0, |error| error.code.0)
}

#[tokio::test]
async fn types_come_and_go_as_extended_json() {
    let service = service(fixture::options()).await;
    let document = json!({
        "_id": {"$oid": "0123456789abcdef01234567"},
        "int": {"$numberInt": "7"},
        "long": {"$numberLong": "7"},
        "double": {"$numberDouble": "7.0"},
        "at": {"$date": {"$numberLong": "1700000000250"}},
        "list": ["a", null, true, {"$numberDecimal": "1.10"}],
    });
    let inserted = done(&service, &json!({"insert": "c", "documents": [document]})).await;
    assert_eq!(inserted["n"], json!({"$numberInt": "1"}));
    // Relaxed numbers in a filter.
    let found = done(
        &service,
        &json!({"find": "c", "filter": {"int": 7, "at": {"$lte": {"$date": "2023-11-14T22:13:20.250Z"}}}}),
    )
    .await;
    assert_eq!(found["cursor"]["firstBatch"], json!([document]));
    assert_eq!(found["ok"], json!({"$numberDouble": "1.0"}));
}

#[tokio::test]
async fn cursors_go_on_in_the_next_command_and_charges_are_told() {
    let service = service(fixture::options()).await;
    let documents: Vec<Value> = (0..5).map(|id| json!({"_id": id})).collect();
    done(&service, &json!({"insert": "c", "documents": documents})).await;
    let reply = sent(&service, Access::ReadOnly, &json!({"find": "c", "batchSize": 2})).await;
    assert!(reply.charge.0 > 0.0);
    let first: Value = serde_json::from_slice(&reply.body).expect("JSON");
    let id = first["cursor"]["id"].clone();
    let next = done(&service, &json!({"getMore": id, "collection": "c"})).await;
    assert_eq!(next["cursor"]["nextBatch"].as_array().map(Vec::len), Some(3));
    assert_eq!(next["cursor"]["id"], json!({"$numberLong": "0"}));
}

#[tokio::test]
async fn a_key_has_the_rights_of_each_command_and_none_without_a_connection_is_about_one() {
    for requires_authentication in [true, false] {
        let options = MongoOptions {
            requires_authentication,
            ..fixture::options()
        };
        let service = service(options).await;
        let mut about_connections = Vec::new();
        for command in COMMANDS {
            let database = if command.is_admin_only { "admin" } else { "d" };
            for access in [Access::Full, Access::ReadOnly] {
                // An argument that no command has: rights are checked before arguments.
                let text = json!({command.name: 1, "nonsense": 1}).to_string();
                let reply = service
                    .run_without_connection(database.to_owned(), text.into(), access)
                    .await
                    .expect("enough memory");
                let code = reply.failure.map_or(0, |error| error.code.0);
                if code == 115 && command.is_of_a_connection {
                    about_connections.push(command.name);
                    continue;
                }
                assert_eq!(
                    code == 13,
                    !command.rights.are_given_by(access),
                    "{} {access:?}: {code}",
                    command.name
                );
            }
        }
        about_connections.dedup();
        let expected = [
            "connectionStatus",
            "getLastRequestStatistics",
            "hello",
            "isMaster",
            "logout",
            "saslContinue",
            "saslStart",
            "whatsmyuri",
        ];
        assert_eq!(about_connections, expected);
    }
}

#[tokio::test]
async fn a_key_for_reading_cannot_write_by_a_stage_and_nobody_sees_stored_users() {
    let service = service(fixture::options()).await;
    done(&service, &json!({"insert": "c", "documents": [{"_id": 1}]})).await;
    let out = json!({"aggregate": "c", "pipeline": [{"$out": "copy"}], "cursor": {}});
    assert_eq!(code(&service, Access::ReadOnly, &out).await, 13);
    assert_eq!(code(&service, Access::Full, &out).await, 0);
    let text = Bytes::from_static(b"{\"find\": \"system.users\"}");
    let users = service
        .run_without_connection("admin".to_owned(), text, Access::Full)
        .await;
    let failure = users.expect("enough memory").failure;
    assert_eq!(failure.map(|error| error.code.0), Some(13));
}

#[tokio::test]
async fn what_is_no_command_is_refused_with_the_reason() {
    let service = service(fixture::options()).await;
    for (text, expected) in [
        ("", 9),
        ("[]", 9),
        ("{\"find\": ", 9),
        ("{\"find\": \"c\", \"filter\": {\"_id\": {\"$oid\": \"xyz\"}}}", 9),
        (
            "{\"find\": \"c\", \"filter\": {\"n\": {\"$numberInt\": \"1\", \"more\": 1}}}",
            9,
        ),
        ("{\"find\": \"c\", \"filter\": {\"n\": 18446744073709551616}}", 0),
        ("{\"find\": \"c\", \"$db\": \"other\"}", 2),
        ("{}", 59),
        ("{\"nonsense\": 1}", 59),
        ("{\"find\": \"c\", \"nonsense\": 1}", 40415),
    ] {
        let text = Bytes::from_static(text.as_bytes());
        let reply = service
            .run_without_connection("d".to_owned(), text.clone(), Access::Full)
            .await;
        let failure = reply.expect("enough memory").failure;
        assert_eq!(failure.map_or(0, |error| error.code.0), expected, "{text:?}");
    }
    let deep = format!(
        "{{\"find\": \"c\", \"filter\": {}1{}}}",
        "{\"a\":".repeat(5_000),
        "}".repeat(5_000)
    );
    let reply = service
        .run_without_connection("d".to_owned(), deep.into(), Access::Full)
        .await;
    assert_eq!(reply.expect("enough memory").failure.map(|error| error.code.0), Some(9));
}

#[tokio::test]
async fn a_read_ends_when_its_sender_leaves_and_a_write_does_not() {
    let service = service(fixture::options()).await;
    // A stream of changes waits for a change.
    done(&service, &json!({"create": "c"})).await;
    let stream = done(
        &service,
        &json!({"aggregate": "c", "pipeline": [{"$changeStream": {}}], "cursor": {}}),
    )
    .await;
    let wait = json!({"getMore": stream["cursor"]["id"], "collection": "c", "maxTimeMS": 600_000});
    let state = service.state();
    let mut waiting = Box::pin(sent(&service, Access::Full, &wait));
    while state.operations.is_empty() {
        assert!(futures_util::poll!(&mut waiting).is_pending());
        tokio::task::yield_now().await;
    }
    drop(waiting);
    while !state.operations.is_empty() {
        tokio::task::yield_now().await;
    }
    // A write that has begun goes on.
    let write = json!({"insert": "c", "documents": [{"_id": 1}]});
    let mut writing = Box::pin(sent(&service, Access::Full, &write));
    assert!(futures_util::poll!(&mut writing).is_pending());
    drop(writing);
    loop {
        let found = done(&service, &json!({"count": "c"})).await;
        if found["n"] == json!({"$numberInt": "1"}) {
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn commands_over_connections_are_among_the_recent_requests() {
    let state = fixture::state(fixture::options()).await;
    let service = MongoService::over(state.clone());
    done(&service, &json!({"create": "ours"})).await;
    let client = authenticated(&state, KEY);
    for mut command in [
        rawdoc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 1 }] },
        rawdoc! { "ping": 1 },
        rawdoc! { "find": "c" },
        rawdoc! { "find": "c", "nonsense": 1 },
    ] {
        command.append(cstr!("$db"), "d");
        fixture::run(&state, &client, command).await;
    }
    fixture::run(&state, &fixture::client(), rawdoc! { "find": "c" }).await;
    fixture::run(&state, &client, rawdoc! { "nonsense": 1 }).await;
    fixture::run(&state, &client, rawdoc! { "getMore": 7_i64, "collection": "c" }).await;
    let told = state.options.recent_requests.after(0);
    let told: Vec<_> = told["requests"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|request| {
            assert_eq!(
                (&request["protocol"], &request["atMs"]),
                (&json!("mongodb"), &json!(fixture::NOW.0))
            );
            let charge = request["charge"].as_f64().expect("a number") > 0.0;
            (
                request["method"].clone(),
                request["path"].clone(),
                request["status"].clone(),
                charge,
            )
        })
        .collect();
    let row = |method: &str, path: &str, status: i32, has_charge: bool| {
        (json!(method), json!(path), json!(status), has_charge)
    };
    assert_eq!(
        told,
        [
            row("insert", "d.c", 11000, true),
            row("find", "d.c", 0, true),
            row("find", "d.c", 40415, false),
            row("find", "admin.c", 13, false),
            row("nonsense", "admin", 59, false),
            row("getMore", "admin.c", 43, false),
        ]
    );
}

#[tokio::test]
async fn commands_wait_for_a_turn_and_those_whose_sender_left_still_have_theirs() {
    let service = service(fixture::options()).await;
    done(&service, &json!({"create": "c"})).await;
    let turns = service
        .turns
        .clone()
        .acquire_many_owned(u32::try_from(AT_A_TIME).expect("few"))
        .await
        .expect("open");
    let state = service.state();
    let insert = json!({"insert": "c", "documents": [{"_id": 1}]});
    let mut waiting = Box::pin(sent(&service, Access::Full, &insert));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    assert!(state.operations.is_empty());
    drop(turns);
    assert!(waiting.await.failure.is_none());
    // One that is given up after it has begun.
    let many: Vec<Value> = (10..400).map(|id| json!({"_id": id})).collect();
    let write = json!({"insert": "c", "documents": many});
    let mut writing = Box::pin(sent(&service, Access::Full, &write));
    assert!(futures_util::poll!(&mut writing).is_pending());
    drop(writing);
    assert_eq!(service.turns.available_permits(), AT_A_TIME - 1);
    let all = service
        .turns
        .acquire_many(u32::try_from(AT_A_TIME).expect("few"))
        .await
        .expect("open");
    drop(all);
    let found = done(&service, &json!({"count": "c"})).await;
    assert_eq!(found["n"], json!({"$numberInt": "391"}));
}
