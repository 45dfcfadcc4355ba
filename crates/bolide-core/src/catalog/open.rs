//! Opening the catalog: reads every row, opens every container, and ends what a crash interrupted.

use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_model::epk::EpkRange;
use bolide_model::rid::{ContainerRid, DatabaseRid, EncryptionKeyRid, PermissionRid, UserRid};
use bolide_model::{Error, ErrorKind, Result, UnixSeconds};
use bolide_storage::{Engine, Head, Key, PartitionId, Space};
use parking_lot::RwLock;
use tokio::sync::Mutex;

use super::budget::{Definition, DefinitionBudget};
use super::records::{
    AccountRow, CONTAINER, ContainerRow, DATABASE, DROPPED, DatabaseRow, ENCRYPTION_KEY, EncryptionKeyRow, PERMISSION,
    PermissionRow, SCRIPT, ScriptRow, USER, UserRow, account_key, container_key, database_key, encryption_key_key,
    permission_key, script_key, user_key,
};
use super::scripts::{self, ScriptRows};
use super::users::User;
use super::{Catalog, Database, Memory, number_of};
use crate::clock;
use crate::container::Container;
use crate::format::keys;
use crate::partition::Alarm;
use crate::partition::{Partition, Placement, RawPages, down};
use crate::throughput::{Meter, PacingSettings};

/// Everything the catalog's partition holds.
#[derive(Default)]
struct Rows {
    account: AccountRow,
    databases: BTreeMap<DatabaseRid, DatabaseRow>,
    containers: Vec<(ContainerRid, ContainerRow)>,
    users: Vec<(UserRid, UserRow)>,
    permissions: Vec<(PermissionRid, PermissionRow)>,
    scripts: ScriptRows,
    encryption_keys: Vec<(EncryptionKeyRid, EncryptionKeyRow)>,
    dropped: Vec<PartitionId>,
}

impl Catalog {
    /// Opens the catalog of a new or existing account whose definitions may take so many bytes.
    ///
    /// # Errors
    /// From the engine; `Corrupt` if a row is damaged.
    pub async fn open(engine: Arc<dyn Engine>, definition_bytes: usize) -> Result<Catalog> {
        let now = clock::exact_now(engine.as_ref()).await?;
        let head = Head::first(now);
        engine.create(PartitionId::CATALOG, head).await.map_err(down)?;
        let placement = Placement {
            id: PartitionId::CATALOG,
            range: 0,
            epk: EpkRange::all(),
            parents: vec![],
        };
        let meter = Meter::shared(&PacingSettings::of(None), 1, now.seconds());
        let alarm = Arc::<Alarm>::default();
        let partition = Partition::open(engine.clone(), placement, meter, alarm.clone()).await?;

        let rows = read_rows(&partition).await?;
        let mut budget = DefinitionBudget::new(definition_bytes);
        rows.definitions()
            .for_each(|(key, definition)| budget.count(key, definition));
        let memory = RwLock::new(Memory {
            account: rows.account,
            ..Memory::default()
        });
        let catalog = Catalog {
            engine,
            alarm,
            partition,
            memory,
            budget: Arc::new(parking_lot::Mutex::new(budget)),
            changing: Arc::new(Mutex::new(())),
        };
        for (rid, row) in rows.databases {
            catalog.remember_database(rid, row, now.seconds());
        }
        for (rid, row) in rows.encryption_keys {
            let mut memory = catalog.memory.write();
            let database = memory.database_mut(rid.database);
            let database = database.map_err(|_| damaged("a client encryption key without its database"))?;
            database.encryption_keys.insert(rid, row);
        }
        for (rid, row) in rows.containers {
            let container = catalog.reopen_container(rid, row).await?;
            scripts::restore(&container, &rows.scripts);
        }
        catalog.remember_users(rows.users, rows.permissions)?;
        if !rows.dropped.is_empty() {
            catalog.remove_dropped(rows.dropped).await?;
        }
        Ok(catalog)
    }

    fn remember_database(&self, rid: DatabaseRid, row: DatabaseRow, now: UnixSeconds) {
        let mut memory = self.memory.write();
        memory.names.insert(row.id.clone(), rid);
        let database = Database {
            rid,
            meter: row.meter(now),
            row,
            containers: BTreeMap::new(),
            names: Default::default(),
            users: Default::default(),
            user_names: Default::default(),
            encryption_keys: Default::default(),
        };
        memory.databases.insert(number_of(rid), database);
    }

