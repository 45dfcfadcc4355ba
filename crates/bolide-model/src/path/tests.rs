use proptest::prelude::*;
use serde_json::json;

use super::*;

fn names(text: &str) -> Vec<String> {
    PropertyPath::parse(text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .names()
        .to_vec()
}

#[test]
fn plain_and_quoted_labels_are_names() {
    assert_eq!(names("/a/b"), ["a", "b"]);
    assert_eq!(names("/zip code/été_1/x-y.z"), ["zip code", "été_1", "x-y.z"]);
    assert_eq!(names(r#"/"level' 1*()"/"le/vel2""#), ["level' 1*()", "le/vel2"]);
    assert_eq!(names(r#"/'level" 1*()'/'le/vel2'"#), ["level\" 1*()", "le/vel2"]);
    assert_eq!(names(r#"/"0"/b"#), ["0", "b"]);
}

#[test]
fn backslash_in_quotes_is_part_of_the_name() {
    assert_eq!(names(r#"/"a\b""#), [r"a\b"]);
    assert_eq!(names(r#"/"a\"b""#), [r#"a\"b"#]);
}

#[test]
fn invalid_paths_are_refused_with_the_position() {
    let cases = [
        ("", 0),
        ("pk", 0),
        ("/", 1),
        ("/a/", 3),
        ("//a", 1),
        ("/*", 1),
        ("/a/?", 3),
        ("/a/[]/b", 3),
        ("/a/[0]", 3),
        ("/a/0", 3),
        ("/asdwqr31 @#$", 10),
        ("/\"a", 1),
        ("/\"a\"b", 4),
        ("/a\"b\"", 2),
        ("/a\\b", 2),
    ];
    for (text, position) in cases {
        assert_eq!(PropertyPath::parse(text), Err(InvalidPath { position }), "{text}");
    }
}

#[test]
fn quoting_does_not_make_another_path() {
    assert_eq!(
        PropertyPath::parse("/a").unwrap(),
        PropertyPath::parse("/\"a\"").unwrap()
    );
    assert_eq!(PropertyPath::parse("/'a'").unwrap().to_string(), "/'a'");
}

#[test]
fn lookup_goes_through_objects_only() {
    let root = json!({"a": {"b": 1, "c": [{"d": 2}], "n": null}});
    let lookup = |text: &str| PropertyPath::parse(text).unwrap().lookup(&root).cloned();
    assert_eq!(lookup("/a/b"), Some(json!(1)));
    assert_eq!(lookup("/a/n"), Some(json!(null)));
    assert_eq!(lookup("/a/c/d"), None);
    assert_eq!(lookup("/a/b/x"), None);
    assert_eq!(lookup("/b"), None);
}

#[test]
fn a_path_lies_within_its_ancestors_and_itself() {
    let path = PropertyPath::parse("/a/b").unwrap();
    assert!(path.is_within(&["a"]) && path.is_within(&["a", "b"]));
    assert!(!path.is_within(&["a", "b", "c"]) && !path.is_within(&["b"]));
}

proptest! {
    #[test]
    fn quoted_names_read_back(names in prop::collection::vec("[^\"\\\\]{0,8}", 1..4)) {
        let text: String = names.iter().map(|name| format!("/\"{name}\"")).collect();
        let path = PropertyPath::parse(&text).unwrap();
        prop_assert_eq!(path.names(), &names[..]);
        prop_assert_eq!(path.to_string(), text);
    }

    #[test]
    fn any_text_is_read_or_refused_within_it(text in "[/\"'a\\\\*? é0\\[\\]]{0,12}") {
        match PropertyPath::parse(&text) {
            Ok(path) => prop_assert_eq!(path.as_str(), &text),
            Err(error) => prop_assert!(error.position <= text.len()),
        }
    }
}
