//! `features`.

use bolide_mql::Result;
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// `{features: 1}` → the machine that makes ObjectIds: none in particular.
pub async fn run(_: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    arguments.ignore(&["oidReset"]);
    arguments.finish()?;
    Ok(rawdoc! { "oidMachine": 0 }.into())
}
