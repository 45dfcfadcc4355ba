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
    for command in [rawdoc! { "ping": 1 }, rawdoc! { "x": 1 }] {
        let reply = run(&state, &client(), command).await;
        let time = reply.get_timestamp("operationTime").expect("a time");
        // The millisecond in which the account was opened, or the next one.
        assert_eq!((time.time, time.increment >> 21), (1_700_000_000, 250 >> 1));
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
    assert!(
        failed.get("topologyVersion").expect("valid").is_none(),
        "it does not stop"
    );
    assert_eq!(code(&state, &client, rawdoc! { "ping": 1 }).await, 0);

    let data = rawdoc! { "failCommands": ["ping"], "errorCode": 10107 };
    assert_eq!(code(&state, &client, set(data, rawdoc! { "times": 1 })).await, 0);
    let failed = run(&state, &client, rawdoc! { "ping": 1 }).await;
    let version = failed.get_document("topologyVersion").expect("a version");
    assert_eq!(version.get_i64("counter").expect("an i64"), 0);

    let data = rawdoc! { "failCommands": ["ping"], "closeConnection": true };
    assert_eq!(code(&state, &client, set(data, rawdoc! { "times": 1 })).await, 0);
    let closed = run(&state, &client, rawdoc! { "ping": 1 }).await;
    assert_eq!(closed, rawdoc! { "closed": true });

    let concern = rawdoc! { "code": 189, "errmsg": "x" };
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
        189
    );
    let labels = reply.get_array("errorLabels").expect("labels");
    assert_eq!(labels.get_str(0).expect("a label"), "RetryableWriteError");
    let version = reply.get_document("topologyVersion").expect("a version");
    assert_eq!(version.get_i64("counter").expect("an i64"), 0);
}

/// The labels of MongoDB's own answers: a whole transaction may be tried again, or only its end.
#[tokio::test]
async fn errors_in_transactions_tell_what_may_be_tried_again() {
    let state = state(without_authentication()).await;
    let client = client();
    for (command, code, expected) in [
        ("ping", 91, None),
        ("find", 91, Some("TransientTransactionError")),
        ("find", 112, Some("TransientTransactionError")),
        ("find", 246, Some("TransientTransactionError")),
        ("find", 11000, None),
        ("commitTransaction", 91, Some("RetryableWriteError")),
        ("commitTransaction", 251, Some("TransientTransactionError")),
        ("commitTransaction", 50, None),
        ("abortTransaction", 11602, Some("RetryableWriteError")),
    ] {
        let data = rawdoc! { "failCommands": [command], "errorCode": code };
        let set = rawdoc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data };
        assert_eq!(fixture::code_of(&run(&state, &client, set).await), 0);
        let mut failing = RawDocumentBuf::new();
        failing.append(bson::raw::CString::try_from(command).expect("a name"), "c");
        if command != "ping" {
            failing.append(cstr!("lsid"), lsid(1));
            failing.append(cstr!("txnNumber"), 1_i64);
            failing.append(cstr!("autocommit"), false);
        }
        let failed = run(&state, &client, failing).await;
        assert_eq!(failed.get_i32("code").expect("a code"), code);
        let labels = failed.get_array("errorLabels").ok();
        let label = labels.and_then(|labels| labels.get_str(0).ok());
        assert_eq!(label, expected, "{command} {code}");
    }
}

