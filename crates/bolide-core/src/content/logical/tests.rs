use bolide_model::partition_key::Component;
use serde_json::json;

use super::*;

const VICTIM: &str = "victim";
/// Made by inverting murmur3.
const HASHES_LIKE_VICTIM: &str = "user00000001513O4\u{f3}&]4%\u{ac}>\u{1c2}\u{d8}p";

fn definition(paths: &[&str]) -> PartitionKeyDefinition {
    let kind = if paths.len() > 1 { "MultiHash" } else { "Hash" };
    PartitionKeyDefinition::from_json(&json!({"paths": paths, "kind": kind, "version": 2})).expect("a definition")
}

fn key(components: &[&str]) -> PartitionKey {
    let strings = components.iter().map(|text| Component::String((*text).to_owned()));
    PartitionKey(strings.collect())
}

#[test]
fn keys_with_one_hash_have_different_places() {
    let definition = definition(&["/pk"]);
    let (victim, crafted) = (key(&[VICTIM]), key(&[HASHES_LIKE_VICTIM]));
    assert_eq!(
        Epk::of(&definition, &victim),
        Epk::of(&definition, &crafted),
        "the hash places both alike"
    );
    assert_ne!(of(&definition, &victim), of(&definition, &crafted));
}

#[test]
fn a_place_begins_with_the_effective_partition_key_and_has_one_length() {
    for paths in [&["/a"][..], &["/a", "/b"], &["/a", "/b", "/c"]] {
        let definition = definition(paths);
        let values = ["x", "a longer value", ""];
        let mut lengths = values.iter().map(|value| {
            let key = key(&vec![*value; paths.len()]);
            let place = of(&definition, &key);
            assert!(place.as_bytes().starts_with(Epk::of(&definition, &key).as_bytes()));
            let with_id = [place.as_bytes(), b"id"].concat();
            assert_eq!(length_in(&definition, &with_id), Some(place.as_bytes().len()));
            assert_eq!(length_in(&definition, &place.as_bytes()[1..]), None);
            place.as_bytes().len()
        });
        let first = lengths.next().expect("there are values");
        assert!(lengths.all(|length| length == first), "{paths:?}");
    }
}

#[test]
fn what_lies_below_a_prefix_is_told_from_what_hashes_like_it() {
    let definition = definition(&["/tenant", "/user", "/session"]);
    let below = |first: &str| {
        let place = of(&definition, &key(&[first, "ada", "s1"]));
        [place.as_bytes(), &[0; 8]].concat()
    };
    for prefix in [&[VICTIM][..], &[VICTIM, "ada"]] {
        let tag = PrefixTag::of(&definition, &key(prefix)).expect("it is no whole key");
        assert!(tag.matches(&below(VICTIM)), "{prefix:?}");
        assert!(!tag.matches(&below(HASHES_LIKE_VICTIM)), "{prefix:?}");
    }
}

#[test]
fn whole_and_empty_keys_need_no_prefix() {
    let definition = definition(&["/a", "/b"]);
    assert_eq!(PrefixTag::of(&definition, &key(&["x", "y"])), None);
    assert_eq!(PrefixTag::of(&definition, &key(&[])), None);
}
