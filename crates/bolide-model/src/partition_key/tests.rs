#![expect(clippy::needless_pass_by_value, reason = "tests read better with json!(…) in place")]

use std::hash::{BuildHasher, RandomState};

use proptest::prelude::*;

use super::*;

fn read(value: Value) -> Result<PartitionKeyDefinition> {
    PartitionKeyDefinition::from_json(&value)
}

fn hierarchy() -> PartitionKeyDefinition {
    read(json!({"paths": ["/state", "/city"], "kind": "MultiHash", "version": 2})).unwrap()
}

fn key(header: &str) -> PartitionKey {
    PartitionKey::from_header(header).unwrap_or_else(|error| panic!("{header}: {error}"))
}

#[test]
fn definition_is_echoed_as_exactly_three_members() {
    let sent = json!({"paths": ["/'a b'/c"], "kind": "Hash", "version": 2});
    assert_eq!(read(sent.clone()).unwrap().to_json(), sent);
    let sent = json!({"paths": ["/pk"], "kind": "hash", "version": 2.0, "systemKey": true});
    assert_eq!(
        read(sent).unwrap().to_json(),
        json!({"paths": ["/pk"], "kind": "Hash", "version": 2})
    );
}

#[test]
fn a_system_key_reads_back_and_its_empty_key_means_the_items_without_one() {
    let system = PartitionKeyDefinition::system();
    assert_eq!(system.to_json()["systemKey"], json!(true));
    assert_eq!(read(system.to_json()).unwrap(), system);
    assert_eq!(system.meant_by(key("[]")), Some(key("[{}]")));
    assert_eq!(system.meant_by(key(r#"["a"]"#)), Some(key(r#"["a"]"#)));
    assert_eq!(PartitionKey::extract(&system, &json!({"id": "a"})), key("[{}]"));
    let user = read(json!({"paths": ["/_partitionKey"], "kind": "Hash"})).unwrap();
    assert_eq!((user.is_system, user.meant_by(key("[]"))), (false, None));
}

#[test]
fn absent_version_is_1_for_hash_and_2_for_a_hierarchy() {
    let version = |value| read(value).unwrap().version;
    assert_eq!(version(json!({"paths": ["/pk"]})), PartitionKeyVersion::V1);
    assert_eq!(
        version(json!({"paths": ["/pk"], "kind": "Hash", "version": null})),
        PartitionKeyVersion::V1
    );
    assert_eq!(
        version(json!({"paths": ["/pk"], "kind": "MultiHash"})),
        PartitionKeyVersion::V2
    );
}

#[test]
fn a_version_1_that_was_not_given_is_not_shown() {
    let written = |sent| read(sent).unwrap().to_json();
    assert_eq!(
        written(json!({"paths": ["/pk"]})),
        json!({"paths": ["/pk"], "kind": "Hash"})
    );
    let given = json!({"paths": ["/pk"], "kind": "Hash", "version": 1});
    assert_eq!(written(given.clone()), given);
    assert_eq!(
        written(json!({"paths": ["/pk"], "kind": "MultiHash"})),
        json!({"paths": ["/pk"], "kind": "MultiHash", "version": 2})
    );
}

#[test]
fn new_definitions_have_blanks_in_quotes_only() {
    for (path, is_valid) in [
        ("/a/'b c'", true),
        ("/id", true),
        ("/id ds", false),
        ("/'a b'/c d", false),
    ] {
        let definition = read(json!({"paths": [path], "version": 2})).unwrap();
        let checked = definition.check_new();
        assert_eq!(checked.is_ok(), is_valid, "{path}");
        if let Err(error) = checked {
            assert_eq!(error.kind, ErrorKind::BadRequest);
            assert!(
                error.to_string().contains("must contain only valid characters"),
                "{error}"
            );
        }
    }
}

#[test]
fn version_may_be_named_as_the_java_sdk_does() {
    for (named, expected) in [("V1", PartitionKeyVersion::V1), ("V2", PartitionKeyVersion::V2)] {
        let definition = read(json!({"paths": ["/pk"], "kind": "Hash", "version": named})).unwrap();
        assert_eq!(definition.version, expected);
        assert_eq!(definition.to_json()["version"], json!(expected.number()));
    }
}

#[test]
fn missing_definition_has_a_kind_of_its_own() {
    assert_eq!(read(Value::Null).unwrap_err().kind, ErrorKind::PartitionKeyMissing);
}

#[test]
fn too_many_paths_are_refused_in_the_words_of_the_service() {
    for (kind, paths) in [("MultiHash", 4), ("Hash", 4), ("Hash", 2), ("Range", 2)] {
        let paths: Vec<String> = (0..paths).map(|n| format!("/p{n}")).collect();
        let error = read(json!({"paths": paths, "kind": kind, "version": 2})).unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadRequest);
        assert!(error.to_string().contains("Too many partition key paths"), "{error}");
    }
}

#[test]
fn malformed_definitions_are_refused() {
    let cases = [
        json!("pk"),
        json!(["/pk"]),
        json!({}),
        json!({"paths": "/pk"}),
        json!({"paths": []}),
        json!({"paths": [1]}),
        json!({"paths": ["pk"]}),
        json!({"paths": ["/*"]}),
        json!({"paths": ["/a/"]}),
        json!({"paths": ["/a/[]/b"]}),
        json!({"paths": ["/_ts"]}),
        json!({"paths": ["/pk"], "kind": "Hashed"}),
        json!({"paths": ["/pk"], "kind": 1}),
        json!({"paths": ["/pk"], "version": 3}),
        json!({"paths": ["/pk"], "version": "2"}),
        json!({"paths": ["/pk"], "version": "V3"}),
        json!({"paths": ["/pk"], "kind": "MultiHash", "version": 1}),
        json!({"paths": ["/a", "/\"a\""], "kind": "MultiHash", "version": 2}),
    ];
    for case in cases {
        assert_eq!(
            read(case.clone()).expect_err(&case.to_string()).kind,
            ErrorKind::BadRequest
        );
    }
}

#[test]
fn header_forms_are_read() {
    assert_eq!(key(r#"["x"]"#), PartitionKey(vec![Component::String("x".into())]));
    assert_eq!(
        key(r#" [ "\u00e9" , 1.5 ] "#),
        PartitionKey(vec![Component::String("é".into()), Component::Number(1.5)])
    );
    assert_eq!(
        key("[true,null]"),
        PartitionKey(vec![Component::Bool(true), Component::Null])
    );
    assert_eq!(key("[{}]"), PartitionKey(vec![Component::Undefined]));
    assert!(key("[]").is_empty());
}

#[test]
fn other_headers_are_refused() {
    for header in [
        "",
        "x",
        "\"x\"",
        "{}",
        "null",
        "[",
        "[1]]",
        "[[1]]",
        r#"[{"a":1}]"#,
        "[1e400]",
        "[NaN]",
        "['a']",
    ] {
        let error = PartitionKey::from_header(header).expect_err(header);
        assert_eq!(error.kind, ErrorKind::BadRequest);
        assert!(error.to_string().starts_with("Partition key "), "{error}");
    }
}

#[test]
fn header_is_written_in_ascii() {
    assert_eq!(
        key(r#"["é😀",1.0,{},null,false]"#).to_header_json(),
        r#"["\u00e9\ud83d\ude00",1,{},null,false]"#
    );
}

#[test]
fn equal_numbers_are_one_key() {
    let hasher = RandomState::new();
    let negative_zero = PartitionKey(vec![Component::Number(-0.0)]);
    for (a, b) in [
        (key("[1]"), key("[1.0]")),
        (key("[0]"), negative_zero),
        (key("[9007199254740993]"), key("[9007199254740992]")),
    ] {
        assert_eq!(a, b);
        assert_eq!(hasher.hash_one(&a), hasher.hash_one(&b));
    }
    assert_ne!(key("[1]"), key(r#"["1"]"#));
    assert_ne!(key("[null]"), key("[{}]"));
}

#[test]
fn key_of_a_document_is_undefined_without_a_scalar_at_the_path() {
    let extract = |document| PartitionKey::extract(&hierarchy(), &document).to_header_json();
    assert_eq!(extract(json!({"state": "WA", "city": null})), r#"["WA",null]"#);
    assert_eq!(extract(json!({"city": 1})), r#"[{},1]"#);
    assert_eq!(extract(json!({"state": {"a": 1}, "city": ["x"]})), r#"[{},{}]"#);
    assert_eq!(extract(json!([])), r#"[{},{}]"#);
}

#[test]
fn whole_keys_have_a_component_for_each_path() {
    assert_eq!(hierarchy().check_full(&key(r#"["WA",{}]"#)), Ok(()));
    for header in ["[]", r#"["WA"]"#, "[1,2,3]"] {
        let error = hierarchy().check_full(&key(header)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::PartitionKeyMismatch);
    }
}

#[test]
fn only_a_hierarchy_has_prefixes() {
    assert_eq!(hierarchy().check_prefix(&key(r#"["WA"]"#)), Ok(()));
    assert_eq!(hierarchy().check_prefix(&key("[1,2]")), Ok(()));
    assert!(hierarchy().check_prefix(&key("[]")).is_err());
    assert!(hierarchy().check_prefix(&key("[1,2,3]")).is_err());
    assert!(
        read(json!({"paths": ["/pk"]}))
            .unwrap()
            .check_prefix(&key("[]"))
            .is_err()
    );
}

#[test]
fn keys_end_at_one_size_under_both_versions() {
    let longest = 2048;
    for version in [1, 2] {
        let definition = read(json!({"paths": ["/pk"], "version": version})).unwrap();
        let of_length = |length: usize| PartitionKey(vec![Component::String("a".repeat(length))]);
        assert_eq!(definition.check_full(&of_length(longest)), Ok(()));
        let error = definition.check_full(&of_length(longest + 1)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadRequest);
        assert!(error.to_string().contains(&longest.to_string()), "{error}");
    }
}

proptest! {
    #[test]
    fn any_header_is_read_or_refused(text in any::<String>()) {
        if let Ok(key) = PartitionKey::from_header(&text) {
            prop_assert_eq!(PartitionKey::from_header(&key.to_header_json()).unwrap(), key);
        }
    }

    #[test]
    fn headers_read_back(texts in prop::collection::vec(any::<String>(), 0..3), numbers in prop::collection::vec(any::<i64>(), 0..3)) {
        let strings = texts.into_iter().map(Component::String);
        let numbers = numbers.into_iter().map(|number| Component::Number(number as f64));
        let key = PartitionKey(strings.chain(numbers).collect());
        let header = key.to_header_json();
        prop_assert!(header.bytes().all(|byte| (0x20..0x7f).contains(&byte)));
        prop_assert_eq!(PartitionKey::from_header(&header).unwrap(), key);
    }
}
