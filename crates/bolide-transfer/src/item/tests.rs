use serde_json::json;

use super::*;

fn item(value: Value) -> Item {
    value.as_object().cloned().unwrap_or_default()
}

#[test]
fn items_are_the_same_whatever_their_system_properties_and_order() {
    let one = item(json!({"id": "a", "n": 1, "o": {"x": [1, 2.5], "y": null}, "_ts": 5, "_etag": "e"}));
    let other = item(json!({"_ts": 9, "o": {"y": null, "x": [1.0, 2.5]}, "n": 1.0, "id": "a"}));
    assert!(same_content(&one, &other));
    for different in [
        json!({"id": "a", "n": 1}),
        json!({"id": "a", "n": 2, "o": {"x": [1, 2.5], "y": null}}),
        json!({"id": "a", "n": 1, "o": {"x": [2.5, 1], "y": null}}),
        json!({"id": "a", "n": 1, "o": {"x": [1, 2.5]}}),
        json!({"id": "a", "n": 1, "o": {"x": [1, 2.5], "y": null}, "more": 1}),
    ] {
        assert!(!same_content(&one, &item(different.clone())), "{different}");
        assert!(!same_content(&item(different.clone()), &one), "{different}");
    }
}

#[test]
fn links_are_dropped_and_the_time_is_kept() {
    let mut shown =
        item(json!({"id": "a", "_rid": "r", "_self": "s", "_etag": "e", "_attachments": "x", "_ts": 5, "_own": 1}));
    drop_links(&mut shown);
    assert_eq!(Value::Object(shown), json!({"id": "a", "_ts": 5, "_own": 1}));
}
