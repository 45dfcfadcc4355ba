use super::*;
use crate::wire::headers::{CONTENT_TYPE, ETAG, ITEM_COUNT, LSN};

fn list(entries: &[(&'static HeaderName, &'static str)]) -> HeaderList {
    let mut list = HeaderList::new();
    for (name, value) in entries {
        list.set(name, HeaderValue::from_static(value));
    }
    list
}

fn shown(list: HeaderList) -> Vec<(String, String)> {
    let map = list.into_map();
    let text = |value: &HeaderValue| value.to_str().expect("ASCII").to_owned();
    map.iter()
        .map(|(name, value)| (name.to_string(), text(value)))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn answers_of_one_shape_keep_their_own_values() {
    for (etag, lsn) in [("\"a\"", "1"), ("\"b\"", "2"), ("\"c\"", "3")] {
        let first = list(&[(&ETAG, etag), (&LSN, lsn)]);
        assert_eq!(shown(first), pairs(&[("etag", etag), ("lsn", lsn)]));
        let other_order = list(&[(&LSN, lsn), (&ETAG, etag)]);
        assert_eq!(shown(other_order), pairs(&[("lsn", lsn), ("etag", etag)]));
        let shorter = list(&[(&ETAG, etag)]);
        assert_eq!(shown(shorter), pairs(&[("etag", etag)]));
    }
}

#[test]
fn a_header_is_there_once_and_the_last_value_counts() {
    let mut twice = list(&[(&CONTENT_TYPE, "application/json"), (&ITEM_COUNT, "1")]);
    twice.set(&CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    let expected = [("content-type", "text/plain"), ("x-ms-item-count", "1")];
    assert_eq!(shown(twice.clone()), pairs(&expected));
    twice.remove(&CONTENT_TYPE);
    assert_eq!(shown(twice), pairs(&expected[1..]));
}

#[test]
fn more_shapes_than_are_remembered_are_answered_too() {
    let names: [&'static HeaderName; 4] = [&ETAG, &LSN, &ITEM_COUNT, &CONTENT_TYPE];
    for order in 0..256_usize {
        // Every sequence of four of these names; repeated names count once.
        let chosen = (0..4).map(|place| names[order >> (2 * place) & 3]);
        let entries: Vec<_> = chosen.map(|name| (name, "v")).collect();
        let shown = shown(list(&entries));
        assert!(
            entries
                .iter()
                .all(|(name, _)| shown.iter().any(|(known, _)| known == name.as_str()))
        );
    }
}

#[test]
fn a_fixed_value_is_that_of_its_own_response() {
    let typed = |content_type, etag| {
        let mut list = HeaderList::new();
        list.set_fixed(&CONTENT_TYPE, content_type);
        list.set(&ETAG, HeaderValue::from_static(etag));
        list
    };
    for etag in ["\"a\"", "\"b\""] {
        for content_type in ["application/json", "text/plain"] {
            let expected = [("content-type", content_type), ("etag", etag)];
            assert_eq!(shown(typed(content_type, etag)), pairs(&expected));
        }
    }
    let mut replaced = typed("application/json", "\"a\"");
    replaced.set_fixed(&ETAG, "\"fixed\"");
    replaced.set(&CONTENT_TYPE, HeaderValue::from_static("text/html"));
    assert_eq!(replaced.get(&ETAG), Some(&b"\"fixed\""[..]));
    let expected = [("content-type", "text/html"), ("etag", "\"fixed\"")];
    assert_eq!(shown(replaced), pairs(&expected));
}

#[test]
fn a_removed_header_can_be_set_again() {
    let mut list = list(&[(&ETAG, "\"a\""), (&LSN, "1")]);
    list.remove(&ETAG);
    list.set_fixed(&ETAG, "\"b\"");
    assert_eq!(shown(list), pairs(&[("lsn", "1"), ("etag", "\"b\"")]));
}
