//! `logout`.

use bolide_mql::Result;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// `{logout: 1}` → `{}`.
pub async fn run(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    context.client.log_out();
    Ok(Reply::default())
}
