use bson::raw::RawBson;
use bson::{rawbson, rawdoc};

use super::super::definition::append;
use super::*;

fn parse_plain(specification: &RawDocument) -> Result<IndexDefinition> {
    parse(specification, &ParseOptions::default())
}

fn refusal(specification: &RawDocument) -> (i32, String) {
    match parse_plain(specification) {
        Ok(definition) => (0, definition.catalog_text()),
        Err(error) => (error.code.0, error.message),
    }
}

fn with_key(key: RawDocumentBuf) -> RawDocumentBuf {
    rawdoc! {"key": key, "name": "n"}
}

#[test]
fn definitions_are_listed_in_their_normal_form() {
    let cases = [
        (
            rawdoc! {"name": "a_1", "key": {"a": 1}},
            rawdoc! {"v": 2, "key": {"a": 1}, "name": "a_1"},
        ),
        (
            rawdoc! {"key": {"a": 1.0, "b": -1_i64}, "name": "x", "v": 1, "ns": "db.c"},
            rawdoc! {"v": 1, "key": {"a": 1.0, "b": -1_i64}, "name": "x"},
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "x", "unique": false, "sparse": 0, "hidden": false, "dropDups": true},
            rawdoc! {"v": 2, "key": {"a": 1}, "name": "x"},
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "x", "background": false},
            rawdoc! {"v": 2, "key": {"a": 1}, "name": "x", "background": false},
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "x", "unique": 1, "sparse": 1.0, "hidden": true, "background": true},
            rawdoc! {"v": 2, "key": {"a": 1}, "name": "x", "background": true, "unique": true, "hidden": true, "sparse": true},
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "x", "partialFilterExpression": {"b": {"$gt": 5}}, "unique": true},
            rawdoc! {"v": 2, "key": {"a": 1}, "name": "x", "unique": true, "partialFilterExpression": {"b": {"$gt": 5}}},
        ),
        (
            rawdoc! {"key": {"$**": 1}, "name": "w", "wildcardProjection": {"a": 1}},
            rawdoc! {"v": 2, "key": {"$**": 1}, "name": "w", "wildcardProjection": {"a": 1}},
        ),
        (
            rawdoc! {"key": {"place": "2dsphere", "a": 1}, "name": "p"},
            rawdoc! {"v": 2, "key": {"place": "2dsphere", "a": 1}, "name": "p", "2dsphereIndexVersion": 3},
        ),
        (
            rawdoc! {"key": {"place": "2d"}, "name": "p", "bits": 20, "min": -1.5, "max": 1.5},
            rawdoc! {"v": 2, "key": {"place": "2d"}, "name": "p", "bits": 20, "min": -1.5, "max": 1.5},
        ),
        (
            rawdoc! {"key": {"a": "hashed", "b": 1}, "name": "h"},
            rawdoc! {"v": 2, "key": {"a": "hashed", "b": 1}, "name": "h"},
        ),
        (
            rawdoc! {"key": {"t": 1}, "name": "t_1", "expireAfterSeconds": 60.9},
            rawdoc! {"v": 2, "key": {"t": 1}, "name": "t_1", "expireAfterSeconds": 60},
        ),
        // A key with this name is an ordinary one.
        (
            rawdoc! {"key": {"expireAfterSeconds": 1, "a": 1}, "name": "x"},
            rawdoc! {"v": 2, "key": {"expireAfterSeconds": 1, "a": 1}, "name": "x"},
        ),
        (
            rawdoc! {"key": {"a.$id": 1}, "name": "x"},
            rawdoc! {"v": 2, "key": {"a.$id": 1}, "name": "x"},
        ),
        (
            rawdoc! {"key": {"_id": 1}, "name": "other"},
            rawdoc! {"v": 2, "key": {"_id": 1}, "name": "_id_"},
        ),
        (
            rawdoc! {"key": {"_id": "hashed"}, "name": "_id_hashed"},
            rawdoc! {"v": 2, "key": {"_id": "hashed"}, "name": "_id_hashed"},
        ),
    ];
    for (specification, expected) in cases {
        let definition = parse_plain(&specification).map_err(|error| error.message);
        let listed = definition.map(|definition| definition.to_document());
        assert_eq!(listed.as_ref(), Ok(&expected));
        let again = IndexDefinition::from_document(&expected).map(|definition| definition.to_document());
        assert_eq!(again.ok(), Some(expected));
    }
}

