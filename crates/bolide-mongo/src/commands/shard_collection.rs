//! `shardCollection` and `enableSharding`: collections whose documents are placed by the hash of one field.
//!
//! Source: mongo.md §15. As in Cosmos DB, a collection gets its shard key when it is created.

use bolide_core::{CollectionDefinition, Container, ShardKey};
use bolide_model::ttl::Policy;
use bolide_mql::index::IndexDefinition;
use bolide_mql::{Code, Error, Result, namespace};
use bson::raw::RawBsonRef;
use bson::{RawDocument, RawDocumentBuf, rawdoc};

use super::arguments::{Arguments, wrong_type};
use super::context::{CommandContext, Reply};
use super::data::collections;
use crate::namespace::Namespace;

/// `{shardCollection: "db.collection", key: {path: "hashed"}, unique?: false, collation?: {locale: "simple"}}`, on `admin` or on the database →
/// `{_t, collectionsharded}`.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let name = match arguments.first() {
        Some(RawBsonRef::String(name)) => name,
        other => {
            let value = other.unwrap_or(RawBsonRef::Null);
            return Err(wrong_type("shardCollection.shardCollection", value, "type 'string'"));
        }
    };
    let key = arguments.document("key")?;
    let key = arguments.required("key", key)?;
    let is_unique = arguments.boolean("unique")?.unwrap_or(false);
    let collation = arguments.document("collation")?;
    // Ranges follow from the throughput.
    arguments.ignore(&["numInitialChunks", "presplitHashedZones"]);
    arguments.finish()?;
    let (database, collection) = namespace::split(name)?;
    check_database(context, database)?;
    namespace::check_writable(database, collection)?;
    let namespace = Namespace::new(database, collection)?;
    let shard_key = read_key(key)?;
    if is_unique {
        return Err(Error::new(
            Code::INVALID_OPTIONS,
            "Hashed shard keys cannot be declared unique",
        ));
    }
    if collation.is_some_and(|collation| collation.get_str("locale").ok() != Some("simple")) {
        let text = "The collation for shardCollection must be {locale: 'simple'}, but found a different one";
        return Err(Error::bad_value(text));
    }
    match collections::find(context, &namespace) {
        Some(container) => check_existing(&container, &namespace, &shard_key)?,
        None => {
            let definition = CollectionDefinition::new(RawDocumentBuf::new(), None, IndexDefinition::id_index(None)?);
            let definition = definition.sharded(Some(shard_key.clone()));
            match collections::create(context, &namespace, definition, Policy::Off).await {
                // Another client has created it.
                Err(error) if error.code == Code::NAMESPACE_EXISTS => match collections::find(context, &namespace) {
                    Some(container) => check_existing(&container, &namespace, &shard_key)?,
                    None => return Err(error),
                },
                created => drop(created?),
            }
        }
    }
    Ok(rawdoc! {"_t": "ShardCollectionResponse", "collectionsharded": name}.into())
}

/// `{enableSharding: database}`: every database may have sharded collections.
pub async fn enable(_: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let Some(RawBsonRef::String(name)) = arguments.first() else {
        let value = arguments.first().unwrap_or(RawBsonRef::Null);
        return Err(wrong_type("enableSharding.enableSharding", value, "type 'string'"));
    };
    namespace::check_database(name)?;
    arguments.ignore(&["primaryShard"]);
    arguments.finish()?;
    Ok(Reply::default())
}

/// Checks that the command may be sent to its database for a collection of another one: only `admin` is for all, with rights on the other one.
fn check_database(context: &CommandContext<'_>, database: &str) -> Result<()> {
    if context.database != database && context.database != "admin" {
        let text =
            format!("shardCollection for {database} may only be run against that database or the admin database.");
        return Err(Error::new(Code::UNAUTHORIZED, text));
    }
    if context.grants.allow_command(context.command, database) {
        return Ok(());
    }
    let text = format!("not authorized on {database} to execute command shardCollection");
    Err(Error::new(Code::UNAUTHORIZED, text))
}

/// Reads the key: one hashed field.
fn read_key(key: &RawDocument) -> Result<ShardKey> {
    let mut fields = key.into_iter();
    let (Some(field), None) = (fields.next(), fields.next()) else {
        let text = "The shard key must be one field, such as {region: 'hashed'}.";
        return Err(Error::bad_value(text));
    };
    let (path, kind) = field?;
    if kind != RawBsonRef::String("hashed") {
        let text = format!("The shard key {path} must be hashed: {{{path}: 'hashed'}}.");
        return Err(Error::bad_value(text));
    }
    ShardKey::parse(path.as_str())
}

fn check_existing(container: &Container, namespace: &Namespace, shard_key: &ShardKey) -> Result<()> {
    match &collections::definition(container)?.shard_key {
        Some(known) if **known == *shard_key => Ok(()),
        Some(known) => {
            let text = format!("{namespace} is already sharded, by {}.", known.path());
            Err(Error::new(Code::ALREADY_INITIALIZED, text))
        }
        None => {
            let text =
                format!("{namespace} exists without a shard key. A collection gets its shard key when it is created.");
            Err(Error::new(Code::NAMESPACE_EXISTS, text))
        }
    }
}

#[cfg(test)]
mod tests;
