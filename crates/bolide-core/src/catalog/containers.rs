//! Containers: create, find, replace, delete.

use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_model::container::ContainerProperties;
use bolide_model::epk;
use bolide_model::names::validate_resource_id;
use bolide_model::rid::{ContainerRid, DatabaseRid, EncryptionKeyRid};
use bolide_model::ttl::Settings;
use bolide_model::{Error, Result, UnixSeconds};
use bolide_storage::{Head, PartitionId};
use bytes::Bytes;
use serde_json::Value;

use super::budget::Definition;
use super::records::{
    AccountRow, ContainerRow, DatabaseRow, EncryptionKeyRow, OfferRow, account_key, container_key, database_key,
    dropped_key, script_key,
};
use super::{Catalog, Moment, check_etag, container_not_found};
use crate::change_log as history;
use crate::clock;
use crate::container::{Container, ContainerInfo, ContainerState, Layout, Stretch};
use crate::partition::round::Step;
use crate::partition::{Partition, Placement, down};
use crate::throughput::{Meter, OfferType, Pacing, PacingSettings, SharedMeter, Throughput};

/// Most stretches of settings that are remembered; older ones only made figures about the age of ghosts more exact.
const HISTORY: usize = 256;

impl Catalog {
    pub async fn create_container(
        &self,
        database: DatabaseRid,
        properties: ContainerProperties,
        (throughput, kind): (Option<Throughput>, OfferType),
    ) -> Result<Arc<Container>> {
        validate_resource_id(&properties.id)?;
        properties.partition_key.check_new()?;
        check_computed_properties(&properties)?;
        throughput.map_or(Ok(()), Throughput::validate)?;
        let draft = self.draft_container(database, &properties, throughput)?;
        let Draft {
            rid,
            database_id,
            account,
            database_row,
            has_offer,
            placements,
        } = draft;
        let (account_after, row_after) = (account.clone(), database_row.clone());

        let row = self
            .commit(move |round| {
                let moment = Moment::begin(round);
                let row = new_row(
                    moment,
                    &properties,
                    throughput,
                    has_offer.then_some((account.next_offer - 1, kind)),
                    &placements,
                );
                round.put(account_key(), account.encode());
                round.define(database_key(database), Definition::Database(&database_row));
                round.define(container_key(rid), Definition::Container(&row));
                Ok(row)
            })
            .await?;

        let container = self.open_container(rid, database_id, row).await?;
        let mut memory = self.memory.write();
        memory.account = account_after;
        let database = memory.database_mut(database)?;
        database.row = row_after;
        database.names.insert(container.properties().id.clone(), rid);
        database.containers.insert(rid, container.clone());
        Ok(container)
    }

    /// Checks a new container against the catalog, and takes the numbers it will have.
    fn draft_container(
        &self,
        database_rid: DatabaseRid,
        properties: &ContainerProperties,
        throughput: Option<Throughput>,
    ) -> Result<Draft> {
        let memory = self.memory.read();
        let database = memory.database(database_rid)?;
        check_encryption_keys(properties, &database.encryption_keys)?;
        if database.names.contains_key(&properties.id) {
            return Err(Error::conflict(format!(
                "Resource with specified id, name, or unique index already exists: container '{}'.",
                properties.id
            )));
        }
        let (mut account, mut database_row) = (memory.account.clone(), database.row.clone());
        let rid = ContainerRid::new(database_rid, database_row.next_container);
        database_row.next_container += 1;
        // In a database with throughput of its own, a container without any shares it.
        let has_offer = throughput.is_some() || database_row.offer.is_none();
        if has_offer {
            account.next_offer += 1;
        }
        let count = throughput.map_or(1, Throughput::initial_ranges);
        let mut placements = Vec::new();
        for (range, epk) in (0..).zip(epk::boundaries(&properties.partition_key, count)) {
            placements.push(Placement {
                id: PartitionId(account.next_partition),
                range,
                epk,
                parents: vec![],
            });
            account.next_partition += 1;
        }
        let database_id = database_row.id.clone();
        Ok(Draft {
            rid,
            database_id,
            account,
            database_row,
            has_offer,
            placements,
        })
    }

