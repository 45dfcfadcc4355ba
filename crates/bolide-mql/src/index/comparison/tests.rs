use bson::raw::RawDocumentBuf;
use bson::rawdoc;

use super::super::specification::ParseOptions;
use super::*;

fn index(specification: &RawDocumentBuf) -> IndexDefinition {
    IndexDefinition::parse(specification, &ParseOptions::default()).expect("an index")
}

fn compare(existing: &[RawDocumentBuf], new: &RawDocumentBuf, ttl_mode: TtlMode) -> Result<Comparison, (i32, String)> {
    let definitions: Vec<IndexDefinition> = existing.iter().map(index).collect();
    let existing = Existing {
        namespace: "db.c",
        definitions: &definitions,
        ttl_mode,
    };
    compare_definitions(&existing, &index(new)).map_err(|error| (error.code.0, error.message))
}

#[test]
fn the_same_index_again_is_no_change() {
    for (existing, new) in [
        (
            rawdoc! {"key": {"a": 1}, "name": "n"},
            rawdoc! {"name": "n", "key": {"a": 1.0}},
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "n", "unique": true},
            rawdoc! {"key": {"a": 1}, "name": "n", "unique": 1, "background": true, "v": 1},
        ),
        (
            rawdoc! {"key": {"t": 1}, "name": "n", "expireAfterSeconds": 10},
            rawdoc! {"key": {"t": 1}, "name": "n", "expireAfterSeconds": 10_i64},
        ),
        (
            rawdoc! {"key": {"a": "text", "b": "text"}, "name": "n"},
            rawdoc! {"key": {"b": "text", "a": "text"}, "name": "n"},
        ),
        (
            rawdoc! {"key": {"_id": 1}, "name": "_id_"},
            rawdoc! {"key": {"_id": 1}, "name": "x"},
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "n", "collation": {"locale": "en"}},
            rawdoc! {"key": {"a": 1}, "name": "n", "collation": {"locale": "en", "strength": 3}},
        ),
    ] {
        let result = compare(std::slice::from_ref(&existing), &new, TtlMode::Mongodb);
        assert_eq!(result, Ok(Comparison::Same));
    }
}

#[test]
fn conflicts_have_the_codes_of_mongodb() {
    let plain = [rawdoc! {"key": {"t": 1}, "name": "t_1"}];
    let expiring = [rawdoc! {"key": {"t": 1}, "name": "t_1", "expireAfterSeconds": 10}];
    let text = [rawdoc! {"key": {"a": "text"}, "name": "text"}];
    let filter = rawdoc! {"a": 1};
    let collation = rawdoc! {"locale": "en"};
    for (existing, new, expected) in [
        (
            &plain,
            rawdoc! {"key": {"t": 1}, "name": "t_1", "expireAfterSeconds": 10},
            85,
        ),
        (&plain, rawdoc! {"key": {"t": 1}, "name": "t_1", "hidden": true}, 85),
        (&plain, rawdoc! {"key": {"t": 1}, "name": "t_1", "unique": true}, 86),
        (&plain, rawdoc! {"key": {"t": 1}, "name": "t_1", "sparse": true}, 86),
        (&plain, rawdoc! {"key": {"u": 1}, "name": "t_1"}, 86),
        (&plain, rawdoc! {"key": {"t": -1}, "name": "t_1"}, 86),
        (
            &plain,
            rawdoc! {"key": {"t": 1}, "name": "t_1", "partialFilterExpression": filter.clone()},
            86,
        ),
        (
            &plain,
            rawdoc! {"key": {"t": 1}, "name": "t_1", "collation": collation.clone()},
            86,
        ),
        (&plain, rawdoc! {"key": {"t": 1}, "name": "other"}, 85),
        (
            &plain,
            rawdoc! {"key": {"t": 1}, "name": "other", "expireAfterSeconds": 10},
            85,
        ),
        (&plain, rawdoc! {"key": {"t": 1}, "name": "other", "unique": true}, 0),
        (&plain, rawdoc! {"key": {"t": 1}, "name": "other", "sparse": true}, 0),
        (
            &plain,
            rawdoc! {"key": {"t": 1}, "name": "other", "partialFilterExpression": filter},
            0,
        ),
        (
            &plain,
            rawdoc! {"key": {"t": 1}, "name": "other", "collation": collation},
            0,
        ),
        (&plain, rawdoc! {"key": {"t": -1}, "name": "other"}, 0),
        (&plain, rawdoc! {"key": {"t": 1, "u": 1}, "name": "other"}, 0),
        (
            &expiring,
            rawdoc! {"key": {"t": 1}, "name": "t_1", "expireAfterSeconds": 20},
            85,
        ),
        (
            &expiring,
            rawdoc! {"key": {"t": 1}, "name": "other", "expireAfterSeconds": 20},
            85,
        ),
        (&expiring, rawdoc! {"key": {"t": 1}, "name": "t_1"}, 85),
        (
            &expiring,
            rawdoc! {"key": {"u": 1}, "name": "t_1", "expireAfterSeconds": 10},
            86,
        ),
        (
            &text,
            rawdoc! {"key": {"a": "text"}, "name": "text", "default_language": "german"},
            85,
        ),
        (&text, rawdoc! {"key": {"b": "text"}, "name": "other"}, 85),
        (&text, rawdoc! {"key": {"x": 1, "b": "text"}, "name": "other"}, 67),
    ] {
        let code = match compare(existing, &new, TtlMode::Mongodb) {
            Ok(Comparison::New) => 0,
            Ok(Comparison::Same) => 1,
            Err((code, _)) => code,
        };
        assert_eq!(code, expected, "{}", index(&new).catalog_text());
    }
}

