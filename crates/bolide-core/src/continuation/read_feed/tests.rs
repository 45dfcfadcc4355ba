use super::*;

fn key(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn begun(to: &'static str, rid: u64) -> Begun {
    Begun { to: Some(key(to)), rid }
}

#[test]
fn places_are_read_as_they_were_written() {
    let positions = [
        ReadFeedPosition::default(),
        ReadFeedPosition {
            from: key("a"),
            begun: vec![
                begun("b", 7),
                Begun {
                    to: None,
                    rid: u64::MAX,
                },
            ],
        },
    ];
    for position in positions {
        let bytes = position.encode();
        assert_eq!(ReadFeedPosition::decode(&bytes).as_ref(), Some(&position));
        for end in 0..bytes.len() {
            assert_ne!(ReadFeedPosition::decode(&bytes[..end]).as_ref(), Some(&position));
        }
    }
}

#[test]
fn what_was_begun_behind_a_later_place_is_kept() {
    // A range from "a" to "z" that was split at "m" after a page.
    let position = ReadFeedPosition {
        from: key("a"),
        begun: vec![begun("z", 5)],
    };
    let in_first = position.later(key("a"), Some(begun("m", 9)));
    assert_eq!(in_first.begun, [begun("m", 9), begun("z", 5)]);
    let behind_first = in_first.later(key("m"), None);
    assert_eq!(behind_first.begun, [begun("z", 5)]);
    assert_eq!(behind_first.later(key("z"), None).begun, []);
}
