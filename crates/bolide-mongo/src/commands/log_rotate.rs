//! `logRotate`.

use bolide_mql::Result;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// `{logRotate: 1 | "server"}` → `{}`. The log goes to standard error, so there is no file to begin anew.
pub async fn run(_: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    Ok(Reply::default())
}
