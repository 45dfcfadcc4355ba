use std::sync::Arc;

use bson::spec::ElementType;
use bson::{RawDocumentBuf, rawdoc};

use super::*;
use crate::commands::fixture::{self, KEY, client, code, run, state};
use crate::state::MongoOptions;

fn types(reply: &RawDocumentBuf) -> Vec<(String, ElementType)> {
    let fields = reply.iter().map(|field| field.expect("valid"));
    fields
        .map(|(key, value)| (key.as_str().to_owned(), value.element_type()))
        .collect()
}

/// Source: mongo.md §3; drivers are strict about these types.
#[tokio::test]
async fn fields_have_the_types_that_drivers_want() {
    let state = state(fixture::options()).await;
    let reply = run(&state, &client(), rawdoc! { "hello": 1, "helloOk": true }).await;
    let expected = [
        ("helloOk", ElementType::Boolean),
        ("isWritablePrimary", ElementType::Boolean),
        ("topologyVersion", ElementType::EmbeddedDocument),
        ("hosts", ElementType::Array),
        ("setName", ElementType::String),
        ("setVersion", ElementType::Int32),
        ("secondary", ElementType::Boolean),
        ("primary", ElementType::String),
        ("me", ElementType::String),
        ("electionId", ElementType::ObjectId),
        ("lastWrite", ElementType::EmbeddedDocument),
        ("maxBsonObjectSize", ElementType::Int32),
        ("maxMessageSizeBytes", ElementType::Int32),
        ("maxWriteBatchSize", ElementType::Int32),
        ("localTime", ElementType::DateTime),
        ("logicalSessionTimeoutMinutes", ElementType::Int32),
        ("connectionId", ElementType::Int32),
        ("minWireVersion", ElementType::Int32),
        ("maxWireVersion", ElementType::Int32),
        ("readOnly", ElementType::Boolean),
        ("ok", ElementType::Double),
        ("$clusterTime", ElementType::EmbeddedDocument),
        ("operationTime", ElementType::Timestamp),
    ];
    let expected = expected.map(|(key, element)| (key.to_owned(), element));
    assert_eq!(types(&reply), expected);
    let int = |field| reply.get_i32(field).expect(field);
    assert_eq!(
        (
            int("maxBsonObjectSize"),
            int("maxMessageSizeBytes"),
            int("maxWriteBatchSize")
        ),
        (16_777_216, 48_000_000, 100_000)
    );
    assert_eq!(
        (
            int("minWireVersion"),
            int("maxWireVersion"),
            int("logicalSessionTimeoutMinutes")
        ),
        (0, 21, 30)
    );
    let last_write = reply.get_document("lastWrite").expect("a document");
    assert_eq!(
        last_write
            .get_datetime("lastWriteDate")
            .expect("a date")
            .timestamp_millis(),
        fixture::NOW.0
    );
    let version = reply.get_document("topologyVersion").expect("a document");
    assert!(version.get_object_id("processId").is_ok() && version.get_i64("counter").is_ok());
}

#[tokio::test]
async fn the_old_form_says_ismaster_and_what_was_not_asked_is_left_out() {
    let state = state(fixture::options()).await;
    for name in ["isMaster", "ismaster"] {
        let mut command = RawDocumentBuf::new();
        command.append(<&CStr>::try_from(name).expect("no NUL"), true);
        command.append(cstr!("backpressure"), "2");
        let reply = run(&state, &client(), command).await;
        assert_eq!(reply.get_bool("ismaster").ok(), Some(true));
        for absent in [
            "helloOk",
            "isWritablePrimary",
            "compression",
            "saslSupportedMechs",
            "speculativeAuthenticate",
            "msg",
        ] {
            assert!(reply.get(absent).expect("valid").is_none(), "{absent}");
        }
    }
}

async fn hosts(state: &Arc<MongoState>, client: &Client) -> String {
    let reply = run(state, client, rawdoc! { "hello": 1 }).await;
    let hosts = reply.get_array("hosts").expect("hosts");
    let (me, primary) = (
        reply.get_str("me").expect("me"),
        reply.get_str("primary").expect("primary"),
    );
    assert_eq!((hosts.get_str(0).expect("a host"), primary), (me, me));
    me.to_owned()
}