    /// Opens the partitions of a container, and creates those that a crash left out.
    pub(super) async fn open_container(
        &self,
        rid: ContainerRid,
        database_id: String,
        row: ContainerRow,
    ) -> Result<Arc<Container>> {
        let now = clock::exact_now(self.engine.as_ref()).await?;
        let mut partitions = Vec::with_capacity(row.placements.len());
        for placement in &row.placements {
            let head = Head::first(now);
            self.engine.create(placement.id, head).await.map_err(down)?;
            let meter = Meter::shared(&row.pacing, row.placements.len(), now.seconds());
            partitions.push(Partition::open(self.engine.clone(), placement.clone(), meter, self.alarm.clone()).await?);
        }
        let layout = Layout {
            version: row.layout_version,
            partitions,
        };
        let shared_meter = self.memory.read().database(rid.database())?.meter.clone();
        let state = ContainerState::of(row, layout, shared_meter);
        state.pace_meters(now.seconds());
        Ok(Container::new(rid, database_id, state))
    }

    /// The containers of a database, in the order of their creation.
    pub fn list_containers(&self, database: DatabaseRid) -> Result<Vec<Arc<Container>>> {
        Ok(self
            .memory
            .read()
            .database(database)?
            .containers
            .values()
            .cloned()
            .collect())
    }

    pub fn container_by_name(&self, database: DatabaseRid, id: &str) -> Result<Arc<Container>> {
        let memory = self.memory.read();
        let database = memory.database(database)?;
        let rid = database.names.get(id).ok_or_else(|| container_not_found(id))?;
        database
            .containers
            .get(rid)
            .cloned()
            .ok_or_else(|| container_not_found(id))
    }

    pub fn container_by_rid(&self, rid: ContainerRid) -> Result<Arc<Container>> {
        let memory = self.memory.read();
        let not_found = || container_not_found(&rid.to_string());
        let database = memory.database(rid.database()).map_err(|_| not_found())?;
        database.containers.get(&rid).cloned().ok_or_else(not_found)
    }

    /// Replaces a container's definition. A changed default ttl ends the stretch of settings before it, at the server time of the
    /// commit (TTL-227); an unchanged one begins none (TTL-231). No item is touched (TTL-234).
    pub async fn replace_container(
        &self,
        container: &Arc<Container>,
        sent: &Value,
        if_match: Option<&str>,
    ) -> Result<ContainerInfo> {
        let properties = ContainerProperties::from_json(sent)?;
        check_computed_properties(&properties)?;
        let change = container.lock().await;
        let state = change.state();
        if state.is_deleted {
            return Err(container_not_found(&state.properties.id));
        }
        check_etag(state.etag, if_match)?;
        let properties = Arc::new(state.properties.replace(properties, sent)?);
        if state.retention().is_none() && history::retention(&properties, state.keeps_all_versions).is_some() {
            begin_history(&state).await?;
        }
        let after = self
            .commit_state(container.rid(), move |moment| {
                let mut after = (*state).clone();
                after.change_policy(&properties, moment.now);
                after.properties = properties.clone();
                (after.etag, after.last_modified) = (moment.etag(), moment.now);
                after
            })
            .await?;
        for partition in &after.layout.partitions {
            partition.expect_due(i64::MIN);
            partition.expect_trim(i64::MIN);
        }
        change.replace(after);
        Ok(container.info())
    }

    /// Begins the history of a container that has no policy for it. One that has it, or a policy that says otherwise, stays as it is.
    pub async fn keep_all_versions(&self, container: &Arc<Container>) -> Result<()> {
        let change = container.lock().await;
        let state = change.state();
        if state.is_deleted {
            return Err(container_not_found(&state.properties.id));
        }
        if state.keeps_all_versions || state.properties.change_feed_policy.is_some() {
            return Ok(());
        }
        begin_history(&state).await?;
        let after = self
            .commit_state(container.rid(), move |_| ContainerState {
                keeps_all_versions: true,
                ..(*state).clone()
            })
            .await?;
        change.replace(after);
        Ok(())
    }

