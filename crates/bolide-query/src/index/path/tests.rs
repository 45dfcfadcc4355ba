use bolide_model::UnixSeconds;
use bolide_model::ttl::{Own, Stamp};

use super::*;
use crate::value::SystemProperties;

#[test]
fn policy_texts_have_one_canonical_form() {
    let canonical = [
        ("/a/?", "/a/?"),
        ("/a", "/a/?"),
        ("/a/b/?", "/a/b/?"),
        ("/\"a\"/b", "/a/b/?"),
        ("/\"odd name\"/?", "/\"odd name\"/?"),
        ("/\"a/b\"/c/?", "/\"a/b\"/c/?"),
        ("/\"\"/?", "/\"\"/?"),
        ("/größe/_ts/?", "/größe/_ts/?"),
        ("/tags/[]/?", "/tags/[]/?"),
        ("/a/tags/[]", "/a/tags/[]/?"),
    ];
    for (text, expected) in canonical {
        let path = IndexPath::parse(text).expect(text);
        assert_eq!(path.to_string(), expected);
        assert_eq!(IndexPath::parse(expected), Some(path), "{expected} reads as itself");
    }
    let refused = [
        "",
        "/",
        "?",
        "/?",
        "*",
        "/*",
        "/a/*",
        "/[]/?",
        "/a/[]/b/?",
        "/a/[]/[]/?",
        "/a/[]/*",
        "/\"*\"/?",
        "/a\"b/?",
    ];
    for text in refused {
        assert_eq!(IndexPath::parse(text), None, "{text}");
    }
}

#[test]
fn a_path_has_a_limited_size() {
    let names = |count: usize, name: &str| format!("/{name}").repeat(count);
    assert!(IndexPath::parse(&names(MAX_STEPS, "a")).is_some());
    assert!(IndexPath::parse(&names(MAX_STEPS + 1, "a")).is_none());
    assert!(IndexPath::parse(&names(2, &"a".repeat(MAX_NAME_BYTES / 2))).is_some());
    assert!(IndexPath::parse(&names(2, &"a".repeat(MAX_NAME_BYTES / 2 + 1))).is_none());
}

struct System;

impl SystemProperties for System {
    fn last_modified(&self) -> i64 {
        17
    }

    fn stamp(&self) -> Stamp {
        Stamp::new(UnixSeconds(17), Own::Never)
    }

    fn members_bytes(&self) -> usize {
        r#""_rid":"r==","_ts":17"#.len()
    }

    fn write_members(&self, out: &mut String) {
        out.push_str(r#""_rid":"r==","_ts":17"#);
    }
}

/// The keys of the values of a JSON array.
fn keys_of(values: &str) -> Vec<Vec<u8>> {
    let values = crate::value::parse_json(values).expect("JSON");
    let values = values.elements().expect("an array");
    values
        .iter()
        .map(|value| Key::of(value).expect("defined").bytes)
        .collect()
}

#[test]
fn an_item_has_the_keys_of_the_values_at_a_path() {
    let document = br#"{"id":"x","a":{"b":1.0,"l":[2,"s",null,2,2.0,[],[1],{}]},"\u0065":true,"o":{"x":1},"empty":[],"d":1,"d":2}"#;
    let item = Item::stored(document, &System).expect("UTF-8");
    let cases = [
        ("/id", r#"["x"]"#),
        ("/a/b", "[1]"),
        ("/e", "[true]"),
        ("/a", "[{}]"),
        ("/a/l", "[[]]"),
        ("/a/l/[]", r#"[null,2,"s",[],{}]"#),
        // The evaluation reads the first of two members with one name.
        ("/d", "[1]"),
        ("/_ts", "[17]"),
        ("/_rid", r#"["r=="]"#),
        ("/_etag", "[]"),
        ("/missing", "[]"),
        ("/a/b/c", "[]"),
        ("/a/l/x", "[]"),
        ("/empty/[]", "[]"),
        ("/missing/[]", "[]"),
        ("/id/[]", "[]"),
        ("/o/[]", "[]"),
    ];
    for (path, values) in cases {
        let path = IndexPath::parse(path).expect(path);
        assert_eq!(path.keys(&item), keys_of(values), "{path}");
    }
}
