//! `listIndexes`.

use bolide_mql::{Code, Error, Result};
use bson::{RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::cursor::{self, FirstBatch, Known};
use super::data::collections;

/// `{listIndexes, cursor?: {batchSize?}, includeIndexBuildInfo?}` → a cursor of the specifications, with build info `{spec}`. Indexes that are being
/// built are not shown.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = arguments.collection(context.database)?;
    let first = FirstBatch::read_options(&mut arguments)?;
    let has_build_ids = arguments.boolean("includeBuildUUIDs")?.unwrap_or(false);
    let has_build_info = arguments.boolean("includeIndexBuildInfo")?.unwrap_or(false);
    if has_build_ids && has_build_info {
        let text = "The includeBuildUUIDs flag and includeIndexBuildInfo flag cannot both be set to true";
        return Err(Error::new(Code::INVALID_OPTIONS, text));
    }
    arguments.finish()?;
    let now = context.begin().await?;
    let Some(container) = collections::find(context, &namespace) else {
        let text = format!("ns does not exist: {namespace}");
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, text));
    };
    let definition = collections::definition(&container)?;
    let built = definition.indexes.iter().filter(|index| !index.is_building);
    let documents = built.map(|index| index.definition.to_document());
    let listed: Vec<RawDocumentBuf> = match has_build_info {
        true => documents.map(|specification| rawdoc! {"spec": specification}).collect(),
        false => documents.collect(),
    };
    cursor::first(context, now, namespace, Box::new(Known::new(listed)), first).await
}
