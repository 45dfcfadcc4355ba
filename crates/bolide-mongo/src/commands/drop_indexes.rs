//! `dropIndexes`.

use bolide_core::CollectionChange;
use bolide_mql::index::IndexSelection;
use bolide_mql::{Code, Error, Result};
use bson::raw::cstr;
use bson::{RawBson, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::{collections, indexes};

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
        for position in selected.positions {
            if let Some(definition) = definitions.get(position) {
                indexes::remove(change, definition.name());
            }
        }
        Ok((definitions.len(), selected.message))
    };
    let (before, message) = indexes::change(context, &container, decide).await?;
    let mut body = rawdoc! {"nIndexesWas": i32::try_from(before).unwrap_or(i32::MAX)};
    if let Some(message) = message {
        body.append(cstr!("msg"), message);
    }
    Ok(body.into())
}
