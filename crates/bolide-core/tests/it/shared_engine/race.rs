//! Both accounts change the catalog at the same time, over engines that return `Stale` and `Unknown` although nothing is wrong. In any order of
//! events, every acknowledged change exists at the end, in both accounts and in one that is opened then, and no id was given twice. A change whose
//! outcome stayed unknown, because the other account committed too much before the outcome could be queried, may exist or not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bolide_core::{
    Account, Container, OfferResource, PermissionMode, PermissionProperties, RequestContext, ScriptDraft, ScriptKind,
    Throughput,
};
use bolide_model::encryption_key::EncryptionKeyProperties;
use bolide_model::rid::{DatabaseRid, UserRid};
use bolide_model::{Error, ErrorKind};
use bolide_storage::faults::{Faults, FaultyEngine};
use bolide_storage::{Engine, PartitionId, Space};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Two, container, container_text};
use crate::probe::rows_of;

const TASKS: u64 = 3;
const STEPS: u64 = 8;
const SCRIPT: ScriptKind = ScriptKind::UserDefinedFunction;

/// The acknowledged changes.
#[derive(Default)]
struct Acknowledged {
    /// The resources that must exist, by kind and name, with their resource ids.
    there: BTreeMap<(&'static str, String), String>,
    /// The resources that may exist.
    unknown: BTreeSet<(&'static str, String)>,
    /// Names that both accounts tried to create, and one created.
    won: BTreeSet<String>,
    /// Paths that were added to the definition of the shared container, one by one.
    paths: BTreeSet<String>,
    /// Databases that were created and not deleted yet, for any task to delete.
    to_delete: Vec<(String, DatabaseRid)>,
}

/// The data of one task of one account.
struct Worker {
    account: Arc<Account>,
    ctx: RequestContext,
    name: String,
    database: DatabaseRid,
    shared: Arc<Container>,
    user: UserRid,
    acknowledged: Arc<Mutex<Acknowledged>>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_accounts_that_change_the_catalog_at_once_lose_nothing_and_give_no_id_twice() {
    for seed in 1..=3 {
        let faults = |number| Faults {
            seed: seed * 10 + number,
            stale_percent: 15,
            unknown_percent: 15,
            down_percent: 0,
            span_ms: 0,
        };
        let two = Two::through(|engine, number| Arc::new(FaultyEngine::new(engine, faults(number)))).await;
        let acknowledged = race(&two).await;
        for account in [&two.first, &two.second, &two.third().await] {
            account.refresh_catalog().await.unwrap();
            assert_shows(account, &acknowledged, seed);
        }
        assert_no_number_twice(two.engine.as_ref()).await;
    }
}

async fn race(two: &Two) -> Acknowledged {
    let ctx = two.first.begin().await.unwrap();
    let database = two.first.create_database(&ctx, "shared", None).await.unwrap().rid;
    let definition = container("shared", &json!({}));
    two.first
        .create_container(&ctx, database, definition, None)
        .await
        .unwrap();
    let user = two.first.create_user(&ctx, database, "shared").await.unwrap().rid;
    let acknowledged = Arc::new(Mutex::new(Acknowledged::default()));
    let mut tasks = Vec::new();
    for (account, name) in [(&two.first, "a"), (&two.second, "b")] {
        account.refresh_catalog().await.unwrap();
        for task in 0..TASKS {
            let worker = Worker {
                account: account.clone(),
                ctx,
                name: format!("{name}{task}"),
                database,
                shared: account.container_by_name(database, "shared").unwrap(),
                user,
                acknowledged: acknowledged.clone(),
            };
            tasks.push(tokio::spawn(async move {
                for step in 0..STEPS {
                    worker
                        .step(step)
                        .await
                        .unwrap_or_else(|error| panic!("step {step}: {error}"));
                }
            }));
        }
    }
    for task in tasks {
        task.await.expect("a task");
    }
    Arc::into_inner(acknowledged).expect("no task is left").into_inner()
}

impl Worker {
    async fn step(&self, step: u64) -> Result<(), Error> {
        let Worker { account, ctx, .. } = self;
        let name = format!("{}-{step}", self.name);
        let created = account.create_database(ctx, &name, None).await;
        let Some(created) = self.acknowledge("database", &name, created, |created| created.rid.to_string())? else {
            return Ok(());
        };
        // Some of them get throughput, which needs more numbers.
        let throughput = step.is_multiple_of(3).then_some(Throughput::Manual { ru: 12_000 });
        let properties = container("c", &json!({}));
        let inside = account.create_container(ctx, created.rid, properties, throughput).await;
        self.acknowledge("container", &format!("{name}/c"), inside, |inside| {
            inside.rid().to_string()
        })?;
        let properties = container(&name, &json!({}));
        let besides = account.create_container(ctx, self.database, properties, None).await;
        self.acknowledge("container", &format!("shared/{name}"), besides, |c| c.rid().to_string())?;
        let user = account.create_user(ctx, self.database, &name).await;
        self.acknowledge("user", &name, user, |user| user.rid.to_string())?;
        let permission = account.create_permission(ctx, self.user, grant(&name)).await;
        self.acknowledge("permission", &name, permission, |permission| permission.rid.to_string())?;
        let key = account.create_encryption_key(ctx, self.database, key(&name)).await;
        self.acknowledge("key", &name, key, |key| key.rid.to_string())?;
        let draft = ScriptDraft {
            id: name.clone(),
            body: "x".into(),
            fires: None,
        };
        let script = account.create_script(ctx, &self.shared, SCRIPT, draft, false).await;
        self.acknowledge("script", &name, script, |(script, _)| script.rid.to_string())?;
        self.win(step).await?;
        self.add_path(&name).await?;
        self.replace_an_offer().await?;
        self.delete_one_of_another(name, created.rid).await
    }

    /// Records what was created; returns `None` if the outcome is unknown.
    fn acknowledge<T>(
        &self,
        kind: &'static str,
        name: &str,
        created: Result<T, Error>,
        rid: impl Fn(&T) -> String,
    ) -> Result<Option<T>, Error> {
        let mut acknowledged = self.acknowledged.lock();
        let created = known(created)?;
        match &created {
            Some(created) => {
                let before = acknowledged.there.insert((kind, name.to_owned()), rid(created));
                assert_eq!(before, None, "{kind} {name}");
            }
            None => drop(acknowledged.unknown.insert((kind, name.to_owned()))),
        }
        Ok(created)
    }

    /// Creates a database that every other task tries to create too.
    async fn win(&self, step: u64) -> Result<(), Error> {
        let name = format!("contested-{step}");
        let created = self.account.create_database(&self.ctx, &name, None).await;
        let mut acknowledged = self.acknowledged.lock();
        match created {
            Err(error) if error.kind == ErrorKind::Conflict => {}
            created => match known(created)? {
                Some(_) => assert!(acknowledged.won.insert(name), "two created it"),
                None => drop(acknowledged.unknown.insert(("database", name))),
            },
        }
        Ok(())
    }

    /// Adds to the definition that all tasks change: a task that writes on an older version than the current one is refused, and starts again.
    async fn add_path(&self, name: &str) -> Result<(), Error> {
        let path = format!("/{name}/?");
        loop {
            self.account.refresh_catalog().await?;
            let info = self.shared.info();
            let mut sent = container_text("shared", &json!({}));
            sent["indexingPolicy"] = info.properties.to_json()["indexingPolicy"].clone();
            let paths = sent["indexingPolicy"]["includedPaths"].as_array_mut().expect("paths");
            if paths.iter().any(|known| known["path"] == path) {
                self.acknowledged.lock().paths.insert(path);
                return Ok(());
            }
            paths.push(json!({"path": path}));
            let etag = info.etag.to_string();
            let replaced = self
                .account
                .replace_container(&self.ctx, &self.shared, &sent, Some(&etag));
            match replaced.await {
                Err(error) if error.kind == ErrorKind::PreconditionFailed => {}
                // Acknowledged or of unknown outcome: the next iteration checks whether the path is visible.
                replaced => drop(known(replaced)?),
            }
        }
    }

    /// Replaces the offer of the shared container, which must not be lost while other tasks change the definition.
    async fn replace_an_offer(&self) -> Result<(), Error> {
        let mut offers = self.account.list_offers().into_iter();
        let shared = OfferResource::Container(self.shared.rid());
        let offer = offers.find(|offer| offer.resource == shared).expect("its offer");
        let throughput = Throughput::Manual { ru: 900 };
        let replaced = self.account.replace_offer(&self.ctx, offer.rid, throughput, None);
        known(replaced.await).map(drop)
    }

    /// Adds a database to those to delete, and deletes one that the other account has added, which must be visible by then.
    async fn delete_one_of_another(&self, name: String, rid: DatabaseRid) -> Result<(), Error> {
        let found = {
            let mut acknowledged = self.acknowledged.lock();
            acknowledged.to_delete.push((name, rid));
            let others = acknowledged.to_delete.iter();
            let others = others.map(|(name, _)| name.as_bytes()[0] != self.name.as_bytes()[0]);
            let at = others.collect::<Vec<_>>().into_iter().position(|is_another| is_another);
            at.map(|at| acknowledged.to_delete.remove(at))
        };
        let Some((name, rid)) = found else { return Ok(()) };
        self.account.refresh_catalog().await?;
        assert_eq!(self.account.database_by_name(&name)?.rid, rid);
        let deleted = known(self.account.delete_database(&self.ctx, rid, None).await)?;
        let mut acknowledged = self.acknowledged.lock();
        for gone in [("database", name.clone()), ("container", format!("{name}/c"))] {
            acknowledged.there.remove(&gone);
            match deleted {
                Some(()) => acknowledged.unknown.remove(&gone),
                None => acknowledged.unknown.insert(gone),
            };
        }
        Ok(())
    }
}

/// Returns `None` if the outcome is unknown.
fn known<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Err(error) if error.kind == ErrorKind::Timeout => Ok(None),
        result => result.map(Some),
    }
}

fn assert_shows(account: &Account, acknowledged: &Acknowledged, seed: u64) {
    let mut shown = BTreeMap::new();
    let mut won = BTreeSet::new();
    let mut show = |kind, name: String, rid: String| {
        assert_eq!(shown.insert((kind, name.clone()), rid), None, "{kind} {name} twice");
    };
    for database in account.list_databases() {
        for container in account.list_containers(database.rid).unwrap() {
            let name = container.properties().id.clone();
            if (database.id.as_str(), name.as_str()) != ("shared", "shared") {
                show(
                    "container",
                    format!("{}/{name}", database.id),
                    container.rid().to_string(),
                );
                continue;
            }
            let scripts = account.list_scripts(&container, SCRIPT).into_iter();
            scripts.for_each(|script| show("script", script.id.clone(), script.rid.to_string()));
            let definition = Value::Object(container.properties().to_json());
            let paths = definition["indexingPolicy"]["includedPaths"].as_array().expect("paths");
            let paths = paths.iter().filter_map(|path| path["path"].as_str());
            let paths: BTreeSet<String> = paths.filter(|path| path.contains('-')).map(str::to_owned).collect();
            assert_eq!(paths, acknowledged.paths, "seed {seed}");
        }
        for user in account.list_users(database.rid).unwrap() {
            for permission in account.list_permissions(user.rid).unwrap() {
                show(
                    "permission",
                    permission.properties.id.clone(),
                    permission.rid.to_string(),
                );
            }
            if user.id != "shared" {
                show("user", user.id, user.rid.to_string());
            }
        }
        for key in account.list_encryption_keys(database.rid).unwrap() {
            show("key", key.properties.id.clone(), key.rid.to_string());
        }
        match database.id.as_str() {
            "shared" => {}
            id if id.starts_with("contested") => {
                if !acknowledged.unknown.contains(&("database", id.to_owned())) {
                    won.insert(database.id);
                }
            }
            _ => show("database", database.id, database.rid.to_string()),
        }
    }
    shown.retain(|name, _| acknowledged.there.contains_key(name) || !acknowledged.unknown.contains(name));
    assert_eq!(shown, acknowledged.there, "seed {seed}");
    let sure = acknowledged.won.iter();
    let sure: BTreeSet<String> = sure
        .filter(|name| !acknowledged.unknown.contains(&("database", (*name).clone())))
        .cloned()
        .collect();
    assert_eq!(won, sure, "seed {seed}");
    let offers = account.list_offers();
    let numbers: BTreeSet<_> = offers.iter().map(|offer| offer.rid).collect();
    assert_eq!(numbers.len(), offers.len());
    assert_eq!(offers.len(), account.all_containers().len());
    let raised = offers
        .iter()
        .filter(|offer| offer.throughput == Throughput::Manual { ru: 900 });
    assert_eq!(raised.count(), 1);
}

/// Asserts that no stored partition id or offer number occurs twice.
async fn assert_no_number_twice(engine: &dyn Engine) {
    let rows = rows_of(engine, PartitionId::CATALOG, Space::Meta).await;
    let containers = rows.into_iter().filter(|(key, _)| key.starts_with(b"C"));
    let (mut partitions, mut offers) = (BTreeSet::new(), BTreeSet::new());
    for (_, row) in containers {
        let row: Value = serde_json::from_slice(&row).unwrap();
        for range in row["ranges"].as_array().unwrap() {
            assert!(partitions.insert(range["partition"].as_u64()), "{row}");
        }
        assert!(offers.insert(row["offer"]["number"].as_u64()), "{row}");
    }
}

fn grant(name: &str) -> PermissionProperties {
    PermissionProperties {
        id: name.into(),
        mode: PermissionMode::Read,
        mode_text: "Read".into(),
        resource: format!("dbs/shared/colls/{name}"),
        partition_key: None,
    }
}

fn key(name: &str) -> EncryptionKeyProperties {
    let sent = json!({
        "id": name, "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256", "wrappedDataEncryptionKey": "AAEC",
        "keyWrapMetadata": {"type": "t", "name": "n", "value": "v", "algorithm": "RSA-OAEP"},
    });
    EncryptionKeyProperties::from_json(&sent).expect("a key")
}