#[tokio::test]
async fn the_address_is_the_advertised_one_or_that_of_the_connection() {
    let open = state(fixture::options()).await;
    assert_eq!(hosts(&open, &client()).await, "127.0.0.1:10255");
    let mut v6 = client();
    v6.peer.local = "[::1]:10255".parse().expect("an address");
    assert_eq!(hosts(&open, &v6).await, "[::1]:10255");
    v6.peer.local = "[::ffff:10.0.0.1]:10255".parse().expect("an address");
    assert_eq!(hosts(&open, &v6).await, "10.0.0.1:10255");
    let options = MongoOptions {
        advertised: Some("db.example:1".to_owned()),
        set_name: "rs0".to_owned(),
        ..fixture::options()
    };
    let advertised = state(options).await;
    assert_eq!(hosts(&advertised, &client()).await, "db.example:1");
    let reply = run(&advertised, &client(), rawdoc! { "hello": 1 }).await;
    assert_eq!(reply.get_str("setName").expect("a name"), "rs0");
}

#[tokio::test]
async fn compressors_are_those_of_both_in_the_order_of_the_client() {
    let state = state(fixture::options()).await;
    for (names, expected) in [
        (vec!["zlib", "snappy"], Some(vec!["zlib", "snappy"])),
        (vec!["zstd", "lz4", "zstd"], Some(vec!["zstd"])),
        (vec!["none"], None),
        (vec!["noop"], None),
        (vec![], None),
    ] {
        let mut array = RawArrayBuf::new();
        names.iter().for_each(|name| array.push(*name));
        let reply = run(&state, &client(), rawdoc! { "hello": 1, "compression": array }).await;
        let found = reply.get_array("compression").ok().map(|array| {
            let names = array
                .into_iter()
                .map(|name| name.expect("valid").as_str().expect("a name").to_owned());
            names.collect::<Vec<_>>()
        });
        assert_eq!(
            found.as_deref().map(|names| names.iter().map(String::as_str).collect()),
            expected,
            "{names:?}"
        );
    }
}

#[tokio::test]
async fn mechanisms_of_known_users_are_told() {
    let state = state(fixture::options()).await;
    for (user, is_known) in [
        ("admin.localhost", true),
        ("db.localhost", true),
        ("admin.nobody", false),
    ] {
        let reply = run(&state, &client(), rawdoc! { "hello": 1, "saslSupportedMechs": user }).await;
        assert_eq!(reply.get_array("saslSupportedMechs").is_ok(), is_known, "{user}");
    }
}

#[tokio::test]
async fn authentication_may_begin_within_hello() {
    let state = state(fixture::options()).await;
    let client = client();
    let payload = |text: String| bson::Binary {
        subtype: bson::spec::BinarySubtype::Generic,
        bytes: text.into_bytes(),
    };
    let begin = |mechanism: &str, text: String| {
        rawdoc! {
            "hello": 1,
            "speculativeAuthenticate": { "saslStart": 1, "mechanism": mechanism, "db": "admin", "payload": payload(text) },
        }
    };
    let plain = begin("PLAIN", format!("\0localhost\0{KEY}"));
    let reply = run(&state, &client, plain).await;
    let begun = reply.get_document("speculativeAuthenticate").expect("authenticated");
    assert_eq!(begun.get_bool("done").ok(), Some(true));
    assert!(begun.get("ok").expect("valid").is_none());
    assert_eq!(code(&state, &client, rawdoc! { "serverStatus": 1 }).await, 0);
    for failing in [
        begin("PLAIN", "\0localhost\0x".to_owned()),
        begin("X", String::new()),
        begin("SCRAM-SHA-1", "x".to_owned()),
    ] {
        let reply = run(&state, &client, failing).await;
        assert!(reply.get("speculativeAuthenticate").expect("valid").is_none());
        assert_eq!(reply.get_f64("ok").ok(), Some(1.0));
    }
    let scram = begin("SCRAM-SHA-256", "n,,n=localhost,r=abc".to_owned());
    let reply = run(&state, &client, scram).await;
    let begun = reply.get_document("speculativeAuthenticate").expect("begun");
    let id = begun.get_i32("conversationId").expect("a number");
    assert_eq!(begun.get_bool("done").ok(), Some(false));
    let proceed = |id: i32| rawdoc! { "saslContinue": 1, "conversationId": id, "payload": payload("x".to_owned()) };
    assert_eq!(code(&state, &client, proceed(id)).await, 18);
    assert_eq!(code(&state, &client, proceed(id)).await, 17, "the conversation is over");
}

