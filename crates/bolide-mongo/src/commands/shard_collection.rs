//! `shardCollection`.

use bolide_mql::{Code, Error, Result};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// Why it is refused.
pub const REFUSED: &str =
    "sharded collections are not supported: _id is unique in the whole collection, not for each value of a shard key";

/// Refuses.
pub async fn run(_: &CommandContext<'_>, _: Arguments<'_>) -> Result<Reply> {
    Err(Error::new(Code::NOT_IMPLEMENTED, REFUSED))
}
