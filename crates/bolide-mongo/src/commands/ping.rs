//! `ping`.

use bolide_mql::Result;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// `{ping: 1}` → `{}`.
pub async fn run(_: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    Ok(Reply::default())
}
