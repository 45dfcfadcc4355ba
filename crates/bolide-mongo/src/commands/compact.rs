//! `compact`.

use bolide_mql::{Code, Error, Result};
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::collections;

/// `{compact: collection, force?}` → `{bytesFreed: 0}`: the storage engine compacts by itself, and nothing is left to be done.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    arguments.boolean("force")?;
    arguments.finish()?;
    if collections::find(context, &namespace).is_none() {
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, "collection does not exist"));
    }
    Ok(rawdoc! {"bytesFreed": 0}.into())
}