#[test]
fn bad_keys_are_refused() {
    let dollar = "Index key contains an illegal field name: field name starts with '$'.";
    let only = "Only numbers > 0, numbers < 0, and strings are allowed.";
    let of_type = |name: &str| format!("Values in v:2 index key pattern cannot be of type {name}. {only}");
    let (of_bool, of_object) = (of_type("bool"), of_type("object"));
    let cases = [
        (rawdoc! {}, "Index keys cannot be empty."),
        (rawdoc! {"": 1}, "Index keys cannot be an empty field."),
        (rawdoc! {"a..b": 1}, "Index keys cannot contain an empty field."),
        (rawdoc! {".a": 1}, "Index keys cannot contain an empty field."),
        (rawdoc! {"a.": 1}, "Index keys cannot contain an empty field."),
        (rawdoc! {"$a": 1}, dollar),
        (rawdoc! {"a.$b": 1}, dollar),
        (rawdoc! {"$id": 1}, dollar),
        (rawdoc! {"a": 0}, "Values in the index key pattern cannot be 0."),
        (rawdoc! {"a": -0.0}, "Values in the index key pattern cannot be 0."),
        (
            rawdoc! {"a": f64::NAN},
            "Values in the index key pattern cannot be NaN.",
        ),
        (rawdoc! {"a": true}, &of_bool),
        (rawdoc! {"a": {"b": 1}}, &of_object),
        (rawdoc! {"a": "foo"}, "Unknown index plugin 'foo'"),
        (
            rawdoc! {"a": ""},
            "Values in the index key pattern cannot be empty strings",
        ),
        (
            rawdoc! {"a": "hashed", "b": "text"},
            "Can't use more than one index plugin for a single index.",
        ),
        (
            rawdoc! {"$**": "wildcard"},
            "The key pattern value for an 'wildcard' index must be a non-zero number, not a string.",
        ),
        (rawdoc! {"$**": 1, "a": 1}, "wildcard indexes do not allow compounding"),
        (rawdoc! {"_fts": 1}, "Index key contains an illegal field name: '_fts'"),
        (rawdoc! {"a": "x".repeat(2048)}, "Index key pattern too large."),
    ];
    for (key, problem) in cases {
        let specification = with_key(key);
        let text = value::text::render_document(&specification);
        let expected = (67, format!("Error in specification {text} :: caused by :: {problem}"));
        assert_eq!(refusal(&specification), expected);
    }
}

#[test]
fn keys_have_a_number_of_fields() {
    let mut many = RawDocumentBuf::new();
    for index in 0..33 {
        append(&mut many, &format!("f{index}"), RawBsonRef::Int32(1));
    }
    assert_eq!(refusal(&with_key(many)), (13103, "too many compound keys".to_owned()));
    assert_eq!(
        refusal(&with_key(rawdoc! {"a": "hashed", "b": "hashed"})),
        (
            31303,
            "A maximum of one index field is allowed to be hashed but found 2 for 'key' { a: \"hashed\", b: \"hashed\" }"
                .to_owned()
        )
    );
    assert_eq!(refusal(&with_key(rawdoc! {"a": 1, "b": "2d"})).0, 16801);
    assert_eq!(refusal(&with_key(rawdoc! {"a": "2d", "b": "2d"})).0, 16800);
}

/// Checks errors in whose text `{}` is the specification and `{v}` the specification with its version.
fn check_refusals(cases: Vec<(RawDocumentBuf, i32, &str)>) {
    for (specification, code, problem) in cases {
        let mut versioned = specification.clone();
        if versioned.get("v").ok().flatten().is_none() {
            versioned.append(cstr!("v"), 2);
        }
        let expected = problem
            .replace("{}", &value::text::render_document(&specification))
            .replace("{v}", &value::text::render_document(&versioned));
        assert_eq!(refusal(&specification), (code, expected));
    }
}

