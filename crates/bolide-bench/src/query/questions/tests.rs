use serde_json::json;

use super::*;

#[test]
fn another_row_is_another_answer() {
    let rows = |n: i64| vec![vec![json!("a"), json!(n)], vec![json!("b"), json!(2)]];
    assert!(check_same(&QUESTIONS[0], "a peer", &rows(1), &rows(1)).is_ok());
    assert!(check_same(&QUESTIONS[0], "a peer", &rows(1), &rows(3)).is_err());
    assert!(check_same(&QUESTIONS[0], "a peer", &rows(1), &rows(1)[..1].to_vec()).is_err());
}
