use http::{HeaderName, HeaderValue};

use super::*;

fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
    let header =
        |(name, value): &(&'static str, &'static str)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    headers.iter().map(header).collect()
}

#[test]
fn plain_keys_are_read_as_all_others_are() {
    for key in [
        r#"["p"]"#,
        r#"[""]"#,
        r#"[ "p" ]"#,
        r#"["a","b"]"#,
        r#"["\u0061"]"#,
        r#"["a\"b"]"#,
    ] {
        let read = sent_key(&map(&[("x-ms-documentdb-partitionkey", key)])).expect(key);
        assert_eq!(read, Some(PartitionKey::from_header(key).expect(key)), "{key}");
    }
}

#[test]
fn a_range_id_may_carry_its_container() {
    let headers = map(&[("x-ms-documentdb-partitionkeyrangeid", "SnxPAOM2VfM=,3")]);
    assert_eq!(range(&headers), Ok(Some(3)));
    assert!(range(&map(&[("x-ms-documentdb-partitionkeyrangeid", "x")])).is_err());
}

#[test]
fn an_interval_needs_its_key_type() {
    assert!(epk(&map(&[("x-ms-start-epk", "00"), ("x-ms-end-epk", "FF")])).is_err());
    let headers = [
        ("x-ms-start-epk", "05c1"),
        ("x-ms-end-epk", "ff"),
        ("x-ms-read-key-type", "EffectivePartitionKeyRange"),
    ];
    assert!(epk(&map(&headers)).expect("well formed").is_some());
}

#[test]
fn page_sizes_are_minus_one_or_more() {
    let size = |value| max_items(&map(&[("x-ms-max-item-count", value)]));
    assert_eq!(size("-1").expect("the server's choice"), None);
    assert_eq!(size("7").expect("seven"), Some(7));
    assert_eq!(max_items(&map(&[])).expect("the default"), Some(100));
    assert_eq!(size("0").expect("that of `TOP 0`"), Some(100));
    for value in ["-2", "x", "1.5"] {
        assert!(size(value).is_err(), "{value}");
    }
}
