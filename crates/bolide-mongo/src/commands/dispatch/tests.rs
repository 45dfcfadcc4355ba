use bson::{Binary, RawDocumentBuf, rawdoc};

use super::*;
use crate::commands::fixture::{self, KEY, READ_ONLY_KEY, authenticated, client, code, run, state};
use crate::state::MongoOptions;

fn without_authentication() -> MongoOptions {
    MongoOptions {
        requires_authentication: false,
        ..fixture::options()
    }
}

#[tokio::test]
async fn every_reply_has_the_times_of_the_replica_set() {
    let state = state(fixture::options()).await;
    let time = bson::Timestamp {
        time: 1_700_000_000,
        increment: 251,
    };
    for command in [rawdoc! { "ping": 1 }, rawdoc! { "x": 1 }] {
        let reply = run(&state, &client(), command).await;
        assert_eq!(reply.get_timestamp("operationTime").expect("a time"), time);
        let cluster = reply.get_document("$clusterTime").expect("a document");
        assert_eq!(cluster.get_timestamp("clusterTime").expect("a time"), time);
        let signature = cluster.get_document("signature").expect("a document");
        assert_eq!(signature.get_binary("hash").expect("a hash").bytes, [0; 20]);
        assert_eq!(signature.get_i64("keyId").expect("an i64"), 0);
    }
}

#[tokio::test]
async fn errors_have_a_code_and_its_name() {
    let state = state(fixture::options()).await;
    let client = authenticated(&state, KEY);
    let reply = run(&state, &client, rawdoc! { "nonsense": 1 }).await;
    assert_eq!(reply.get_f64("ok").expect("a double"), 0.0);
    assert_eq!(reply.get_str("errmsg").expect("a text"), "no such command: 'nonsense'");
    assert_eq!(reply.get_i32("code").expect("an i32"), 59);
    assert_eq!(reply.get_str("codeName").expect("a text"), "CommandNotFound");
    let reply = run(&state, &client, rawdoc! { "ping": 1, "x": 1 }).await;
    assert_eq!(reply.get_str("codeName").expect("a text"), "Location40415");
}

#[tokio::test]
async fn a_command_needs_a_name_and_a_database() {
    let state = state(fixture::options()).await;
    let client = authenticated(&state, KEY);
    let no_database = fixture::message(&rawdoc! { "ping": 1 }, &[]);
    let no_name = fixture::message(&rawdoc! {}, &[]);
    for (message, expected) in [(&no_database, 40571), (&no_name, 59)] {
        let request = Request {
            message,
            database: None,
        };
        let Answer::Reply(reply) = dispatch(&state, &client, request, std::future::pending()).await else {
            panic!("a reply")
        };
        assert_eq!(fixture::code_of(&reply.body), expected);
    }
    for bad in ["", "a.b", "a b"] {
        assert_eq!(
            code(&state, &client, rawdoc! { "ping": 1, "$db": bad }).await,
            73,
            "{bad}"
        );
    }
    // The database may be anywhere but at the beginning.
    assert_eq!(
        code(&state, &client, rawdoc! { "ping": 1, "$db": "x", "comment": 1 }).await,
        0
    );
    assert_eq!(code(&state, &client, rawdoc! { "$db": "x", "ping": 1 }).await, 59);
}

#[tokio::test]
async fn rights_are_those_of_the_key() {
    let state = state(fixture::options()).await;
    let (unknown, reader, owner) = (
        client(),
        authenticated(&state, READ_ONLY_KEY),
        authenticated(&state, KEY),
    );
    for (command, expected) in [
        (rawdoc! { "ping": 1 }, [0, 0, 0]),
        (rawdoc! { "listCommands": 1 }, [13, 0, 0]),
        (rawdoc! { "serverStatus": 1 }, [13, 13, 0]),
        (rawdoc! { "killCursors": "c", "cursors": [] }, [13, 0, 0]),
    ] {
        for (client, expected) in [&unknown, &reader, &owner].into_iter().zip(expected) {
            assert_eq!(code(&state, client, command.clone()).await, expected, "{command:?}");
        }
    }
    let refused = run(&state, &unknown, rawdoc! { "listCommands": 1 }).await;
    assert_eq!(
        refused.get_str("errmsg").expect("a text"),
        "Command listCommands requires authentication"
    );
    owner.log_out();
    assert_eq!(code(&state, &owner, rawdoc! { "listCommands": 1 }).await, 13);
}

#[tokio::test]
async fn without_authentication_everybody_may_do_everything() {
    let state = state(without_authentication()).await;
    assert_eq!(code(&state, &client(), rawdoc! { "serverStatus": 1 }).await, 0);
}

