use bson::raw::RawBson;
use bson::{DateTime, Decimal128, Timestamp, oid::ObjectId, rawbson, rawdoc};

use super::super::definition::append;
use super::super::specification::ParseOptions;
use super::*;

const TS_ONLY: &str = "The 'expireAfterSeconds' option is supported on '_ts' field only.";

fn parse(key: RawDocumentBuf, seconds: RawBson, mode: TtlMode) -> Result<IndexDefinition, (i32, String)> {
    let specification = rawdoc! {"key": key, "name": "n", "expireAfterSeconds": seconds};
    let options = ParseOptions {
        ttl_mode: mode,
        default_collation: None,
    };
    IndexDefinition::parse(&specification, &options).map_err(|error| (error.code.0, error.message))
}

fn decimal(text: &str) -> RawBson {
    RawBson::Decimal128(text.parse::<Decimal128>().expect("a decimal"))
}

fn date(millis: i64) -> RawBson {
    RawBson::DateTime(DateTime::from_millis(millis))
}

#[test]
fn seconds_of_a_date_rule_are_truncated_to_int32() {
    for (given, stored) in [
        (RawBson::Int32(0), 0),
        (RawBson::Int32(60), 60),
        (RawBson::Int64(60), 60),
        (RawBson::Double(60.9), 60),
        (RawBson::Double(10000.7), 10000),
        (RawBson::Double(-0.5), 0),
        (decimal("60"), 60),
        (decimal("60.9"), 60),
        (RawBson::Int64(2_147_483_647), 2_147_483_647),
        (RawBson::Double(2_147_483_647.5), 2_147_483_647),
    ] {
        let definition = parse(rawdoc! {"t": 1}, given.clone(), TtlMode::Mongodb);
        let seconds = definition.map(|definition| definition.expire_after_seconds());
        assert_eq!(seconds, Ok(Some(stored)), "{given:?}");
    }
}

#[test]
fn bad_seconds_of_a_date_rule_are_refused() {
    let range = "TTL index 'expireAfterSeconds' must be within the range of a 32-bit integer";
    let not_numeric = "TTL index 'expireAfterSeconds' option must be numeric, but received a type of ";
    let of_type = |name: &str| format!("{not_numeric}'{name}'");
    for (given, problem) in [
        (RawBson::Int32(-1), NEGATIVE.to_owned()),
        (RawBson::Double(-1.5), NEGATIVE.to_owned()),
        (RawBson::Int64(2_147_483_648), range.to_owned()),
        (RawBson::Double(f64::MAX), range.to_owned()),
        (RawBson::Double(f64::INFINITY), range.to_owned()),
        (RawBson::Double(f64::MIN), range.to_owned()),
        (decimal("1E+40"), range.to_owned()),
        (
            RawBson::Double(f64::NAN),
            "TTL index 'expireAfterSeconds' option must not be NaN".to_owned(),
        ),
        (
            decimal("NaN"),
            "TTL index 'expireAfterSeconds' option must not be NaN".to_owned(),
        ),
        (RawBson::String("x".to_owned()), of_type("string")),
        (RawBson::Null, of_type("null")),
        (RawBson::Boolean(true), of_type("bool")),
        (RawBson::Document(rawdoc! {}), of_type("object")),
    ] {
        let specification = rawdoc! {"key": {"t": 1}, "name": "n", "expireAfterSeconds": given.clone()};
        let text = value::text::render_document(&specification);
        let expected = (67, format!(". Index spec: {text} :: caused by :: {problem}"));
        let error = parse(rawdoc! {"t": 1}, given, TtlMode::Mongodb).err();
        assert_eq!(error, Some(expected));
    }
}

