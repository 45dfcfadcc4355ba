//! MongoDB collections: create, rename, change. They are containers whose rows also describe options and indexes, and are found and deleted as these.

use std::sync::Arc;

use bolide_model::container::ContainerProperties;
use bolide_model::epk::{self, EpkRange};
use bolide_model::error::Resource;
use bolide_model::names::validate_resource_id;
use bolide_model::partition_key::PartitionKeyDefinition;
use bolide_model::rid::{ContainerRid, DatabaseRid};
use bolide_model::ttl::{Policy, RuleId, Settings};
use bolide_model::{Error, Result, UnixMillis};
use bolide_mql::bson::RawDocumentBuf;
use bolide_storage::{HomeId, PartitionId};
use futures_util::FutureExt as _;
use serde_json::json;

use super::Catalog;
use super::batch::{CatalogBatch, CommitPoint};
use super::databases;
use super::events::{CatalogEvent, CatalogEventKind};
use super::history::tell_endings;
use super::names::Name;
use super::offers::new_offer;
use super::partitions::FIRST_LAYOUT;
use super::removal::{Dropped, delete};
use super::rows::{AccountRow, ContainerRow, DatabaseRow, RowKey, Unknown};
use crate::container::{CollectionDefinition, Container, ContainerState, PolicyPeriod, WriteGuard};
use crate::partition::write_batch::Decision;
use crate::partition::{Placement, SettingsNumber};
use crate::throughput::{OfferType, PacingSettings, Throughput};

/// A change of a collection, while it is decided.
pub struct CollectionChange<'c> {
    /// Options and indexes.
    pub definition: &'c mut CollectionDefinition,
    /// The time to live of the index on `_ts`.
    pub policy: &'c mut Policy,
    /// Server time of the change.
    pub now: UnixMillis,
    /// Whether no documents are stored, ghosts included: then new indexes need not be built.
    pub is_empty: bool,
    /// Set it to leave everything as it is.
    pub is_cancelled: bool,
    /// What change streams are told, with a description as the front end has written it.
    pub event: Option<(CatalogEventKind, RawDocumentBuf)>,
}

impl Catalog {
    /// Creates a collection, and its database if there is none.
    ///
    /// # Errors
    /// `Conflict` if the database has a collection or a container with this name; `BadRequest` for a bad throughput.
    pub async fn create_collection(
        &self,
        database: &str,
        name: &str,
        (definition, policy): (CollectionDefinition, Policy),
        throughput: Option<Throughput>,
    ) -> Result<Arc<Container>> {
        check_throughput(&definition, throughput)?;
        let (database, name) = (database.to_owned(), name.to_owned());
        let definition = Arc::new(definition);
        let create = move |batch: &mut CatalogBatch<'_, '_>| {
            let database = database_rid(batch, &database)?;
            create(batch, database, &name, (&definition, policy), throughput)
        };
        let rid = self.commit(create).await?;
        self.container(rid).await
    }

