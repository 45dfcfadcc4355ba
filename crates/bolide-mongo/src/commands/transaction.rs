//! `commitTransaction` and `abortTransaction`.

use bolide_mql::{Code, Error, Result};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use crate::transactions::SessionTransaction;

/// `{commitTransaction: 1, recoveryToken?}` → `{}`.
pub async fn commit(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    of(context)?.commit(&context.state.account).await?;
    Ok(Reply::default())
}

/// `{abortTransaction: 1, recoveryToken?}` → `{}`.
pub async fn abort(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    of(context)?.abort().await?;
    Ok(Reply::default())
}

fn of<'a>(context: &'a CommandContext<'_>) -> Result<&'a SessionTransaction> {
    let none = || {
        Error::new(
            Code::INVALID_OPTIONS,
            format!("{} must be run within a transaction", context.command.name),
        )
    };
    context.transaction.as_deref().ok_or_else(none)
}
