use serde_json::json;

use super::*;

#[test]
fn columns_are_the_members_of_all_rows() {
    let rows = [
        json!({"id": "a", "n": 1}),
        json!({"id": "bcd", "m": [1]}),
        json!("text"),
    ];
    let expected = "id   n  m    value\n---  -  ---  -----\na    1\nbcd     [1]\n             text\n";
    assert_eq!(text(&rows), expected);
}

#[test]
fn a_string_that_looks_like_another_value_keeps_its_quotes() {
    let shown: Vec<String> = [json!("1"), json!(1), json!(""), json!("null"), json!("a b")]
        .iter()
        .map(shown)
        .collect();
    assert_eq!(shown, ["\"1\"", "1", "\"\"", "\"null\"", "a b"]);
}

#[test]
fn a_cell_keeps_to_its_line() {
    assert_eq!(text(&[json!("a\nb")]), "value\n------\n\"a\\nb\"\n");
    assert_eq!(text(&[]), "");
}
