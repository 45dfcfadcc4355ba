//! `copy`: databases and containers of one server into another.
//!
//! ```text
//!   database ─▶ client encryption keys ─▶ containers: definition, throughput, scripts, items ─▶ users, permissions
//! ```
//!
//! Everything is created only if it is not there. So a copy that was ended goes on when it is started again: what is there and equal is left as it is.

mod items;
mod resources;

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use self::resources::{Resources, named, shown};
use crate::client::Client;
use crate::container::{Container, ContainerName};
use crate::failure::{Failure, Result};
use crate::load::OnConflict;
use crate::progress::Progress;

/// Members of a container's definition that are compared if the container is there already.
const SETTINGS: [&str; 10] = [
    "partitionKey",
    "uniqueKeyPolicy",
    "defaultTtl",
    "indexingPolicy",
    "computedProperties",
    "changeFeedPolicy",
    "vectorEmbeddingPolicy",
    "fullTextPolicy",
    "clientEncryptionPolicy",
    "conflictResolutionPolicy",
];

/// What to copy.
#[derive(Debug, Clone)]
pub struct CopyOptions {
    /// This database only.
    pub database: Option<String>,
    /// This container of it only.
    pub container: Option<String>,
    /// The paths of another partition key for the container, with commas between them.
    pub partition_key: Option<String>,
    /// What happens to items and definitions that are there already and differ.
    pub on_conflict: OnConflict,
    /// Whether items keep their `_ts`.
    pub keep_timestamps: bool,
}

/// What a copy has done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copied {
    /// Databases.
    pub databases: u64,
    /// Containers.
    pub containers: u64,
    /// Items that were written.
    pub items: u64,
    /// Items that were there already.
    pub there: u64,
    /// What was not copied, and why.
    pub notes: Vec<String>,
}

/// Copies databases, or one, or one container.
///
/// # Errors
/// A server refuses or cannot be reached; something is there already and differs. What was copied until then stays.
pub fn run(from: &Client, to: &Client, options: &CopyOptions) -> Result<Copied> {
    let mut copy = Copy {
        from,
        to,
        options,
        throughputs: HashMap::new(),
        copied: Copied::default(),
        progress: Progress::new(None),
    };
    copy.read_throughputs()?;
    let databases = Resources::DATABASES.list(from, &[])?;
    let is_chosen = |database: &&Map<String, Value>| options.database.as_deref().is_none_or(|id| named(database) == id);
    let chosen: Vec<_> = databases.iter().filter(is_chosen).collect();
    if let (true, Some(id)) = (chosen.is_empty(), &options.database) {
        return Err(Failure::new(format!("{}: no such database. id=`{id}`", from.name())));
    }
    for database in &chosen {
        copy.check_no_collections(named(database))?;
    }
    for database in chosen {
        copy.database(database)?;
    }
    Ok(copy.copied)
}

/// A running copy.
struct Copy<'a> {
    from: &'a Client,
    to: &'a Client,
    options: &'a CopyOptions,
    /// The headers that give a new database or container its throughput, by the resource id of the old one.
    throughputs: HashMap<String, (&'static str, String)>,
    copied: Copied,
    progress: Progress,
}

