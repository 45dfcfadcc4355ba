//! The catalog in memory: requests find names, definitions and open containers in it.
//!
//! It shows partition 0 at one log sequence number, and follows it commit by commit: with the rows that this process has just written, if nobody else
//! committed before them, and otherwise with the rows that the log of [`changes`] names. A request whose name is in memory reads nothing. Before a
//! miss is answered, and before definitions are listed, [`Catalog::refresh`] checks whether others committed; on an engine that only this process
//! uses, that is a comparison of two numbers.
//!
//! The rows of an open container are not applied here, because requests may be running in it. The container is noted as outdated, and
//! [`Catalog::reload_outdated`] replaces its state when no request is running in it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bolide_model::error::Resource;
use bolide_model::rid::{ContainerRid, DatabaseRid, EncryptionKeyRid, PermissionRid, UserRid};
use bolide_model::time::Monotonic;
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixSeconds};
use bolide_storage::Space;

use super::batch::{CatalogBatch, Changes, Committed};
use super::rows::{
    AccountRow, ContainerRow, DatabaseRow, EncryptionKeyRow, PermissionRow, Row, RowKey, UserRow, damaged,
};
use super::{Catalog, changes, scripts};
use crate::container::{Container, ContainerState, Layout};
use crate::format::keys;
use crate::partition::write_batch::Decision;
use crate::throughput::{PacingSettings, SharedMeter};

/// Maximum number of changed rows that are read by key. If more changed, all rows are read instead, because the number of keys in one read is
/// limited.
const MAX_CHANGED: usize = 4_096;

/// The catalog after one commit.
#[derive(Default)]
pub(super) struct Memory {
    /// Log sequence number of that commit.
    pub lsn: Lsn,
    pub account: AccountRow,
    /// By number, which is the order of creation.
    pub databases: BTreeMap<u32, Database>,
    pub names: HashMap<String, DatabaseRid>,
}

pub(super) struct Database {
    pub rid: DatabaseRid,
    pub row: DatabaseRow,
    /// Request units that its containers consume together, if it has throughput (TTL-264).
    pub meter: Option<SharedMeter>,
    pub containers: BTreeMap<ContainerRid, Arc<Container>>,
    pub names: HashMap<String, ContainerRid>,
    pub users: BTreeMap<UserRid, User>,
    pub user_names: HashMap<String, UserRid>,
    pub encryption_keys: BTreeMap<EncryptionKeyRid, EncryptionKeyRow>,
}

/// A user with its permissions.
pub(super) struct User {
    pub row: UserRow,
    pub permissions: BTreeMap<PermissionRid, PermissionRow>,
}

/// Rows that were read at one head.
pub(super) struct Followed {
    pub head: Lsn,
    pub changes: Changes,
    /// Whether these are all rows of the catalog.
    pub is_everything: bool,
}

/// Partitions that were opened for containers which are not in memory yet.
type Opened = HashMap<ContainerRid, Layout>;

impl Catalog {
    /// Updates memory with the commits of others. Reads nothing if nobody else writes to the engine. Must not be called by a request that runs in a
    /// container: it may wait until no request runs there.
    ///
    /// # Errors
    /// From the engine.
    pub async fn refresh(&self) -> Result<()> {
        if !self.engine.is_shared() {
            if !self.is_behind() {
                return Ok(());
            }
            // Most likely a change was just committed and is not in memory yet.
            drop(self.changing.lock().await);
        }
        self.follow().await?;
        self.reload_outdated().await;
        Ok(())
    }