#[tokio::test]
async fn fail_points_know_the_application_from_its_first_hello() {
    let state = state(without_authentication()).await;
    let data = rawdoc! { "failCommands": ["hello", "ismaster"], "errorCode": 7, "appName": "shop" };
    let set = rawdoc! { "configureFailPoint": "failCommand", "mode": "alwaysOn", "data": data };
    assert_eq!(code(&state, &client(), set).await, 0);
    let hello = |name: &str| rawdoc! { "hello": 1, "client": { "application": { "name": name } } };
    assert_eq!(code(&state, &client(), hello("shop")).await, 7);
    for spelling in [cstr!("isMaster"), cstr!("ismaster")] {
        let command = rawdoc! { spelling: 1, "client": { "application": { "name": "shop" } } };
        assert_eq!(code(&state, &client(), command).await, 7, "{spelling}");
    }
    let other = client();
    assert_eq!(code(&state, &other, hello("other")).await, 0);
    assert_eq!(
        code(&state, &other, hello("shop")).await,
        186,
        "what was told first counts"
    );
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

/// As the specification's tests of retryable writes set it: the connection is closed after the write, or instead of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_fail_point_closes_the_connection_after_a_retryable_write_or_instead_of_it() {
    let state = state(without_authentication()).await;
    let client = client();
    let insert = |id: i32, number: i64| {
        rawdoc! { "insert": "c", "documents": [{ "_id": id }], "lsid": lsid(1), "txnNumber": number }
    };
    let closed = rawdoc! { "closed": true };
    let set = |mode: RawDocumentBuf, data: RawDocumentBuf| {
        rawdoc! { "configureFailPoint": "onPrimaryTransactionalWrite", "mode": mode, "data": data }
    };
    let number = async || {
        run(&state, &client, rawdoc! { "count": "c" })
            .await
            .get_i32("n")
            .expect("a number")
    };

    assert_eq!(code(&state, &client, set(rawdoc! { "times": 1 }, rawdoc! {})).await, 0);
    assert_eq!(run(&state, &client, insert(1, 1)).await, closed);
    assert_eq!(number().await, 1);
    let retried = run(&state, &client, insert(1, 1)).await;
    assert_eq!(retried.get_i32("n").expect("a number"), 1);

    let data = rawdoc! { "failBeforeCommitExceptionCode": 1 };
    assert_eq!(code(&state, &client, set(rawdoc! { "skip": 1 }, data)).await, 0);
    assert_eq!(code(&state, &client, insert(2, 2)).await, 0);
    assert_eq!(run(&state, &client, insert(3, 3)).await, closed);
    assert_eq!(number().await, 2);

    let data = rawdoc! { "failBeforeCommitExceptionCode": 91, "closeConnection": false };
    assert_eq!(code(&state, &client, set(rawdoc! { "times": 1 }, data)).await, 0);
    let modify = rawdoc! {
        "findAndModify": "c", "query": { "_id": 1 }, "update": { "$set": { "a": 1 } }, "lsid": lsid(1), "txnNumber": 4_i64,
    };
    let nothing =
        rawdoc! { "findAndModify": "c", "query": { "_id": 9 }, "remove": true, "lsid": lsid(1), "txnNumber": 4_i64 };
    assert_eq!(code(&state, &client, nothing).await, 0);
    let failed = run(&state, &client, modify.clone()).await;
    assert_eq!(failed.get_i32("code").expect("a code"), 91);
    let labels = failed.get_array("errorLabels").expect("labels");
    assert_eq!(labels.get_str(0).expect("a label"), "RetryableWriteError");
    let modified = run(&state, &client, modify).await;
    let last = modified.get_document("lastErrorObject").expect("what it did");
    assert_eq!(last.get_i32("n").expect("a number"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn concerns_are_refused_where_they_mean_nothing() {
    let state = state(without_authentication()).await;
    let client = client();
    let at = bson::Timestamp { time: 1, increment: 1 };
    let within = |mut command: RawDocumentBuf, starts: bool| {
        command.append(cstr!("lsid"), lsid(1));
        command.append(cstr!("txnNumber"), 1_i64);
        command.append(cstr!("autocommit"), false);
        if starts {
            command.append(cstr!("startTransaction"), true);
        }
        command
    };
    let concern = rawdoc! { "level": "local" };
    for (command, expected) in [
        (rawdoc! { "find": "c", "writeConcern": { "w": 1 } }, 72),
        (rawdoc! { "listIndexes": "c", "writeConcern": {} }, 72),
        (
            rawdoc! { "aggregate": "c", "pipeline": [], "cursor": {}, "writeConcern": { "w": 1 } },
            0,
        ),
        (rawdoc! { "endSessions": [], "writeConcern": { "w": 0 } }, 0),
        (
            within(
                rawdoc! { "find": "c", "readConcern": { "level": "snapshot", "atClusterTime": at } },
                true,
            ),
            238,
        ),
        (within(rawdoc! { "find": "c", "readConcern": concern.clone() }, true), 0),
        // Drivers send the concern of a snapshot with each batch; there is no such cursor.
        (
            rawdoc! { "getMore": 1_i64, "collection": "c", "readConcern": { "level": "snapshot", "atClusterTime": at } },
            43,
        ),
        (within(rawdoc! { "find": "c", "readConcern": concern }, false), 72),
        (
            rawdoc! { "find": "c", "readConcern": { "level": "local", "atClusterTime": at } },
            72,
        ),
        (
            rawdoc! { "find": "c", "readConcern": { "level": "snapshot", "atClusterTime": at, "afterClusterTime": at } },
            72,
        ),
    ] {
        assert_eq!(code(&state, &client, command.clone()).await, expected, "{command:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fail_points_of_cursors_and_of_time_limits() {
    let state = state(without_authentication()).await;
    let client = client();
    let insert = rawdoc! { "insert": "c", "documents": [{}, {}, {}] };
    assert_eq!(code(&state, &client, insert).await, 0);
    let off = |name: &str| rawdoc! { "configureFailPoint": name, "mode": "off" };
    let find = || rawdoc! { "find": "c", "batchSize": 1, "maxTimeMS": 1_000 };
    let open = async || {
        let reply = run(&state, &client, find()).await;
        reply
            .get_document("cursor")
            .and_then(|cursor| cursor.get_i64("id"))
            .expect("an id")
    };
    let more = |id: i64| rawdoc! { "getMore": id, "collection": "c" };

    let data = rawdoc! { "errorCode": 43, "closeConnection": false };
    let set = rawdoc! { "configureFailPoint": "failGetMoreAfterCursorCheckout", "mode": { "times": 1 }, "data": data };
    assert_eq!(code(&state, &client, set).await, 0);
    assert_eq!(code(&state, &client, more(open().await)).await, 43);
    let cursor = open().await;

    let set = rawdoc! { "configureFailPoint": "maxTimeAlwaysTimeOut", "mode": "alwaysOn" };
    assert_eq!(code(&state, &client, set).await, 0);
    assert_eq!(code(&state, &client, find()).await, 50);
    assert_eq!(code(&state, &client, rawdoc! { "find": "c" }).await, 0);
    // The time of a query is that of all its batches.
    assert_eq!(code(&state, &client, more(cursor)).await, 50);
    assert_eq!(code(&state, &client, off("maxTimeAlwaysTimeOut")).await, 0);
    assert_eq!(code(&state, &client, find()).await, 0);
    assert_eq!(code(&state, &client, off("nope")).await, 2);
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
    assert_eq!(code(&state, &client(), strict("distinct")).await, 323);
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
    let labels = |is_retryable_write, is_in_transaction, ends_transaction| Labels {
        is_retryable_write,
        is_in_transaction,
        ends_transaction,
        is_change_stream: false,
        given: None,
    };
    let write = labels(true, false, false);
    let inside = labels(false, true, false);
    let end = labels(false, true, true);
    for (labels, code, of_error, of_write_concern) in [
        (&write, 91, "RetryableWriteError", "RetryableWriteError"),
        (&write, 11000, "", ""),
        (&write, 16500, "", ""),
        (&labels(false, false, false), 91, "", ""),
        (&inside, 112, "TransientTransactionError", ""),
        (&inside, 251, "TransientTransactionError", ""),
        (&inside, 91, "TransientTransactionError", ""),
        (&inside, 11000, "", ""),
        (&end, 251, "TransientTransactionError", ""),
        (&end, 91, "RetryableWriteError", "RetryableWriteError"),
    ] {
        assert_eq!(labels.of(Code(code)).join(","), of_error, "{code}, {labels:?}");
        let of_concern = labels.of_write_concern(Code(code)).join(",");
        assert_eq!(of_concern, of_write_concern, "{code}, {labels:?}");
    }
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