impl Copy<'_> {
    fn read_throughputs(&mut self) -> Result<()> {
        let offers = match Resources::OFFERS.list(self.from, &[]) {
            Ok(offers) => offers,
            Err(failure) => {
                self.copied.notes.push(format!("not copied: throughputs ({failure})"));
                return Ok(());
            }
        };
        for offer in offers {
            let content = &offer.get("content").cloned().unwrap_or_default();
            let header = match (
                &content["offerAutopilotSettings"]["maxThroughput"],
                &content["offerThroughput"],
            ) {
                (Value::Number(most), _) => (
                    "x-ms-cosmos-offer-autopilot-settings",
                    json!({"maxThroughput": most}).to_string(),
                ),
                (_, Value::Number(throughput)) => ("x-ms-offer-throughput", throughput.to_string()),
                _ => continue,
            };
            if let Some(rid) = offer.get("offerResourceId").and_then(Value::as_str) {
                self.throughputs.insert(rid.to_owned(), header);
            }
        }
        Ok(())
    }

    fn throughput_of(&self, resource: &Map<String, Value>) -> Option<(&'static str, String)> {
        let rid = resource.get("_rid")?.as_str()?;
        self.throughputs.get(rid).cloned()
    }

    fn database(&mut self, database: &Map<String, Value>) -> Result<()> {
        let id = named(database);
        let definition = shown(database);
        let throughput = self.throughput_of(database);
        Resources::DATABASES.create(self.to, &[], &definition, throughput, self.options.on_conflict)?;
        self.copied.databases += 1;
        let parent = ["dbs", id];
        self.all_of(Resources::ENCRYPTION_KEYS, &parent)?;
        let containers = Resources::CONTAINERS.list(self.from, &parent)?;
        let only = self.options.container.as_deref();
        let mut is_found = false;
        for container in containers
            .iter()
            .filter(|container| only.is_none_or(|only| named(container) == only))
        {
            self.container(id, container)?;
            is_found = true;
        }
        if let (false, Some(only)) = (is_found, only) {
            let name = format!("{id}/{only}");
            return Err(Failure::new(format!(
                "{}: no such container. name=`{name}`",
                self.from.name()
            )));
        }
        if only.is_none() {
            self.users(id)?;
        }
        Ok(())
    }

    /// Checks that none of the containers is a MongoDB collection: as items, its documents would lose their types and their indexes.
    fn check_no_collections(&self, database: &str) -> Result<()> {
        let only = self.options.container.as_deref();
        for container in Resources::CONTAINERS.list(self.from, &["dbs", database])? {
            let id = named(&container);
            if only.is_none_or(|only| id == only) && self.from.is_collection(&["dbs", database, "colls", id])? {
                return Err(Failure::new(format!(
                    "{}: {database}/{id} is a MongoDB collection, which --to does not copy; nothing was copied. --to-store and --to-data-dir move it with                      the whole store; mongodump and mongorestore copy it alone",
                    self.from.name()
                )));
            }
        }
        Ok(())
    }

    /// Copies all resources of a kind below a parent of the same name on both servers.
    fn all_of(&mut self, kind: Resources, parent: &[&str]) -> Result<Vec<Map<String, Value>>> {
        let all = match kind.list(self.from, parent) {
            Ok(all) => all,
            Err(failure) => {
                // A server may lack a kind of resources.
                self.copied.notes.push(format!("not copied: {failure}"));
                return Ok(Vec::new());
            }
        };
        for resource in &all {
            kind.create(self.to, parent, &shown(resource), None, self.options.on_conflict)?;
        }
        Ok(all)
    }

    fn container(&mut self, database: &str, container: &Map<String, Value>) -> Result<()> {
        let id = named(container);
        let name = ContainerName {
            database: database.to_owned(),
            container: id.to_owned(),
        };
        self.progress.say(name.to_string());
        let mut definition = shown(container);
        if let Some(paths) = &self.options.partition_key {
            definition.insert("partitionKey".to_owned(), partition_key(paths));
        }
        let parent = ["dbs", database];
        let throughput = self.throughput_of(container);
        let is_new = Resources::CONTAINERS.try_create(self.to, &parent, &definition, throughput)?;
        if !is_new {
            self.check_settings(&name, &definition)?;
        }
        let target = Container::read(self.to, &name)?;
        for kind in [Resources::PROCEDURES, Resources::TRIGGERS, Resources::FUNCTIONS] {
            self.all_of(kind, &name.path())?;
        }
        let source = Container::of(self.from, &name, container.clone())?;
        let (written, there) = items::copy(self, &source, &target)?;
        self.copied.items += written;
        self.copied.there += there;
        self.copied.containers += 1;
        Ok(())
    }

    /// Compares the settings of a container that is there already.
    fn check_settings(&self, name: &ContainerName, definition: &Map<String, Value>) -> Result<()> {
        let existing = Container::read(self.to, name)?;
        let differs = |setting: &&str| {
            let (old, new) = (existing.properties.get(*setting), definition.get(*setting));
            old != new
        };
        let different: Vec<&str> = SETTINGS.iter().filter(|setting| differs(setting)).copied().collect();
        if different.is_empty() {
            return Ok(());
        }
        let key = definition.get("partitionKey").unwrap_or(&Value::Null);
        let is_other_key = existing
            .properties
            .get("partitionKey")
            .is_none_or(|old| old["paths"] != key["paths"]);
        match self.options.on_conflict {
            OnConflict::Skip if !is_other_key => Ok(()),
            OnConflict::Replace if !is_other_key => {
                Resources::CONTAINERS.replace(self.to, &["dbs", &name.database], definition)
            }
            _ => Err(Failure::new(format!(
                "{}: the container {name} is there already, and has another {}",
                self.to.name(),
                different.join(", ")
            ))),
        }
    }

    fn users(&mut self, database: &str) -> Result<()> {
        let parent = ["dbs", database];
        for user in self.all_of(Resources::USERS, &parent)? {
            let path = ["dbs", database, "users", named(&user)];
            for permission in Resources::PERMISSIONS.list(self.from, &path)? {
                let link = permission.get("resource").and_then(Value::as_str).unwrap_or_default();
                // A link by resource ids leads to nothing on another server.
                if !link.trim_start_matches('/').starts_with(&format!("dbs/{database}/")) {
                    let note = format!(
                        "not copied: the permission {} of user {}, whose link has no names",
                        named(&permission),
                        path[3]
                    );
                    self.copied.notes.push(note);
                    continue;
                }
                Resources::PERMISSIONS.create(self.to, &path, &shown(&permission), None, self.options.on_conflict)?;
            }
        }
        Ok(())
    }
}

/// The definition of a partition key of these paths.
fn partition_key(paths: &str) -> Value {
    let paths: Vec<&str> = paths.split(',').map(str::trim).collect();
    let kind = if paths.len() > 1 { "MultiHash" } else { "Hash" };
    json!({"paths": paths, "kind": kind, "version": 2})
}
