//! Orders and hints by `$natural`.

use bson::raw::cstr;
use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, RawDocumentBuf, rawdoc};

use super::{find, ids, shell};
use crate::commands::fixture::{NOW, Shell};

/// More documents than the first page of a scan, and the second, return.
const MANY: i32 = 2_400;

async fn large() -> Shell {
    let shell = Shell::new().await;
    let index = rawdoc! { "key": { "d": 1 }, "name": "d", "expireAfterSeconds": 0 };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    // In another order than that of `_id`; every tenth one ends a millisecond later.
    let document = |number: i32| match number % 10 {
        0 => rawdoc! { "_id": MANY - number, "d": DateTime::from_millis(NOW.0 + 1) },
        _ => rawdoc! { "_id": MANY - number },
    };
    let documents: Vec<RawDocumentBuf> = (0..MANY).map(document).collect();
    shell.insert("c", &documents).await;
    shell
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_one_inserted_is_the_first_backwards() {
    let shell = large().await;
    let all = |direction: i32| find(&rawdoc! { "sort": { "$natural": direction }, "batchSize": MANY });
    let inserted: Vec<i32> = (0..MANY).map(|number| MANY - number).collect();
    let reversed: Vec<i32> = inserted.iter().rev().copied().collect();
    assert_eq!(ids(&shell.first_batch(all(1)).await), inserted);
    assert_eq!(ids(&shell.first_batch(all(-1)).await), reversed);
    shell.advance(1);
    let live: Vec<i32> = reversed.into_iter().filter(|id| (MANY - id) % 10 != 0).collect();
    assert_eq!(ids(&shell.first_batch(all(-1)).await), live);
    let part = find(&rawdoc! { "hint": { "$natural": -1 }, "skip": 100, "limit": 3 });
    assert_eq!(ids(&shell.first_batch(part).await), live[100..103]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_as_much_is_read_as_is_returned() {
    let shell = large().await;
    for (command, examined) in [
        (find(&rawdoc! { "sort": { "$natural": -1 }, "limit": 1 }), 1),
        (find(&rawdoc! { "hint": { "$natural": -1 }, "limit": 5 }), 5),
        // A natural order is that of a scan, whatever the filter says.
        (
            find(&rawdoc! { "filter": { "_id": 1 }, "sort": { "$natural": -1 }, "limit": 1 }),
            1,
        ),
        (
            find(&rawdoc! { "filter": { "_id": MANY }, "hint": { "$natural": -1 } }),
            MANY,
        ),
    ] {
        let explain = rawdoc! { "explain": command.clone(), "verbosity": "executionStats" };
        let reply = shell.ok(explain).await;
        let statistics = reply.get_document("executionStats").expect("statistics");
        assert_eq!(
            statistics.get_i32("totalDocsExamined").expect("a number"),
            examined,
            "{command:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_values_of_id_in_a_filter_do_not_change_the_order() {
    let shell = shell().await;
    for (direction, expected) in [(1, [2, 3, 4]), (-1, [4, 3, 2])] {
        let filter = rawdoc! { "_id": { "$in": [3, 4, 2] } };
        let command = find(&rawdoc! { "filter": filter, "sort": { "$natural": direction } });
        assert_eq!(ids(&shell.first_batch(command).await), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_commands_read_in_the_direction_of_their_hint() {
    let shell = shell().await;
    let hint = rawdoc! { "$natural": -1 };
    let values = shell
        .ok(rawdoc! { "distinct": "c", "key": "_id", "hint": hint.clone() })
        .await;
    // Values are in their own order, however the documents are read.
    assert_eq!(values, rawdoc! { "values": [1, 2, 3, 4] });
    let pipeline = rawdoc! { "aggregate": "c", "pipeline": [{ "$limit": 2 }], "hint": hint.clone(), "cursor": {} };
    assert_eq!(ids(&shell.first_batch(pipeline).await), [4, 3]);
    let counted = rawdoc! { "count": "c", "query": { "_id": 2 }, "hint": hint.clone() };
    assert_eq!(shell.ok(counted).await, rawdoc! { "n": 1 });
    let update = rawdoc! { "q": {}, "u": { "$set": { "x": 1 } }, "hint": hint.clone() };
    shell.ok(rawdoc! { "update": "c", "updates": [update] }).await;
    let changed = find(&rawdoc! { "filter": { "x": 1 } });
    assert_eq!(ids(&shell.first_batch(changed).await), [4]);
    let modify =
        rawdoc! { "findAndModify": "c", "query": { "_id": { "$lt": 4 } }, "sort": hint.clone(), "remove": true };
    let removed = shell.ok(modify).await;
    assert_eq!(
        removed
            .get_document("value")
            .expect("a document")
            .get_i32("_id")
            .expect("an id"),
        3
    );
    let delete = rawdoc! { "q": {}, "limit": 1, "hint": hint };
    shell.ok(rawdoc! { "delete": "c", "deletes": [delete] }).await;
    assert_eq!(ids(&shell.first_batch(find(&rawdoc! {})).await), [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_sees_its_own_writes_in_their_order() {
    let shell = shell().await;
    let session = Binary {
        subtype: BinarySubtype::Uuid,
        bytes: vec![1; 16],
    };
    let in_transaction = |mut command: RawDocumentBuf, starts: bool| {
        command.append(cstr!("lsid"), rawdoc! { "id": session.clone() });
        command.append(cstr!("txnNumber"), 1_i64);
        command.append(cstr!("autocommit"), false);
        if starts {
            command.append(cstr!("startTransaction"), true);
        }
        command
    };
    let insert = rawdoc! { "insert": "c", "documents": [{ "_id": 0 }, { "_id": 9 }] };
    shell.ok(in_transaction(insert, true)).await;
    let delete = rawdoc! { "delete": "c", "deletes": [{ "q": { "_id": 3 }, "limit": 1 }] };
    shell.ok(in_transaction(delete, false)).await;
    for (direction, expected) in [(1, [1, 2, 4, 0, 9]), (-1, [9, 0, 4, 2, 1])] {
        let command = find(&rawdoc! { "sort": { "$natural": direction } });
        assert_eq!(ids(&shell.first_batch(in_transaction(command, false)).await), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_natural_order_goes_with_no_other_hint() {
    let shell = shell().await;
    let hidden = rawdoc! { "key": { "s": 1 }, "name": "s", "hidden": true };
    let places = rawdoc! { "key": { "p": "2dsphere" }, "name": "p" };
    let plain = rawdoc! { "key": { "a": 1 }, "name": "a" };
    shell
        .ok(rawdoc! { "createIndexes": "c", "indexes": [plain, hidden, places] })
        .await;
    let near = rawdoc! { "p": { "$near": { "$geometry": { "type": "Point", "coordinates": [0, 0] } } } };
    for (arguments, expected) in [
        (rawdoc! { "sort": { "$natural": 1 }, "hint": { "$natural": 1 } }, 0),
        (rawdoc! { "sort": { "$natural": 1 }, "hint": {} }, 0),
        (rawdoc! { "sort": { "$natural": 1 }, "hint": { "$natural": -1 } }, 2),
        (rawdoc! { "sort": { "$natural": 1 }, "hint": { "a": 1 } }, 2),
        (rawdoc! { "sort": { "$natural": 1 }, "hint": "a" }, 2),
        (rawdoc! { "sort": { "a": 1 }, "hint": "a" }, 0),
        (rawdoc! { "hint": "none" }, 2),
        (rawdoc! { "hint": { "a": -1 } }, 2),
        // No query may use it.
        (rawdoc! { "hint": "s" }, 2),
        (rawdoc! { "filter": near.clone(), "sort": { "$natural": 1 } }, 2),
        (rawdoc! { "filter": near.clone(), "hint": { "$natural": 1 } }, 2),
        (rawdoc! { "filter": near }, 0),
    ] {
        assert_eq!(shell.code(find(&arguments)).await, expected, "{arguments:?}");
    }
    for command in [
        rawdoc! { "count": "c", "hint": "none" },
        rawdoc! { "distinct": "c", "key": "a", "hint": "none" },
        rawdoc! { "aggregate": "c", "pipeline": [], "cursor": {}, "hint": "none" },
        rawdoc! { "findAndModify": "c", "remove": true, "hint": "none" },
        rawdoc! { "count": "c", "hint": { "$natural": 0 } },
    ] {
        assert_eq!(shell.code(command.clone()).await, 2, "{command:?}");
    }
}
