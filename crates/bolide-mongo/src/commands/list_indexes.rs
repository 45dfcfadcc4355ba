//! `listIndexes`.

use bolide_mql::{Code, Error, Result};
use bson::RawDocumentBuf;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::cursor::{self, FirstBatch, Known};
use super::data::collections;

/// `{listIndexes, cursor?: {batchSize?}}` → a cursor of the specifications.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    let first = FirstBatch::read_options(&mut arguments)?;
    arguments.ignore(&["includeBuildUUIDs", "includeIndexBuildInfo"]);
    arguments.finish()?;
    let now = context.begin().await?;
    let Some(container) = collections::find(context, &namespace) else {
        let text = format!("ns does not exist: {namespace}");
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, text));
    };
    let definition = collections::definition(&container)?;
    let built = definition.indexes.iter().filter(|index| !index.is_building);
    let listed: Vec<RawDocumentBuf> = built.map(|index| index.definition.to_document()).collect();
    cursor::first(context, now, namespace, Box::new(Known::new(listed)), first).await
}
