use super::*;

fn map(name: &'static str, value: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))])
}

#[test]
fn booleans_come_in_all_spellings() {
    for (value, expected) in [
        ("True", true),
        ("true", true),
        (" TRUE ", true),
        ("False", false),
        ("false", false),
        ("1", false),
    ] {
        assert_eq!(
            flag(&map("x-ms-documentdb-is-upsert", value), &IS_UPSERT),
            expected,
            "{value}"
        );
    }
}

#[test]
fn queries_are_known_by_either_header_or_by_content_type() {
    assert!(is_query(&map("x-ms-documentdb-isquery", "True")));
    assert!(is_query(&map("x-ms-documentdb-query", "True")));
    assert!(is_query(&map("content-type", "application/query+json; charset=utf-8")));
    assert!(!is_query(&map("x-ms-documentdb-isquery", "False")));
    assert!(!is_query(&map("content-type", "application/json")));
}

#[test]
fn values_of_headers_are_checked_in_any_case() {
    let check = |value| {
        check_choices(
            &map("x-ms-indexing-directive", value),
            &INDEXING_DIRECTIVE,
            &["Include", "Exclude"],
        )
    };
    for value in ["Include", "exclude", "", "Include, Exclude"] {
        assert!(check(value).is_ok(), "{value}");
    }
    for value in ["\"Include\"", "0", "Include,"] {
        let error = check(value).expect_err(value);
        assert!(error.to_string().contains("x-ms-indexing-directive"), "{error}");
    }
}

#[test]
fn a_header_that_is_not_a_number_is_refused_by_name() {
    let error = integer(&map("x-ms-max-item-count", "many"), &MAX_ITEM_COUNT).expect_err("no number");
    assert!(error.to_string().contains("x-ms-max-item-count"), "{error}");
}

#[test]
fn text_is_ascii_as_the_library_has_it() {
    let values = (0..=u8::MAX).filter_map(|byte| HeaderValue::from_bytes(&[b'a', byte]).ok());
    let mut count = 0;
    for value in values {
        assert_eq!(ascii(&value), value.to_str().ok(), "{value:?}");
        count += 1;
    }
    assert_eq!(
        count,
        256 - 32,
        "all bytes but control characters, of which the tab is allowed and DEL is not"
    );
}
