//! `collStats`.

use bolide_mql::Result;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::statistics;

/// `{collStats: collection, scale?}` → the number and size of its live documents; zeros if there is no such collection.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    let scale = statistics::read_scale(&mut arguments)?;
    arguments.finish()?;
    Ok(statistics::storage(context, &namespace, scale).await?.into())
}

#[cfg(test)]
mod tests;