#[tokio::test]
async fn a_hello_waits_for_a_change() {
    let clock = bolide_model::time::Monotonic::manual();
    let state = fixture::state_at(fixture::options(), clock.clone()).await;
    let client = client();
    let wait = |version: RawDocumentBuf| rawdoc! { "hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 10_000 };
    let current = state.topology_version().to_document();
    let passing = async {
        while clock.next_wake().is_none() {
            tokio::task::yield_now().await;
        }
        clock.advance(Duration::from_millis(9_999));
        tokio::task::yield_now().await;
        assert_eq!(state.operations.all().len(), 1, "it waits");
        clock.advance(Duration::from_millis(1));
    };
    let (code_after_time, ()) = tokio::join!(code(&state, &client, wait(current.clone())), passing);
    assert_eq!(code_after_time, 0);
    // Another process: answered at once.
    let other = rawdoc! { "processId": bson::oid::ObjectId::from_bytes([0; 12]), "counter": 5_i64 };
    assert_eq!(code(&state, &client, wait(other)).await, 0);
    let stopping = async {
        while state.operations.all().is_empty() {
            tokio::task::yield_now().await;
        }
        state.stop();
    };
    let (code_at_the_end, ()) = tokio::join!(code(&state, &client, wait(current)), stopping);
    assert_eq!(code_at_the_end, 91);
}

#[tokio::test]
async fn malformed_waits_are_refused() {
    let state = state(fixture::options()).await;
    let process = state.process_id;
    let version = |counter: i64| rawdoc! { "processId": process, "counter": counter };
    for (command, expected) in [
        (rawdoc! { "hello": 1, "topologyVersion": version(0) }, 31368),
        (rawdoc! { "hello": 1, "maxAwaitTimeMS": 1 }, 31368),
        (
            rawdoc! { "hello": 1, "topologyVersion": version(0), "maxAwaitTimeMS": -1 },
            31373,
        ),
        (
            rawdoc! { "hello": 1, "topologyVersion": version(-1), "maxAwaitTimeMS": 1 },
            31372,
        ),
        (
            rawdoc! { "hello": 1, "topologyVersion": version(1), "maxAwaitTimeMS": 1 },
            31382,
        ),
        (rawdoc! { "hello": 1, "topologyVersion": 1, "maxAwaitTimeMS": 1 }, 14),
    ] {
        assert_eq!(code(&state, &client(), command.clone()).await, expected, "{command:?}");
    }
}

#[tokio::test]
async fn what_a_client_tells_about_itself_is_bounded() {
    let state = state(fixture::options()).await;
    let (first, second) = (client(), client());
    let hello = |name: String, more: String| rawdoc! { "hello": 1, "client": { "application": { "name": name }, "platform": more } };
    assert_eq!(code(&state, &first, hello("a".repeat(129), String::new())).await, 184);
    assert_eq!(code(&state, &first, hello(String::new(), "a".repeat(513))).await, 185);
    assert_eq!(first.application(), "");
    assert_eq!(code(&state, &second, hello("a".repeat(128), String::new())).await, 0);
    // It is told once.
    assert_eq!(code(&state, &second, hello("b".to_owned(), String::new())).await, 186);
    assert_eq!(second.application(), "a".repeat(128));
}
