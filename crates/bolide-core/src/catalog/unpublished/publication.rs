//! What is stored of a collection that a transaction creates, and what its commit adds to the catalog.

use bolide_model::error::Resource;
use bolide_model::rid::{ContainerRid, DatabaseRid};
use bolide_model::{Error, Reason};
use bolide_storage::{HomeId, PartitionId};
use serde::{Deserialize, Serialize};

use super::super::batch::CatalogBatch;
use super::super::events::{self, CatalogEvent, CatalogEventKind};
use super::super::names::Name;
use super::super::rows::{ContainerRow, DatabaseRow, DroppedRow, Row, RowKey};
use super::super::{collections, databases};
use super::{NewCollection, Sibling};
use crate::container::PolicyPeriod;
use crate::partition::write_batch::Decision;

/// What a commit adds to the catalog.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Publication {
    pub database: String,
    database_number: [u8; 4],
    /// The number of the container in its database.
    pub number: u32,
    /// Whether there was no such database.
    pub is_in_new_database: bool,
    /// What change streams are told after its creation, as the front end has written it.
    pub changes: Vec<(CatalogEventKind, Vec<u8>)>,
    pub row: ContainerRow,
}

/// Takes numbers for a collection, and lists its partition for removal.
///
/// # Errors
/// As [`Catalog::reserve_collection`](super::Catalog::reserve_collection).
pub(super) fn reserve(
    batch: &mut CatalogBatch<'_, '_>,
    new: &NewCollection,
    home: Option<HomeId>,
    sibling: Option<Sibling>,
) -> Decision<Publication> {
    let mut account = batch.account()?;
    let exhausted = || Error::internal("the account has no partition numbers left");
    let partition = u32::try_from(account.next_partition).map_err(|_| exhausted())?;
    account.next_partition += 1;
    let known = batch.named(Name::Database(&new.database))?;
    let (database, number, known_home, is_in_new_database) = match (known, sibling) {
        (_, Some(sibling)) if sibling.is_in_new_database => {
            (sibling.database, sibling.number + 1, Some(sibling.home.0), true)
        }
        (Some(RowKey::Database(rid)), sibling) => {
            if batch.named(Name::Container(rid, &new.name))?.is_some() {
                return Err(Error::name_taken(Resource::Container, &new.name).into());
            }
            let mut row = batch.database(rid)?;
            let number = row.next_container;
            row.next_container += 1;
            let home = row.home.or(sibling.map(|sibling| sibling.home.0));
            batch.replace(RowKey::Database(rid), row)?;
            (rid, number, home, false)
        }
        _ => {
            let rid = DatabaseRid::new(account.next_database);
            account.next_database += 1;
            (rid, 1, None, true)
        }
    };
    let in_home = HomeId(known_home.unwrap_or(partition));
    if home.is_some_and(|home| home != in_home) {
        return Err(Error::from(Reason::OtherDatabase).into());
    }
    let partition = PartitionId::in_home(in_home, partition).ok_or_else(exhausted)?;
    let definition = (&new.definition, new.policy);
    let row = collections::new_row(
        &new.name,
        definition,
        vec![collections::only_range(partition)],
        batch.commit_point(),
    )?;
    let row = ContainerRow {
        keeps_all_versions: account.keeps_changes,
        ..row
    };
    batch.replace(RowKey::Account, account)?;
    let listed = Row::Dropped(Some(DroppedRow::unpublished()));
    batch.create(RowKey::Dropped(partition), listed)?;
    Ok(Publication {
        database: new.database.clone(),
        database_number: database.bytes(),
        number,
        is_in_new_database,
        changes: Vec::new(),
        row,
    })
}

impl Publication {
    pub fn database(&self) -> DatabaseRid {
        DatabaseRid::from_bytes(self.database_number)
    }

    pub fn container(&self) -> ContainerRid {
        ContainerRid::new(self.database(), self.number)
    }

    pub fn partition(&self) -> Option<PartitionId> {
        self.row.placements.first().map(|placement| placement.id)
    }

    pub fn home(&self) -> HomeId {
        self.partition().map_or(HomeId(0), PartitionId::home)
    }

    /// Returns the row of its database; `None` if there is no such database yet.
    ///
    /// # Errors
    /// [`Reason::WriteConflict`] if the name is taken, or the database is not the one that it was reserved in.
    pub fn database_row(&self, batch: &mut CatalogBatch<'_, '_>) -> Decision<Option<DatabaseRow>> {
        let conflict = || Error::from(Reason::WriteConflict);
        let rid = self.database();
        let row = match batch.named(Name::Database(&self.database))? {
            Some(RowKey::Database(known)) if known == rid => batch.database(rid)?,
            None if self.is_in_new_database => return Ok(None),
            _ => return Err(conflict().into()),
        };
        let is_taken = batch.named(Name::Container(rid, &self.row.properties.id))?.is_some();
        if is_taken || row.home.is_some_and(|home| home != self.home().0) {
            return Err(conflict().into());
        }
        Ok(Some(row))
    }

    pub fn publish(&self, batch: &mut CatalogBatch<'_, '_>) -> Decision<()> {
        let rid = self.container();
        if batch.container_if_there(rid)?.is_some() {
            // An earlier attempt was made, although its outcome was not known.
            return Ok(());
        }
        let database = self.database_row(batch)?;
        let commit_point = batch.commit_point();
        let mut database = database.unwrap_or_else(|| databases::new_row(&self.database, commit_point));
        database.home = Some(self.home().0);
        database.next_container = database.next_container.max(self.number + 1);
        let policy = self.row.properties.policy;
        let row = ContainerRow {
            etag: commit_point.etag(),
            last_modified: commit_point.now,
            history: vec![PolicyPeriod {
                start: commit_point.now,
                policy,
            }],
            ..self.row.clone()
        };
        // Checked before the commit of the transaction.
        batch.is_exempt();
        batch.replace(RowKey::Database(rid.database()), database)?;
        batch.create(RowKey::Container(rid), row)?;
        if let Some(partition) = self.partition() {
            batch.remove_alone(RowKey::Dropped(partition));
        }
        let events = self.events().into_iter().take(events::OF_COMMIT as usize);
        events.for_each(|event| batch.event(event));
        Ok(())
    }

    fn events(&self) -> Vec<CatalogEvent> {
        let rid = self.container();
        let names = (&self.database[..], &self.row.properties.id[..]);
        let collection = self.row.collection.as_ref();
        let uuid = collection.map(|collection| collection.uuid);
        let event = |kind, description: &[u8]| CatalogEvent {
            description: description.to_vec(),
            ..CatalogEvent::of_collection(kind, names, rid, uuid)
        };
        let options = collection.map_or(&[][..], |collection| collection.options.as_bytes());
        let created = event(CatalogEventKind::Create, options);
        let changes = self.changes.iter();
        let changes = changes.map(|(kind, description)| event(*kind, description));
        std::iter::once(created).chain(changes).collect()
    }

    /// Returns the events that do not fit into the first commit, for further ones.
    pub fn later_events(&self) -> Vec<Vec<CatalogEvent>> {
        let events = self.events();
        let later = events.chunks(events::OF_COMMIT as usize).skip(1);
        later.map(<[CatalogEvent]>::to_vec).collect()
    }
}
