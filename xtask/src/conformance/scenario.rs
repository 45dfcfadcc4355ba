//! Scenarios as described in `conformance/ttl/README.md`: the parsed content of a file.
//!
//! Parsing is strict. An argument that this runner does not know is an error, because a step run without it would test something else than the scenario claims.

use std::path::{Path, PathBuf};

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::Result;

/// One file: a script of steps against a fresh server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The file's name without its ending.
    pub name: String,
    /// The claim of the scenario.
    pub title: String,
    /// The requirements it covers, as `TTL-045`.
    pub covers: Vec<String>,
    /// Abilities that a runner needs.
    pub requires: Vec<String>,
    steps: Vec<Map<String, Value>>,
}

/// One step: the action, what to save of its result, and what to expect of it.
#[derive(Debug)]
pub struct Step {
    /// The word in its `do`, for messages.
    pub kind: String,
    /// The action.
    pub action: Action,
    /// The label under which the answer's etag, charge and continuation are kept.
    pub save: Option<String>,
    /// The expected result; without it the step must simply succeed.
    pub expect: Option<Map<String, Value>>,
}

/// The action of a step, by the word in its `do`; `conformance/ttl/README.md` describes each.
#[derive(Debug, Deserialize)]
#[serde(tag = "do")]
pub enum Action {
    #[serde(rename = "clock")]
    Clock(Clock),
    #[serde(rename = "restart")]
    Restart(Restart),
    #[serde(rename = "fault")]
    Fault(Fault),
    #[serde(rename = "container.create")]
    ContainerCreate(Box<ContainerDefinition>),
    #[serde(rename = "container.replace")]
    ContainerReplace(Box<ContainerDefinition>),
    #[serde(rename = "container.read")]
    ContainerRead(ContainerId),
    #[serde(rename = "container.delete")]
    ContainerDelete(ContainerId),
    #[serde(rename = "item.create")]
    ItemCreate(ItemBody),
    #[serde(rename = "item.upsert")]
    ItemUpsert(ItemBody),
    #[serde(rename = "item.replace")]
    ItemReplace(ItemReplace),
    #[serde(rename = "item.patch")]
    ItemPatch(ItemPatch),
    #[serde(rename = "item.read")]
    ItemRead(ItemRead),
    #[serde(rename = "item.delete")]
    ItemDelete(ItemDelete),
    #[serde(rename = "batch")]
    Batch(Batch),
    #[serde(rename = "query")]
    Query(Query),
    #[serde(rename = "readfeed")]
    ReadFeed(OfContainer),
    #[serde(rename = "readmany")]
    ReadMany(ReadMany),
    #[serde(rename = "changefeed")]
    ChangeFeed(ChangeFeed),
    #[serde(rename = "sproc")]
    StoredProcedure(StoredProcedure),
    #[serde(rename = "usage")]
    Usage(OfContainer),
    #[serde(rename = "purge")]
    Purge(Purge),
    #[serde(rename = "stats")]
    Stats(OfContainer),
    #[serde(rename = "verify")]
    Verify(OfContainer),
    #[serde(rename = "load")]
    Load(Load),
    #[serde(rename = "import")]
    Import(Import),
    #[serde(rename = "mongo")]
    Mongo(MongoCommand),
}

/// A command of the MongoDB API, in Extended JSON; `cursor` is the label of the `find` whose cursor a `getMore` reads.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MongoCommand {
    pub cmd: Map<String, Value>,
    pub cursor: Option<String>,
}

/// Sets the wall clock (seconds, `ms` on top) or advances it; exactly one of `set` and `advance` is given.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clock {
    pub set: Option<i64>,
    pub advance: Option<i64>,
    #[serde(default)]
    pub ms: i64,
}

/// Ends the server and starts it again on the same data.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restart {
    pub mode: RestartMode,
    /// The wall clock at the new start, in seconds; by default unchanged.
    pub clock: Option<i64>,
}

/// How a server is ended.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RestartMode {
    /// Asked to stop, and waited for.
    Graceful,
    /// Killed without warning.
    Crash,
}

/// Arms a crash point: the process exits after a number of the events that the point counts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    pub point: String,
    pub after: u64,
}

/// The definition of a container; `Some(Null)` is a property sent as null, `None` one that is not sent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ContainerDefinition {
    pub id: String,
    #[serde(default, deserialize_with = "even_null")]
    pub default_ttl: Option<Value>,
    pub indexing_mode: Option<String>,
    #[serde(default)]
    pub exclude_all: bool,
    #[serde(default)]
    pub excluded_paths: Vec<String>,
    #[serde(default)]
    pub unique_keys: Vec<String>,
    #[serde(default, deserialize_with = "even_null")]
    pub analytical_storage_ttl: Option<Value>,
    #[serde(default, deserialize_with = "even_null")]
    pub ttl_property_path: Option<Value>,
    #[serde(default)]
    pub avad: bool,
    pub pacing: Option<Map<String, Value>>,
    #[serde(default)]
    pub raw: Map<String, Value>,
}

