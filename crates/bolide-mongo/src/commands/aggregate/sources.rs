//! Stages at the start of a pipeline that make documents of the server's state instead of reading a collection.
//!
//! Source: mongo.md §5, §13.

use std::sync::Arc;

use bolide_core::CollectionDefinition;
use bolide_mql::aggregation::SourceStage;
use bolide_mql::{Code, Error, Result};
use bson::raw::{RawBsonRef, cstr};
use bson::{DateTime, RawDocument, RawDocumentBuf, rawdoc};

use super::DATABASE;
use crate::commands::arguments::Arguments;
use crate::commands::context::CommandContext;
use crate::commands::data::writer::DataContext;
use crate::commands::data::{collections, statements, statistics};
use crate::commands::{current_op, listed_sessions};
use crate::namespace::Namespace;
use crate::state::MongoState;

/// Returns the documents of the stage at the start of a pipeline, if the sender may see them.
///
/// # Errors
/// `Unauthorized`; those of the stage's options; `InvalidNamespace` for a stage that belongs elsewhere; `OperationNotSupportedInTransaction`;
/// `NotImplemented` for what the server does not have.
pub async fn documents(
    context: &CommandContext<'_>,
    namespace: &Namespace,
    stage: &SourceStage,
    data: &DataContext,
) -> Result<Vec<RawDocumentBuf>> {
    let name = stage.name;
    if context.transaction.is_some() {
        let text = format!("Stage not supported inside of a multi-document transaction: {name}");
        return Err(Error::new(Code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION, text));
    }
    if !context.grants.allow_source_stage(name, context.database) {
        return Err(context.unauthorized(context.database));
    }
    let RawBsonRef::Document(options) = stage.spec.as_raw_bson_ref() else {
        return Err(Error::new(Code::FAILED_TO_PARSE, format!("{name} must be an object")));
    };
    check_stable_api(context, name, options)?;
    match name {
        "$collStats" => collection_statistics(context, namespace, options, data).await,
        "$indexStats" => index_statistics(context, namespace, data),
        "$currentOp" => {
            if namespace.database != "admin" || namespace.collection != DATABASE {
                let text = "$currentOp must be run against the 'admin' database with {aggregate: 1}";
                return Err(Error::new(Code::INVALID_NAMESPACE, text));
            }
            current_op::of_stage(context, options)
        }
        "$listLocalSessions" => listed_sessions::documents(context, name, options, data.request.now),
        "$listSessions" => {
            if namespace.database != "config" || namespace.collection != "system.sessions" {
                let text = "$listSessions may only be run against config.system.sessions";
                return Err(Error::new(Code::INVALID_NAMESPACE, text));
            }
            listed_sessions::documents(context, name, options, data.request.now)
        }
        "$planCacheStats" => Err(not_implemented("$planCacheStats: there is no cache of plans")),
        _ => Err(not_implemented(&format!("{name} is not supported yet"))),
    }
}

/// Of these stages, version 1 of the stable API has only the count of `$collStats`.
fn check_stable_api(context: &CommandContext<'_>, name: &str, options: &RawDocument) -> Result<()> {
    let is_count = || {
        options
            .iter()
            .all(|field| field.is_ok_and(|(option, _)| option.as_str() == "count"))
    };
    if !context.global.is_api_strict || (name == "$collStats" && is_count()) {
        return Ok(());
    }
    let text = format!("stage {name} is not allowed with 'apiStrict: true' in API Version 1");
    Err(Error::new(Code::API_STRICT_ERROR, text))
}

fn not_implemented(text: &str) -> Error {
    Error::new(Code::NOT_IMPLEMENTED, text)
}

/// `{$collStats: {storageStats?: {scale?}, count?: {}}}` → one document. A collection that does not exist has zeros.
async fn collection_statistics(
    context: &CommandContext<'_>,
    namespace: &Namespace,
    options: &RawDocument,
    data: &DataContext,
) -> Result<Vec<RawDocumentBuf>> {
    let mut fields = Arguments::of_document("$collStats", options)?;
    let storage = fields.document("storageStats")?;
    let counts = fields.document("count")?;
    for missing in ["latencyStats", "queryExecStats", "operationStats"] {
        if fields.document(missing)?.is_some() {
            return Err(not_implemented(&format!("$collStats.{missing}: it is not recorded")));
        }
    }
    fields.finish()?;
    let mut document = rawdoc! {
        "ns": namespace.to_string(),
        "host": host(context.state),
        "localTime": DateTime::from_millis(data.request.now.0),
    };
    if let Some(storage) = storage {
        let mut fields = Arguments::of_document("$collStats.storageStats", storage)?;
        let scale = statistics::read_scale(&mut fields)?;
        // What would be added, or waited for, is not there.
        fields.boolean("verbose")?;
        fields.boolean("waitForLock")?;
        fields.finish()?;
        let mut statistics = RawDocumentBuf::new();
        for field in &statistics::storage(context, namespace, scale).await? {
            let (name, value) = field?;
            if name.as_str() != "ns" {
                statistics.append(name, value);
            }
        }
        document.append(cstr!("storageStats"), statistics);
    }
    if let Some(counts) = counts {
        if !counts.is_empty() {
            let text = "The 'count' argument to $collStats must be an empty object";
            return Err(Error::new(40480, text));
        }
        let container = collections::find(context, namespace).ok_or_else(|| {
            let text = format!(
                "Unable to retrieve count in $collStats stage :: caused by :: Collection [{namespace}] not found."
            );
            Error::new(40481, text)
        })?;
        let usage = statistics::usage(context, &container).await?;
        document.append(cstr!("count"), statements::count(usage.items));
    }
    Ok(vec![document])
}

/// `{$indexStats: {}}` → a document for each index. Reads by `_id` are not counted.
fn index_statistics(
    context: &CommandContext<'_>,
    namespace: &Namespace,
    data: &DataContext,
) -> Result<Vec<RawDocumentBuf>> {
    let Some(container) = collections::find(context, namespace) else {
        return Ok(Vec::new());
    };
    let definition: Arc<CollectionDefinition> = collections::definition(&container)?;
    let uptime = context.state.monotonic().since(context.state.started());
    let since = data.request.now.0 - i64::try_from(uptime.as_millis()).unwrap_or(i64::MAX);
    let indexes = definition.indexes.iter().map(|index| {
        let specification = index.definition.to_document();
        let uses = i64::try_from(container.index_uses(index.id)).unwrap_or(i64::MAX);
        let mut document = rawdoc! {
            "name": index.definition.name(),
            "key": specification.get_document("key")?.to_owned(),
            "host": host(context.state),
            "accesses": { "ops": uses, "since": DateTime::from_millis(since) },
        };
        if index.is_building {
            document.append(cstr!("building"), true);
        }
        document.append(cstr!("spec"), specification);
        Ok(document)
    });
    indexes.collect()
}

fn host(state: &MongoState) -> String {
    let host = &state.options.host;
    format!("{}:{}", host.name, host.port)
}