    /// Updates memory with the commits of others from time to time, until the catalog is dropped; on an engine that has others. So permissions that another
    /// process took away end here, too, although a request that finds everything in memory reads nothing.
    pub fn follow_others(self: &Arc<Catalog>, interval: Duration, monotonic: Monotonic) {
        if !self.engine.is_shared() {
            return;
        }
        let catalog = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                monotonic.sleep(interval).await;
                let Some(catalog) = catalog.upgrade() else { return };
                if let Err(error) = catalog.refresh().await {
                    tracing::debug!(%error, "what others changed of the catalog cannot be read");
                }
            }
        });
    }

    /// Tells whether a commit is known that memory does not show: it was made by another process, or by this one, which could not learn its outcome.
    fn is_behind(&self) -> bool {
        self.memory.read().lsn != self.partition.lsn()
    }

    /// Applies the commits that memory does not show yet, if there may be any.
    pub(super) async fn follow(&self) -> Result<()> {
        if !self.engine.is_shared() && !self.is_behind() {
            return Ok(());
        }
        let _following = self.following.lock().await;
        self.catch_up().await
    }

    /// Updates memory with a commit of this process. If that fails, memory stays behind, and the next update reads what is missing.
    pub(super) async fn remember(&self, committed: Option<Committed>) {
        let Some(Committed { lsn, changes }) = committed else {
            return;
        };
        let _following = self.following.lock().await;
        let known = self.memory.read().lsn;
        let followed = if known >= lsn {
            Ok(())
        } else if known.next() == lsn {
            self.apply(lsn, changes).await
        } else {
            self.catch_up().await
        };
        if let Err(error) = followed {
            tracing::warn!(%error, "a change of the catalog is stored, and not shown yet");
        }
    }

    /// Reads and applies all commits that memory does not show. [`Catalog::following`] must be held.
    async fn catch_up(&self) -> Result<()> {
        let known = self.memory.read().lsn;
        let mut followed = self.read(move |batch| changes_since(batch, known)).await?;
        if followed.is_everything {
            let there: BTreeSet<RowKey> = followed.changes.iter().map(|(key, _)| *key).collect();
            let gone = self
                .budget
                .lock()
                .known()
                .into_iter()
                .filter(|key| !there.contains(key));
            followed.changes.extend(gone.map(|key| (key, None)));
        }
        self.apply(followed.head, followed.changes).await
    }

    /// Applies rows to memory, which then shows the commit `head`. [`Catalog::following`] must be held.
    pub(super) async fn apply(&self, head: Lsn, mut changes: Changes) -> Result<()> {
        let now = self.now().await?.seconds();
        let opened = self.open_new_containers(&changes).await?;
        changes.sort_by_key(|(key, _)| *key);
        let outdated = {
            let mut memory = self.memory.write();
            let outdated = memory.apply(&changes, opened, now)?;
            memory.lsn = head;
            outdated
        };
        self.budget.lock().apply(&changes);
        self.outdated.lock().extend(outdated);
        // Streams that were woken by the commit may not have found its collections yet.
        self.signals.times.wake();
        Ok(())
    }

    async fn open_new_containers(&self, changes: &Changes) -> Result<Opened> {
        let mut opened = Opened::new();
        for (key, row) in changes {
            let (RowKey::Container(rid), Some(Row::Container(row))) = (key, row) else {
                continue;
            };
            if self.memory.read().container(*rid).is_some() {
                continue;
            }
            let layout = match self.unpublished.take_layout(*rid) {
                Some(layout) => layout,
                None => self.open_layout(row, None).await?,
            };
            // A process that deletes a container removes its partitions after its row. So if the row still exists now, that process has yet to remove
            // them; if it does not, this process may have created them again and removes them.
            if self.engine.is_shared() {
                let Some(newest) = self.container_row(*rid).await? else {
                    self.remove_partitions(&row.placements).await?;
                    continue;
                };
                self.check_not_split(row, &newest).await?;
            }
            self.load_centroids(*rid, &row.indexes, None).await?;
            opened.insert(*rid, layout);
        }
        Ok(opened)
    }

    /// Checks that another server has not split a container while its partitions were opened: this process may have created one of them again.
    ///
    /// # Errors
    /// `Unavailable`, after which the catalog is to be read again; from the engine.
    async fn check_not_split(&self, opened: &ContainerRow, newest: &ContainerRow) -> Result<()> {
        if opened.layout_version == newest.layout_version {
            return Ok(());
        }
        let is_gone = |id| newest.placements.iter().all(|placement| placement.id != id);
        let gone = opened.placements.iter().filter(|placement| is_gone(placement.id));
        self.remove_partitions(&gone.cloned().collect::<Vec<_>>()).await?;
        Err(Error::new(
            ErrorKind::Unavailable,
            "another server has split the container at the same time",
        ))
    }

    /// Replaces the state of outdated open containers by the one of their rows.
    pub(super) async fn reload_outdated(&self) {
        let _reloading = self.reloading.lock().await;
        let outdated = self.outdated.lock().clone();
        for container in outdated {
            match self.reload(&container).await {
                // Not before, because this may be dropped while it waits.
                Ok(()) => self.reloaded(&container),
                Err(error) => tracing::warn!(%error, "what others changed of a container is not in force here yet"),
            }
        }
    }

    /// Forgets that a container was outdated, unless its row has changed again meanwhile.
    fn reloaded(&self, container: &Arc<Container>) {
        let mut outdated = self.outdated.lock();
        if let Some(at) = outdated.iter().position(|known| Arc::ptr_eq(known, container)) {
            outdated.remove(at);
        }
    }

    pub(super) async fn reload(&self, container: &Container) -> Result<()> {
        let row = self.container_row(container.rid()).await?;
        let state = container.state();
        if row.map_or(state.is_deleted, |row| state.shows(&row) && row.pending.is_none()) {
            return Ok(());
        }
        let change = container.lock().await;
        self.newest_state(container, &change).await.map(drop)
    }
}