/// A container by its id.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerId {
    pub id: String,
}

/// A step with only a container as argument.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfContainer {
    pub container: String,
}

/// An item that is created or upserted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ItemBody {
    pub container: String,
    pub body: Map<String, Value>,
    pub if_match: Option<String>,
}

/// An item that is replaced as a whole.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ItemReplace {
    pub container: String,
    pub id: String,
    #[serde(default = "default_partition_key")]
    pub pk: Value,
    pub body: Map<String, Value>,
    pub if_match: Option<String>,
}

/// An item that is patched.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ItemPatch {
    pub container: String,
    pub id: String,
    #[serde(default = "default_partition_key")]
    pub pk: Value,
    pub ops: Vec<Value>,
    pub if_match: Option<String>,
}

/// A point read; `replica` selects the endpoint.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ItemRead {
    pub container: String,
    pub id: String,
    #[serde(default = "default_partition_key")]
    pub pk: Value,
    pub if_none_match: Option<String>,
    #[serde(default)]
    pub replica: usize,
}

/// An item that is deleted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ItemDelete {
    pub container: String,
    pub id: String,
    #[serde(default = "default_partition_key")]
    pub pk: Value,
    pub if_match: Option<String>,
}

/// Operations in one logical partition, all or nothing.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    pub container: String,
    #[serde(default = "default_partition_key")]
    pub pk: Value,
    pub ops: Vec<BatchOperation>,
}

/// One operation of a batch; patches have `ops`, creates, upserts and replaces a `body`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchOperation {
    pub op: String,
    pub id: Option<String>,
    pub body: Option<Map<String, Value>>,
    pub ops: Option<Vec<Value>>,
}

/// A query; with `page_size` only one page is read, otherwise all of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Query {
    pub container: String,
    pub sql: String,
    #[serde(default, deserialize_with = "even_null")]
    pub pk: Option<Value>,
    pub page_size: Option<u32>,
    pub continuation: Option<String>,
    #[serde(rename = "plan")]
    _plan_for_models: Option<IgnoredAny>,
}

/// Several items of one logical partition, by id.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadMany {
    pub container: String,
    pub ids: Vec<String>,
    #[serde(default = "default_partition_key")]
    pub pk: Value,
}

/// Changes since `from`: `beginning`, `now` or a label.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeFeed {
    pub container: String,
    pub mode: FeedMode,
    #[serde(default = "beginning")]
    pub from: String,
}

/// The changes that a feed shows.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum FeedMode {
    /// The latest version of each item.
    Latest,
    /// All versions and deletes.
    Avad,
}

/// A script that is registered and executed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredProcedure {
    pub container: String,
    #[serde(default = "default_partition_key")]
    pub pk: Value,
    pub js: String,
    #[serde(rename = "effect")]
    _effect_for_models: Option<IgnoredAny>,
}

/// Runs the purge now.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Purge {
    pub container: String,
    pub mode: Option<String>,
    pub max: Option<u64>,
}

/// Consumes request units of users in the current second.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Load {
    pub container: String,
    pub ru: Value,
}

/// Loads items that keep their `_ts`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Import {
    pub container: String,
    pub items: Vec<Value>,
}

/// Reads a property such that null differs from a missing one.
fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn default_partition_key() -> Value {
    Value::from("p")
}

fn beginning() -> String {
    "beginning".to_owned()
}

impl Scenario {
    /// Whether it needs another server over the same store.
    pub fn needs_replica(&self) -> bool {
        self.requires.iter().any(|tag| tag == "replica")
    }

    /// Reads a scenario file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let scenario: Self = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        if path.file_stem().is_none_or(|stem| stem != scenario.name.as_str()) {
            return Err(format!("{}: the scenario calls itself `{}`", path.display(), scenario.name).into());
        }
        Ok(scenario)
    }

    /// The parsed steps. Steps of a kind that this runner lacks are errors, so check `requires` first.
    pub fn steps(&self) -> Result<Vec<Step>> {
        let steps: Vec<Step> = self
            .steps
            .iter()
            .enumerate()
            .map(|(index, step)| Step::parse(step).map_err(|error| format!("step {}: {error}", index + 1).into()))
            .collect::<Result<_>>()?;
        match steps.first().map(|step| &step.action) {
            Some(Action::Clock(Clock { set: Some(_), .. })) => Ok(steps),
            _ => Err("the first step does not set the clock".into()),
        }
    }
}

impl Step {
    fn parse(step: &Map<String, Value>) -> Result<Self> {
        let mut step = step.clone();
        let expect = step.remove("expect").map(serde_json::from_value).transpose()?;
        let save = step.remove("save").map(serde_json::from_value).transpose()?;
        let kind = step.get("do").and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Self {
            kind,
            action: serde_json::from_value(Value::Object(step))?,
            save,
            expect,
        })
    }
}

/// The scenario files in a directory, in order of name.
pub fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests;
