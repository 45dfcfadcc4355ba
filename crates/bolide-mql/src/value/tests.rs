use std::cmp::Ordering;

use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, RawBson, RawDocumentBuf, Timestamp, bson, doc, rawdoc};
use proptest::prelude::*;

use super::number::{Decimal, Number, whole};
use super::types::{TypeSet, code, name};
use super::{DEPTH_LIMIT, compare, equal, is_truthy, key, order, text, validate};

fn raw(value: impl Into<Bson>) -> RawBson {
    RawBson::try_from(value.into()).unwrap()
}

fn decimal(text: &str) -> RawBson {
    RawBson::Decimal128(text.parse().unwrap())
}

fn regex(pattern: &str, options: &str) -> RawBson {
    raw(bson::Regex {
        pattern: pattern.try_into().unwrap(),
        options: options.try_into().unwrap(),
    })
}

/// Values from the least to the largest, each line by the reference (`mongo.md §9`).
fn ascending() -> Vec<RawBson> {
    vec![
        RawBson::MinKey,
        RawBson::Undefined,
        RawBson::Null,
        raw(f64::NAN),
        decimal("-Infinity"),
        raw(-1.5),
        raw(0),
        decimal("0.1"),
        raw(0.1),
        raw(1_i64),
        raw(9_007_199_254_740_992_i64),
        raw(9_007_199_254_740_993_i64),
        decimal("1E+400"),
        raw(f64::INFINITY),
        raw(""),
        raw("A"),
        raw("a"),
        raw("ä"),
        raw(doc! {}),
        // The type is compared before the name.
        raw(doc! {"b": 1}),
        raw(doc! {"a": "x"}),
        raw(doc! {"a": "x", "b": 1}),
        raw(bson!([])),
        raw(bson!([1])),
        raw(bson!([1, 2])),
        raw(bson!([2])),
        raw(Binary {
            subtype: BinarySubtype::Uuid,
            bytes: vec![9],
        }),
        raw(Binary {
            subtype: BinarySubtype::Generic,
            bytes: vec![1, 1],
        }),
        raw(Binary {
            subtype: BinarySubtype::Uuid,
            bytes: vec![0, 0],
        }),
        raw(ObjectId::from_bytes([1; 12])),
        raw(false),
        raw(true),
        raw(DateTime::from_millis(-1)),
        raw(DateTime::from_millis(0)),
        raw(Timestamp { time: 1, increment: 9 }),
        raw(Timestamp {
            time: u32::MAX,
            increment: 0,
        }),
        regex("a", ""),
        regex("a", "i"),
        regex("b", ""),
        RawBson::JavaScriptCode("a".to_owned()),
        raw(bson::JavaScriptCodeWithScope {
            code: "a".to_owned(),
            scope: doc! {"a": 1},
        }),
        RawBson::MaxKey,
    ]
}

#[test]
fn values_have_the_order_of_the_reference() {
    let values = ascending();
    for (i, a) in values.iter().enumerate() {
        for (j, b) in values.iter().enumerate() {
            let (a, b) = (a.as_raw_bson_ref(), b.as_raw_bson_ref());
            assert_eq!(compare(a, b), i.cmp(&j), "{a:?} {b:?}");
            assert_eq!(key::of(a, None).cmp(&key::of(b, None)), i.cmp(&j), "{a:?} {b:?}");
        }
    }
}

#[test]
fn equal_values_of_several_types_are_equal_and_have_one_key() {
    let groups = [
        vec![raw(1), raw(1_i64), raw(1.0), decimal("1.00"), decimal("100E-2")],
        vec![raw(0), raw(-0.0), decimal("-0E+10")],
        vec![raw(f64::NAN), raw(-f64::NAN), decimal("NaN")],
        vec![raw(f64::INFINITY), decimal("Infinity")],
        vec![raw("a"), RawBson::Symbol("a".to_owned())],
        vec![raw(doc! {"a": 1}), raw(doc! {"a": 1.0})],
        vec![raw(bson!([1])), raw(bson!([1_i64]))],
        vec![
            raw(9_223_372_036_854_774_784_i64),
            raw(9_223_372_036_854_774_784.0),
            decimal("9223372036854774784"),
        ],
    ];
    for group in groups {
        for (a, b) in group.iter().zip(&group[1..]) {
            let (a, b) = (a.as_raw_bson_ref(), b.as_raw_bson_ref());
            assert!(equal(a, b), "{a:?} {b:?}");
            assert_eq!(key::of(a, None), key::of(b, None), "{a:?} {b:?}");
        }
    }
}

