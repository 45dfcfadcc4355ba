use serde_json::Value;

use super::document;

#[test]
fn documents_have_the_length_and_the_values() {
    for (ttl, bytes) in [(None, 300), (Some(180), 300), (Some(-1), 1024)] {
        let text = document("000000000007", 7, bytes, ttl);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(text.len(), bytes);
        assert_eq!(value["id"], "000000000007");
        assert_eq!(value["number"], 7);
        assert_eq!(value.get("ttl").and_then(Value::as_i64), ttl.map(i64::from));
    }
}
