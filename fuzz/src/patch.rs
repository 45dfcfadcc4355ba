//! Patches: a document, a line break, a patch. The result is a document that a client could have sent.

use bolide_model::document::{Document, Patch};
use bolide_model::partition_key::PartitionKeyDefinition;
use serde_json::json;

use super::input::Input;

/// Applies a patch to a document.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (document, patch) = (input.until(b'\n'), input.0);
    let Ok(patch) = Patch::parse(patch) else { return };
    let Ok(document) = Document::parse(document) else {
        return;
    };
    let definition = json!({"paths": ["/pk"], "kind": "Hash", "version": 2});
    let definition = PartitionKeyDefinition::from_json(&definition).expect("a fixed definition");
    let before = document.to_text();
    let Ok(patched) = document.patched(&patch, &definition) else {
        return;
    };
    assert_eq!(document.to_text(), before, "the original stays as it is");
    assert_eq!(
        document.partition_key(&definition),
        patched.partition_key(&definition),
        "the key cannot be patched"
    );
    let again = Document::parse(patched.to_text().as_bytes()).expect("a patched document can be read");
    assert_eq!(again, patched);
}
