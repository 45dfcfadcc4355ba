//! `getLastRequestStatistics`.

use bolide_mql::{Code, Error, Result};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// Refuses: the request units that commands of this API use are not reported yet.
pub async fn run(_: &CommandContext<'_>, _: Arguments<'_>) -> Result<Reply> {
    Err(Error::new(
        Code::NOT_IMPLEMENTED,
        "the request units of commands are not reported yet",
    ))
}
