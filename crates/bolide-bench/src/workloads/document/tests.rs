use super::*;

#[test]
fn a_document_has_its_size_and_its_fields() {
    let text = document(1_234, 7, Some(60));
    assert_eq!(text.len(), 1024);
    let document: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["id"], "000000001234");
    assert_eq!(document["pk"], "p0000000012");
    assert_eq!(document["at"], 1_700_001_234_u64);
    assert_eq!(document["ttl"], 60);
    assert_eq!(document["version"], 7);
}

#[test]
fn an_update_changes_the_text() {
    assert_ne!(document(1, 1, None)[100..], document(1, 2, None)[100..]);
}