#[tokio::test]
async fn commands_of_administrators_are_sent_to_admin() {
    let state = state(without_authentication()).await;
    let reply = run(&state, &client(), rawdoc! { "getLog": "global", "$db": "test" }).await;
    assert_eq!(fixture::code_of(&reply), 13);
    assert_eq!(
        reply.get_str("errmsg").expect("a text"),
        "getLog may only be run against the admin database."
    );
}

fn lsid(byte: u8) -> RawDocumentBuf {
    let id = Binary {
        subtype: bson::spec::BinarySubtype::Uuid,
        bytes: vec![byte; 16],
    };
    rawdoc! { "id": id }
}

#[tokio::test]
async fn sessions_exist_on_sight_until_they_end() {
    let state = state(without_authentication()).await;
    let client = client();
    for byte in [1, 2, 2] {
        assert_eq!(
            code(&state, &client, rawdoc! { "ping": 1, "lsid": lsid(byte) }).await,
            0
        );
    }
    assert_eq!(state.sessions.count(), 2);
    assert_eq!(
        code(&state, &client, rawdoc! { "endSessions": [lsid(1), lsid(9)] }).await,
        0
    );
    assert_eq!(state.sessions.count(), 1);
    assert_eq!(code(&state, &client, rawdoc! { "refreshSessions": [lsid(3)] }).await, 0);
    assert_eq!(code(&state, &client, rawdoc! { "startSession": 1 }).await, 0);
    assert_eq!(state.sessions.count(), 3);
    assert_eq!(code(&state, &client, rawdoc! { "killAllSessions": [] }).await, 0);
    assert_eq!(state.sessions.count(), 0);
    assert_eq!(code(&state, &client, rawdoc! { "endSessions": 1 }).await, 14);
    assert_eq!(code(&state, &client, rawdoc! { "endSessions": [1] }).await, 14);
}

#[tokio::test]
async fn transactions_are_refused_where_they_cannot_be() {
    let state = state(without_authentication()).await;
    let within = |name: &str| {
        let mut command = RawDocumentBuf::new();
        command.append(<&bson::raw::CStr>::try_from(name).expect("no NUL"), "c");
        command.append(cstr!("lsid"), lsid(1));
        command.append(cstr!("txnNumber"), 1_i64);
        command.append(cstr!("autocommit"), false);
        command
    };
    let refused = run(&state, &client(), within("profile")).await;
    assert_eq!(fixture::code_of(&refused), 263);
    let refused = run(&state, &client(), within("getMore")).await;
    assert_eq!(fixture::code_of(&refused), 251);
}

#[tokio::test]
async fn fail_points_fail_commands() {
    let state = state(without_authentication()).await;
    let client = client();
    let set = |data: RawDocumentBuf, mode: RawDocumentBuf| {
        rawdoc! { "configureFailPoint": "failCommand", "mode": mode, "data": data }
    };
    let data = rawdoc! { "failCommands": ["ping"], "errorCode": 11600, "errorLabels": ["RetryableWriteError"] };
    assert_eq!(code(&state, &client, set(data, rawdoc! { "times": 1 })).await, 0);
    let failed = run(&state, &client, rawdoc! { "ping": 1 }).await;
    assert_eq!(failed.get_i32("code").expect("a code"), 11600);
    let labels = failed.get_array("errorLabels").expect("labels");
    assert_eq!(labels.get_str(0).expect("a label"), "RetryableWriteError");
    let version = failed.get_document("topologyVersion").expect("a version");
    assert_eq!(version.get_i64("counter").expect("an i64"), 0);
    assert_eq!(code(&state, &client, rawdoc! { "ping": 1 }).await, 0);

    let data = rawdoc! { "failCommands": ["ping"], "closeConnection": true };
    assert_eq!(code(&state, &client, set(data, rawdoc! { "times": 1 })).await, 0);
    let closed = run(&state, &client, rawdoc! { "ping": 1 }).await;
    assert_eq!(closed, rawdoc! { "closed": true });

    let concern = rawdoc! { "code": 91, "errmsg": "x" };
    let data = rawdoc! { "failCommands": ["ping"], "writeConcernError": concern };
    assert_eq!(code(&state, &client, set(data, rawdoc! { "times": 1 })).await, 0);
    let reply = run(
        &state,
        &client,
        rawdoc! { "ping": 1, "lsid": lsid(1), "txnNumber": 1_i64 },
    )
    .await;
    assert_eq!(
        reply
            .get_document("writeConcernError")
            .expect("an error")
            .get_i32("code")
            .expect("a code"),
        91
    );
    let labels = reply.get_array("errorLabels").expect("labels");
    assert_eq!(labels.get_str(0).expect("a label"), "RetryableWriteError");
}

