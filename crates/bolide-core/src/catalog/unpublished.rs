//! Collections that open transactions have created: only their transaction knows them, until it commits.
//!
//! ```text
//!   reserve   catalog: numbers; the partition is listed for removal, as unpublished     a crash after this leaves nothing
//!   commit    home:    the documents of all collections; the publication, in the partition of each new one
//!   publish   catalog: database, container, name; the partition is no longer listed     a crash before this: the next start does it
//! ```
//!
//! The catalog is in a home of its own, so that there are two commits; the first decides. Both are made while no other change of the catalog runs
//! ([`Catalog::carry_out`]), so the names that were free before the first still are at the second. Readers of changes do not pass the first before the
//! second is made, and no request begins in between that could see what else the transaction has written ([`Catalog::settled`]).
//!
//! On a store that several processes share, others could take the names in between. There the collections are published first, and removed again if
//! nothing is committed: others may see an empty collection for a moment, and a crash in between leaves it.

mod publication;
mod publishing;

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bolide_model::names::validate_resource_id;
use bolide_model::rid::{ContainerRid, DatabaseRid};
use bolide_model::ttl::{Policy, Settings};
use bolide_model::{Error, ErrorKind, Result};
use bolide_storage::{HomeId, PartitionId, ReadRequest};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Catalog;
use super::batch::CatalogBatch;
use super::collections::CollectionChange;
use super::rows::{ContainerRow, RowKey, damaged};
use crate::container::{CollectionDefinition, Container, ContainerState, Layout};
use crate::format::keys;
use crate::partition::engine_error;
use publication::{Publication, reserve};
use publishing::Gate;

/// Maximum number of collections that open transactions have created, all together: each has an open partition.
const UNPUBLISHED: usize = 1_000;
/// Maximum number of attempts to publish a collection whose transaction is committed, and the time between two.
const TRIES: usize = 100;
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// What the catalog knows of unpublished collections.
pub(super) struct Unpublished {
    permits: Arc<Semaphore>,
    /// The partitions of collections that are being published: they stay open.
    layouts: Mutex<HashMap<ContainerRid, Layout>>,
    gate: Gate,
}

impl Default for Unpublished {
    fn default() -> Unpublished {
        Unpublished {
            permits: Arc::new(Semaphore::new(UNPUBLISHED)),
            layouts: Mutex::default(),
            gate: Gate::default(),
        }
    }
}

impl Unpublished {
    pub fn take_layout(&self, rid: ContainerRid) -> Option<Layout> {
        self.layouts.lock().remove(&rid)
    }
}

/// A collection to create.
#[derive(Clone)]
pub(crate) struct NewCollection {
    pub database: String,
    pub name: String,
    pub definition: Arc<CollectionDefinition>,
    pub policy: Policy,
}

/// Where another collection lies that the same transaction has created in the same database.
#[derive(Clone, Copy)]
pub(crate) struct Sibling {
    database: DatabaseRid,
    number: u32,
    home: HomeId,
    is_in_new_database: bool,
}

/// A collection of an open transaction. If it is dropped before it is committed, nothing is left of it.
pub(crate) struct UnpublishedCollection {
    catalog: Weak<Catalog>,
    container: Arc<Container>,
    publication: Publication,
    /// Whether its partition is removed when this is dropped.
    is_temporary: bool,
    _permit: OwnedSemaphorePermit,
}

impl UnpublishedCollection {
    pub fn container(&self) -> &Arc<Container> {
        &self.container
    }

    /// Keeps its partition when this is dropped.
    pub fn keep(&mut self) {
        self.is_temporary = false;
    }

    /// Returns where it lies, for further collections of the same database.
    pub fn sibling(&self, database: &str) -> Option<Sibling> {
        (self.publication.database == database).then(|| Sibling {
            database: self.publication.database(),
            number: self.publication.number,
            home: self.publication.home(),
            is_in_new_database: self.publication.is_in_new_database,
        })
    }

    /// Returns the row that commits it, together with the documents in its partition.
    pub fn encoded(&self) -> Bytes {
        let encoded = serde_json::to_vec(&self.publication);
        encoded
            .expect("publications have text for names and nothing that JSON cannot say")
            .into()
    }