    /// Gives a collection another name inside its database. A collection that has the name is removed by the same commit if `replaces`.
    ///
    /// # Errors
    /// `Conflict` if the name is taken; `BadRequest` for a name that no container can have.
    // Long: one commit with what surrounds it, in order.
    pub async fn rename_collection(&self, container: &Arc<Container>, name: &str, replaces: bool) -> Result<()> {
        // A row with such a name could not be read again.
        validate_resource_id(name)?;
        let rid = container.rid();
        let taken = self.collection_by_name(rid.database(), name);
        let replaced = taken.ok().filter(|taken| replaces && taken.rid() != rid);
        let replaced_rid = replaced.as_ref().map(|replaced| replaced.rid());
        let replaced_uuid = replaced.as_ref().and_then(|replaced| replaced.collection());
        let replaced_uuid = replaced_uuid.map(|collection| collection.uuid);
        // Checked first, so that no reader is interrupted for a rename that will be refused.
        self.read(move |batch| batch.container(rid)).await?;
        // Never together with the lock of the collection that is renamed: a request may use one and wait for the other.
        let removal = match &replaced {
            Some(replaced) => Some(replaced.lock().await),
            None => None,
        };
        let to = name.to_owned();
        let rename = move |batch: &mut CatalogBatch<'_, '_>| {
            let dropped = match replaced_rid {
                Some(replaced) => Some(delete(batch, replaced, None, true)?),
                None => None,
            };
            let mut row = batch.container(rid)?;
            if batch.named(Name::Container(rid.database(), &to))?.is_some() {
                return Err(Error::name_taken(Resource::Container, &to).into());
            }
            let database = batch.database(rid.database())?.id;
            let names = (&database[..], &row.properties.id[..]);
            let uuid = row.collection.as_ref().map(|collection| collection.uuid);
            batch.event(CatalogEvent {
                to: Some(to.clone()),
                replaced: replaced_uuid,
                ..CatalogEvent::of_collection(CatalogEventKind::Rename, names, rid, uuid)
            });
            row.properties = Arc::new(ContainerProperties {
                id: to.clone(),
                ..(*row.properties).clone()
            });
            let commit_point = batch.commit_point();
            (row.etag, row.last_modified) = (commit_point.etag(), commit_point.now);
            batch.replace(RowKey::Container(rid), row.clone())?;
            Ok((row, dropped))
        };
        let ((row, dropped), committed) = match (&replaced, &removal) {
            (Some(replaced), Some(removal)) => {
                let renamed = async {
                    tell_endings(&removal.state()).await?;
                    let renamed = self.commit_unseen(rename).await?;
                    removal.seal(None);
                    removal.mark_deleted();
                    Ok(renamed)
                };
                self.sealed(replaced, removal, renamed.boxed()).await?
            }
            _ => self.commit_unseen(rename).await?,
        };
        self.remember(committed).await;
        drop(removal);
        let change = container.lock().await;
        self.put_into_force(container.rid(), &change, &row).await?;
        // Other servers, which know it by its old name, find out with their next request.
        if let Err(error) = self.sealed(container, &change, async { Ok(()) }.boxed()).await {
            tracing::debug!(%error, "other servers learn the new name of a collection a little later");
        }
        drop(change);
        match dropped {
            Some(Dropped::AtOnce(partitions)) => self.remove_named(partitions).await,
            // They are removed by [`Catalog::remove_overdue`].
            Some(Dropped::Later) | None => {}
        }
        Ok(())
    }

    /// Returns the collection with a name.
    ///
    /// # Errors
    /// `NotFound` if there is none, or if the name is that of a container of items.
    pub fn collection_by_name(&self, database: DatabaseRid, name: &str) -> Result<Arc<Container>> {
        let container = self.container_by_name(database, name)?;
        match container.state().collection {
            Some(_) => Ok(container),
            None => Err(Error::missing(Resource::Container, name)),
        }
    }

