//! `fsync`.

use bolide_mql::{Code, Error, Result};
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// `{fsync: 1}` → `{numFiles: 1}`. Locking is not supported.
pub async fn run(_: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let locks = arguments.boolean("lock")? == Some(true);
    arguments.ignore(&["fsyncLockAcquisitionTimeoutMillis"]);
    arguments.finish()?;
    if locks {
        return Err(Error::new(Code::NOT_IMPLEMENTED, "fsync with lock is not supported"));
    }
    Ok(rawdoc! { "numFiles": 1 }.into())
}
