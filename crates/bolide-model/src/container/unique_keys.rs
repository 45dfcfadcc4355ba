//! Unique keys: properties that must be unique within a logical partition. Fixed when the container is created.

use serde_json::{Value, json};

use super::input::{Input, has_duplicates, invalid, read_paths};
use crate::error::Result;
use crate::limits::{UNIQUE_KEY_PATHS, UNIQUE_KEYS};
use crate::path::PropertyPath;

/// The paths of one constraint: the combination of their values is unique.
pub type UniqueKey = Vec<PropertyPath>;

pub(super) fn from_input(input: &Input<'_>) -> Result<Vec<UniqueKey>> {
    let keys = input.objects("uniqueKeys")?;
    if keys.len() > UNIQUE_KEYS {
        let name = input.name_of("uniqueKeys");
        return Err(invalid(
            &name,
            &format!("a list of at most {UNIQUE_KEYS} constraints; it has {}", keys.len()),
        ));
    }
    let keys = keys.iter().map(read_key).collect::<Result<Vec<_>>>()?;
    if has_duplicates(&keys) {
        return Err(invalid(&input.name_of("uniqueKeys"), "a list of different constraints"));
    }
    Ok(keys)
}

pub(super) fn to_json(keys: &[UniqueKey]) -> Value {
    let key = |paths: &UniqueKey| json!({"paths": paths.iter().map(PropertyPath::as_str).collect::<Vec<_>>()});
    json!({"uniqueKeys": keys.iter().map(key).collect::<Vec<_>>()})
}

fn read_key(input: &Input<'_>) -> Result<UniqueKey> {
    let name = input.name_of("paths");
    let paths = read_paths(input.array("paths")?.unwrap_or_default(), &name)?;
    if !(1..=UNIQUE_KEY_PATHS).contains(&paths.len()) {
        return Err(invalid(
            &name,
            &format!("a list of 1 to {UNIQUE_KEY_PATHS} paths; it has {}", paths.len()),
        ));
    }
    if has_duplicates(&paths) {
        return Err(invalid(&name, "a list of different paths"));
    }
    Ok(paths)
}
