//! The users whom commands create: stored as documents of `admin.system.users`, which clients cannot use as a collection.
//!
//! Source: mongo.md §4, §6.

pub mod roles;
pub mod user;

use std::collections::HashMap;
use std::sync::Arc;

use bolide_core::{
    Account, CollectionDefinition, Container, DocumentBatch, DocumentDraft, DocumentId, DocumentScan, ReadScope,
    Undecided, Usage,
};
use bolide_model::ErrorKind;
use bolide_model::epk::Epk;
use bolide_model::rid::ContainerRid;
use bolide_model::ttl::Policy;
use bolide_mql::index::IndexDefinition;
use bolide_mql::{Code, Error, Result};
use bson::RawDocumentBuf;
use bson::raw::RawBsonRef;
use parking_lot::Mutex;

use crate::codes;
use crate::limits;
use crate::namespace::{USERS_COLLECTION, USERS_DATABASE};

pub use roles::{Privilege, Role};
pub use user::User;

/// See the module. Users who were asked for are kept in memory until any user changes.
#[derive(Debug, Default)]
pub struct Users {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The collection that they were read from.
    container: Option<ContainerRid>,
    users: HashMap<String, Arc<User>>,
    /// Counts the changes, so that nothing is kept that was read before one.
    changes: u64,
}

impl Known {
    /// Forgets users of another collection: this one was made after that was removed with its database.
    fn are_of(&mut self, container: &Container) {
        if self.container != Some(container.rid()) {
            *self = Known {
                container: Some(container.rid()),
                users: HashMap::new(),
                changes: self.changes + 1,
            };
        }
    }
}

/// The result of a decision on a stored user.
type Decided<T> = Result<Result<T>, Undecided>;

impl Users {
    /// Finds a user of a database.
    ///
    /// # Errors
    /// Those of the storage.
    pub async fn find(&self, account: &Arc<Account>, database: &str, name: &str) -> Result<Option<Arc<User>>> {
        let key = user::key(database, name);
        let Some(container) = stored(account) else {
            return Ok(None);
        };
        let changes = {
            let mut known = self.known.lock();
            known.are_of(&container);
            if let Some(user) = known.users.get(&key) {
                // `a.b` in `c` and `b` in `c.a` would have the same key, but the name of a database has no dot.
                return Ok(Some(user.clone()));
            }
            known.changes
        };
        let scope = ReadScope::new(begin(account).await?.now);
        let found = scope.find(&container, &Epk::start(), &id(&key)).await;
        let Some(found) = found.map_err(|error| codes::error(&error))? else {
            return Ok(None);
        };
        let user = Arc::new(User::from_document(found.document())?);
        let mut known = self.known.lock();
        if known.changes == changes {
            known.users.insert(key, user.clone());
        }
        Ok(Some(user))
    }

    /// Returns all users, in the order of their names and databases.
    ///
    /// # Errors
    /// Those of the storage.
    pub async fn all(&self, account: &Arc<Account>) -> Result<Vec<User>> {
        let Some(container) = stored(account) else {
            return Ok(Vec::new());
        };
        let scope = ReadScope::new(begin(account).await?.now);
        let (mut scan, mut users) = (DocumentScan::default(), Vec::new());
        while let Some(page) = scan
            .next_page(&scope, &container)
            .await
            .map_err(|error| codes::error(&error))?
        {
            for document in page.documents {
                users.push(User::from_document(document.document())?);
            }
        }
        users.sort_by(|a, b| (&a.name, &a.database).cmp(&(&b.name, &b.database)));
        Ok(users)
    }

    /// Stores a new user. Returns false if there is one with its name.
    ///
    /// # Errors
    /// `OperationFailed` if there are too many; those of the storage.
    pub async fn insert(&self, account: &Arc<Account>, user: &User) -> Result<bool> {
        let container = collection(account).await?;
        check_room(usage(account, &container).await?)?;
        let draft = draft(account, &container, user.to_document())?;
        self.write(account, &container, move |batch| Ok(Ok(batch.insert(&draft)?.is_ok())))
            .await
    }

