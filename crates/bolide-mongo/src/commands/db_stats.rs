//! `dbStats`.

use bolide_core::Usage;
use bolide_mql::Result;
use bson::raw::cstr;
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::{statistics, views};
use crate::codes;

/// `{dbStats: 1, scale?}` → the number and size of the live documents of all collections. The keys of indexes are not counted apart.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let scale = statistics::read_scale(&mut arguments)?;
    let shows_free = arguments.integer("freeStorage")?.unwrap_or(0) != 0;
    arguments.finish()?;
    let account = &context.state.account;
    account.refresh_catalog().await.map_err(|error| codes::error(&error))?;
    let (mut total, mut collections, mut indexes) = (Usage::default(), 0_i64, 0_i64);
    let mut view_count = 0_i64;
    for container in account.list_collections(context.database) {
        let Some(definition) = container.collection() else {
            continue;
        };
        if views::is_view(&definition) {
            view_count += 1;
            continue;
        }
        let usage = statistics::usage(context, &container).await?;
        total.items += usage.items;
        total.bytes += usage.bytes;
        collections += 1;
        indexes += i64::try_from(definition.indexes.len()).unwrap_or(i64::MAX);
    }
    let average = match total.items {
        0 => 0.0,
        items => total.bytes as f64 / items as f64,
    };
    let size = total.bytes as f64 / scale as f64;
    let mut reply = rawdoc! {
        "db": context.database,
        "collections": collections,
        "views": view_count,
        "objects": i64::try_from(total.items).unwrap_or(i64::MAX),
        "avgObjSize": average,
        "dataSize": size,
        "storageSize": size,
        "indexes": indexes,
        "indexSize": 0.0,
        "totalSize": size,
        "scaleFactor": scale,
    };
    if shows_free {
        // The storage of a database is not a file of its own, so it has no free part.
        for field in [
            cstr!("freeStorageSize"),
            cstr!("indexFreeStorageSize"),
            cstr!("totalFreeStorageSize"),
        ] {
            reply.append(field, 0.0);
        }
    }
    Ok(reply.into())
}

#[cfg(test)]
mod tests;
