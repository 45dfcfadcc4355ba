use super::*;

#[test]
fn a_document_is_json_of_one_kilobyte() {
    for ttl in [None, Some(-1)] {
        let text = document(&id(7), ttl);
        assert_eq!(text.len(), 1024);
        let value: serde_json::Value = serde_json::from_str(&text).expect("a document is JSON");
        assert_eq!(value["id"], "000000000007");
        assert_eq!(value.get("ttl").and_then(serde_json::Value::as_i64), ttl.map(i64::from));
    }
}
