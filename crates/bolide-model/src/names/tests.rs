use super::*;

fn message(result: Result<()>) -> String {
    result.expect_err("the id should be refused").to_string()
}

#[test]
fn resource_ids_refuse_what_breaks_a_path() {
    for id in [
        "a/b", "a\\b", "a?", "#a", "a\tb", "a\r", "a\nb", "\0", "a\u{1b}", "\u{85}",
    ] {
        assert!(
            message(validate_resource_id(id)).contains("invalid character"),
            "{id:?}"
        );
    }
}

#[test]
fn resource_ids_end_at_255_characters() {
    assert_eq!(validate_resource_id(&"é".repeat(255)), Ok(()));
    let fragment = "Ensure to provide a unique non-empty string less than '255' characters.";
    assert!(message(validate_resource_id(&"a".repeat(256))).contains(fragment));
    assert!(message(validate_resource_id("")).contains(fragment));
}

#[test]
fn resource_ids_may_begin_but_not_end_with_a_space() {
    assert_eq!(validate_resource_id(" a b"), Ok(()));
    assert!(message(validate_resource_id("a ")).contains("ends with a space"));
}

#[test]
fn item_ids_may_hold_any_character() {
    for id in [
        "a/b", "a\\b", "a?b", "#", " a ", "a\tb", "ü%20", "日本", "a\0", "...", ".a", "%2e%2e",
    ] {
        assert_eq!(validate_item_id(id), Ok(()), "{id:?}");
    }
    assert!(message(refuse_backslash("a\\b")).contains("invalid character"));
    assert_eq!(refuse_backslash("a/b"), Ok(()));
}

#[test]
fn ids_that_clients_remove_from_paths_are_refused() {
    for id in [".", ".."] {
        assert!(message(validate_resource_id(id)).contains("invalid"), "{id}");
        assert!(message(validate_item_id(id)).contains("invalid"), "{id}");
    }
}

#[test]
fn item_ids_end_at_1023_bytes() {
    assert_eq!(validate_item_id(&"a".repeat(1023)), Ok(()));
    let fragment = "Ensure to provide a unique non-empty string less than '1024' characters.";
    assert!(message(validate_item_id(&"é".repeat(512))).contains(fragment));
    assert!(message(validate_item_id("")).contains(fragment));
}
