use super::*;

#[test]
fn names_survive_a_header_and_unescaping() {
    assert_eq!(
        utf8_percent_encode("a b%ü-Ω", NAME_ESCAPES).to_string(),
        "a%20b%25%C3%BC-%CE%A9"
    );
}
