//! The stages that may follow `$changeStream`: those that keep events apart.

use bolide_mql::{Code, Error, Result};
use bson::raw::{RawArray, RawBsonRef};

/// In the order of their names.
const ALLOWED: [&str; 8] = [
    "$addFields",
    "$match",
    "$project",
    "$redact",
    "$replaceRoot",
    "$replaceWith",
    "$set",
    "$unset",
];

/// Checks the stages after the first one, all of which exist.
///
/// # Errors
/// `IllegalOperation`.
pub fn check(stages: &RawArray) -> Result<()> {
    for stage in stages.into_iter().skip(1) {
        let Ok(RawBsonRef::Document(stage)) = stage else {
            continue;
        };
        let Some(Ok((name, _))) = stage.iter().next() else {
            continue;
        };
        if !ALLOWED.contains(&name.as_str()) {
            let text = format!("{name} is not permitted in a $changeStream pipeline");
            return Err(Error::new(Code::ILLEGAL_OPERATION, text));
        }
    }
    Ok(())
}