#[tokio::test]
async fn fail_points_exist_only_in_tests() {
    let options = MongoOptions {
        faults_enabled: false,
        ..without_authentication()
    };
    let state = state(options).await;
    let command = rawdoc! { "configureFailPoint": "failCommand", "mode": "alwaysOn" };
    assert_eq!(code(&state, &client(), command).await, 59);
    let listed = run(&state, &client(), rawdoc! { "listCommands": 1 }).await;
    let commands = listed.get_document("commands").expect("commands");
    assert!(commands.get("configureFailPoint").expect("valid").is_none());
    assert!(
        commands
            .get_document("ping")
            .expect("a command")
            .get_str("help")
            .is_ok()
    );
}

#[tokio::test]
async fn a_stopping_server_refuses_commands_with_a_newer_topology() {
    let state = state(without_authentication()).await;
    state.stop();
    let reply = run(&state, &client(), rawdoc! { "ping": 1 }).await;
    assert_eq!(fixture::code_of(&reply), 91);
    let version = reply.get_document("topologyVersion").expect("a version");
    assert_eq!(version.get_i64("counter").expect("an i64"), 1);
}

#[tokio::test]
async fn the_stable_api_has_few_commands() {
    let state = state(without_authentication()).await;
    let strict = |name: &str| {
        let mut command = RawDocumentBuf::new();
        command.append(<&bson::raw::CStr>::try_from(name).expect("no NUL"), 1);
        command.append(cstr!("apiVersion"), "1");
        command.append(cstr!("apiStrict"), true);
        command
    };
    assert_eq!(code(&state, &client(), strict("ping")).await, 0);
    assert_eq!(code(&state, &client(), strict("buildInfo")).await, 323);
}

#[tokio::test]
async fn commands_that_wait_end_when_they_are_killed_or_nobody_waits_for_them() {
    let state = state(without_authentication()).await;
    let client = client();
    let version = state.topology_version().to_document();
    let command = rawdoc! { "hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 10_000, "$db": "admin" };
    let message = fixture::message(&command, &[]);
    let request = Request {
        message: &message,
        database: None,
    };
    let waiting = dispatch(&state, &client, request, std::future::pending());
    let killing = async {
        tokio::task::yield_now().await;
        let running = state.operations.all();
        assert_eq!((running.len(), running[0].command), (1, "hello"));
        state.operations.kill(running[0].id);
    };
    let (Answer::Reply(reply), ()) = tokio::join!(waiting, killing) else {
        panic!("a reply")
    };
    assert_eq!(fixture::code_of(&reply.body), 11601);
    let Answer::Reply(reply) = dispatch(&state, &client, request, std::future::ready(())).await else {
        panic!("a reply")
    };
    assert_eq!(fixture::code_of(&reply.body), 11601);
    assert!(state.operations.all().is_empty());
}

#[test]
fn labels_tell_clients_what_to_send_again() {
    let of = |is_retryable_write, is_in_transaction, code| {
        let labels = Labels {
            is_retryable_write,
            is_in_transaction,
            given: None,
        };
        labels.of(Code(code)).join(",")
    };
    assert_eq!(of(true, false, 91), "RetryableWriteError");
    assert_eq!(of(true, false, 11000), "");
    assert_eq!(of(true, false, 16500), "");
    assert_eq!(of(false, false, 91), "");
    assert_eq!(of(false, true, 112), "TransientTransactionError");
    assert_eq!(of(false, true, 251), "TransientTransactionError");
    assert_eq!(of(false, true, 11000), "");
}

/// Every command with no authentication, with the key for reading, and with the key for everything. Whatever the commands answer, only the sender's
/// rights make it `Unauthorized`.
#[tokio::test(flavor = "multi_thread")]
async fn every_command_asks_for_its_rights() {
    let state = state(fixture::options()).await;
    for command in crate::commands::table::COMMANDS {
        let is_write = matches!(command.rights, Rights::Write | Rights::Admin);
        let senders = [
            (client(), !command.is_before_authentication),
            (authenticated(&state, READ_ONLY_KEY), is_write),
            (authenticated(&state, KEY), false),
        ];
        for (at, (sender, is_refused)) in senders.into_iter().enumerate() {
            for name in command.aliases.iter().chain([&command.name]) {
                let mut request = RawDocumentBuf::new();
                request.append(<&bson::raw::CStr>::try_from(*name).expect("a name"), "c");
                let refused = code(&state, &sender, request).await == 13;
                // The command itself logs out.
                let is_logout = *name == "logout";
                assert!(refused == is_refused || is_logout, "{name} sent by {at}");
            }
        }
    }
}
