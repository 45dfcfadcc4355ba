//! `top`.

use bolide_mql::Result;
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// `{top: 1}` → `{totals}`, without collections: their use is not measured.
pub async fn run(_: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    Ok(rawdoc! { "totals": { "note": "all times in microseconds" } }.into())
}