#[test]
fn truth_is_false_for_false_zero_null_and_undefined() {
    for value in [
        raw(false),
        raw(0),
        raw(0_i64),
        raw(-0.0),
        decimal("0E+5"),
        RawBson::Null,
        RawBson::Undefined,
    ] {
        assert!(!is_truthy(value.as_raw_bson_ref()), "{value:?}");
    }
    for value in [
        raw(true),
        raw(-1),
        raw(f64::NAN),
        raw(""),
        raw(doc! {}),
        raw(bson!([])),
        RawBson::MinKey,
    ] {
        assert!(is_truthy(value.as_raw_bson_ref()), "{value:?}");
    }
}

#[test]
fn types_have_names_and_codes() {
    let cases = [
        (raw(1.5), "double", 1),
        (raw("a"), "string", 2),
        (raw(doc! {}), "object", 3),
        (raw(bson!([])), "array", 4),
        (raw(ObjectId::from_bytes([0; 12])), "objectId", 7),
        (raw(true), "bool", 8),
        (RawBson::Null, "null", 10),
        (raw(1), "int", 16),
        (raw(1_i64), "long", 18),
        (decimal("1"), "decimal", 19),
        (RawBson::MinKey, "minKey", -1),
        (RawBson::MaxKey, "maxKey", 127),
    ];
    for (value, expected, number) in cases {
        assert_eq!(
            (name(value.as_raw_bson_ref()), code(value.as_raw_bson_ref())),
            (expected, number)
        );
    }
}

#[test]
fn type_sets_take_codes_aliases_and_arrays() {
    let parse = |operand: Bson| TypeSet::parse(raw(operand).as_raw_bson_ref());
    let numbers = parse(bson!("number")).unwrap();
    assert!(numbers.matches(raw(1).as_raw_bson_ref()) && numbers.matches(decimal("1").as_raw_bson_ref()));
    assert!(!numbers.matches(raw("1").as_raw_bson_ref()));
    let mixed = parse(bson!([2, "bool", -1.0])).unwrap();
    for value in [raw("x"), raw(true), RawBson::MinKey] {
        assert!(mixed.matches(value.as_raw_bson_ref()));
    }
    let errors = [
        (bson!("text"), 2, "Unknown type name alias: text"),
        (
            bson!(0),
            2,
            "Invalid numerical type code: 0. Instead use {$exists:false}.",
        ),
        (bson!(20), 2, "Invalid numerical type code: 20"),
        (bson!(1.5), 2, "Invalid numerical type code: 1.5"),
        (bson!(true), 14, "type must be represented as a number or a string"),
        (bson!([]), 9, "$type must match at least one type"),
    ];
    for (operand, number, message) in errors {
        let error = parse(operand).unwrap_err();
        assert_eq!((error.code.0, error.message.as_str()), (number, message));
    }
}

fn shown(number: Number) -> String {
    format!("{:?}", RawBson::from(number))
}

#[test]
fn arithmetic_widens_types() {
    let (int, long, double) = (Number::Int32, Number::Int64, Number::Double);
    let exact = |text: &str| Number::Decimal(Decimal::parse(text).unwrap());
    let cases = [
        (int(1).add(int(2)), int(3)),
        (int(i32::MAX).add(int(1)), long(2_147_483_648)),
        (int(1).add(long(2)), long(3)),
        (long(i64::MAX).add(int(1)), double(9_223_372_036_854_775_808.0)),
        (int(1).sub(double(0.5)), double(0.5)),
        (int(i32::MIN).mul(int(-1)), long(2_147_483_648)),
        (long(i64::MIN).mul(int(-1)), double(9_223_372_036_854_775_808.0)),
        (exact("0.10").add(int(1)), exact("1.10")),
        (exact("1").add(double(2.5)), exact("3.50000000000000")),
        (int(7).div(int(2)).unwrap(), double(3.5)),
        (int(1).div(exact("4")).unwrap(), exact("0.25")),
        (int(-7).rem(int(3)).unwrap(), int(-1)),
        (long(i64::MIN).rem(int(-1)).unwrap(), long(0)),
        (int(7).rem(double(2.5)).unwrap(), double(2.0)),
        (exact("7.5").rem(int(2)).unwrap(), exact("1.5")),
    ];
    for (found, expected) in cases {
        assert_eq!(shown(found), shown(expected));
    }
    assert!(long(i64::MAX).checked_add(int(1)).is_none());
    assert!(int(1).div(int(0)).is_none() && int(1).rem(double(-0.0)).is_none());
}

