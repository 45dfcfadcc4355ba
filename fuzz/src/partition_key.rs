//! The partition key header: an accepted one is read back unchanged, and has a position in every kind of container.

use bolide_model::epk::{Epk, EpkRange};
use bolide_model::partition_key::{PartitionKey, PartitionKeyDefinition};
use serde_json::{Value, json};

/// Reads the bytes as the header.
pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(key) = PartitionKey::from_header(text) else {
        return;
    };
    let header = key.to_header_json();
    assert!(
        header.bytes().all(|byte| (0x20..0x7F).contains(&byte)),
        "headers are ASCII: {header}"
    );
    assert_eq!(
        PartitionKey::from_header(&header).expect("what was written can be read"),
        key
    );
    for definition in definitions() {
        let definition = PartitionKeyDefinition::from_json(&definition).expect("a fixed definition");
        if definition.check_full(&key).is_ok() {
            let range = EpkRange::of_prefix(&definition, &key);
            assert!(range.contains(&Epk::of(&definition, &key)));
        } else if definition.check_prefix(&key).is_ok() {
            assert!(!EpkRange::of_prefix(&definition, &key).is_empty());
        }
    }
}

fn definitions() -> [Value; 4] {
    [
        json!({"paths": ["/a"], "kind": "Hash", "version": 1}),
        json!({"paths": ["/a"], "kind": "Hash", "version": 2}),
        json!({"paths": ["/a"], "kind": "Range", "version": 1}),
        json!({"paths": ["/a", "/b", "/c"], "kind": "MultiHash", "version": 2}),
    ]
}