    /// Changes a user. Returns false if there is none with this name.
    ///
    /// # Errors
    /// Those of `change`, and of the storage.
    pub async fn change<F>(&self, account: &Arc<Account>, database: &str, name: &str, change: F) -> Result<bool>
    where
        F: Fn(&mut User) -> Result<()> + Send + 'static,
    {
        let Some(container) = stored(account) else {
            return Ok(false);
        };
        check_size(usage(account, &container).await?)?;
        let (id, of, holder) = (id(&user::key(database, name)), account.clone(), container.clone());
        self.write(account, &container, move |batch| {
            let Some(found) = batch.find(&id)? else {
                return Ok(Ok(false));
            };
            let changed = User::from_document(found.document()).and_then(|mut user| {
                change(&mut user)?;
                draft(&of, &holder, user.to_document())
            });
            Ok(match changed {
                Ok(draft) => Ok(batch.replace(&found, &draft)?.is_ok()),
                Err(error) => Err(error),
            })
        })
        .await
    }

    /// Removes a user. Returns false if there is none with this name.
    ///
    /// # Errors
    /// Those of the storage.
    pub async fn remove(&self, account: &Arc<Account>, database: &str, name: &str) -> Result<bool> {
        let Some(container) = stored(account) else {
            return Ok(false);
        };
        let id = id(&user::key(database, name));
        self.write(account, &container, move |batch| {
            let found = batch.find(&id)?;
            if let Some(found) = &found {
                batch.delete(found);
            }
            Ok(Ok(found.is_some()))
        })
        .await
    }

    async fn write<T, F>(&self, account: &Arc<Account>, container: &Arc<Container>, decide: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut DocumentBatch<'_, '_>) -> Decided<T> + Send + 'static,
    {
        let request = begin(account).await?;
        let written = account
            .write_document(&request, (container, Epk::start()), decide)
            .await;
        // Also after an error: the change may have been committed.
        let mut known = self.known.lock();
        known.changes += 1;
        known.users.clear();
        drop(known);
        written.map_err(|refusal| codes::error(&refusal.error))?.value
    }
}

async fn begin(account: &Account) -> Result<bolide_core::RequestContext> {
    account.begin().await.map_err(|error| codes::error(&error))
}

/// The collection; `None` if there are no users yet.
fn stored(account: &Account) -> Option<Arc<Container>> {
    account.private_collection(USERS_DATABASE, USERS_COLLECTION)
}

fn id(key: &str) -> DocumentId {
    DocumentId::of(RawBsonRef::String(key), None)
}

/// Checks that there is room for another user.
fn check_room(usage: Usage) -> Result<()> {
    if usage.items >= limits::USERS {
        let text = format!("there are too many users. limit={}", limits::USERS);
        return Err(Error::new(Code::OPERATION_FAILED, text));
    }
    check_size(usage)
}

fn check_size(usage: Usage) -> Result<()> {
    if usage.bytes < limits::USERS_BYTES {
        return Ok(());
    }
    let text = format!("the users take too much space. limit={} bytes", limits::USERS_BYTES);
    Err(Error::new(Code::OPERATION_FAILED, text))
}

async fn usage(account: &Arc<Account>, container: &Arc<Container>) -> Result<Usage> {
    account.usage(container).await.map_err(|error| codes::error(&error))
}

/// The collection, which the first user creates.
async fn collection(account: &Arc<Account>) -> Result<Arc<Container>> {
    if let Some(container) = stored(account) {
        return Ok(container);
    }
    let definition = CollectionDefinition::new(RawDocumentBuf::new(), None, IndexDefinition::id_index(None)?).private();
    let created = account
        .create_collection(USERS_DATABASE, USERS_COLLECTION, definition, Policy::Off)
        .await;
    let error = match created {
        Ok(container) => return Ok(container),
        Err(error) => error,
    };
    match stored(account) {
        Some(container) if error.kind == ErrorKind::Conflict => Ok(container),
        _ => Err(codes::error(&error)),
    }
}

fn draft(account: &Account, container: &Container, document: RawDocumentBuf) -> Result<DocumentDraft> {
    let definition = container.collection();
    let definition = definition.ok_or_else(|| Error::new(Code::NAMESPACE_NOT_FOUND, "the users are gone"))?;
    DocumentDraft::new(document, &definition, account.draft_options())
}

#[cfg(test)]
mod tests;
