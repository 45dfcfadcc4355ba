use super::*;

#[test]
fn a_change_keeps_the_other_options() {
    let stored = rawdoc! { "validator": { "a": 1 }, "validationAction": "warn", "collation": { "locale": "en" } };
    let change = Validation {
        level: Some("moderate".to_owned()),
        ..Validation::default()
    };
    let expected = rawdoc! {
        "collation": { "locale": "en" },
        "validator": { "a": 1 },
        "validationLevel": "moderate",
        "validationAction": "warn",
    };
    assert_eq!(change.change(&stored).expect("valid"), expected);
}

#[test]
fn an_option_is_replaced() {
    let stored = rawdoc! { "changeStreamPreAndPostImages": { "enabled": false }, "validator": {} };
    let changed = with(
        &stored,
        cstr!("changeStreamPreAndPostImages"),
        rawdoc! { "enabled": true }.into(),
    );
    let expected = rawdoc! { "validator": {}, "changeStreamPreAndPostImages": { "enabled": true } };
    assert_eq!(changed.expect("valid"), expected);
}
