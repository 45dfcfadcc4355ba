//! `dropIndexes`.

use bolide_core::{CatalogEventKind, CollectionChange};
use bolide_mql::index::IndexSelection;
use bolide_mql::{Code, Error, Result};
use bson::raw::cstr;
use bson::{RawBson, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::{collections, expanded_events, indexes};

/// `{dropIndexes, index: "*" | name | key | [names]}` → `{nIndexesWas, msg?}`.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    let index = arguments.value("index");
    let index = RawBson::from(arguments.required("index", index)?);
    arguments.finish()?;
    IndexSelection::parse(index.as_raw_bson_ref())?;
    let Some(container) = collections::find(context, &namespace) else {
        let text = format!("ns not found {namespace}");
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, text));
    };
    let decide = move |change: &mut CollectionChange<'_>| {
        let definitions = indexes::definitions(change.definition);
        let selected = IndexSelection::parse(index.as_raw_bson_ref())?.select(&definitions)?;
        let dropped = selected.positions.iter().filter_map(|at| definitions.get(*at));
        let dropped: Vec<_> = dropped.collect();
        for definition in &dropped {
            indexes::remove(change, definition.name());
        }
        expanded_events::note_indexes(change, CatalogEventKind::DropIndexes, dropped);
        Ok((definitions.len(), selected.message))
    };
    let (before, message) = indexes::change(context, &container, decide).await?;
    let mut body = rawdoc! {"nIndexesWas": i32::try_from(before).unwrap_or(i32::MAX)};
    if let Some(message) = message {
        body.append(cstr!("msg"), message);
    }
    Ok(body.into())
}