    fn remember_users(
        &self,
        users: Vec<(UserRid, UserRow)>,
        permissions: Vec<(PermissionRid, PermissionRow)>,
    ) -> Result<()> {
        let mut memory = self.memory.write();
        for (rid, row) in users {
            let database = memory.database_mut(rid.database());
            let database = database.map_err(|_| damaged("a user without its database"))?;
            let permissions = BTreeMap::new();
            database.insert_user(rid, User { row, permissions });
        }
        for (rid, row) in permissions {
            let user = memory.user_mut(rid.user);
            let user = user.map_err(|_| damaged("a permission without its user"))?;
            user.permissions.insert(rid, row);
        }
        Ok(())
    }

    async fn reopen_container(&self, rid: ContainerRid, row: ContainerRow) -> Result<Arc<Container>> {
        let database_id = self
            .database_by_rid(rid.database())
            .map_err(|_| damaged("a container without its database"))?
            .id;
        let container = self.open_container(rid, database_id, row).await?;
        let mut memory = self.memory.write();
        let database = memory.database_mut(rid.database())?;
        database.names.insert(container.properties().id.clone(), rid);
        database.containers.insert(rid, container.clone());
        Ok(container)
    }
}

async fn read_rows(partition: &Partition) -> Result<Rows> {
    let mut pages = RawPages::over(partition, Space::Meta);
    let mut rows = Rows::default();
    loop {
        let page = pages.next().await?;
        if page.is_empty() {
            return Ok(rows);
        }
        for (key, value) in &page {
            rows.take(key, value)?;
        }
    }
}

impl Rows {
    fn definitions(&self) -> impl Iterator<Item = (Key, Definition<'_>)> {
        let databases = self.databases.iter();
        let databases = databases.map(|(rid, row)| (database_key(*rid), Definition::Database(row)));
        let containers = self.containers.iter();
        let containers = containers.map(|(rid, row)| (container_key(*rid), Definition::Container(row)));
        let users = self.users.iter();
        let users = users.map(|(rid, row)| (user_key(*rid), Definition::User(row)));
        let permissions = self.permissions.iter();
        let permissions = permissions.map(|(rid, row)| (permission_key(*rid), Definition::Permission(row)));
        let scripts = self.scripts.iter();
        let scripts = scripts.map(|(rid, row)| (script_key(*rid), Definition::Script(row)));
        let keys = self.encryption_keys.iter();
        let keys = keys.map(|(rid, row)| (encryption_key_key(*rid), Definition::EncryptionKey(row)));
        databases
            .chain(containers)
            .chain(users)
            .chain(permissions)
            .chain(scripts)
            .chain(keys)
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let unknown = || damaged("a row with an unknown key");
        if key == account_key().bytes {
            self.account = AccountRow::decode(value)?;
            return Ok(());
        }
        match key.split_first().ok_or_else(unknown)? {
            (&DATABASE, rid) => {
                let rid = DatabaseRid::new(u32::from_le_bytes(rid.try_into().map_err(|_| unknown())?));
                self.databases.insert(rid, DatabaseRow::decode(value)?);
            }
            (&CONTAINER, rid) => {
                let rid = rid
                    .try_into()
                    .ok()
                    .and_then(ContainerRid::from_bytes)
                    .ok_or_else(unknown)?;
                self.containers.push((rid, ContainerRow::decode(value)?));
            }
            (&USER, rid) => {
                let rid = rid.try_into().ok().and_then(UserRid::from_bytes).ok_or_else(unknown)?;
                self.users.push((rid, UserRow::decode(value)?));
            }
            (&PERMISSION, rid) => {
                let rid = rid
                    .try_into()
                    .ok()
                    .and_then(PermissionRid::from_bytes)
                    .ok_or_else(unknown)?;
                self.permissions.push((rid, PermissionRow::decode(value)?));
            }
            (&SCRIPT, rid) => {
                let rid = scripts::rid_of_key(rid).ok_or_else(unknown)?;
                self.scripts.push((rid, ScriptRow::decode(value)?));
            }
            (&ENCRYPTION_KEY, rid) => {
                let rid = rid
                    .try_into()
                    .ok()
                    .and_then(EncryptionKeyRid::from_bytes)
                    .ok_or_else(unknown)?;
                self.encryption_keys.push((rid, EncryptionKeyRow::decode(value)?));
            }
            (&DROPPED, partition) => {
                let id = u64::from_be_bytes(partition.try_into().map_err(|_| unknown())?);
                self.dropped.push(PartitionId(id));
            }
            _ if key == keys::state().bytes => {}
            _ => return Err(unknown()),
        }
        Ok(())
    }
}

fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the catalog is damaged: {what}"))
}
