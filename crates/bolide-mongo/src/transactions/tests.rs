mod creation;

use bson::raw::cstr;
use bson::spec::BinarySubtype;
use bson::{Binary, RawDocument, RawDocumentBuf, rawdoc};

use crate::commands::fixture::{Shell, code_of};

/// A command of the first transaction of a session.
fn within(session: u8, mut command: RawDocumentBuf, starts: bool) -> RawDocumentBuf {
    let id = Binary {
        subtype: BinarySubtype::Uuid,
        bytes: vec![session; 16],
    };
    command.append(cstr!("lsid"), rawdoc! { "id": id });
    command.append(cstr!("txnNumber"), 1_i64);
    command.append(cstr!("autocommit"), false);
    if starts {
        command.append(cstr!("startTransaction"), true);
    }
    command
}

fn update(id: i32) -> RawDocumentBuf {
    rawdoc! { "update": "c", "updates": [{ "q": { "_id": id }, "u": { "$inc": { "n": 1 } } }] }
}

fn is_transient_conflict(reply: &RawDocument) -> bool {
    let labels = reply.get_array("errorLabels").ok();
    let label = labels.and_then(|labels| labels.get_str(0).ok());
    code_of(reply) == 112 && label == Some("TransientTransactionError")
}

async fn shell() -> Shell {
    let shell = Shell::new().await;
    shell
        .insert("c", &[rawdoc! { "_id": 1, "n": 0 }, rawdoc! { "_id": 2, "n": 0 }])
        .await;
    shell
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_transaction_that_writes_a_document_is_aborted_at_its_write() {
    let shell = shell().await;
    shell.ok(within(1, update(1), true)).await;
    shell.ok(within(2, update(2), true)).await;
    assert!(is_transient_conflict(&shell.run(within(2, update(1), false)).await));
    assert_eq!(shell.code(within(2, rawdoc! { "find": "c" }, false)).await, 251);
    // What it had written is free.
    shell.ok(within(1, update(2), false)).await;
    let commit = rawdoc! { "commitTransaction": 1, "$db": "admin" };
    shell.ok(within(1, commit, false)).await;
    let found = shell
        .first_batch(rawdoc! { "find": "c", "projection": { "_id": 0 } })
        .await;
    assert_eq!(found, [rawdoc! { "n": 1 }, rawdoc! { "n": 1 }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_since_a_transaction_began_aborts_it_at_its_write() {
    for command in [
        update(1),
        rawdoc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] },
        rawdoc! { "findAndModify": "c", "query": { "_id": 1 }, "remove": true },
        rawdoc! { "insert": "c", "documents": [{ "_id": 3 }] },
    ] {
        let shell = shell().await;
        shell.ok(within(1, rawdoc! { "find": "c" }, true)).await;
        shell.ok(update(1)).await;
        shell.insert("c", &[rawdoc! { "_id": 3 }]).await;
        let reply = shell.run(within(1, command.clone(), false)).await;
        assert!(is_transient_conflict(&reply), "{command:?}: {reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_cursor_of_an_aborted_transaction_holds_nothing() {
    let shell = shell().await;
    shell.ok(within(1, update(1), true)).await;
    let reply = shell
        .ok(within(1, rawdoc! { "find": "c", "batchSize": 1 }, false))
        .await;
    let cursor = reply.get_document("cursor").and_then(|cursor| cursor.get_i64("id"));
    let abort = rawdoc! { "abortTransaction": 1, "$db": "admin" };
    shell.ok(within(1, abort, false)).await;
    shell.ok(within(2, update(1), true)).await;
    let more = rawdoc! { "getMore": cursor.expect("an id"), "collection": "c" };
    assert_eq!(shell.code(within(1, more, false)).await, 251);
}
