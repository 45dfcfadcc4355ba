//! Collections by their names.

use std::sync::Arc;

use bolide_core::{Account, CollectionDefinition, Container, Throughput};
use bolide_model::error::Detail;
use bolide_model::ttl::Policy;
use bolide_model::{ErrorKind, Reason};
use bolide_mql::index::IndexDefinition;
use bolide_mql::{Code, Error, Result};
use bson::spec::BinarySubtype;
use bson::{Binary, RawDocumentBuf};

use super::super::context::CommandContext;
use crate::codes;
use crate::namespace::Namespace;

/// Returns the collection of a namespace; `None` if there is none.
pub fn find(context: &CommandContext<'_>, namespace: &Namespace) -> Option<Arc<Container>> {
    if namespace.is_of_users() {
        return None;
    }
    if let Some(created) = context.transaction.as_ref().and_then(|known| known.created(namespace)) {
        return Some(created);
    }
    context
        .state
        .account
        .find_collection(&namespace.database, &namespace.collection)
}

/// Returns the definition of a collection.
///
/// # Errors
/// `NamespaceNotFound` if it was removed meanwhile.
pub fn definition(container: &Container) -> Result<Arc<CollectionDefinition>> {
    container
        .collection()
        .ok_or_else(|| Error::new(Code::NAMESPACE_NOT_FOUND, "the collection was dropped"))
}

/// Returns the collection of a namespace, which is created without options if there is none, as the first write to it does.
///
/// # Errors
/// `OperationFailed` if the name is that of a container of the NoSQL API; errors of the storage.
pub async fn find_or_create(context: &CommandContext<'_>, namespace: &Namespace) -> Result<Arc<Container>> {
    loop {
        if let Some(container) = find(context, namespace) {
            return Ok(container);
        }
        let definition = CollectionDefinition::new(RawDocumentBuf::new(), None, IndexDefinition::id_index(None)?);
        match create(context, namespace, definition, Policy::Off).await {
            // Another client has created it.
            Err(error) if error.code == Code::NAMESPACE_EXISTS && find(context, namespace).is_some() => {}
            created => return created,
        }
    }
}

/// Creates a collection, and its database if there is none; in a transaction, nobody else sees them before it commits.
///
/// # Errors
/// `NamespaceExists`; `OperationFailed` if the name is that of a container of the NoSQL API; errors of the storage.
pub async fn create(
    context: &CommandContext<'_>,
    namespace: &Namespace,
    definition: CollectionDefinition,
    policy: Policy,
) -> Result<Arc<Container>> {
    create_with_throughput(context, namespace, (definition, policy), None).await
}

/// As [`create`], with throughput of its own.
///
/// # Errors
/// As [`create`]; `BadValue` for a bad throughput.
pub async fn create_with_throughput(
    context: &CommandContext<'_>,
    namespace: &Namespace,
    definition: (CollectionDefinition, Policy),
    throughput: Option<Throughput>,
) -> Result<Arc<Container>> {
    let Namespace { database, collection } = namespace;
    if namespace.is_of_users() {
        return Err(Error::new(
            Code::UNAUTHORIZED,
            format!("not authorized on {database} to write {namespace}"),
        ));
    }
    let account = &context.state.account;
    let exists = || {
        Error::new(
            Code::NAMESPACE_EXISTS,
            format!("Collection {namespace} already exists."),
        )
    };
    let created = match &context.transaction {
        None => {
            account
                .create_collection_with_throughput(database, collection, definition, throughput)
                .await
        }
        Some(transaction) if transaction.created(namespace).is_some() => return Err(exists()),
        Some(transaction) => {
            let now = context.begin().await?.now;
            transaction.create(account, namespace, definition, now).await
        }
    };
    created.map_err(|error| match error.kind {
        _ if is_write_conflict(&error) => codes::error(&error),
        ErrorKind::Conflict if find(context, namespace).is_some() => exists(),
        ErrorKind::Conflict => {
            let text = format!("{namespace} is a container of the NoSQL API, whose items MongoDB's clients cannot use");
            Error::new(Code::OPERATION_FAILED, text)
        }
        _ => codes::error(&error),
    })
}

fn is_write_conflict(error: &bolide_model::Error) -> bool {
    matches!(&error.detail, Detail::Reason(Reason::WriteConflict))
}

/// Returns an unsharded collection of a database: transactions and snapshots begin on these, and see no others.
pub fn first_unsharded(account: &Account, database: &str) -> Option<Arc<Container>> {
    let mut collections = account.list_collections(database).into_iter();
    collections.find(|container| !container.is_sharded())
}

/// Returns the identity of a collection as BSON has it.
pub fn uuid(definition: &CollectionDefinition) -> Binary {
    Binary {
        subtype: BinarySubtype::Uuid,
        bytes: definition.uuid.as_bytes().to_vec(),
    }
}
