//! Changes of a collection's indexes.

use std::sync::Arc;

use bolide_core::{BuildFailure, CollectionChange, CollectionDefinition, Container};
use bolide_mql::index::{self, IndexDefinition, TtlRule};
use bolide_mql::{Code, Error, Result};

use super::super::context::CommandContext;
use super::collections;
use crate::codes;
use crate::namespace::Namespace;
use crate::transactions::SessionTransaction;

/// Changes the definition of a collection: all requests see either the state before or after it. An error of `decide` leaves everything as it is.
///
/// # Errors
/// Of `decide`; `NamespaceNotFound` if the collection was removed; of the storage.
pub async fn change<T, F>(context: &CommandContext<'_>, container: &Arc<Container>, mut decide: F) -> Result<T>
where
    T: Send + 'static,
    F: FnMut(&mut CollectionChange<'_>) -> Result<T> + Send + 'static,
{
    if let Some(transaction) = created_in(context, container) {
        return transaction.change_created(container, decide).await;
    }
    let changed = context.state.account.change_collection(container, move |change| {
        let decided = decide(change);
        change.is_cancelled |= decided.is_err();
        Ok(decided)
    });
    changed.await.map_err(|error| codes::error(&error))?
}

/// Returns the transaction of the command if it has created the collection.
pub fn created_in<'a>(context: &'a CommandContext<'_>, container: &Arc<Container>) -> Option<&'a SessionTransaction> {
    let transaction = context.transaction.as_deref()?;
    transaction.has_created(container).then_some(transaction)
}

/// Returns the definitions of all indexes.
pub fn definitions(collection: &CollectionDefinition) -> Vec<IndexDefinition> {
    collection
        .indexes
        .iter()
        .map(|index| (*index.definition).clone())
        .collect()
}

/// Checks that an index is possible in a sharded collection: keys are unique among the documents with the same value of the shard key, so a unique index
/// must have this value in its keys, and first.
///
/// # Errors
/// `CannotCreateIndex`.
pub fn check_sharded(collection: &CollectionDefinition, index: &IndexDefinition) -> Result<()> {
    let Some(shard_key) = &collection.shard_key else {
        return Ok(());
    };
    let path = shard_key.path();
    let is_first = index.key().fields().first().is_some_and(|field| *field.name == *path);
    if !index.enforces_unique() || index.is_id() || (is_first && index.collation().is_none()) {
        return Ok(());
    }
    let text =
        format!("A unique index of a sharded collection must begin with the shard key {path}, and have no collation.");
    Err(Error::new(Code::CANNOT_CREATE_INDEX, text))
}

/// Adds an index to the definition, with its rule of expiry. Returns its id if it has to be built.
pub fn add(change: &mut CollectionChange<'_>, definition: IndexDefinition) -> Option<u32> {
    let seconds = match definition.ttl_rule() {
        Some(TtlRule::Core(policy)) => {
            *change.policy = policy;
            None
        }
        Some(TtlRule::Date(seconds)) => Some(seconds),
        None => None,
    };
    let must_build =
        !change.is_empty && (seconds.is_some() || definition.enforces_unique() || index::has_stored_keys(&definition));
    let id = change.definition.add_index(definition, seconds, must_build);
    must_build.then_some(id)
}

/// Removes an index from the definition, and its rule of expiry.
pub fn remove(change: &mut CollectionChange<'_>, name: &str) {
    if let Some(index) = change.definition.index(name)
        && matches!(index.definition.ttl_rule(), Some(TtlRule::Core(_)))
    {
        *change.policy = bolide_model::ttl::Policy::Off;
    }
    change.definition.remove_index(name, change.now);
}

/// Returns the time to live of a TTL index on a date field, in seconds.
pub fn date_seconds(definition: &IndexDefinition) -> Option<u32> {
    match definition.ttl_rule() {
        Some(TtlRule::Date(seconds)) => Some(seconds),
        _ => None,
    }
}

/// Replaces the definition of an index, and its rule of expiry.
pub fn replace(change: &mut CollectionChange<'_>, name: &str, definition: IndexDefinition) {
    let seconds = match definition.ttl_rule() {
        Some(TtlRule::Core(policy)) => {
            *change.policy = policy;
            None
        }
        Some(TtlRule::Date(seconds)) => Some(seconds),
        None => None,
    };
    change.definition.replace_index(name, definition, seconds, change.now);
}

/// Builds indexes that were added, and puts them into force. If that fails, they are removed again.
///
/// # Errors
/// `DuplicateKey` for a unique index over documents with equal keys; those of index keys; of the storage.
pub async fn build(
    context: &CommandContext<'_>,
    namespace: &Namespace,
    container: &Arc<Container>,
    added: Vec<u32>,
) -> Result<()> {
    if added.is_empty() {
        return Ok(());
    }
    let built = context.state.account.build_indexes(container).await;
    let failure = match built {
        Ok(Ok(())) => {
            let finish = move |change: &mut CollectionChange<'_>| {
                change.definition.finish_building(&added);
                Ok(())
            };
            return change(context, container, finish).await;
        }
        Ok(Err(failure)) => build_error(namespace, container, failure)?,
        Err(error) => codes::error(&error),
    };
    let undo = move |change: &mut CollectionChange<'_>| {
        let names: Vec<String> = change
            .definition
            .indexes
            .iter()
            .filter(|index| added.contains(&index.id))
            .map(|index| index.definition.name().to_owned())
            .collect();
        for name in names {
            remove(change, &name);
        }
        Ok(())
    };
    change(context, container, undo).await?;
    Err(failure)
}