    /// Commits a container's row as `change` makes it at the moment of the commit.
    pub(super) async fn commit_state<F>(&self, rid: ContainerRid, mut change: F) -> Result<ContainerState>
    where
        F: FnMut(Moment) -> ContainerState + Send + 'static,
    {
        self.commit(move |round| {
            let state = change(Moment::begin(round));
            round.define(container_key(rid), Definition::Container(&state.to_row()));
            Ok(state)
        })
        .await
    }

    pub async fn delete_container(&self, rid: ContainerRid, if_match: Option<&str>) -> Result<()> {
        let container = self.container_by_rid(rid)?;
        check_etag(container.state().etag, if_match)?;
        self.drop_container(&container).await
    }

    /// Deletes a container: once no request is under way, its row goes and its partitions are named for removal, in one commit.
    /// A purge batch has committed before, or does not happen (TTL-271).
    pub(super) async fn drop_container(&self, container: &Arc<Container>) -> Result<()> {
        let rid = container.rid();
        let change = container.lock().await;
        let mut state = (*change.state()).clone();
        let dropped: Vec<PartitionId> = state.layout.partitions.iter().map(|partition| partition.id).collect();
        let mut rows: Vec<bolide_storage::Key> =
            container.scripts().all().map(|script| script_key(script.rid)).collect();
        rows.push(container_key(rid));
        self.drop_partitions(rows, dropped).await?;
        state.is_deleted = true;
        let id = state.properties.id.clone();
        change.replace(state);
        let mut memory = self.memory.write();
        if let Ok(database) = memory.database_mut(rid.database()) {
            database.containers.remove(&rid);
            database.names.remove(&id);
        }
        Ok(())
    }

    /// Names partitions for removal in one commit, together with the rows that go with them, then removes them.
    pub(super) async fn drop_partitions(
        &self,
        rows: Vec<bolide_storage::Key>,
        partitions: Vec<PartitionId>,
    ) -> Result<()> {
        let named = partitions.clone();
        self.commit(move |round| -> Step<()> {
            Moment::begin(round);
            for row in &rows {
                round.delete(row.clone());
            }
            for partition in &named {
                round.put(dropped_key(*partition), Bytes::new());
            }
            Ok(())
        })
        .await?;
        self.remove_dropped(partitions).await
    }

    /// Removes partitions that a commit has named; also after a restart.
    pub async fn remove_dropped(&self, partitions: Vec<PartitionId>) -> Result<()> {
        for partition in &partitions {
            self.engine.remove(*partition).await.map_err(down)?;
        }
        self.commit(move |round| {
            Moment::begin(round);
            for partition in &partitions {
                round.delete(dropped_key(*partition));
            }
            Ok(())
        })
        .await
    }

    /// Sets how a container's purge is paced.
    pub async fn set_pacing(&self, container: &Arc<Container>, pacing: PacingSettings) -> Result<()> {
        let change = container.lock().await;
        let now = self.now().await?.seconds();
        let state = change.state();
        let after = self
            .commit_state(container.rid(), move |_| ContainerState {
                pacing,
                ..(*state).clone()
            })
            .await?;
        after.pace_meters(now);
        change.replace(after);
        Ok(())
    }
}

/// A container about to be created.
struct Draft {
    rid: ContainerRid,
    database_id: String,
    account: AccountRow,
    database_row: DatabaseRow,
    has_offer: bool,
    placements: Vec<Placement>,
}

/// What earlier policies left of the history goes: it begins with the next write.
async fn begin_history(state: &Arc<ContainerState>) -> Result<()> {
    for partition in &state.layout.partitions {
        history::trim::begin(state, partition).await?;
    }
    Ok(())
}

/// The definition itself cannot judge the queries in it; the query language does.
fn check_computed_properties(properties: &ContainerProperties) -> Result<()> {
    for computed in &properties.computed_properties {
        bolide_query::check_computed(&computed.query).map_err(|error| {
            Error::bad_request(format!(
                "The computed property '{}' is invalid: {}",
                computed.name,
                error.message()
            ))
        })?;
    }
    Ok(())
}

