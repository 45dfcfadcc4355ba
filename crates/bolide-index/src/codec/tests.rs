use super::{Direction, Encoder, SqlScalar, decode_sql_scalar, encode_in, rank, sql_rank, sql_scalar_length};
use crate::decimal::Decimal;

fn encoded(write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut Encoder::new(&mut bytes));
    bytes
}

fn decimal(coefficient: i128, exponent: i32) -> Decimal {
    Decimal {
        negative: coefficient < 0,
        coefficient: coefficient.unsigned_abs(),
        exponent,
    }
}

#[test]
fn one_number_has_one_key() {
    let one = encoded(|e| e.i64(1));
    assert_eq!(encoded(|e| e.f64(1.0)), one);
    assert_eq!(encoded(|e| e.decimal(decimal(100, -2))), one);
    let zero = encoded(|e| e.i64(0));
    assert_eq!(encoded(|e| e.f64(-0.0)), zero);
    assert_eq!(encoded(|e| e.decimal(decimal(0, 17))), zero);
    let large = encoded(|e| e.f64(9_007_199_254_740_994.0));
    assert_eq!(encoded(|e| e.i64(9_007_199_254_740_994)), large);
}

#[test]
fn numbers_keep_their_exact_places() {
    let ascending = [
        encoded(|e| e.nan()),
        encoded(|e| e.infinity(true)),
        encoded(|e| e.decimal(decimal(-1, 6000))),
        encoded(|e| e.f64(f64::MIN)),
        encoded(|e| e.i64(i64::MIN)),
        encoded(|e| e.i64(i64::MIN + 1)),
        encoded(|e| e.i64(-9_007_199_254_740_993)),
        encoded(|e| e.f64(-9_007_199_254_740_992.0)),
        encoded(|e| e.f64(-0.1)),
        encoded(|e| e.decimal(decimal(-1, -1))),
        encoded(|e| e.f64(-f64::from_bits(1))),
        encoded(|e| e.decimal(decimal(-1, -6176))),
        encoded(|e| e.i64(0)),
        encoded(|e| e.decimal(decimal(1, -6176))),
        encoded(|e| e.f64(f64::from_bits(1))),
        encoded(|e| e.decimal(decimal(1, -1))),
        encoded(|e| e.decimal(decimal(10_000_000_000_000_000_001, -20))),
        encoded(|e| e.f64(0.1)),
        encoded(|e| e.f64(9_007_199_254_740_992.0)),
        encoded(|e| e.i64(9_007_199_254_740_993)),
        encoded(|e| e.i64(9_007_199_254_740_994)),
        encoded(|e| e.i64(i64::MAX - 1)),
        encoded(|e| e.i64(i64::MAX)),
        encoded(|e| e.f64(9_223_372_036_854_775_808.0)),
        encoded(|e| e.f64(f64::MAX)),
        encoded(|e| e.decimal(decimal(1, 309))),
        encoded(|e| e.infinity(false)),
    ];
    for pair in ascending.windows(2) {
        assert!(pair[0] < pair[1], "{pair:x?}");
    }
}