#[test]
fn only_a_single_ordered_field_can_expire() {
    let text = "{ key: { a: 1, b: 1 }, name: \"n\", expireAfterSeconds: 60 }";
    let of_kind = |kind: &str| format!("Index type '{kind}' cannot be a TTL index");
    for (key, code, message) in [
        (
            rawdoc! {"a": 1, "b": 1},
            67,
            format!("TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: {text}"),
        ),
        (rawdoc! {"$**": 1}, 67, of_kind("wildcard")),
        (rawdoc! {"a.$**": 1}, 67, of_kind("wildcard")),
        (rawdoc! {"a": "hashed"}, 67, of_kind("hashed")),
        (rawdoc! {"a": "2dsphere"}, 67, of_kind("2dsphere")),
        (rawdoc! {"a": "text"}, 67, of_kind("text")),
        (
            rawdoc! {"_id": 1},
            197,
            "The field 'expireAfterSeconds' is not valid for an _id index specification. Specification: \
             { key: { _id: 1 }, name: \"n\", expireAfterSeconds: 60, v: 2 }"
                .to_owned(),
        ),
    ] {
        let error = parse(key, RawBson::Int32(60), TtlMode::Mongodb).err();
        assert_eq!(error, Some((code, message)));
    }
}

#[test]
fn the_core_rule_takes_minus_one_and_whole_numbers() {
    for key in [rawdoc! {"_ts": 1}, rawdoc! {"_ts": -1}] {
        for (given, policy) in [
            (RawBson::Int32(-1), Policy::OwnOnly),
            (RawBson::Double(-1.0), Policy::OwnOnly),
            (RawBson::Int32(10), Policy::After(10)),
            (RawBson::Int64(10), Policy::After(10)),
            (RawBson::Double(10.0), Policy::After(10)),
            (RawBson::Int64(2_147_483_647), Policy::After(2_147_483_647)),
        ] {
            for mode in [TtlMode::Mongodb, TtlMode::CosmosTsOnly, TtlMode::CosmosCustomPath] {
                let rule = parse(key.clone(), given.clone(), mode).map(|definition| definition.ttl_rule());
                assert_eq!(rule, Ok(Some(TtlRule::Core(policy))), "{given:?}");
            }
        }
        for given in [
            RawBson::Int32(0),
            RawBson::Int32(-2),
            RawBson::Double(20.5),
            RawBson::Int64(2_147_483_648),
            RawBson::String("10".to_owned()),
            RawBson::Null,
            RawBson::Double(f64::NAN),
            decimal("10"),
        ] {
            let error = parse(key.clone(), given.clone(), TtlMode::Mongodb).err();
            assert_eq!(error.map(|(code, _)| code), Some(67), "{given:?}");
        }
    }
    let partial =
        rawdoc! {"key": {"_ts": 1}, "name": "n", "expireAfterSeconds": 10, "partialFilterExpression": {"a": 1}};
    let error = IndexDefinition::parse(&partial, &ParseOptions::default()).err();
    assert_eq!(error.map(|error| error.code.0), Some(67));
    let compound = parse(rawdoc! {"_ts": 1, "a": 1}, RawBson::Int32(10), TtlMode::Mongodb).err();
    assert_eq!(compound.map(|(code, _)| code), Some(67));
}

#[test]
fn a_mode_allows_only_ts() {
    let error = parse(rawdoc! {"t": 1}, RawBson::Int32(10), TtlMode::CosmosTsOnly).err();
    assert_eq!(error, Some((2, TS_ONLY.to_owned())));
    // A compound key is wrong in every mode.
    let error = parse(rawdoc! {"t": 1, "u": 1}, RawBson::Int32(10), TtlMode::CosmosTsOnly).err();
    assert_eq!(error.map(|(code, _)| code), Some(67));
}