/// Refuses a policy that names keys which the database does not have. Clients look for these words. Source: .NET's suite.
fn check_encryption_keys(
    properties: &ContainerProperties,
    keys: &BTreeMap<EncryptionKeyRid, EncryptionKeyRow>,
) -> Result<()> {
    let paths = properties
        .client_encryption_policy
        .iter()
        .flat_map(|policy| &policy.paths);
    let is_known = |id: &str| keys.values().any(|key| key.properties.id == id);
    match paths.map(|path| path.key_id.as_str()).find(|id| !is_known(id)) {
        None => Ok(()),
        Some(id) => Err(Error::bad_request(format!(
            "ClientEncryptionKey with id '[{id}]' does not exist."
        ))),
    }
}

fn new_row(
    moment: Moment,
    properties: &ContainerProperties,
    throughput: Option<Throughput>,
    offer: Option<(u32, OfferType)>,
    placements: &[Placement],
) -> ContainerRow {
    let (etag, last_modified) = (moment.etag(), moment.now);
    ContainerRow {
        etag,
        last_modified,
        settings: Settings::new(properties.policy),
        history: vec![Stretch {
            start: moment.now,
            policy: properties.policy,
        }],
        properties: properties.clone(),
        offer: offer.map(|(number, kind)| OfferRow {
            number,
            throughput,
            kind,
            etag,
            last_modified,
        }),
        pacing: PacingSettings::of(throughput),
        keeps_all_versions: false,
        layout_version: 1,
        next_range: placements.len() as u32,
        placements: placements.to_vec(),
    }
}

impl ContainerState {
    fn of(row: ContainerRow, layout: Layout, database_meter: Option<SharedMeter>) -> ContainerState {
        ContainerState {
            database_meter,
            properties: Arc::new(row.properties),
            etag: row.etag,
            last_modified: row.last_modified,
            settings: row.settings,
            history: row.history,
            offer: row.offer,
            pacing: row.pacing,
            keeps_all_versions: row.keeps_all_versions,
            layout: Arc::new(layout),
            next_range: row.next_range,
            is_deleted: false,
        }
    }

    /// The row to store.
    pub(crate) fn to_row(&self) -> ContainerRow {
        let placements = self.layout.partitions.iter().map(|partition| Placement {
            id: partition.id,
            range: partition.range,
            epk: partition.epk.clone(),
            parents: partition.parents.clone(),
        });
        ContainerRow {
            properties: (*self.properties).clone(),
            etag: self.etag,
            last_modified: self.last_modified,
            settings: self.settings,
            history: self.history.clone(),
            offer: self.offer,
            pacing: self.pacing,
            keeps_all_versions: self.keeps_all_versions,
            layout_version: self.layout.version,
            next_range: self.next_range,
            placements: placements.collect(),
        }
    }

    fn change_policy(&mut self, properties: &ContainerProperties, now: UnixSeconds) {
        if properties.policy == self.settings.policy {
            return;
        }
        self.settings = self.settings.change(properties.policy, now);
        if self.history.len() == HISTORY {
            self.history.remove(0);
        }
        self.history.push(Stretch {
            start: now,
            policy: properties.policy,
        });
    }

    /// The meter of the database, if the container shares its throughput: it has no offer of its own, and nobody has given it another
    /// budget.
    pub(crate) fn shared_meter(&self) -> Option<&SharedMeter> {
        let is_on_its_own = self.offer.is_some() || self.pacing.pacing != Pacing::Unlimited;
        self.database_meter.as_ref().filter(|_| !is_on_its_own)
    }

    /// Gives every partition's meter its share of the budget, from `now` on.
    pub(crate) fn pace_meters(&self, now: UnixSeconds) {
        let partitions = &self.layout.partitions;
        if let Some(shared) = self.shared_meter() {
            for partition in partitions {
                partition.set_meter(shared.clone());
            }
            return;
        }
        for partition in partitions {
            let was_shared = |shared: &SharedMeter| Arc::ptr_eq(shared, &partition.meter());
            if self.database_meter.as_ref().is_some_and(was_shared) {
                partition.set_meter(Meter::shared(&self.pacing, partitions.len(), now));
            }
            partition.meter().lock().set_pacing(&self.pacing, partitions.len(), now);
        }
    }
}
