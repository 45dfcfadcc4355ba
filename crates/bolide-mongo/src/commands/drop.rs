//! `drop`.

use bolide_model::ErrorKind;
use bolide_mql::Result;
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::collections;
use crate::codes;

/// `{drop: collection}` → `{nIndexesWas, ns}`; a collection that does not exist is dropped already.
pub async fn run(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    arguments.finish()?;
    let Some(container) = collections::find(context, &namespace) else {
        return Ok(Reply::default());
    };
    let indexes = container.collection().map_or(0, |definition| definition.indexes.len());
    match context.state.account.drop_collection(&container).await {
        Err(error) if error.kind == ErrorKind::NotFound => Ok(Reply::default()),
        Err(error) => Err(codes::error(&error)),
        Ok(()) => {
            let number = i32::try_from(indexes).unwrap_or(i32::MAX);
            Ok(rawdoc! {"nIndexesWas": number, "ns": namespace.to_string()}.into())
        }
    }
}
