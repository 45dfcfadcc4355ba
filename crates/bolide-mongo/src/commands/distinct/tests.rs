use bson::{DateTime, RawDocumentBuf};

use super::*;
use crate::commands::fixture::{NOW, Shell};

async fn values(shell: &Shell, command: RawDocumentBuf) -> RawDocumentBuf {
    shell.ok(command).await
}

/// Source: MongoDB's manual, `distinct`: "If the value of the specified field is an array, distinct considers each element of the array as a separate value".
#[test]
fn values_are_those_along_the_path() {
    let documents = [
        rawdoc! { "a": 1, "b": [{ "c": "x" }, { "c": ["y", ["z"]] }, 5] },
        rawdoc! { "a": [1.0, 2, [3]], "b": { "c": "x" } },
        rawdoc! { "a": RawBson::Null, "b": [] },
        rawdoc! { "b": [[1], { "c": [] }] },
    ];
    let language = Context::new(NOW);
    for (path, expected) in [
        ("a", rawdoc! { "v": [RawBson::Null, 1, 2, [3]] }),
        ("b.c", rawdoc! { "v": ["x", "y", ["z"]] }),
        ("b.0", rawdoc! { "v": [1, { "c": "x" }] }),
        ("b.1.c", rawdoc! { "v": ["y", ["z"]] }),
        ("x", rawdoc! { "v": [] }),
    ] {
        let path = Path::parse(path).expect("a path");
        let mut found = DistinctValues::default();
        for document in &documents {
            found.add(document, &path, &language).expect("valid");
        }
        assert_eq!(rawdoc! { "v": found.finish(&language) }, expected, "{path:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_query_the_collation_and_the_time_hold() {
    let shell = Shell::new().await;
    let date = |ms: i64| DateTime::from_millis(NOW.0 + ms);
    let documents = [
        rawdoc! { "_id": 1, "a": "x" },
        rawdoc! { "_id": 2, "a": "X" },
        rawdoc! { "_id": 3, "a": "y", "d": date(500) },
    ];
    shell.insert("c", &documents).await;
    let index = rawdoc! { "key": { "d": 1 }, "name": "d", "expireAfterSeconds": 0 };
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
    for (command, expected) in [
        (
            rawdoc! { "distinct": "c", "key": "a" },
            rawdoc! { "values": ["X", "x", "y"] },
        ),
        (
            rawdoc! { "distinct": "c", "key": "a", "query": { "_id": { "$lt": 3 } } },
            rawdoc! { "values": ["X", "x"] },
        ),
        (
            rawdoc! { "distinct": "c", "key": "a", "collation": { "locale": "en", "strength": 2 } },
            rawdoc! { "values": ["x", "y"] },
        ),
        (rawdoc! { "distinct": "none", "key": "a" }, rawdoc! { "values": [] }),
    ] {
        assert_eq!(values(&shell, command.clone()).await, expected, "{command:?}");
    }
    shell.advance(500);
    let rest = values(&shell, rawdoc! { "distinct": "c", "key": "a" }).await;
    assert_eq!(rest, rawdoc! { "values": ["X", "x"] });
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_arguments_are_refused() {
    let shell = Shell::new().await;
    shell.insert("c", &[rawdoc! { "_id": 1 }]).await;
    for (command, expected) in [
        (rawdoc! { "distinct": "c" }, 40414),
        (rawdoc! { "distinct": "c", "key": 1 }, 14),
        (rawdoc! { "distinct": "c", "key": "a", "query": { "$foo": 1 } }, 2),
        (rawdoc! { "distinct": "none", "key": "a", "query": { "$foo": 1 } }, 2),
        (rawdoc! { "distinct": "c", "key": "a", "hint": "nope" }, 2),
        (rawdoc! { "distinct": "c", "key": "a", "foo": 1 }, 40415),
    ] {
        assert_eq!(shell.code(command.clone()).await, expected, "{command:?}");
    }
}

#[test]
fn a_result_above_16_mib_is_refused() {
    let mut found = DistinctValues::default();
    let text = "x".repeat(9 * 1024 * 1024);
    let language = Context::new(NOW);
    found
        .add_value(RawBsonRef::String(&text), &language)
        .expect("small enough");
    found
        .add_value(RawBsonRef::String(&text), &language)
        .expect("the same value");
    let error = found.add_value(RawBsonRef::String(&text[1..]), &language);
    assert_eq!(error.expect_err("too large").code.0, 17217);
}