    /// Removes the indexes whose build a stop of the process has interrupted.
    pub async fn remove_unbuilt_indexes(&self) -> Result<()> {
        for container in self.all_containers() {
            let Some(collection) = container.collection() else {
                continue;
            };
            if collection.indexes.iter().all(|index| !index.is_building) {
                continue;
            }
            let remove = |change: &mut CollectionChange<'_>| {
                change.definition.remove_unbuilt_indexes(change.now);
                Ok(())
            };
            self.change_collection(&container, remove).await?;
        }
        Ok(())
    }

    /// Changes a collection: all requests see either the state before or the state after it.
    ///
    /// # Errors
    /// The errors of `decide`; `NotFound` if the collection was removed.
    pub async fn change_collection<T, F>(&self, container: &Arc<Container>, decide: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut CollectionChange<'_>) -> Result<T> + Send + 'static,
    {
        let change = container.lock().await;
        let changed = self.change_locked(container, &change, decide);
        self.sealed(container, &change, changed.boxed()).await
    }

    async fn change_locked<T, F>(&self, container: &Arc<Container>, change: &WriteGuard<'_>, mut decide: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&mut CollectionChange<'_>) -> Result<T> + Send + 'static,
    {
        let mut stored = 0;
        for partition in &change.state().layout.partitions {
            // Writes that were queued before decide by the indexes of before, also if their requests are gone.
            partition.write(|_| Ok(())).await?;
            stored += partition.stored_items();
        }
        tell_endings(&change.state()).await?;
        let unused = unused_rules(&change.state()).await?;
        let decided = Arc::new(parking_lot::Mutex::new(None));
        let result = decided.clone();
        let (rid, database) = (container.rid(), container.info().database_id);
        let changed = self.commit_state_with_events(container, change, move |commit_point, row| {
            let Some(known) = &row.collection else {
                return Err(Error::missing(Resource::Container, &row.properties.id));
            };
            let (mut definition, mut policy) = ((**known).clone(), row.properties.policy);
            definition.forget_rules(&unused);
            let mut change = CollectionChange {
                definition: &mut definition,
                policy: &mut policy,
                now: commit_point.millis,
                is_empty: stored == 0,
                is_cancelled: false,
                event: None,
            };
            let value = decide(&mut change)?;
            let event = change.event.take();
            if change.is_cancelled {
                *result.lock() = Some(value);
                return Ok(None);
            }
            let properties = ContainerProperties {
                policy,
                ..(*row.properties).clone()
            };
            row.replace_properties(properties, commit_point.now);
            row.replace_collection(Arc::new(definition), stored == 0);
            (row.etag, row.last_modified) = (commit_point.etag(), commit_point.now);
            *result.lock() = Some(value);
            let names = (&database[..], &row.properties.id[..]);
            let uuid = row.collection.as_ref().map(|collection| collection.uuid);
            let event = event.map(|(kind, description)| CatalogEvent {
                description: description.into_bytes(),
                ..CatalogEvent::of_collection(kind, names, rid, uuid)
            });
            Ok(Some(event.into_iter().collect()))
        });
        let after = changed.await?;
        for partition in after.iter().flat_map(|state| &state.layout.partitions) {
            partition.expect_due(i64::MIN);
        }
        let value = decided.lock().take();
        value.ok_or_else(|| Error::internal("a change of a collection was not decided"))
    }
}

/// Returns the date rules of a collection under which no document has a deadline.
async fn unused_rules(state: &ContainerState) -> Result<Vec<RuleId>> {
    let mut unused = Vec::new();
    for rule in state.collection.iter().flat_map(|collection| &collection.rules) {
        let mut is_used = false;
        for partition in &state.layout.partitions {
            is_used |= partition.has_deadlines(rule.id).await?;
        }
        if !is_used {
            unused.push(rule.id);
        }
    }
    Ok(unused)
}

/// Returns the database with a name, which is created if there is none.
fn database_rid(batch: &mut CatalogBatch<'_, '_>, name: &str) -> Decision<DatabaseRid> {
    match batch.named(Name::Database(name))? {
        Some(RowKey::Database(rid)) => Ok(rid),
        _ => databases::create(batch, name, None).map(|created| created.rid),
    }
}

fn create(
    batch: &mut CatalogBatch<'_, '_>,
    rid: DatabaseRid,
    name: &str,
    (definition, policy): (&Arc<CollectionDefinition>, Policy),
    throughput: Option<Throughput>,
) -> Decision<ContainerRid> {
    if batch.named(Name::Container(rid, name))?.is_some() {
        return Err(Error::name_taken(Resource::Container, name).into());
    }
    let mut database = batch.database(rid)?;
    let mut account = batch.account()?;
    let placements = placements(definition, throughput, &mut account, &mut database)?;
    let commit_point = batch.commit_point();
    let container = ContainerRid::new(rid, database.next_container);
    database.next_container += 1;
    let row = ContainerRow {
        offer: throughput.map(|_| new_offer(&mut account, throughput, OfferType::default(), commit_point)),
        pacing: PacingSettings::of(throughput),
        keeps_all_versions: account.keeps_changes,
        ..new_row(name, (definition, policy), placements, commit_point)?
    };
    let names = (&database.id[..], name);
    let event = CatalogEvent::of_collection(CatalogEventKind::Create, names, container, Some(definition.uuid));
    batch.event(CatalogEvent {
        description: definition.options.as_bytes().to_vec(),
        ..event
    });
    batch.replace(RowKey::Account, account)?;
    batch.replace(RowKey::Database(rid), database)?;
    batch.create(RowKey::Container(container), row)?;
    Ok(container)
}

