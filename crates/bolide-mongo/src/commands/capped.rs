//! `convertToCapped` and `cloneCollectionAsCapped`: there are no capped collections.

use bolide_mql::{Code, Error, Result};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};

/// Refuses.
pub async fn refuse(_: &CommandContext<'_>, _: Arguments<'_>) -> Result<Reply> {
    Err(Error::new(
        Code::NOT_IMPLEMENTED,
        "capped collections are not supported",
    ))
}