    /// Changes its definition. `is_empty`: whether the transaction has no documents in it. Returns whether it has changed.
    ///
    /// # Errors
    /// The errors of `decide`; `BadRequest` for new indexes on documents.
    pub async fn change<T>(
        &mut self,
        is_empty: bool,
        decide: impl FnOnce(&mut CollectionChange<'_>) -> Result<T>,
    ) -> Result<(T, bool)> {
        let guard = self.container.lock().await;
        let row = &mut self.publication.row;
        let Some(known) = &row.collection else {
            return Err(Error::internal("a collection has a definition"));
        };
        let (mut definition, mut policy) = ((**known).clone(), row.properties.policy);
        let mut change = CollectionChange {
            definition: &mut definition,
            policy: &mut policy,
            now: guard.state().layout.partitions[0].now().await?,
            is_empty,
            is_cancelled: false,
            event: None,
        };
        let value = decide(&mut change)?;
        let event = change.event.take();
        if change.is_cancelled || definition.indexes.len() == known.indexes.len() {
            return Ok((value, false));
        }
        if !is_empty {
            return Err(Error::bad_request("a transaction creates no index on documents"));
        }
        let events = event.into_iter();
        self.publication
            .changes
            .extend(events.map(|(kind, description)| (kind, description.into_bytes())));
        let mut properties = (*row.properties).clone();
        properties.policy = policy;
        row.properties = Arc::new(properties);
        row.floors = Settings::new(policy).floors;
        row.history.iter_mut().for_each(|period| period.policy = policy);
        row.replace_collection(Arc::new(definition), true);
        guard.replace(state_of(row, &guard.state()));
        Ok((value, true))
    }

    /// Lets it keep its history if other collections do since it was created.
    async fn keep_history(&mut self, keeps_changes: bool) {
        let row = &mut self.publication.row;
        if row.keeps_all_versions != keeps_changes {
            row.keeps_all_versions = keeps_changes;
            let guard = self.container.lock().await;
            guard.replace(state_of(row, &guard.state()));
        }
    }

    fn partition(&self) -> Option<PartitionId> {
        self.publication.partition()
    }
}

fn state_of(row: &ContainerRow, before: &ContainerState) -> ContainerState {
    ContainerState::of(row, &before.layout, before.database_meter.clone())
}

impl Drop for UnpublishedCollection {
    fn drop(&mut self) {
        let (Some(catalog), Some(partition)) = (self.catalog.upgrade(), self.partition()) else {
            return;
        };
        // Otherwise the next start removes it.
        if let (true, Ok(runtime)) = (self.is_temporary, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                let remove = |catalog: Arc<Catalog>| async move {
                    catalog.remove_named(vec![partition]).await;
                    Ok(())
                };
                let _ = catalog.carry_out(remove).await;
            });
        }
    }
}

impl Catalog {
    /// Creates a collection that only its caller knows, in the home of its database, which must be `home` if it is given. `sibling` is the newest
    /// collection that the same transaction has created in this database.
    ///
    /// # Errors
    /// `Conflict` if the name is taken; [`bolide_model::Reason::OtherDatabase`]; `Unavailable` if there are too many.
    pub async fn reserve_collection(
        self: &Arc<Self>,
        new: NewCollection,
        home: Option<HomeId>,
        sibling: Option<Sibling>,
    ) -> Result<UnpublishedCollection> {
        // A row with such a name could not be read again.
        validate_resource_id(&new.name)?;
        let permit = self.unpublished.permits.clone().try_acquire_owned().map_err(|_| {
            let text = format!("open transactions have created too many collections. limit={UNPUBLISHED}");
            Error::new(ErrorKind::Unavailable, text)
        })?;
        let reserved = self.commit(move |batch| reserve(batch, &new, home, sibling)).await?;
        let named = RowKey::Container(reserved.container());
        let fits = self
            .budget
            .lock()
            .check(&vec![(named, Some(reserved.row.clone().into()))]);
        let opened = match fits {
            Ok(()) => self.open_layout(&reserved.row, None).await,
            Err(error) => Err(error),
        };
        let layout = match opened {
            Ok(layout) => Arc::new(layout),
            Err(error) => {
                self.remove_named(reserved.partition().into_iter().collect()).await;
                return Err(error);
            }
        };
        let database_meter = {
            let memory = self.memory.read();
            let database = memory.database(reserved.database()).ok();
            database.and_then(|database| database.meter.clone())
        };
        let state = ContainerState::of(&reserved.row, &layout, database_meter);
        state.pace_meters(self.now().await?.seconds());
        Ok(UnpublishedCollection {
            catalog: Arc::downgrade(self),
            container: Container::new(reserved.container(), reserved.database.clone(), state),
            publication: reserved,
            is_temporary: true,
            _permit: permit,
        })
    }

