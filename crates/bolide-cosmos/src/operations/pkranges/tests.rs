use http::HeaderValue;

use super::*;

#[test]
fn only_an_incremental_read_of_the_same_version_is_not_modified() {
    let known = |mode: &'static str, seen: &'static str| {
        let headers = [
            (headers::A_IM.clone(), HeaderValue::from_static(mode)),
            (IF_NONE_MATCH, HeaderValue::from_static(seen)),
        ];
        is_known(&headers.into_iter().collect(), "\"c-1\"").expect("well formed")
    };
    assert!(known("Incremental feed", "\"c-1\""));
    assert!(known("Incremental Feed", "c-1"));
    assert!(!known("Incremental Feed", "\"c-0\""));
    assert!(!known("", "\"c-1\""));
}
