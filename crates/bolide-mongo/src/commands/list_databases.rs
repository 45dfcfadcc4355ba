//! `listDatabases`.

use std::collections::HashMap;

use bolide_core::ContainerFigures;
use bolide_mql::Result;
use bson::raw::cstr;
use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::language::filter;
use crate::codes;

/// Bytes of a MiB.
const MIB: i64 = 1024 * 1024;

/// `{listDatabases: 1, filter?, nameOnly?}` → `{databases: [{name, sizeOnDisk, empty}], totalSize, totalSizeMb}`.
///
/// A database is listed while it has a collection, as in MongoDB. Its size is that of the live documents.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let condition = arguments.document("filter")?;
    let is_name_only = arguments.boolean("nameOnly")?.unwrap_or(false);
    // A key is for all databases; a user sees those that its roles are for.
    arguments.boolean("authorizedDatabases")?;
    arguments.finish()?;
    let language = context.language(&context.begin().await?);
    let condition = filter(condition, &language)?;
    let account = &context.state.account;
    account.refresh_catalog().await.map_err(|error| codes::error(&error))?;
    let sizes = match is_name_only {
        true => HashMap::new(),
        false => sizes(
            account
                .container_figures()
                .await
                .map_err(|error| codes::error(&error))?,
        ),
    };
    let (mut databases, mut total) = (RawArrayBuf::new(), 0_i64);
    for (name, _) in account.database_names() {
        if !context.grants.allow_seeing(&name) || account.list_collections(&name).is_empty() {
            continue;
        }
        let size = sizes.get(&name).copied().unwrap_or_default();
        let mut entry = rawdoc! { "name": name };
        if !is_name_only {
            entry.append(cstr!("sizeOnDisk"), size);
            entry.append(cstr!("empty"), false);
        }
        if condition.matches(&entry, &language)? {
            databases.push(entry);
            total = total.saturating_add(size);
        }
    }
    let mut reply: RawDocumentBuf = rawdoc! { "databases": databases };
    if !is_name_only {
        reply.append(cstr!("totalSize"), total);
        reply.append(cstr!("totalSizeMb"), total / MIB);
    }
    Ok(reply.into())
}

/// The bytes of the live documents of each database.
fn sizes(figures: Vec<ContainerFigures>) -> HashMap<String, i64> {
    let mut sizes: HashMap<String, i64> = HashMap::new();
    for figure in figures {
        let bytes = i64::try_from(figure.usage.bytes).unwrap_or(i64::MAX);
        let size = sizes.entry(figure.database_id).or_default();
        *size = size.saturating_add(bytes);
    }
    sizes
}

#[cfg(test)]
mod tests;