#[test]
fn options_have_names_and_types() {
    check_refusals(vec![
        (
            rawdoc! {"name": "n"},
            9,
            "Error in specification {} :: caused by :: The 'key' field is a required property of an index specification",
        ),
        (
            rawdoc! {"key": {"a": 1}},
            9,
            "Error in specification {} :: caused by :: The 'name' field is a required property of an index specification",
        ),
        (
            rawdoc! {"key": 1, "name": "n"},
            14,
            "Error in specification {} :: caused by :: The field 'key' must be an object, but got int",
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": 5},
            14,
            "Error in specification {} :: caused by :: The field 'name' must be a string, but got int",
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "n", "nope": 1},
            197,
            "Error in specification {} :: caused by :: The field 'nope' is not valid for an index specification. Specification: {}",
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "n", "unique": "yes"},
            14,
            "Error in specification {} :: caused by :: The field 'unique has value unique: \"yes\", which is not convertible to bool",
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "n", "v": 3},
            67,
            "Error in specification {} :: caused by :: Invalid index specification {}; cannot create an index with v=3",
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "n", "v": "2"},
            14,
            "Error in specification {} :: caused by :: The field 'v' must be a number, but got string",
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "n", "collation": {}},
            2,
            "Error in specification {} :: caused by :: The field 'collation' cannot be an empty object.",
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "n", "collation": {"locale": "zz_nope"}},
            2,
            "failed to add collation information to index spec for index creation: {v} :: caused by :: \
             Field 'locale' is invalid in: { locale: \"zz_nope\" }",
        ),
        (
            rawdoc! {"key": {"a": "2d"}, "name": "n", "bits": 33},
            16803,
            "Error in specification {v} :: caused by :: bits in geo index must be between 1 and 32",
        ),
    ]);
}

#[test]
fn names_and_the_index_on_id_have_rules() {
    check_refusals(vec![
        (
            rawdoc! {"key": {"a": 1}, "name": ""},
            67,
            "Error in specification {v} :: caused by :: index name cannot be empty",
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "*"},
            2,
            "The index name '*' is not valid.",
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "_id_"},
            2,
            "The index name '_id_' is reserved for the _id index, which must have key pattern {_id: 1}, found key: { a: 1 }",
        ),
        (
            rawdoc! {"key": {"_id": -1}, "name": "n"},
            2,
            "The field 'key' for an _id index must be {_id: 1}, but got { _id: -1 }",
        ),
        (
            rawdoc! {"key": {"_id": 1}, "name": "n", "unique": true},
            197,
            "The field 'unique' is not valid for an _id index specification. Specification: {v}",
        ),
        (
            rawdoc! {"key": {"_id": 1}, "name": "n", "hidden": true},
            2,
            "can't hide _id index",
        ),
    ]);
}

#[test]
fn some_options_exclude_each_other() {
    check_refusals(vec![
        (
            rawdoc! {"key": {"a": 1}, "name": "n", "sparse": true, "partialFilterExpression": {"a": 1}},
            67,
            "Error in specification {v} :: caused by :: cannot mix \"partialFilterExpression\" and \"sparse\" options",
        ),
        (
            rawdoc! {"key": {"$**": 1}, "name": "n", "unique": true},
            67,
            "Error in specification {v} :: caused by :: Index type 'wildcard' does not support the 'unique' option",
        ),
        (
            rawdoc! {"key": {"$**": 1}, "name": "n", "sparse": true},
            67,
            "Error in specification {v} :: caused by :: Index type 'wildcard' does not support the 'sparse' option",
        ),
        (
            rawdoc! {"key": {"a": "hashed"}, "name": "n", "unique": true},
            67,
            "Error in specification {v} :: caused by :: Currently hashed indexes cannot guarantee uniqueness. Use a regular index.",
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "n", "weights": {"a": 1}},
            67,
            "Error in specification {} :: caused by :: Invalid index specification {}; the field 'weights' can only be \
             specified with text indexes",
        ),
        (
            rawdoc! {"key": {"a": 1}, "name": "n", "wildcardProjection": {"a": 1}},
            2,
            "Error in specification {} :: caused by :: The field 'wildcardProjection' is only allowed in 'wildcard' indexes",
        ),
        (
            rawdoc! {"key": {"a": "2dsphere"}, "name": "n", "unique": true},
            238,
            "Error in specification {v} :: caused by :: Index type '2dsphere' does not support the 'unique' option",
        ),
        (
            rawdoc! {"key": {"_id": 1}, "name": "n", "clustered": true, "unique": true},
            238,
            "Error in specification {} :: caused by :: the index option 'clustered' is not supported",
        ),
        (
            rawdoc! {"key": {"a": 1, "_ts": 1}, "name": "n", "unique": true},
            67,
            "Error in specification {v} :: caused by :: an index on '_ts' cannot be unique",
        ),
    ]);
}