#[test]
fn the_earliest_date_of_the_field_counts() {
    let timestamp = Timestamp { time: 1, increment: 1 };
    let cases: Vec<(&str, RawDocumentBuf, Option<i64>)> = vec![
        ("t", rawdoc! {"t": date(5)}, Some(5)),
        ("t", rawdoc! {"t": date(-5)}, Some(-5)),
        ("t", rawdoc! {"t": date(i64::MIN)}, Some(i64::MIN)),
        ("t", rawdoc! {"t": date(i64::MAX)}, Some(i64::MAX)),
        ("t", rawdoc! {"t": [date(7), date(3), date(9)]}, Some(3)),
        ("t", rawdoc! {"t": [true, "x", date(9), 1]}, Some(9)),
        ("t", rawdoc! {"t": [[date(1)], date(9)]}, Some(9)),
        ("t", rawdoc! {"t": [[date(1)]]}, None),
        ("t", rawdoc! {"t": []}, None),
        ("t", rawdoc! {}, None),
        ("t", rawdoc! {"t": RawBson::Null}, None),
        ("t", rawdoc! {"t": true}, None),
        ("t", rawdoc! {"t": 3}, None),
        ("t", rawdoc! {"t": 3_i64}, None),
        ("t", rawdoc! {"t": 3.0}, None),
        ("t", rawdoc! {"t": decimal("3")}, None),
        ("t", rawdoc! {"t": "2020-01-01T00:00:00Z"}, None),
        ("t", rawdoc! {"t": timestamp}, None),
        ("t", rawdoc! {"t": ObjectId::from_bytes([1; 12])}, None),
        ("t", rawdoc! {"t": {"d": date(1)}}, None),
        ("a.b", rawdoc! {"a": {"b": date(4)}}, Some(4)),
        (
            "a.b",
            rawdoc! {"a": [{"b": date(8)}, {"b": date(6)}, {"c": date(1)}]},
            Some(6),
        ),
        (
            "a.b",
            rawdoc! {"a": [{"b": [date(8), date(2)]}, {"b": date(6)}]},
            Some(2),
        ),
        ("a.0", rawdoc! {"a": [date(8), date(2)]}, Some(8)),
    ];
    for (path, document, expected) in cases {
        let mut key = RawDocumentBuf::new();
        append(&mut key, path, RawBsonRef::Int32(1));
        for mode in [TtlMode::Mongodb, TtlMode::CosmosTsOnly] {
            let definition = parse(key.clone(), RawBson::Int32(60), TtlMode::Mongodb).expect("a TTL index");
            let found = date_rule(&definition, &document, mode).map(|date| date.map(|date| date.0));
            let text = value::text::render_document(&document);
            assert_eq!(found.ok(), Some(expected), "{path} {text}");
        }
    }
}

#[test]
fn numbers_count_as_milliseconds_on_a_custom_path() {
    let definition = parse(rawdoc! {"t": 1}, RawBson::Int32(0), TtlMode::CosmosCustomPath).expect("a TTL index");
    for (value, expected) in [
        (date(5), Some(5)),
        (RawBson::Int32(7), Some(7)),
        (RawBson::Int64(1_700_000_000_000), Some(1_700_000_000_000)),
        (RawBson::Double(7.9), Some(7)),
        (RawBson::Double(-7.1), Some(-8)),
        (RawBson::Double(f64::NAN), None),
        (RawBson::Double(f64::INFINITY), None),
        (decimal("7"), None),
        (RawBson::String("7".to_owned()), None),
        (rawbson!([9, "x", 4.0]), Some(4)),
    ] {
        let document = rawdoc! {"t": value.clone()};
        let found = date_rule(&definition, &document, TtlMode::CosmosCustomPath).map(|date| date.map(|date| date.0));
        assert_eq!(found.ok(), Some(expected), "{value:?}");
    }
}

#[test]
fn a_partial_index_expires_only_what_it_has() {
    let specification = rawdoc! {"key": {"x": 1}, "name": "x_1", "expireAfterSeconds": 0,
    "partialFilterExpression": {"z": {"$exists": true}}};
    let definition = IndexDefinition::parse(&specification, &ParseOptions::default()).expect("a TTL index");
    for (document, expected) in [
        (rawdoc! {"x": date(5), "z": 2}, Some(5)),
        (rawdoc! {"x": date(5)}, None),
        (rawdoc! {"x": date(5), "z": RawBson::Null}, Some(5)),
    ] {
        let found = date_rule(&definition, &document, TtlMode::Mongodb).map(|date| date.map(|date| date.0));
        assert_eq!(found.ok(), Some(expected));
    }
}