#[test]
fn whole_numbers_of_every_type_are_recognised() {
    let cases = [
        (raw(5), Some(5)),
        (raw(-5.0), Some(-5)),
        (raw(5.5), None),
        (raw(9_223_372_036_854_775_808.0), None),
        (raw(-9_223_372_036_854_775_808.0), Some(i64::MIN)),
        (raw(f64::NAN), None),
        (decimal("5.00"), Some(5)),
        (decimal("5E+2"), Some(500)),
        (decimal("5.01"), None),
        (decimal("9223372036854775807"), Some(i64::MAX)),
        (decimal("9223372036854775808"), None),
        (decimal("0E+6000"), Some(0)),
        (decimal("1E+6000"), None),
        (raw("5"), None),
    ];
    for (value, expected) in cases {
        assert_eq!(whole(value.as_raw_bson_ref()), expected, "{value:?}");
    }
}

#[test]
fn decimals_keep_their_bits_through_the_arithmetic_library() {
    let texts = [
        "0",
        "-0",
        "-0E+5",
        "1.10",
        "-1E-6176",
        "9.999999999999999999999999999999999E+6144",
        "0E+6111",
        "NaN",
        "-Infinity",
    ];
    for text in texts {
        let value: bson::Decimal128 = text.parse().unwrap();
        assert_eq!(bson::Decimal128::from(Decimal::from(value)), value, "{text}");
    }
    assert_eq!(Decimal::from_f64(2.5).to_string(), "2.50000000000000");
    assert_eq!(Decimal::from_f64(0.1 + 0.2).to_string(), "0.300000000000000");
    assert_eq!(Decimal::parse("1.5").unwrap().to_f64().to_string(), "1.5");
    assert!(Decimal::parse("1.5x").is_none() && Decimal::parse("").is_none());
    // The form for large coefficients stands for zero.
    let mut bits = [0xFF; 16];
    bits[15] = 0x6C;
    assert!(Decimal::from(bson::Decimal128::from_bytes(bits)).is_zero());
}

#[test]
fn values_are_written_as_in_mongodbs_texts() {
    let cases = [
        (raw(doc! {"a": 1, "b": "x"}), "{ a: 1, b: \"x\" }"),
        (raw(doc! {}), "{}"),
        (raw(bson!([1.0, null])), "[ 1.0, null ]"),
        (raw(0.1), "0.1"),
        (raw(-1e-7), "-1e-07.0"),
        (raw(123_456_789.25), "123456789.25"),
        (raw(1e15), "1000000000000000.0"),
        (
            raw(ObjectId::from_bytes([0x1F; 12])),
            "ObjectId('1f1f1f1f1f1f1f1f1f1f1f1f')",
        ),
        (raw(DateTime::from_millis(-5)), "new Date(-5)"),
        (raw(Timestamp { time: 1, increment: 2 }), "Timestamp(1, 2)"),
        (
            raw(Binary {
                subtype: BinarySubtype::Generic,
                bytes: vec![0xAB],
            }),
            "BinData(0, AB)",
        ),
        (regex("a.", "i"), "/a./i"),
        (decimal("1.10"), "1.10"),
    ];
    for (value, expected) in cases {
        assert_eq!(text::render(value.as_raw_bson_ref()), expected);
    }
}

#[test]
fn broken_bytes_and_deep_documents_are_refused() {
    let good = rawdoc! {"a": [1, {"b": "ö"}], "c": true};
    assert!(validate(good.as_bytes()).is_ok());
    let bytes = good.into_bytes();
    for length in 0..bytes.len() {
        assert_eq!(validate(&bytes[..length]).unwrap_err().code.0, 22);
    }
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7F, 0x80, 0xFF] {
            let mut broken = bytes.clone();
            broken[at] = value;
            if let Ok(document) = validate(&broken) {
                assert!(text::render_document(document).len() < 1000);
            }
        }
    }
    let nested = |levels: usize| (1..levels).fold(RawDocumentBuf::new(), |inner, _| rawdoc! {"a": inner});
    assert!(validate(nested(DEPTH_LIMIT).as_bytes()).is_ok());
    assert_eq!(validate(nested(DEPTH_LIMIT + 1).as_bytes()).unwrap_err().code.0, 15);
}

#[test]
fn values_nested_without_bound_compare_without_deep_recursion() {
    let nested =
        |innermost: i32| (0..5000).fold(raw(innermost), |inner, _| RawBson::Array([inner].into_iter().collect()));
    let (a, b) = (nested(1), nested(2));
    assert_eq!(compare(a.as_raw_bson_ref(), b.as_raw_bson_ref()), Ordering::Less);
    assert!(key::of(a.as_raw_bson_ref(), None) < key::of(b.as_raw_bson_ref(), None));
}