    /// Prepares the collections of a transaction that commits. Must be called, with all that follows, inside of [`Catalog::carry_out`].
    ///
    /// # Errors
    /// [`bolide_model::Reason::WriteConflict`] if others have taken a name; `QuotaExceeded`.
    pub async fn check_unpublished(&self, created: &mut [UnpublishedCollection]) -> Result<()> {
        let publications: Vec<Publication> = created.iter().map(|created| created.publication.clone()).collect();
        let mut rows = Vec::new();
        for publication in &publications {
            let key = RowKey::Container(publication.container());
            rows.push((key, Some(publication.row.clone().into())));
        }
        self.budget.lock().check(&rows)?;
        let check = move |batch: &mut CatalogBatch<'_, '_>| {
            for publication in &publications {
                publication.database_row(batch)?;
            }
            Ok(batch.account()?.keeps_changes)
        };
        let keeps_changes = self.read(check).await?;
        for created in created {
            created.keep_history(keeps_changes).await;
        }
        Ok(())
    }

    /// Publishes the collections of a transaction that is committed. If the storage fails, the next start publishes them.
    ///
    /// # Errors
    /// `Timeout` if the storage fails for long.
    pub async fn publish(&self, created: &mut [UnpublishedCollection]) -> Result<()> {
        created.iter_mut().for_each(UnpublishedCollection::keep);
        for created in created {
            let mut tries = 0;
            while let Err(error) = self.publish_one(created).await {
                tries += 1;
                if tries == TRIES {
                    let error = error.context("the transaction is committed, and its collections are not shown yet");
                    return Err(Error {
                        kind: ErrorKind::Timeout,
                        ..error
                    });
                }
                tokio::time::sleep(TRY_AGAIN).await;
            }
        }
        Ok(())
    }

    /// Publishes the collections of a transaction before its commit.
    ///
    /// # Errors
    /// [`bolide_model::Reason::WriteConflict`] if others have taken a name. Nothing is left then.
    pub async fn publish_first(&self, created: &mut [UnpublishedCollection]) -> Result<()> {
        for at in 0..created.len() {
            match self.publish_one(&created[at]).await {
                Ok(()) => created[at].keep(),
                Err(error) => {
                    self.unpublish(&created[..at]).await;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Removes collections that were published before a commit that has failed.
    pub async fn unpublish(&self, created: &[UnpublishedCollection]) {
        for created in created {
            if let Err(error) = self.delete_container(created.container.rid(), None).await {
                tracing::warn!(%error, "an empty collection of a transaction that failed is left");
            }
        }
    }

    async fn publish_one(&self, created: &UnpublishedCollection) -> Result<()> {
        let rid = created.container.rid();
        let layout = (*created.container.state().layout).clone();
        self.unpublished.layouts.lock().insert(rid, layout);
        let published = self.publish_row(created.publication.clone()).await;
        self.unpublished.take_layout(rid);
        published
    }

    async fn publish_row(&self, publication: Publication) -> Result<()> {
        let later = publication.later_events();
        self.commit(move |batch| publication.publish(batch)).await?;
        for events in later {
            self.commit(move |batch| {
                events.iter().for_each(|event| batch.event(event.clone()));
                Ok(())
            })
            .await?;
        }
        Ok(())
    }

    /// Ends the transactions that were open when the process before this one ended: publishes the collections that they have committed, and removes the
    /// others.
    pub(super) async fn end_interrupted(&self, partitions: Vec<PartitionId>) -> Result<()> {
        let mut uncommitted = Vec::new();
        for partition in partitions {
            match self.publication_in(partition).await? {
                Some(publication) => {
                    // A full disk must not stop reads.
                    if let Err(error) = self.publish_row(publication).await {
                        tracing::warn!(%error, "a collection that a transaction has created is not shown yet");
                    }
                }
                None => uncommitted.push(partition),
            }
        }
        self.remove_dropped(uncommitted).await
    }

    async fn publication_in(&self, partition: PartitionId) -> Result<Option<Publication>> {
        let request = ReadRequest::of_keys(vec![keys::publication()]);
        match self.engine.read(partition, request).await.map_err(engine_error) {
            Ok(mut reply) => {
                let row = reply.gets.pop().flatten();
                let publication = row.map(|row| serde_json::from_slice(&row)).transpose();
                publication.map_err(|_| damaged("a publication cannot be read"))
            }
            // It was not created yet.
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}