#[test]
fn bytes_are_as_described() {
    assert_eq!(encoded(|e| e.string("a\0b")), *b"\x30a\x00\xFFb\x00\x00");
    assert_eq!(encoded(|e| e.f64(1.0)), *b"\x2C\x3F\xF0\x00\x00\x00\x00\x00\x00\x00");
    assert_eq!(
        encoded(|e| e.decimal(decimal(123, -400))),
        *b"\x2C\x00\x00\x00\x00\x00\x00\x00\x00\x01\x7E\x72\x0D\x1F\x00"
    );
    assert_eq!(encoded(|e| e.timestamp(1, 2)), *b"\x68\x00\x00\x00\x01\x00\x00\x00\x02");
    assert_eq!(encoded(|e| e.date(-1)), *b"\x60\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
    assert_eq!(encoded(|e| e.boolean(true)), [rank::BOOLEAN + 1]);
    assert_eq!(encoded(|e| e.regex("a", "i")), *b"\x70a\x00i\x00");
    assert_eq!(encoded(|e| e.binary(1, 4, &[9])), *b"\x48\x00\x00\x00\x01\x04\x09");
}

#[test]
fn strings_and_objects_compare_field_by_field() {
    let object = |fields: &[(&str, i64)]| {
        encoded(|e| {
            e.begin_object();
            for (name, value) in fields {
                e.field(rank::NUMBER, name);
                e.i64(*value);
            }
            e.end();
        })
    };
    let ascending = [
        encoded(|e| e.string("")),
        encoded(|e| e.string("\0")),
        encoded(|e| e.string("\0\0")),
        encoded(|e| e.string("\0a")),
        encoded(|e| e.string("a")),
        encoded(|e| e.string("a\0")),
        encoded(|e| e.string("ab")),
        object(&[]),
        object(&[("a", 1)]),
        object(&[("a", 1), ("b", 0)]),
        object(&[("a", 2)]),
        object(&[("aa", 0)]),
        object(&[("b", 0)]),
    ];
    for pair in ascending.windows(2) {
        assert!(pair[0] < pair[1], "{pair:x?}");
    }
}

#[test]
fn a_descending_field_reverses_the_order_within_a_compound_key() {
    let key = |text: &str, number: i64| {
        let mut bytes = Vec::new();
        encode_in(&mut bytes, Direction::Descending, |e| e.string(text));
        encode_in(&mut bytes, Direction::Ascending, |e| e.i64(number));
        bytes
    };
    let ascending = [
        key("b", 1),
        key("b", 2),
        key("ab", 0),
        key("a\0", 0),
        key("a", 0),
        key("a", 7),
        key("", 0),
    ];
    for pair in ascending.windows(2) {
        assert!(pair[0] < pair[1], "{pair:x?}");
    }
}

#[test]
fn sql_scalars_are_read_back() {
    let integers = [
        0,
        1,
        -1,
        10,
        4_096,
        1 << 53,
        (1 << 53) + 1,
        -(1 << 53) - 1,
        9_007_199_254_740_995,
        9_223_372_036_854_775_000,
        1_234_567_890_123_456_789,
        i64::MAX,
        i64::MIN,
        i64::MAX - 1,
        i64::MIN + 1,
    ];
    for value in integers {
        let key = encoded(|encoder| encoder.i64(value));
        assert_eq!(decode_sql_scalar(&key), Some(SqlScalar::Integer(value)), "{key:02x?}");
    }
    for value in [
        0.5,
        -0.5,
        1e300,
        -1e300,
        5e-324,
        9_223_372_036_854_775_808.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ] {
        let key = encoded(|encoder| encoder.f64(value));
        assert_eq!(decode_sql_scalar(&key), Some(SqlScalar::Double(value)), "{key:02x?}");
    }
    let whole = encoded(|encoder| encoder.f64(-3.0));
    assert_eq!(decode_sql_scalar(&whole), Some(SqlScalar::Integer(-3)));
    assert_eq!(
        decode_sql_scalar(&encoded(|encoder| encoder.f64(-0.0))),
        Some(SqlScalar::Integer(0))
    );
    for text in ["", "a", "a\0b\0", "\0", "ü€😀"] {
        let key = encoded(|encoder| encoder.string(text));
        assert_eq!(decode_sql_scalar(&key), Some(SqlScalar::String(text.to_owned())));
        assert_eq!(decode_sql_scalar(&key[..key.len() - 1]), None, "it was cut");
    }
    let of_rank = |rank: u8| decode_sql_scalar(&[rank]);
    assert_eq!(of_rank(sql_rank::NULL), Some(SqlScalar::Null));
    assert_eq!(of_rank(sql_rank::FALSE), Some(SqlScalar::Bool(false)));
    assert_eq!(of_rank(sql_rank::FALSE + 1), Some(SqlScalar::Bool(true)));
    for rank in [sql_rank::UNDEFINED, sql_rank::ARRAY, sql_rank::OBJECT, 0x10] {
        assert_eq!(of_rank(rank), None);
    }
    assert_eq!(decode_sql_scalar(&[]), None);
}

#[test]
fn random_integers_are_read_back() {
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    for shift in (0..64).cycle().take(20_000) {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let value = random.cast_signed() >> shift;
        let key = encoded(|encoder| encoder.i64(value));
        assert_eq!(decode_sql_scalar(&key), Some(SqlScalar::Integer(value)), "{key:02x?}");
    }
}

#[test]
fn a_scalar_of_sql_ends_where_its_bytes_say_so() {
    let mut keys: Vec<Vec<u8>> = vec![vec![sql_rank::NULL], vec![sql_rank::FALSE], vec![sql_rank::FALSE + 1]];
    for value in [
        0,
        1,
        -1,
        255,
        (1 << 53) + 1,
        -(1 << 53) - 1,
        i64::MAX,
        i64::MIN,
        9_007_199_254_740_995,
    ] {
        keys.push(encoded(|encoder| encoder.i64(value)));
    }
    for value in [0.5, -0.5, 1e300, -5e-324, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        keys.push(encoded(|encoder| encoder.f64(value)));
    }
    for text in ["", "a", "a\0b\0", "\0", "ü€😀"] {
        keys.push(encoded(|encoder| encoder.string(text)));
    }
    for key in &keys {
        for next in keys.iter().chain([&vec![], &vec![0], &vec![0xFF]]) {
            let both = [&key[..], next].concat();
            assert_eq!(
                sql_scalar_length(&both),
                Some(key.len()),
                "{key:02x?} before {next:02x?}"
            );
        }
        for cut in 0..key.len() {
            assert_eq!(sql_scalar_length(&key[..cut]), None, "{key:02x?} cut at {cut}");
        }
    }
    assert_eq!(sql_scalar_length(&[sql_rank::UNDEFINED]), None);
    assert_eq!(sql_scalar_length(&[sql_rank::ARRAY]), None);
}
