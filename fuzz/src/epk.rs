//! Effective partition keys as hexadecimal text: two of them, and the range between them.

use bolide_model::epk::{Epk, EpkRange};
use bolide_model::partition_key::PartitionKeyDefinition;
use serde_json::json;

use super::input::Input;

/// Reads two keys separated by a comma.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (min, max) = (input.until(b','), input.0);
    let (Some(min), Some(max)) = (parse(min), parse(max)) else {
        return;
    };
    let range = EpkRange::new(min, max);
    for version in [1, 2] {
        let definition = json!({"paths": ["/a"], "kind": "Hash", "version": version});
        let definition = PartitionKeyDefinition::from_json(&definition).expect("a fixed definition");
        if let Some(middle) = range.midpoint(&definition) {
            assert!(
                range.contains(&middle) && middle > range.min,
                "{middle} is between the ends"
            );
        }
    }
    assert_eq!(
        range.overlaps(&EpkRange::all()),
        range.intersect(&EpkRange::all()).is_some()
    );
}

fn parse(text: &[u8]) -> Option<Epk> {
    let text = std::str::from_utf8(text).ok()?;
    let epk = Epk::from_hex(text).ok()?;
    assert_eq!(epk.to_hex(), text.to_uppercase());
    Some(epk)
}
