use serde_json::json;

use super::*;

#[test]
fn members_have_no_order_and_numbers_no_spelling() {
    assert!(same(&json!({"a": 1, "b": 2.0}), &json!({"b": 2, "a": 1.0}), EXACT));
    assert!(!same(&json!({"a": 1}), &json!({"a": 1, "b": 2}), EXACT));
    assert!(!same(&json!(1), &json!("1"), EXACT));
}

#[test]
fn a_multiset_counts_its_members() {
    let (one, two) = (vec![json!(1), json!(1), json!(2)], vec![json!(1), json!(2), json!(2)]);
    assert!(!same_results(&one, &two, false, EXACT));
    assert!(same_results(&one, &[json!(2), json!(1), json!(1)], false, EXACT));
    assert!(!same_results(&one, &[json!(2), json!(1), json!(1)], true, EXACT));
}
