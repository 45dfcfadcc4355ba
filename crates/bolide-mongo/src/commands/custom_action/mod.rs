//! `customAction`: Cosmos DB's commands for databases and collections with throughput.
//!
//! Source: mongo.md §15.

mod indexes;
mod throughput;

use std::sync::Arc;

use bolide_core::{CollectionChange, CollectionDefinition, Container, OfferResource, ShardKey};
use bolide_model::ErrorKind;
use bolide_model::ttl::Policy;
use bolide_mql::index::IndexDefinition;
use bolide_mql::{Code, Error, Result};
use bson::raw::cstr;
use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::data::collections;
use crate::codes;
use crate::namespace::Namespace;
use throughput::ThroughputArguments;

/// Runs the action that the first field names. The text of an error is in `errMsg` too, where clients of Cosmos DB look for it.
pub async fn run(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    action(context, arguments).await.map_err(|error| {
        let mut details = error.details.as_deref().cloned().unwrap_or_default();
        details.append(cstr!("errMsg"), error.message.as_str());
        Error {
            details: Some(Box::new(details)),
            ..error
        }
    })
}

async fn action(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    let name = arguments.first().and_then(|name| name.as_str());
    match name {
        Some("CreateDatabase") => create_database(context, arguments).await,
        Some("UpdateDatabase") => update_database(context, arguments).await,
        Some("GetDatabase") => get_database(context, arguments),
        Some("CreateCollection") => create_collection(context, arguments).await,
        Some("UpdateCollection") => update_collection(context, arguments).await,
        Some("GetCollection") => get_collection(context, arguments),
        Some("GetChangeStreamTokens") => Err(Error::new(
            Code::NOT_IMPLEMENTED,
            "the custom action GetChangeStreamTokens is not supported yet",
        )),
        _ => Err(Error::bad_value("The custom action is unknown.")),
    }
}

/// `{customAction: "CreateDatabase", offerThroughput?, autoScaleSettings?}`.
async fn create_database(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let throughput = ThroughputArguments::read(&mut arguments)?;
    arguments.finish()?;
    let request = context.begin().await?;
    let account = &context.state.account;
    let created = account
        .create_database(&request, context.database, throughput.value())
        .await;
    match created {
        Ok(_) => Ok(Reply::default()),
        Err(error) if error.kind == ErrorKind::Conflict => {
            let text = format!("Database {} already exists.", context.database);
            Err(Error::new(Code::NAMESPACE_EXISTS, text))
        }
        Err(error) => Err(codes::error(&error)),
    }
}

/// `{customAction: "UpdateDatabase", offerThroughput | autoScaleSettings}`.
async fn update_database(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let throughput = ThroughputArguments::read(&mut arguments)?;
    arguments.finish()?;
    let resource = database(context)?;
    throughput.replace(context, resource).await?;
    Ok(Reply::default())
}

/// `{customAction: "GetDatabase"}` → `{database, provisionedThroughput?, autoScaleSettings?}`.
fn get_database(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    let mut reply = rawdoc! {"database": context.database};
    throughput::append(context, database(context)?, &mut reply);
    Ok(reply.into())
}

fn database(context: &CommandContext<'_>) -> Result<OfferResource> {
    let found = context.state.account.database_by_name(context.database);
    let found = found.map_err(|_| {
        let text = format!("Database {} does not exist.", context.database);
        Error::new(Code::NAMESPACE_NOT_FOUND, text)
    })?;
    Ok(OfferResource::Database(found.rid))
}

fn namespace(context: &CommandContext<'_>, arguments: &mut Arguments<'_>) -> Result<Namespace> {
    let collection = arguments.string("collection")?;
    let collection = arguments.required("collection", collection)?;
    bolide_mql::namespace::check_writable(context.database, collection)?;
    Namespace::new(context.database, collection)
}

/// `{customAction: "CreateCollection", collection, offerThroughput?, shardKey?, autoScaleSettings?, indexes?}`.
async fn create_collection(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = namespace(context, &mut arguments)?;
    let throughput = ThroughputArguments::read(&mut arguments)?;
    let shard_key = arguments.string("shardKey")?.map(ShardKey::parse).transpose()?;
    if shard_key.is_none() {
        throughput.check_one_range()?;
    }
    let specifications = indexes::read(&mut arguments)?;
    arguments.finish()?;
    let definition = CollectionDefinition::new(RawDocumentBuf::new(), None, IndexDefinition::id_index(None)?);
    let mut definition = definition.sharded(shard_key);
    let mut policy = Policy::Off;
    let mut change = CollectionChange {
        definition: &mut definition,
        policy: &mut policy,
        now: context.begin().await?.now,
        is_empty: true,
        is_cancelled: false,
        event: None,
    };
    let mode = context.state.account.draft_options().ttl_mode;
    indexes::replace(
        &mut change,
        &namespace.to_string(),
        specifications.as_deref().unwrap_or_default(),
        mode,
    )?;
    collections::create_with_throughput(context, &namespace, (definition, policy), throughput.value()).await?;
    Ok(Reply::default())
}

/// `{customAction: "UpdateCollection", collection, offerThroughput?, autoScaleSettings?, indexes?}`: the indexes are the whole set from now on.
async fn update_collection(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = namespace(context, &mut arguments)?;
    let throughput = ThroughputArguments::read(&mut arguments)?;
    let specifications = indexes::read(&mut arguments)?;
    arguments.finish()?;
    let container = collection(context, &namespace)?;
    if let Some(specifications) = specifications {
        indexes::change(context, &namespace, &container, specifications).await?;
    }
    if throughput.value().is_some() {
        let resource = OfferResource::Container(container.rid());
        if !container.is_sharded() {
            throughput.check_one_range()?;
        }
        throughput.replace(context, resource).await?;
    }
    Ok(Reply::default())
}

/// `{customAction: "GetCollection", collection, showIndexes?}` →
/// `{database, collection, shardKeyDefinition?, provisionedThroughput?, autoScaleSettings?, indexes?}`.
fn get_collection(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let namespace = namespace(context, &mut arguments)?;
    let shows_indexes = arguments.boolean("showIndexes")?.unwrap_or(true);
    arguments.finish()?;
    let container = collection(context, &namespace)?;
    let mut reply = rawdoc! {"database": context.database, "collection": namespace.collection.as_str()};
    if let Some(shard_key) = &collections::definition(&container)?.shard_key {
        let mut definition = RawDocumentBuf::new();
        definition.append(shard_key.name(), "hashed");
        reply.append(cstr!("shardKeyDefinition"), definition);
    }
    throughput::append(context, OfferResource::Container(container.rid()), &mut reply);
    if shows_indexes {
        let definition = collections::definition(&container)?;
        let mut listed = RawArrayBuf::new();
        for index in definition.indexes.iter().filter(|index| !index.is_building) {
            let mut shown = index.definition.to_document();
            shown.append(cstr!("ns"), namespace.to_string());
            listed.push(shown);
        }
        reply.append(cstr!("indexes"), listed);
    }
    Ok(reply.into())
}

fn collection(context: &CommandContext<'_>, namespace: &Namespace) -> Result<Arc<Container>> {
    collections::find(context, namespace).ok_or_else(|| {
        let text = format!("Collection {namespace} does not exist.");
        Error::new(Code::NAMESPACE_NOT_FOUND, text)
    })
}

#[cfg(test)]
mod tests;
