//! Bodies of items: an accepted document is written and read back unchanged, and every method on it succeeds or returns an error.

use bolide_model::container::ContainerProperties;
use bolide_model::document::Document;
use bolide_model::epk::Epk;
use serde_json::json;

/// Reads the bytes as a document.
pub fn run(data: &[u8]) {
    let Ok(document) = Document::parse(data) else { return };
    let text = document.to_text();
    let again = Document::parse(text.as_bytes()).expect("what was printed can be read");
    assert_eq!(again.to_text(), text);
    assert_eq!(again, document);
    let _ = document.id();
    let _ = document.own_ttl();
    for version in [1, 2] {
        let container = json!({
            "id": "c",
            "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": version},
            "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u", "/a/b"]}]},
        });
        let container = ContainerProperties::from_json(&container).expect("a fixed definition");
        let key = document.partition_key(&container.partition_key);
        let _ = Epk::of(&container.partition_key, &key);
        for unique in &container.unique_keys {
            let _ = document.unique_key_values(unique);
        }
    }
}