/// Returns the row of a new collection without throughput.
pub(super) fn new_row(
    name: &str,
    (definition, policy): (&Arc<CollectionDefinition>, Policy),
    placements: Vec<Placement>,
    commit_point: CommitPoint,
) -> Result<ContainerRow> {
    let mut row = ContainerRow {
        properties: Arc::new(properties(name, definition, policy)?),
        etag: commit_point.etag(),
        last_modified: commit_point.now,
        floors: Settings::new(policy).floors,
        history: vec![PolicyPeriod {
            start: commit_point.now,
            policy,
        }],
        offer: None,
        pacing: PacingSettings::of(None),
        keeps_all_versions: false,
        settings_number: SettingsNumber::default(),
        pending: None,
        collection: None,
        indexes: Arc::default(),
        layout_version: FIRST_LAYOUT,
        next_range: u32::try_from(placements.len()).unwrap_or(u32::MAX),
        placements,
        unknown: Unknown::default(),
    };
    row.replace_collection(definition.clone(), true);
    Ok(row)
}

/// Returns the ranges of a new collection. An unsharded one has one, in the home that it shares with the others of its database; each range of a sharded one
/// has a home of its own, as those of containers have.
fn placements(
    definition: &CollectionDefinition,
    throughput: Option<Throughput>,
    account: &mut AccountRow,
    database: &mut DatabaseRow,
) -> Result<Vec<Placement>> {
    let first = account.next_partition;
    if let Some(shard_key) = &definition.shard_key {
        let count = throughput.map_or(1, Throughput::initial_ranges);
        let epks = epk::boundaries(shard_key.definition(), count);
        account.next_partition += epks.len() as u64;
        let place = |(range, epk)| Placement {
            id: PartitionId(first + u64::from(range)),
            range,
            epk,
            parents: vec![],
        };
        return Ok((0u32..).zip(epks).map(place).collect());
    }
    account.next_partition += 1;
    let exhausted = || Error::internal("the account has no partition numbers left");
    let number = u32::try_from(first).map_err(|_| exhausted())?;
    let home = *database.home.get_or_insert(number);
    let partition = PartitionId::in_home(HomeId(home), number).ok_or_else(exhausted)?;
    Ok(vec![only_range(partition)])
}

/// Returns the range of an unsharded collection.
pub(super) fn only_range(partition: PartitionId) -> Placement {
    Placement {
        id: partition,
        range: 0,
        epk: EpkRange::all(),
        parents: vec![],
    }
}

/// Checks the throughput of a collection: an unsharded one has one range.
fn check_throughput(definition: &CollectionDefinition, throughput: Option<Throughput>) -> Result<()> {
    let Some(throughput) = throughput else { return Ok(()) };
    throughput.validate()?;
    match throughput.least_ranges() {
        1 => Ok(()),
        _ if definition.shard_key.is_some() => Ok(()),
        _ => Err(Error::bad_request(
            "A collection can have at most 10000 request units per second.",
        )),
    }
}

/// Returns the definition that clients of the NoSQL API see: a container without a partition key, or with the shard key as its partition key.
fn properties(name: &str, definition: &CollectionDefinition, policy: Policy) -> Result<ContainerProperties> {
    let partition_key = match &definition.shard_key {
        Some(shard_key) => shard_key.definition().to_json(),
        None => PartitionKeyDefinition::system().to_json(),
    };
    let properties = ContainerProperties::from_json(&json!({"id": name, "partitionKey": partition_key}))?;
    Ok(ContainerProperties { policy, ..properties })
}
