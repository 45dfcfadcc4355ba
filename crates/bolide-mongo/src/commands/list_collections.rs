//! `listCollections`.

use bolide_core::{CollectionDefinition, Container};
use bolide_mql::Result;
use bson::raw::cstr;
use bson::{RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::cursor::{self, FirstBatch, Known};
use super::data::collections::uuid;
use super::data::language::filter;
use super::data::views;
use crate::codes;
use crate::namespace::Namespace;

/// The collection that `getMore` names for this cursor.
const CURSOR_COLLECTION: &str = "$cmd.listCollections";

/// `{listCollections: 1, filter?, nameOnly?, cursor?: {batchSize?}}` → a cursor of `{name, type, options, info, idIndex}`, or of `{name, type}`.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let condition = arguments.document("filter")?;
    let is_name_only = arguments.boolean("nameOnly")?.unwrap_or(false);
    // A key is for all collections.
    arguments.boolean("authorizedCollections")?;
    let first = FirstBatch::read_options(&mut arguments)?;
    arguments.finish()?;
    let now = context.begin().await?;
    let language = context.language(&now);
    let condition = filter(condition, &language)?;
    let account = &context.state.account;
    account.refresh_catalog().await.map_err(|error| codes::error(&error))?;
    let mut listed = Vec::new();
    for container in account.list_collections(context.database) {
        let name = &container.properties().id;
        if Namespace::new(context.database, name.as_str()).is_ok_and(|name| name.is_of_users()) {
            continue;
        }
        let Some(definition) = container.collection() else {
            continue;
        };
        let entry = entry(&container, &definition, is_name_only);
        if condition.matches(&entry, &language)? {
            listed.push(entry);
        }
    }
    let namespace = Namespace::new(context.database, CURSOR_COLLECTION)?;
    cursor::first(context, now, namespace, Box::new(Known::new(listed)), first).await
}

fn entry(container: &Container, definition: &CollectionDefinition, is_name_only: bool) -> RawDocumentBuf {
    let is_view = views::is_view(definition);
    let kind = if is_view { "view" } else { "collection" };
    let mut entry = rawdoc! { "name": container.properties().id.as_str(), "type": kind };
    if is_name_only {
        return entry;
    }
    entry.append(cstr!("options"), definition.options.clone());
    if is_view {
        entry.append(cstr!("info"), rawdoc! { "readOnly": true });
        return entry;
    }
    entry.append(cstr!("info"), rawdoc! { "readOnly": false, "uuid": uuid(definition) });
    if let Some(index) = definition.indexes.first() {
        entry.append(cstr!("idIndex"), index.definition.to_document());
    }
    entry
}

#[cfg(test)]
mod tests;
