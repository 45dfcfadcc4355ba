use super::*;

#[test]
fn a_gap_without_a_reason_is_refused() {
    assert!(parse(r#"{"a": "not built yet"}"#).is_ok());
    assert!(parse(r#"{"a": " "}"#).is_err());
    assert!(parse(r#"{"a": true}"#).is_err());
}
