use super::*;

#[test]
fn parameters_may_be_absent_or_null() {
    for body in [
        r#"{"query":"q"}"#,
        r#"{"query":"q","parameters":null}"#,
        r#"{"query":"q","parameters":[],"clientQLCompatibilityLevel":1}"#,
    ] {
        let query = query(&Bytes::from_static(body.as_bytes())).expect(body);
        assert_eq!((query.text.as_str(), query.parameters.len()), ("q", 0), "{body}");
    }
}

#[test]
fn bodies_of_the_wrong_shape_are_refused() {
    for body in [
        "",
        "[]",
        "{",
        "{}",
        r#"{"query":1}"#,
        r#"{"query":"q","parameters":{}}"#,
        r#"{"query":"q","parameters":[{}]}"#,
    ] {
        assert!(query(&Bytes::from_static(body.as_bytes())).is_err(), "{body}");
    }
    assert!(query(&Bytes::from_static(b"{\"query\":\"\xff\"}")).is_err());
}
