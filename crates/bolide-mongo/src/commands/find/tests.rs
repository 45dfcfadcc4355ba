mod natural;

use bson::{DateTime, RawArrayBuf, RawDocumentBuf, rawdoc};

use crate::commands::fixture::{NOW, Shell};

/// The documents of most tests.
async fn shell() -> Shell {
    let shell = Shell::new().await;
    let documents = [
        rawdoc! { "_id": 1, "a": 3, "s": "b", "l": [5, 9] },
        rawdoc! { "_id": 2, "a": 1, "s": "B", "l": [7] },
        rawdoc! { "_id": 3, "a": 2, "s": "a", "l": [1, 8] },
        rawdoc! { "_id": 4, "s": "c" },
    ];
    shell.insert("c", &documents).await;
    shell
}

fn ids(documents: &[RawDocumentBuf]) -> Vec<i32> {
    let id = |document: &RawDocumentBuf| document.get_i32("_id").expect("an id");
    documents.iter().map(id).collect()
}

/// `{find: "c"}` with more arguments.
fn find(arguments: &RawDocumentBuf) -> RawDocumentBuf {
    let mut command = rawdoc! { "find": "c" };
    for field in arguments {
        let (name, value) = field.expect("valid");
        command.append(name, value);
    }
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_in_the_order_that_is_asked_for() {
    let shell = shell().await;
    let cases = [
        (rawdoc! {}, vec![1, 2, 3, 4]),
        (rawdoc! { "sort": {} }, vec![1, 2, 3, 4]),
        // Missing sorts as null, before numbers.
        (rawdoc! { "sort": { "a": 1 } }, vec![4, 2, 3, 1]),
        (rawdoc! { "sort": { "a": -1 } }, vec![1, 3, 2, 4]),
        (rawdoc! { "sort": { "a": 1 }, "skip": 1, "limit": 2 }, vec![2, 3]),
        (rawdoc! { "sort": { "a": 1 }, "skip": 9 }, vec![]),
        // By the smallest element, or the largest.
        (rawdoc! { "sort": { "l": 1 } }, vec![4, 3, 1, 2]),
        (rawdoc! { "sort": { "l": -1 } }, vec![1, 3, 2, 4]),
        (rawdoc! { "sort": { "s": 1 } }, vec![2, 3, 1, 4]),
        (
            rawdoc! { "sort": { "s": 1, "_id": -1 }, "collation": { "locale": "en", "strength": 2 } },
            vec![3, 2, 1, 4],
        ),
        (rawdoc! { "sort": { "$natural": 1 } }, vec![1, 2, 3, 4]),
        (rawdoc! { "sort": { "$natural": -1 } }, vec![4, 3, 2, 1]),
        (rawdoc! { "sort": { "$natural": -1 }, "limit": 1 }, vec![4]),
        (rawdoc! { "hint": { "$natural": -1 } }, vec![4, 3, 2, 1]),
        (
            rawdoc! { "hint": { "$natural": -1 }, "sort": { "_id": 1 } },
            vec![1, 2, 3, 4],
        ),
        (rawdoc! { "filter": { "_id": 2 }, "sort": { "a": 1 } }, vec![2]),
        (
            rawdoc! { "filter": { "_id": { "$in": [1, 2, 3] } }, "sort": { "a": 1 } },
            vec![2, 3, 1],
        ),
    ];
    for (arguments, expected) in cases {
        let found = shell.first_batch(find(&arguments)).await;
        assert_eq!(ids(&found), expected, "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn near_orders_by_distance() {
    let shell = Shell::new().await;
    let at = |id: i32, x: i32| rawdoc! { "_id": id, "p": { "type": "Point", "coordinates": [x, 0] } };
    shell
        .insert("c", &[at(1, 30), at(2, 10), at(3, 20), rawdoc! { "_id": 4 }])
        .await;
    let near = rawdoc! { "p": { "$near": { "$geometry": { "type": "Point", "coordinates": [0, 0] } } } };
    let found = shell.first_batch(rawdoc! { "find": "c", "filter": near.clone() }).await;
    assert_eq!(ids(&found), [2, 3, 1]);
    let sorted = rawdoc! { "find": "c", "filter": near.clone(), "sort": { "_id": -1 } };
    assert_eq!(ids(&shell.first_batch(sorted).await), [3, 2, 1]);
    let distance =
        rawdoc! { "find": "c", "filter": near, "limit": 1, "projection": { "d": { "$meta": "geoNearDistance" } } };
    let found = shell.first_batch(distance).await;
    // A degree of a great circle on a sphere with MongoDB's radius of 6378.1 km.
    let distance = found[0].get_f64("d").expect("a distance");
    assert!(
        (distance - 10.0_f64.to_radians() * 6_378_100.0).abs() < 1.0,
        "{distance}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn results_have_the_shape_that_is_asked_for() {
    let shell = shell().await;
    let cases = [
        (rawdoc! { "projection": { "a": 1 } }, rawdoc! { "_id": 1, "a": 3 }),
        (
            rawdoc! { "projection": { "l": 0, "s": 0 } },
            rawdoc! { "_id": 1, "a": 3 },
        ),
        (rawdoc! { "projection": { "_id": 0, "s": 1 } }, rawdoc! { "s": "b" }),
        (
            rawdoc! { "projection": { "_id": 0, "twice": { "$multiply": ["$a", 2] } } },
            rawdoc! { "twice": 6 },
        ),
        (
            rawdoc! { "projection": { "_id": 0, "x": "$$v" }, "let": { "v": { "$add": [1, 2] } } },
            rawdoc! { "x": 3 },
        ),
        (
            rawdoc! { "filter": { "l": { "$gt": 6 } }, "projection": { "_id": 0, "l.$": 1 } },
            rawdoc! { "l": [9] },
        ),
        (
            rawdoc! { "projection": { "_id": 0, "l": { "$elemMatch": { "$gt": 5 } } } },
            rawdoc! { "l": [9] },
        ),
        (
            rawdoc! { "projection": { "_id": 1 }, "showRecordId": true },
            rawdoc! { "_id": 1, "$recordId": 1_i64 },
        ),
        (
            rawdoc! { "projection": { "_id": 0, "r": { "$meta": "recordId" } } },
            rawdoc! { "a": 3, "s": "b", "l": [5, 9], "r": 1_i64 },
        ),
        // Without an index there is no key.
        (rawdoc! { "returnKey": true }, rawdoc! {}),
        (
            rawdoc! { "filter": { "_id": 1 }, "returnKey": true },
            rawdoc! { "_id": 1 },
        ),
    ];
    for (arguments, expected) in cases {
        let found = shell.first_batch(find(&arguments)).await;
        assert_eq!(found[0], expected, "{arguments:?}");
    }
}

/// They are errors also if there is no such collection.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_are_refused() {
    let shell = shell().await;
    let cases = [
        (rawdoc! { "filter": { "$nonsense": 1 } }, 2),
        (rawdoc! { "sort": { "a": 2 } }, 15975),
        (rawdoc! { "sort": { "a": "x" } }, 15974),
        (rawdoc! { "sort": { "$natural": 1, "a": 1 } }, 2),
        (rawdoc! { "sort": { "$natural": 2 } }, 2),
        (rawdoc! { "hint": { "$natural": 2 } }, 2),
        (rawdoc! { "sort": { "x": { "$meta": "textScore" } } }, 40218),
        (rawdoc! { "projection": { "x": { "$meta": "textScore" } } }, 40218),
        (rawdoc! { "projection": { "x": { "$meta": "geoNearDistance" } } }, 40218),
        (rawdoc! { "projection": { "x": { "$meta": "sortKey" } } }, 238),
        (rawdoc! { "projection": { "a": 1, "b": 0 } }, 31254),
        (rawdoc! { "projection": { "a": 0, "b": 1 } }, 31253),
        (rawdoc! { "projection": { "a": 1, "a.b": 1 } }, 31249),
        (rawdoc! { "min": { "a": 1 }, "max": { "b": 1 } }, 51176),
        (rawdoc! { "skip": -1 }, 51024),
        (rawdoc! { "limit": -1 }, 51024),
        (rawdoc! { "tailable": true }, 2),
        (rawdoc! { "returnKey": true, "hint": "_id_" }, 238),
        (rawdoc! { "nonsense": 1 }, 40415),
    ];
    for (arguments, expected) in cases {
        for collection in ["c", "missing"] {
            let mut command = rawdoc! { "find": collection };
            for field in &arguments {
                let (name, value) = field.expect("valid");
                command.append(name, value);
            }
            assert_eq!(shell.code(command).await, expected, "{collection} {arguments:?}");
        }
    }
    // Parallel arrays are found when documents are sorted.
    shell.insert("c", &[rawdoc! { "_id": 5, "k": [1], "l": [1] }]).await;
    assert_eq!(shell.code(rawdoc! { "find": "c", "sort": { "k": 1, "l": 1 } }).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn min_and_max_are_a_part_of_an_index() {
    let shell = shell().await;
    let indexes = [
        rawdoc! { "key": { "a": 1 }, "name": "a" },
        rawdoc! { "key": { "a": -1, "s": 1 }, "name": "both" },
        rawdoc! { "key": { "l": 1 }, "name": "l" },
    ];
    let mut array = RawArrayBuf::new();
    for index in indexes {
        array.push(index);
    }
    shell.ok(rawdoc! { "createIndexes": "c", "indexes": array }).await;
    let cases = [
        // From `min`, and before `max`, in the order of the index.
        (rawdoc! { "min": { "a": 2 }, "hint": "a" }, vec![3, 1]),
        (rawdoc! { "max": { "a": 2 }, "hint": { "a": 1 } }, vec![4, 2]),
        (
            rawdoc! { "min": { "a": 1 }, "max": { "a": 3 }, "hint": "a" },
            vec![2, 3],
        ),
        (
            rawdoc! { "min": { "a": 1 }, "max": { "a": 3 }, "hint": "a", "sort": { "_id": -1 } },
            vec![3, 2],
        ),
        (
            rawdoc! { "min": { "a": 1 }, "hint": "a", "filter": { "_id": { "$gt": 1 } }, "skip": 1 },
            vec![3],
        ),
        (rawdoc! { "min": { "a": 2, "s": "b" }, "hint": "both" }, vec![2, 4]),
        // An array has several keys: document 1 is there for 5, and 3 for 8.
        (
            rawdoc! { "min": { "l": 5 }, "max": { "l": 9 }, "hint": "l" },
            vec![1, 2, 3],
        ),
    ];
    for (arguments, expected) in cases {
        let found = shell.first_batch(find(&arguments)).await;
        assert_eq!(ids(&found), expected, "{arguments:?}");
    }
    for (arguments, expected) in [
        (rawdoc! { "min": { "a": 1 } }, 51173),
        (rawdoc! { "min": { "a": 1 }, "hint": { "$natural": 1 } }, 51173),
        (rawdoc! { "min": { "s": 1 }, "hint": "a" }, 51174),
        (rawdoc! { "min": { "a": 1 }, "hint": "both" }, 51174),
        (rawdoc! { "min": { "s": 1, "a": 1 }, "hint": "both" }, 51174),
        (rawdoc! { "min": { "a": 1 }, "max": { "a": 1 }, "hint": "a" }, 51175),
    ] {
        assert_eq!(shell.code(find(&arguments)).await, expected, "{arguments:?}");
    }
}

/// A cursor's later batches are later in time (mongo.md §18.6): also sorted documents that wait are judged again.
#[tokio::test(flavor = "multi_thread")]
async fn what_dies_between_batches_is_left_out() {
    for sort in [rawdoc! {}, rawdoc! { "_id": 1 }, rawdoc! { "$natural": 1 }] {
        let shell = Shell::new().await;
        let date = |ms: i64| DateTime::from_millis(NOW.0 + ms);
        let documents: Vec<RawDocumentBuf> = (0..10_i32)
            .map(|id| match id % 3 {
                0 => rawdoc! { "_id": id, "d": date(1000) },
                1 => rawdoc! { "_id": id, "d": date(2000) },
                _ => rawdoc! { "_id": id },
            })
            .collect();
        shell.insert("c", &documents).await;
        let index = rawdoc! { "key": { "d": 1 }, "name": "d", "expireAfterSeconds": 0 };
        shell.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
        let reply = shell
            .ok(rawdoc! { "find": "c", "sort": sort.clone(), "batchSize": 2 })
            .await;
        let cursor = reply.get_document("cursor").expect("a cursor");
        let id = cursor.get_i64("id").expect("an id");
        let more = |size: i32| rawdoc! { "getMore": id, "collection": "c", "batchSize": size };
        let batch = async |command| {
            let reply = shell.ok(command).await;
            let cursor = reply.get_document("cursor").expect("a cursor");
            let batch = cursor.get_array("nextBatch").expect("a batch");
            let ids = batch.into_iter().map(|document| {
                let document = document.expect("valid").as_document().expect("a document");
                document.get_i32("_id").expect("an id")
            });
            ids.collect::<Vec<i32>>()
        };
        // 0 and 1 are returned; at exactly a second 3, 6 and 9 are gone.
        shell.advance(999);
        assert_eq!(batch(more(2)).await, [2, 3], "{sort:?}");
        shell.advance(1);
        assert_eq!(batch(more(2)).await, [4, 5], "{sort:?}");
        shell.advance(1000);
        assert_eq!(batch(more(9)).await, [8], "{sort:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_without_a_first_batch_reads_at_its_first_get_more() {
    let shell = shell().await;
    let command = rawdoc! { "find": "c", "sort": { "a": 1 }, "batchSize": 0, "limit": 2, "projection": { "_id": 1 } };
    let reply = shell.ok(command).await;
    let id = reply
        .get_document("cursor")
        .and_then(|cursor| cursor.get_i64("id"))
        .expect("an id");
    let reply = shell.ok(rawdoc! { "getMore": id, "collection": "c" }).await;
    let expected = rawdoc! { "cursor": { "nextBatch": [{ "_id": 4 }, { "_id": 2 }], "id": 0_i64, "ns": "db.c" } };
    assert_eq!(reply, expected);
}

/// The texts are those of MongoDB 7.0, which `find` shares with no other command.
#[tokio::test(flavor = "multi_thread")]
async fn errors_of_options_are_those_of_mongodb() {
    let shell = Shell::new().await;
    for (options, code, text) in [
        (rawdoc! { "sort": "a" }, 14, "Expected field sortto be of type object"),
        (
            rawdoc! { "showRecordId": 1 },
            14,
            "Field 'showRecordId' should be a boolean value, but found: int",
        ),
        (
            rawdoc! { "returnKey": bson::RawBson::Null },
            14,
            "Field 'returnKey' should be a boolean value, but found: null",
        ),
        (
            rawdoc! { "allowDiskUse": 1 },
            14,
            "BSON field 'find.allowDiskUse' is the wrong type 'int', expected type 'bool'",
        ),
        (rawdoc! { "maxTimeMS": "x" }, 2, "maxTimeMS must be a number"),
        (
            rawdoc! { "maxTimeMS": bson::RawBson::Null },
            2,
            "maxTimeMS must be a number",
        ),
        (rawdoc! { "maxTimeMS": 1.5 }, 2, "maxTimeMS has non-integral value"),
        (
            rawdoc! { "maxTimeMS": -1 },
            2,
            "-1 value for maxTimeMS is out of range [0, 2147483647]",
        ),
        (
            rawdoc! { "maxTimeMS": 1e300 },
            2,
            "9223372036854775807 value for maxTimeMS is out of range [0, 2147483647]",
        ),
        (rawdoc! { "hint": 1 }, 9, "Hint must be a string or an object"),
        (
            rawdoc! { "awaitData": true },
            9,
            "Cannot set 'awaitData' without also setting 'tailable'",
        ),
    ] {
        let mut find = rawdoc! { "find": "c" };
        for option in &options {
            let (name, value) = option.expect("valid");
            find.append(name, value);
        }
        let reply = shell.run(find).await;
        let found = (
            reply.get_i32("code").expect("a code"),
            reply.get_str("errmsg").expect("a text"),
        );
        assert_eq!(found, (code, text), "{options:?}");
    }
    let reply = shell.run(rawdoc! { "find": 1 }).await;
    assert_eq!(
        reply.get_str("errmsg").expect("a text"),
        "Failed to parse namespace element"
    );
}
