use super::*;

#[test]
fn a_document_is_json_of_one_kilobyte() {
    for number in [0, 1, 77, 999_999] {
        let text = document(number);
        assert_eq!(text.len(), BYTES);
        let value: serde_json::Value = serde_json::from_str(&text).expect("a document is JSON");
        assert_eq!(value["lines"].as_array().map(Vec::len), Some(3));
    }
}
