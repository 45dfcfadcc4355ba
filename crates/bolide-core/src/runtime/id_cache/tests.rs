use bolide_model::partition_key::{Component, PartitionKey, PartitionKeyDefinition};
use serde_json::json;

use super::*;

#[test]
fn a_number_is_found_where_it_was_left_and_nowhere_else() {
    let known = IdCache::default();
    let definition = PartitionKeyDefinition::from_json(&json!({"paths": ["/pk"]})).expect("a definition");
    let epk = Epk::of(&definition, &PartitionKey(vec![Component::Bool(true)]));
    let slot = known.slot(PartitionId(1), &epk, "item");
    assert_eq!(known.get(slot), None);
    known.set(slot, 7);
    assert_eq!(known.get(slot), Some(7));
    let other_tag = CacheSlot {
        tag: slot.tag ^ 1,
        ..slot
    };
    assert_eq!(known.get(other_tag), None, "another item in the same slot");
    known.set(slot, 1 << NUMBER_BITS);
    assert_eq!(known.get(slot), Some(7), "too large to be kept");
}
