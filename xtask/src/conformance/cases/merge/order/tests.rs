use serde_json::json;

use super::*;

#[test]
fn kinds_have_their_order_and_an_absent_value_is_the_least() {
    let values = [
        None,
        Some(json!(null)),
        Some(json!(false)),
        Some(json!(true)),
        Some(json!(-1.5)),
        Some(json!(2)),
        Some(json!("")),
        Some(json!("a")),
        Some(json!([])),
        Some(json!({})),
    ];
    assert!(values.is_sorted_by(|one, other| total_order(one.as_ref(), other.as_ref()).is_lt()));
}