fn any_number() -> impl Strategy<Value = Bson> {
    let near = prop_oneof![
        Just(0_i64),
        Just(1 << 53),
        Just(-(1 << 53)),
        Just(i64::MAX),
        Just(i64::MIN),
        Just(i64::from(i32::MAX)),
        -20_i64..20,
    ];
    let long = (near, -3_i64..4).prop_map(|(base, step)| base.saturating_add(step));
    let double = prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        long.clone().prop_map(|value| value as f64),
        (-100_i32..100).prop_map(|tenths| f64::from(tenths) / 10.0),
        (0_u64..3, any::<bool>()).prop_map(|(bits, negative)| f64::from_bits(bits) * if negative { -1.0 } else { 1.0 }),
        Just(f64::MAX),
        Just(f64::INFINITY),
        Just(-0.0),
    ];
    let decimal = prop_oneof![
        (long.clone(), -40_i32..40).prop_map(|(digits, power)| format!("{digits}E{power}")),
        (-100_i32..100).prop_map(|tenths| format!("{tenths}E-1")),
        (any::<i64>(), -6170_i32..6090).prop_map(|(digits, power)| format!("{digits}E{power}")),
        double.clone().prop_map(|value| if value.is_finite() {
            format!("{value:.33e}")
        } else {
            "NaN".to_owned()
        }),
        double.clone().prop_map(|value| if value.is_finite() {
            format!("{value:e}")
        } else {
            "Infinity".to_owned()
        }),
    ];
    prop_oneof![
        any::<i32>().prop_map(Bson::Int32),
        long.prop_map(Bson::Int64),
        double.prop_map(Bson::Double),
        decimal.prop_map(|text| Bson::Decimal128(text.parse().unwrap())),
    ]
}

fn any_value() -> impl Strategy<Value = Bson> {
    let text = "[a-c\0é]{0,3}";
    let leaf = prop_oneof![
        4 => any_number(),
        2 => text.prop_map(Bson::String),
        1 => prop_oneof![
            Just(Bson::Null), Just(Bson::MinKey), Just(Bson::MaxKey), Just(Bson::Undefined),
            any::<bool>().prop_map(Bson::Boolean),
            any::<i64>().prop_map(|millis| Bson::DateTime(DateTime::from_millis(millis))),
            (0_u32..3, 0_u32..3).prop_map(|(time, increment)| Bson::Timestamp(Timestamp { time, increment })),
            (prop::collection::vec(any::<u8>(), 0..3), 0_u8..4).prop_map(|(bytes, subtype)| Bson::Binary(Binary { subtype: subtype.into(), bytes })),
            any::<[u8; 12]>().prop_map(|bytes| Bson::ObjectId(ObjectId::from_bytes(bytes))),
            ("[ab]{0,2}", "[im]{0,1}").prop_map(|(pattern, options)| Bson::try_from(regex(&pattern, &options)).unwrap()),
            "[ab]{0,2}".prop_map(Bson::JavaScriptCode),
        ],
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Bson::Array),
            prop::collection::vec(("[ab]{0,2}", inner), 0..3)
                .prop_map(|fields| Bson::Document(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn keys_compare_as_values_do(a in any_value(), b in any_value(), x in any_number(), y in any_number()) {
        for (a, b) in [(a, b), (x, y)] {
            let (a, b) = (raw(a), raw(b));
            let (a, b) = (a.as_raw_bson_ref(), b.as_raw_bson_ref());
            prop_assert_eq!(key::of(a, None).cmp(&key::of(b, None)), compare(a, b), "{:?} {:?}", a, b);
            prop_assert_eq!(compare(b, a), compare(a, b).reverse());
        }
    }

    #[test]
    fn the_order_is_transitive(a in any_number(), b in any_number(), c in any_number()) {
        let mut values = [raw(a), raw(b), raw(c)];
        values.sort_by(|a, b| compare(a.as_raw_bson_ref(), b.as_raw_bson_ref()));
        let [a, _, c] = &values;
        prop_assert_ne!(compare(a.as_raw_bson_ref(), c.as_raw_bson_ref()), Ordering::Greater);
    }

    #[test]
    fn keys_of_several_values_compare_value_by_value(a in any_value(), b in any_value(), c in any_value(), d in any_value()) {
        let values = [raw(a), raw(b), raw(c), raw(d)];
        let [a, b, c, d] = values.each_ref().map(RawBson::as_raw_bson_ref);
        let joined = |x, y| [key::of(x, None), key::of(y, None)].concat();
        let expected = compare(a, c).then_with(|| compare(b, d));
        prop_assert_eq!(joined(a, b).cmp(&joined(c, d)), expected);
        prop_assert!(order::type_rank(a) >= 0x10);
    }
}