#[test]
fn other_indexes_make_no_date_rule() {
    let plain = rawdoc! {"key": {"t": 1}, "name": "n"};
    let plain = IndexDefinition::parse(&plain, &ParseOptions::default()).expect("an index");
    let core = parse(rawdoc! {"_ts": 1}, RawBson::Int32(5), TtlMode::Mongodb).expect("a TTL index");
    let document = rawdoc! {"t": date(1), "_ts": date(1)};
    for definition in [plain, core] {
        assert_eq!(date_rule(&definition, &document, TtlMode::Mongodb).ok(), Some(None));
    }
}

#[test]
fn the_ttl_of_a_document_is_a_whole_number_at_its_root() {
    for (document, expected) in [
        (rawdoc! {"ttl": 20}, Own::After(20)),
        (rawdoc! {"ttl": 20_i64}, Own::After(20)),
        (rawdoc! {"ttl": 20.0}, Own::After(20)),
        (rawdoc! {"ttl": 1}, Own::After(1)),
        (rawdoc! {"ttl": 2_147_483_647_i64}, Own::After(2_147_483_647)),
        (rawdoc! {"ttl": 2_147_483_647.0}, Own::After(2_147_483_647)),
        (rawdoc! {"ttl": -1}, Own::Never),
        (rawdoc! {"ttl": -1_i64}, Own::Never),
        (rawdoc! {"ttl": -1.0}, Own::Never),
        (rawdoc! {"ttl": 0}, Own::Absent),
        (rawdoc! {"ttl": -2}, Own::Absent),
        (rawdoc! {"ttl": 20.5}, Own::Absent),
        (rawdoc! {"ttl": 2_147_483_648_i64}, Own::Absent),
        (rawdoc! {"ttl": 2_147_483_649_i64}, Own::Absent),
        (rawdoc! {"ttl": i64::MIN}, Own::Absent),
        (rawdoc! {"ttl": f64::NAN}, Own::Absent),
        (rawdoc! {"ttl": f64::INFINITY}, Own::Absent),
        (rawdoc! {"ttl": decimal("20")}, Own::Absent),
        (rawdoc! {"ttl": "20"}, Own::Absent),
        (rawdoc! {"ttl": true}, Own::Absent),
        (rawdoc! {"ttl": RawBson::Null}, Own::Absent),
        (rawdoc! {"ttl": date(20)}, Own::Absent),
        (rawdoc! {"ttl": [20]}, Own::Absent),
        (rawdoc! {"ttl": {"ttl": 20}}, Own::Absent),
        (rawdoc! {"TTL": 20, "a": {"ttl": 20}}, Own::Absent),
        (rawdoc! {}, Own::Absent),
    ] {
        assert_eq!(
            own_ttl(&document),
            expected,
            "{}",
            value::text::render_document(&document)
        );
    }
}

#[test]
fn the_system_property_of_clients_is_dropped() {
    let document = rawdoc! {"_id": 1, "_ts": 5, "a": {"_ts": 6}, "_ts2": 7};
    let stripped = rawdoc! {"_id": 1, "a": {"_ts": 6}, "_ts2": 7};
    assert_eq!(strip_ts(&document).into_owned(), stripped);
    let mut twice = rawdoc! {"_ts": 5, "a": 1};
    twice.append(bson::raw::cstr!("_ts"), "x");
    assert_eq!(strip_ts(&twice).into_owned(), rawdoc! {"a": 1});
    let plain = rawdoc! {"a": 1};
    assert!(matches!(strip_ts(&plain), Cow::Borrowed(_)));
}
