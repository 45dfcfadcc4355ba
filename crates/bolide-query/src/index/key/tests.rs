use super::*;
use crate::value::{Text, compare, total_order};

fn key(value: &Value<'_>) -> Vec<u8> {
    Key::of(value).expect("defined").bytes
}

fn text(text: &str) -> Value<'_> {
    Value::String(Text::Borrowed(text))
}

/// A string of `count` letters.
fn letters(count: usize) -> String {
    "x".repeat(count)
}

#[test]
fn keys_are_in_the_order_of_types_and_values() {
    let ascending = [
        Value::Null,
        Value::Bool(false),
        Value::Bool(true),
        Value::float(f64::NEG_INFINITY),
        Value::int(i64::MIN),
        Value::float(-1.5),
        Value::int(-1),
        Value::int(0),
        Value::float(f64::MIN_POSITIVE),
        Value::int(1),
        Value::float(9_007_199_254_740_992.0),
        Value::int(9_007_199_254_740_993),
        Value::int(9_007_199_254_740_994),
        Value::int(i64::MAX),
        Value::float(9_223_372_036_854_775_808.0),
        Value::float(f64::INFINITY),
        text(""),
        text("\0"),
        text("\0a"),
        text("\u{1}"),
        text("a"),
        text("a\0"),
        text("aa"),
        text("b"),
        text("\u{e9}"),
        text("\u{1f600}"),
        Value::Json("[]"),
        Value::Json("{}"),
    ];
    for pair in ascending.windows(2) {
        assert!(key(&pair[0]) < key(&pair[1]), "{pair:?}");
        assert!(total_order(&pair[0], &pair[1]).is_lt(), "the sorter agrees: {pair:?}");
        assert!(!key(&pair[1]).starts_with(&key(&pair[0])), "{pair:?}");
    }
}

#[test]
fn equal_values_have_equal_keys() {
    let equal = [
        (Value::int(1), Value::float(1.0)),
        (Value::int(0), Value::float(-0.0)),
        (Value::int(9_007_199_254_740_994), Value::float(9_007_199_254_740_994.0)),
        (Value::int(i64::MIN), Value::float(-9_223_372_036_854_775_808.0)),
    ];
    for (a, b) in equal {
        assert_eq!(compare(&a, &b), Some(std::cmp::Ordering::Equal));
        assert_eq!(key(&a), key(&b), "{a:?}");
    }
    assert_eq!(Key::of(&Value::Undefined), None);
    assert_eq!(key(&Value::Json("[1]")), key(&Value::array([])));
    assert_eq!(key(&Value::Json("{\"a\":1}")), key(&Value::object([])));
}

#[test]
fn a_long_string_is_cut_and_known_to_be() {
    // The rank and the end take three bytes.
    let cases = [
        (997, 1_000, true),
        (998, 1_000, false),
        (999, 1_000, false),
        (5_000, 1_000, false),
    ];
    for (count, bytes, whole) in cases {
        let string = letters(count);
        let key = Key::of(&text(&string)).expect("defined");
        assert_eq!((key.bytes.len(), key.is_exact), (bytes, whole), "{count} letters");
        assert_eq!(is_exact(&key.bytes), whole);
    }
    // A NUL takes two bytes, and its parts must not pass for the end.
    for count in 990..1_000 {
        for nuls in 1..4 {
            let string = letters(count) + &"\0".repeat(nuls);
            let key = key(&text(&string));
            assert_eq!(
                is_exact(&key),
                1 + count + 2 * nuls + 2 <= KEY_BYTES,
                "{count} and {nuls}"
            );
        }
    }
    // Cut inside a character.
    let accents = "\u{e9}".repeat(600);
    assert_eq!(key(&text(&accents)).len(), KEY_BYTES);
}

#[test]
fn only_keys_of_equal_values_are_exact() {
    let exact = |value: &Value<'_>| is_exact(&key(value));
    assert!(exact(&Value::Null) && exact(&Value::Bool(true)) && exact(&Value::float(0.1)) && exact(&text("")));
    assert!(!exact(&Value::Json("[]")) && !exact(&Value::Json("{}")) && !is_exact(&[]));
}

#[test]
fn strings_with_a_prefix_have_keys_with_its_bytes() {
    for prefix in ["", "a", "a\0", "\u{e9}", &letters(998), &letters(999), &letters(1_500)] {
        let start = of_prefix(prefix);
        assert!(start.len() <= KEY_BYTES);
        for rest in ["", "\0", "\u{1}", "z", "\u{10ffff}"] {
            let string = format!("{prefix}{rest}");
            assert!(
                key(&text(&string)).starts_with(&start),
                "{} bytes, {rest:?}",
                prefix.len()
            );
        }
    }
    assert!(!key(&text("a")).starts_with(&of_prefix("a\0")));
    assert!(!key(&text("a")).starts_with(&of_prefix("aa")));
    assert!(!key(&text("b")).starts_with(&of_prefix("a")));
}

#[test]
fn after_is_the_first_beyond_a_prefix() {
    assert_eq!(after(&[1, 2]), Some(vec![1, 3]));
    assert_eq!(after(&[1, 0xFF, 0xFF]), Some(vec![2]));
    assert_eq!(after(&[0xFF]), None);
    assert_eq!(after(&[]), None);
}
