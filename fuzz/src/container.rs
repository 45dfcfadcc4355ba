//! Definitions of containers: an accepted definition is written and read back unchanged, and can replace itself.

use bolide_model::container::ContainerProperties;
use bolide_model::document::parse_json_body;
use serde_json::Value;

/// Reads the bytes as a definition.
pub fn run(data: &[u8]) {
    let Ok(sent) = parse_json_body(data) else { return };
    let Ok(properties) = ContainerProperties::from_json(&sent) else {
        return;
    };
    let stored = Value::Object(properties.to_json());
    let again = ContainerProperties::from_json(&stored).expect("what was written can be read");
    assert_eq!(again, properties);
    let replaced = properties
        .replace(again, &stored)
        .expect("a definition can replace itself");
    assert_eq!(replaced, properties);
}
