use super::*;

#[test]
fn escapes_are_decoded_and_what_has_none_stays_where_it_is() {
    assert_eq!(decode("a%2Fb%E6%97%A5").as_deref(), Some("a/b日"));
    assert!(matches!(decode("plain/日"), Some(Cow::Borrowed("plain/日"))));
    assert_eq!(
        decode("%"),
        Some("%".into()),
        "an escape that is none stands for itself"
    );
    assert_eq!(decode("%FF"), None);
    assert_eq!(decode_lossy("a%FF"), "a\u{FFFD}");
    assert_eq!(decode(&encode("{\"a\": 日}")).as_deref(), Some("{\"a\": 日}"));
}