/// Builds the keys and deadlines of all indexes again, as their definitions say.
///
/// # Errors
/// As [`build`]; the definitions stay as they are.
pub async fn rebuild(context: &CommandContext<'_>, namespace: &Namespace, container: &Arc<Container>) -> Result<()> {
    match context.state.account.build_indexes(container).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(failure)) => Err(build_error(namespace, container, failure)?),
        Err(error) => Err(codes::error(&error)),
    }
}

/// An index that becomes unique: documents that existed before lack its keys.
pub struct Conversion {
    id: u32,
    before: IndexDefinition,
}

impl Conversion {
    /// Marks an index, which has its new definition already, as being built.
    pub fn begin(change: &mut CollectionChange<'_>, before: IndexDefinition) -> Option<Conversion> {
        let indexes = &mut change.definition.indexes;
        let index = indexes
            .iter_mut()
            .find(|index| index.definition.name() == before.name())?;
        // The rules of expiry of an index that is being built are not in force, so one that was a TTL index already is not marked.
        index.is_building = date_seconds(&before).is_none();
        Some(Conversion { id: index.id, before })
    }
}

/// Builds the keys and deadlines of an index that becomes unique, or a TTL index. If that fails, the index is as before.
///
/// # Errors
/// `CannotConvertIndexToUnique` if documents have equal keys; of the storage.
pub async fn convert(context: &CommandContext<'_>, container: &Arc<Container>, conversion: Conversion) -> Result<()> {
    let Conversion { id, before } = conversion;
    let built = context.state.account.build_indexes(container).await;
    let failure = match built {
        Ok(Ok(())) => {
            let finish = move |change: &mut CollectionChange<'_>| {
                change.definition.finish_building(&[id]);
                Ok(())
            };
            return change(context, container, finish).await;
        }
        Ok(Err(BuildFailure::Keys(error))) => error,
        Ok(Err(BuildFailure::Duplicate { .. })) => Error::new(
            Code::CANNOT_CONVERT_INDEX_TO_UNIQUE,
            "Cannot convert the index to unique. Please resolve conflicting documents before running collMod again.",
        ),
        Err(error) => codes::error(&error),
    };
    let undo = move |change: &mut CollectionChange<'_>| {
        change.definition.undo_building(id, before.clone());
        Ok(())
    };
    change(context, container, undo).await?;
    Err(failure)
}

fn build_error(namespace: &Namespace, container: &Container, failure: BuildFailure) -> Result<Error> {
    match failure {
        BuildFailure::Keys(error) => Ok(error),
        BuildFailure::Duplicate { index: id, document } => {
            let definition = collections::definition(container)?;
            let index = definition.indexes.iter().find(|index| index.id == id);
            let Some(index) = index else {
                return Ok(Error::new(Code::DUPLICATE_KEY, "E11000 duplicate key error"));
            };
            let keys = index::keys(&index.definition, document.document())?.keys;
            let key = keys.first().map_or(&[][..], Vec::as_slice);
            Ok(index::duplicate_key_error(
                &index.definition,
                &namespace.to_string(),
                document.document(),
                key,
            ))
        }
    }
}