#[test]
fn conflicts_show_both_indexes() {
    let expiring = [rawdoc! {"key": {"t": 1}, "name": "t_1", "expireAfterSeconds": 86400}];
    let error = |new: &RawDocumentBuf| compare(&expiring, new, TtlMode::Mongodb).err().map(|(_, text)| text);
    assert_eq!(
        error(&rawdoc! {"key": {"t": 1}, "name": "t_1", "expireAfterSeconds": 60}).as_deref(),
        Some(
            "An equivalent index already exists with the same name but different options. \
             Requested index: { v: 2, key: { t: 1 }, name: \"t_1\", expireAfterSeconds: 60 }, \
             existing index: { v: 2, key: { t: 1 }, name: \"t_1\", expireAfterSeconds: 86400 }"
        )
    );
    assert_eq!(
        error(&rawdoc! {"key": {"t": 1}, "name": "t_1", "unique": true}).as_deref(),
        Some(
            "An existing index has the same name as the requested index. When index names are not specified, they are \
             auto generated and can cause conflicts. Please refer to our documentation. \
             Requested index: { v: 2, unique: true, key: { t: 1 }, name: \"t_1\" }, \
             existing index: { v: 2, key: { t: 1 }, name: \"t_1\", expireAfterSeconds: 86400 }"
        )
    );
    assert_eq!(
        error(&rawdoc! {"key": {"t": 1}, "name": "x", "expireAfterSeconds": 86400}).as_deref(),
        Some("Index already exists with a different name: t_1")
    );
}

#[test]
fn a_collection_has_64_indexes() {
    let existing: Vec<RawDocumentBuf> = (0..64)
        .map(|number| {
            let filter = rawdoc! {"n": number};
            rawdoc! {"key": {"a": 1}, "name": number.to_string(), "partialFilterExpression": filter}
        })
        .collect();
    let new = rawdoc! {"key": {"b": 1}, "name": "b"};
    assert_eq!(
        compare(&existing, &new, TtlMode::Mongodb),
        Err((67, "add index fails, too many indexes for db.c key:{ b: 1 }".to_owned()))
    );
    assert_eq!(compare(&existing[1..], &new, TtlMode::Mongodb), Ok(Comparison::New));
}

#[test]
fn rules_of_expiry_stand_beside_each_other_as_the_mode_says() {
    let on_t = rawdoc! {"key": {"t": 1}, "name": "t", "expireAfterSeconds": 10};
    let on_u = rawdoc! {"key": {"u": 1}, "name": "u", "expireAfterSeconds": 10};
    let core = rawdoc! {"key": {"_ts": 1}, "name": "ts", "expireAfterSeconds": 10};
    let core_down = rawdoc! {"key": {"_ts": -1}, "name": "ts2", "expireAfterSeconds": 20};
    let filter = rawdoc! {"a": {"$exists": true}};
    let partial_unique = rawdoc! {"key": {"a": 1}, "name": "a", "unique": true, "partialFilterExpression": filter};
    for (existing, new, mode, expected) in [
        (&on_t, &on_u, TtlMode::Mongodb, Ok(Comparison::New)),
        (&on_t, &core, TtlMode::Mongodb, Ok(Comparison::New)),
        (&core, &core_down, TtlMode::Mongodb, Err(67)),
        (&on_t, &on_u, TtlMode::CosmosCustomPath, Err(2)),
        (&on_t, &core, TtlMode::CosmosCustomPath, Err(2)),
        (&core, &on_t, TtlMode::CosmosCustomPath, Err(2)),
        (&on_t, &partial_unique, TtlMode::CosmosCustomPath, Err(2)),
        (&partial_unique, &on_t, TtlMode::CosmosCustomPath, Err(2)),
        (&partial_unique, &core, TtlMode::CosmosCustomPath, Ok(Comparison::New)),
        (&partial_unique, &on_t, TtlMode::Mongodb, Ok(Comparison::New)),
    ] {
        let result = compare(std::slice::from_ref(existing), new, mode).map_err(|(code, _)| code);
        assert_eq!(result, expected, "{}", index(new).catalog_text());
    }
}
