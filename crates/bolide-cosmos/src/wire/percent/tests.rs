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

#[test]
fn decoding_is_that_of_the_library() {
    let pieces = ["", "%", "%2", "%2f", "%C3", "%A4", "%zz", "%4", "1", "ä", "text"];
    for a in pieces {
        for b in pieces {
            for c in pieces {
                let text = format!("{a}{b}{c}");
                let expected = percent_decode_str(&text).decode_utf8().ok();
                assert_eq!(decode(&text), expected, "{text}");
            }
        }
    }
}
