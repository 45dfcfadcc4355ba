use bson::rawdoc;

use super::*;
use crate::commands::fixture::{self, client, code, run, state};
use crate::cursors::Cursors;
use crate::state::MongoOptions;

fn documents(count: i32) -> Vec<RawDocumentBuf> {
    (0..count).map(|number| rawdoc! { "_id": number }).collect()
}

fn open(cursors: &Cursors, count: i32) -> i64 {
    let cursor = Cursor {
        is_change_stream: false,
        namespace: Namespace::new("db", "c").expect("a name"),
        user: None,
        session: None,
        has_no_timeout: false,
        time_left: None,
        source: Box::new(Known::new(documents(count))),
    };
    cursors.open(cursor).expect("there is room")
}

#[tokio::test]
async fn get_more_returns_the_rest_in_batches() {
    let options = MongoOptions {
        requires_authentication: false,
        ..fixture::options()
    };
    let state = state(options).await;
    let client = client();
    let id = open(&state.cursors, 5);
    let more = |size: i32| rawdoc! { "getMore": id, "collection": "c", "batchSize": size, "$db": "db" };
    let reply = run(&state, &client, more(2)).await;
    let cursor = reply.get_document("cursor").expect("a cursor");
    assert_eq!(
        (
            cursor.get_i64("id").expect("an i64"),
            cursor.get_str("ns").expect("a name")
        ),
        (id, "db.c")
    );
    let batch = cursor.get_array("nextBatch").expect("a batch");
    let ids: Vec<i32> = batch
        .into_iter()
        .map(|document| {
            document
                .expect("valid")
                .as_document()
                .expect("a document")
                .get_i32("_id")
                .expect("an id")
        })
        .collect();
    assert_eq!(ids, [0, 1]);
    // Without size: all. The id is an i64, also when it is 0.
    let reply = run(&state, &client, more(0)).await;
    let cursor = reply.get_document("cursor").expect("a cursor");
    assert_eq!(cursor.get_i64("id").expect("an i64"), 0);
    assert_eq!(cursor.get_array("nextBatch").expect("a batch").into_iter().count(), 3);
    assert_eq!(code(&state, &client, more(1)).await, 43);
}

#[tokio::test]
async fn get_more_checks_its_arguments() {
    let options = MongoOptions {
        requires_authentication: false,
        ..fixture::options()
    };
    let state = state(options).await;
    let id = open(&state.cursors, 5);
    for (command, expected) in [
        (rawdoc! { "getMore": 1, "collection": "c", "$db": "db" }, 14),
        (rawdoc! { "getMore": id, "$db": "db" }, 40414),
        (rawdoc! { "getMore": id, "collection": "d", "$db": "db" }, 13),
        (
            rawdoc! { "getMore": id, "collection": "c", "batchSize": -1, "$db": "db" },
            2,
        ),
        (rawdoc! { "getMore": id, "collection": "c", "x": 1, "$db": "db" }, 40415),
        (rawdoc! { "getMore": id, "collection": "c", "$db": "db" }, 0),
    ] {
        assert_eq!(code(&state, &client(), command.clone()).await, expected, "{command:?}");
    }
}

#[tokio::test]
async fn kill_cursors_tells_what_became_of_each() {
    let options = MongoOptions {
        requires_authentication: false,
        ..fixture::options()
    };
    let state = state(options).await;
    let id = open(&state.cursors, 5);
    let kill = rawdoc! { "killCursors": "c", "cursors": [id, 5_i64], "$db": "db" };
    let reply = run(&state, &client(), kill).await;
    let ids = |field: &str| -> Vec<i64> {
        let array = reply.get_array(field).expect(field);
        array
            .into_iter()
            .map(|id| id.expect("valid").as_i64().expect("an i64"))
            .collect()
    };
    assert_eq!((ids("cursorsKilled"), ids("cursorsNotFound")), (vec![id], vec![5]));
    assert!(ids("cursorsAlive").is_empty() && ids("cursorsUnknown").is_empty());
    assert_eq!(state.cursors.count(), 0);
}

#[tokio::test]
async fn batches_end_at_their_sizes() {
    let state = state(fixture::options()).await;
    let now = state.account.begin().await.expect("a clock");
    // Each document has 14 bytes.
    for (max_documents, max_bytes, expected) in [
        (None, 100, 4),
        (Some(2), 100, 2),
        (Some(0), 100, 0),
        (None, 28, 2),
        (None, 41, 2),
        (None, 1, 1),
    ] {
        let request = BatchRequest {
            now,
            max_documents,
            max_bytes,
            max_wait: None,
            interrupt: std::sync::Arc::new(bolide_mql::context::Uninterrupted),
            consumed: bolide_core::Consumed::default(),
        };
        let batch = Known::new(documents(4)).next_batch(&request).await.expect("known");
        assert_eq!(batch.documents.len(), expected, "{max_documents:?} {max_bytes}");
        assert_eq!(batch.is_last, expected == 4);
    }
}