/// Reads the rows that commits after `known` changed, or all rows, if the log of changes does not reach back that far.
fn changes_since(batch: &mut CatalogBatch<'_, '_>, known: Lsn) -> Decision<Followed> {
    let entries = batch.changes_from(known.next())?;
    let head = batch.head();
    let (mut upto, mut keys) = (known, BTreeSet::new());
    for (key, value) in &entries {
        if changes::lsn_of(key)? != upto.next() {
            break;
        }
        upto = upto.next();
        keys.extend(changes::decode(value)?);
    }
    if upto != head || keys.len() > MAX_CHANGED {
        return everything(batch);
    }
    let keys: Vec<RowKey> = keys.into_iter().collect();
    Ok(Followed {
        head,
        changes: batch.rows(&keys)?,
        is_everything: false,
    })
}

/// Reads all rows.
pub(super) fn everything(batch: &mut CatalogBatch<'_, '_>) -> Decision<Followed> {
    let stored = batch.scan(Space::Meta, &bytes::Bytes::new())?;
    let mut changes = Changes::with_capacity(stored.len());
    for (key, value) in stored {
        if key == keys::state().bytes || key == keys::write_seal().bytes {
            continue;
        }
        let key = RowKey::parse(&key)?;
        changes.push((key, Some(Row::decode(key, &value)?)));
    }
    Ok(Followed {
        head: batch.head(),
        changes,
        is_everything: true,
    })
}

impl Memory {
    /// Applies rows, which are in key order. Returns the containers that were open before and whose rows have changed.
    ///
    /// # Errors
    /// `Corrupt` if a row belongs to another row that does not exist.
    fn apply(&mut self, changes: &Changes, mut opened: Opened, now: UnixSeconds) -> Result<Vec<Arc<Container>>> {
        let mut outdated = Vec::new();
        for (key, _) in changes.iter().rev().filter(|(_, row)| row.is_none()) {
            self.remove(*key, &mut outdated);
        }
        for (key, row) in changes {
            match (key, row) {
                (RowKey::Account, Some(Row::Account(row))) => self.account = row.clone(),
                (RowKey::Database(rid), Some(Row::Database(row))) => self.put_database(*rid, row, now),
                (RowKey::Container(rid), Some(Row::Container(row))) => {
                    let orphan = |_| damaged("a container without its database");
                    let database = self.database_mut(rid.database()).map_err(orphan)?;
                    // A collection may have got another name.
                    database
                        .names
                        .retain(|name, named| named != rid || *name == row.properties.id);
                    match database.containers.get(rid) {
                        Some(open) => {
                            database.names.insert(row.properties.id.clone(), *rid);
                            if !open.state().shows(row) || row.pending.is_some() {
                                outdated.push(open.clone());
                            }
                        }
                        None => {
                            if let Some(layout) = opened.remove(rid) {
                                let state = ContainerState::of(row, &layout, database.meter.clone());
                                state.pace_meters(now);
                                database.insert_container(Container::new(*rid, database.row.id.clone(), state));
                            }
                        }
                    }
                }
                (RowKey::Script(rid), Some(Row::Script(row))) => {
                    if let Some(container) = self.container(rid.container) {
                        scripts::show(container, *rid, row);
                    }
                }
                (RowKey::User(rid), Some(Row::User(row))) => {
                    let orphan = |_| damaged("a user without its database");
                    self.database_mut(rid.database()).map_err(orphan)?.put_user(*rid, row);
                }
                (RowKey::Permission(rid), Some(Row::Permission(row))) => {
                    let orphan = |_| damaged("a permission without its user");
                    let user = self.user_mut(rid.user).map_err(orphan)?;
                    user.permissions.insert(*rid, row.clone());
                }
                (RowKey::EncryptionKey(rid), Some(Row::EncryptionKey(row))) => {
                    let orphan = |_| damaged("a client encryption key without its database");
                    let database = self.database_mut(rid.database).map_err(orphan)?;
                    database.encryption_keys.insert(*rid, row.clone());
                }
                _ => {}
            }
        }
        Ok(outdated)
    }