#[test]
fn a_repeated_option_is_refused() {
    let mut specification = with_key(rawdoc! {"a": 1});
    specification.append(cstr!("name"), "other");
    assert_eq!(refusal(&specification).0, 40413);
    let mut key = rawdoc! {"a": 1};
    key.append(cstr!("a"), -1);
    let (code, message) = refusal(&with_key(key));
    assert_eq!(code, 2);
    assert!(
        message.ends_with("The field 'a' appears multiple times in the index key pattern { a: 1, a: -1 }"),
        "{message}"
    );
}

#[test]
fn the_collation_of_the_collection_is_inherited() {
    let collection = Collation::parse(&rawdoc! {"locale": "en", "strength": 2})
        .ok()
        .flatten();
    assert!(collection.is_some());
    let options = ParseOptions {
        default_collation: collection.as_ref(),
        ..ParseOptions::default()
    };
    let inherited = parse(&with_key(rawdoc! {"a": 1}), &options).ok();
    assert_eq!(inherited.and_then(|definition| definition.collation), collection);

    let simple = rawdoc! {"key": {"a": 1}, "name": "n", "collation": {"locale": "simple"}};
    let simple = parse(&simple, &options).ok();
    assert_eq!(simple.map(|definition| definition.collation), Some(None));

    let text = rawdoc! {"key": {"a": "text"}, "name": "n"};
    let error = parse(&text, &options).err();
    assert_eq!(error.map(|error| error.code.0), Some(67));

    let id = rawdoc! {"key": {"_id": 1}, "name": "n", "collation": {"locale": "de"}};
    let error = parse(&id, &ParseOptions::default()).err();
    assert_eq!(error.as_ref().map(|error| error.code.0), Some(2));
    let message = error.map(|error| error.message).unwrap_or_default();
    assert!(
        message.ends_with("collection collation: { locale: \"simple\" }"),
        "{message}"
    );
}

#[test]
fn a_collation_is_stored_in_full() {
    let own = rawdoc! {"key": {"a": 1}, "name": "n", "collation": {"locale": "en", "strength": 2}};
    let collation = Collation::parse(&rawdoc! {"locale": "en", "strength": 2})
        .ok()
        .flatten();
    let listed = parse_plain(&own)
        .map(|definition| definition.to_document())
        .expect("an index");
    let read = IndexDefinition::from_document(&listed).expect("its stored form");
    assert_eq!(read.collation, collation);
    assert_eq!(read.to_document(), listed);
}

#[test]
fn the_index_on_id_takes_the_collation_of_the_collection() {
    let collation = Collation::parse(&rawdoc! {"locale": "en"}).ok().flatten();
    let index = IndexDefinition::id_index(collation.as_ref());
    let index = index.map(|index| (index.name().to_owned(), index.enforces_unique(), index.collation));
    assert_eq!(index.ok(), Some(("_id_".to_owned(), true, collation)));
    let plain = IndexDefinition::id_index(None).map(|index| index.to_document());
    assert_eq!(plain.ok(), Some(rawdoc! {"v": 2, "key": {"_id": 1}, "name": "_id_"}));
}

#[test]
fn no_specification_panics() {
    let values = [
        RawBson::Null,
        RawBson::Undefined,
        RawBson::String(String::new()),
        RawBson::Int64(i64::MIN),
        RawBson::Double(f64::NEG_INFINITY),
        RawBson::Document(rawdoc! {}),
        RawBson::Document(rawdoc! {"$": {"$": 1}}),
        rawbson!([1]),
        RawBson::MaxKey,
    ];
    let names = [
        "key",
        "name",
        "weights",
        "v",
        "bits",
        "expireAfterSeconds",
        "partialFilterExpression",
        "collation",
    ];
    let keys = [
        rawdoc! {"a": 1},
        rawdoc! {"a": "text"},
        rawdoc! {"$**": 1},
        rawdoc! {"a": "2d"},
        rawdoc! {"_fts": "text"},
    ];
    for key in keys {
        for name in names {
            for value in &values {
                let mut specification = with_key(key.clone());
                append(&mut specification, name, value.as_raw_bson_ref());
                let _ = parse_plain(&specification);
                let mut bare = RawDocumentBuf::new();
                append(&mut bare, name, value.as_raw_bson_ref());
                let _ = parse_plain(&bare);
                let _ = IndexDefinition::from_document(&specification);
            }
        }
    }
}
