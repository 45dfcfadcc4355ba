//! `getMore`.

use std::time::Duration;

use bolide_mql::{Error, Result};
use bson::raw::RawBsonRef;

use super::arguments::{Arguments, wrong_type};
use super::context::{CommandContext, Reply};
use super::cursor;
use crate::namespace::Namespace;

/// `{getMore: i64, collection, batchSize?, maxTimeMS?}` → `{cursor: {nextBatch, id, ns}}`.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    context.state.metrics.operations.get_more.add(1);
    let id = match arguments.first() {
        Some(RawBsonRef::Int64(id)) => id,
        other => {
            return Err(wrong_type(
                "getMore.getMore",
                other.unwrap_or(RawBsonRef::Null),
                "type 'long'",
            ));
        }
    };
    let collection = arguments.string("collection")?;
    let collection = arguments.required("collection", collection)?;
    let batch_size = arguments.integer("batchSize")?;
    arguments.ignore(&["term", "lastKnownCommittedOpTime"]);
    arguments.finish()?;
    let max_documents = match batch_size {
        None | Some(0) => None,
        Some(size) => {
            let size = usize::try_from(size);
            Some(size.map_err(|_| {
                Error::bad_value("Batch size for getMore must be positive, but received a negative one")
            })?)
        }
    };
    let namespace = Namespace::new(context.database, collection)?;
    let max_wait: Option<Duration> = context.global.max_time;
    cursor::next(context, id, &namespace, max_documents, max_wait).await
}