    fn remove(&mut self, key: RowKey, outdated: &mut Vec<Arc<Container>>) {
        match key {
            RowKey::Database(rid) => {
                if let Some(database) = self.databases.remove(&number_of(rid)) {
                    forget(&mut self.names, &database.row.id, rid);
                }
            }
            RowKey::Container(rid) => {
                let database = self.database_mut(rid.database()).ok();
                let Some((database, container)) =
                    database.and_then(|database| database.containers.remove(&rid).map(|removed| (database, removed)))
                else {
                    return;
                };
                forget(&mut database.names, &container.properties().id, rid);
                if !container.state().is_deleted {
                    outdated.push(container);
                }
            }
            RowKey::Script(rid) => {
                if let Some(container) = self.container(rid.container) {
                    scripts::hide(container, rid);
                }
            }
            RowKey::User(rid) => {
                if let Ok(database) = self.database_mut(rid.database())
                    && let Some(user) = database.users.remove(&rid)
                {
                    forget(&mut database.user_names, &user.row.id, rid);
                }
            }
            RowKey::Permission(rid) => {
                if let Ok(user) = self.user_mut(rid.user) {
                    user.permissions.remove(&rid);
                }
            }
            RowKey::EncryptionKey(rid) => {
                if let Ok(database) = self.database_mut(rid.database) {
                    database.encryption_keys.remove(&rid);
                }
            }
            RowKey::Account | RowKey::Centroids(..) | RowKey::Dropped(_) => {}
        }
    }

    fn put_database(&mut self, rid: DatabaseRid, row: &DatabaseRow, now: UnixSeconds) {
        self.names.insert(row.id.clone(), rid);
        let throughput = |row: &DatabaseRow| row.offer.as_ref().and_then(|offer| offer.throughput);
        match self.databases.get_mut(&number_of(rid)) {
            Some(known) => {
                if let (Some(meter), true) = (&known.meter, throughput(&known.row) != throughput(row)) {
                    let settings = PacingSettings::of(throughput(row));
                    meter.lock().set_pacing(&settings, 1, now);
                }
                known.row = row.clone();
            }
            None => {
                let database = Database::new(rid, row.clone(), now);
                self.databases.insert(number_of(rid), database);
            }
        }
    }

    pub fn database(&self, rid: DatabaseRid) -> Result<&Database> {
        self.databases
            .get(&number_of(rid))
            .ok_or_else(|| Error::missing(Resource::Database, &rid))
    }

    fn database_mut(&mut self, rid: DatabaseRid) -> Result<&mut Database> {
        self.databases
            .get_mut(&number_of(rid))
            .ok_or_else(|| Error::missing(Resource::Database, &rid))
    }

    pub fn container(&self, rid: ContainerRid) -> Option<&Arc<Container>> {
        self.databases.get(&number_of(rid.database()))?.containers.get(&rid)
    }

    pub fn user(&self, rid: UserRid) -> Result<&User> {
        let not_found = || Error::missing(Resource::User, &rid);
        let database = self.database(rid.database()).map_err(|_| not_found())?;
        database.users.get(&rid).ok_or_else(not_found)
    }

    fn user_mut(&mut self, rid: UserRid) -> Result<&mut User> {
        let not_found = || Error::missing(Resource::User, &rid);
        let database = self.database_mut(rid.database()).map_err(|_| not_found())?;
        database.users.get_mut(&rid).ok_or_else(not_found)
    }
}

impl Database {
    fn new(rid: DatabaseRid, row: DatabaseRow, now: UnixSeconds) -> Database {
        Database {
            rid,
            meter: row.meter(now),
            row,
            containers: BTreeMap::new(),
            names: HashMap::new(),
            users: BTreeMap::new(),
            user_names: HashMap::new(),
            encryption_keys: BTreeMap::new(),
        }
    }

    fn insert_container(&mut self, container: Arc<Container>) {
        self.names.insert(container.properties().id.clone(), container.rid());
        self.containers.insert(container.rid(), container);
    }

    fn put_user(&mut self, rid: UserRid, row: &UserRow) {
        let row = row.clone();
        match self.users.get_mut(&rid) {
            Some(known) => {
                forget(&mut self.user_names, &known.row.id, rid);
                self.user_names.insert(row.id.clone(), rid);
                known.row = row;
            }
            None => {
                self.user_names.insert(row.id.clone(), rid);
                let permissions = BTreeMap::new();
                self.users.insert(rid, User { row, permissions });
            }
        }
    }
}

/// Removes a name if it still leads to `rid`: the same change may have given it to another resource.
fn forget<R: PartialEq>(names: &mut HashMap<String, R>, name: &str, rid: R) {
    if names.get(name) == Some(&rid) {
        names.remove(name);
    }
}

fn number_of(rid: DatabaseRid) -> u32 {
    u32::from_le_bytes(rid.bytes())
}
