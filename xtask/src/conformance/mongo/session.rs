//! One running case: its server, its connection, its clock and what it has saved.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use bson::{Bson, Document, doc};
use serde_json::json;
use ureq::http::Method;

use super::case::{Case, Command, Step};
use super::client::Client;
use super::{expect, options_for};
use crate::Result;
use crate::conformance::server::{Engine, Server};
use crate::conformance::wire;

/// The form of a saved value in a command.
const SAVED: &str = "$$saved";

/// The beginning of a string that names a collection of the case's database.
const OWN_DATABASE: &str = "$$db.";

/// The levels of nesting below a command to which saved values are put in.
const DEPTH_LIMIT: usize = 100;

/// Runs the steps of a case until one fails.
///
/// # Errors
/// The failing step by its number, and what differs.
pub fn play(binary: &Path, engine: Engine, case: &Case) -> Result<()> {
    let steps = case.steps()?;
    let clock_ms = case.start_ms()?;
    let server = Server::start(binary, engine, clock_ms, &options_for(&case.needs))?;
    let client = Client::connect(server.mongo_address()?)?;
    let mut session = Session {
        database: case.database().to_owned(),
        server,
        client,
        clock_ms,
        saved: HashMap::new(),
        seen: BTreeMap::new(),
    };
    for (index, step) in steps.iter().enumerate() {
        session
            .step(step)
            .map_err(|error| format!("step {}: {error}", index + 1))?;
    }
    Ok(())
}

struct Session {
    database: String,
    server: Server,
    client: Client,
    /// The wall clock, in epoch milliseconds.
    clock_ms: i64,
    saved: HashMap<String, Bson>,
    /// Collection → every `_id` that was ever to be visible in it, so that those which ended are looked for as well.
    seen: BTreeMap<String, Vec<Bson>>,
}

impl Session {
    fn step(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Run(command) => self.run(command),
            Step::Advance(duration) => self.advance(*duration),
            Step::Visible { ids, collection } => self.visible(ids, collection),
            Step::Restart(pause) => self.restart(*pause),
        }
    }

    fn run(&mut self, command: &Command) -> Result<()> {
        let database = command.database.as_deref().unwrap_or(&self.database).to_owned();
        let complete = self.complete(&command.command, DEPTH_LIMIT)?;
        let reply = self.client.run(&database, complete)?;
        let name = command.command.keys().next().map_or("", String::as_str);
        expect::check(&command.expect, &reply).map_err(|error| format!("{name}: {error}"))?;
        for (name, path) in &command.save {
            let value = value_at(&reply, path).ok_or_else(|| format!("the reply has no `{path}`: {reply}"))?;
            self.saved.insert(name.clone(), value.clone());
        }
        Ok(())
    }

    /// The document with saved values and the name of the database put in.
    fn complete(&self, document: &Document, depth: usize) -> Result<Document> {
        let complete = |(key, value): (&String, &Bson)| Ok((key.clone(), self.completed(value, depth)?));
        document.iter().map(complete).collect()
    }

    fn completed(&self, value: &Bson, depth: usize) -> Result<Bson> {
        let depth = depth.checked_sub(1).ok_or("the command is nested too deeply")?;
        match value {
            Bson::String(text) => Ok(match text.strip_prefix(OWN_DATABASE) {
                Some(collection) => Bson::String(format!("{}.{collection}", self.database)),
                None => value.clone(),
            }),
            Bson::Document(document) => match document.get(SAVED) {
                Some(name) => {
                    let saved = name.as_str().and_then(|name| self.saved.get(name));
                    Ok(saved.ok_or_else(|| format!("nothing is saved as {name}"))?.clone())
                }
                None => Ok(Bson::Document(self.complete(document, depth)?)),
            },
            Bson::Array(values) => values.iter().map(|value| self.completed(value, depth)).collect(),
            _ => Ok(value.clone()),
        }
    }

    fn advance(&mut self, duration_ms: i64) -> Result<()> {
        self.clock_ms += duration_ms;
        let body = json!({ "setMs": self.clock_ms });
        wire::Client::new(self.server.endpoint())
            .send(wire::Request::admin(Method::PUT, "clock").json(&body))?
            .require("the clock is not set")
    }

    fn restart(&mut self, pause_ms: i64) -> Result<()> {
        self.clock_ms += pause_ms;
        self.server.restart_in_order(self.clock_ms)?;
        self.client = Client::connect(self.server.mongo_address()?)?;
        Ok(())
    }

    /// Checks that exactly these documents exist, on every read path.
    fn visible(&mut self, ids: &[Bson], collection: &str) -> Result<()> {
        let seen = self.seen.entry(collection.to_owned()).or_default();
        for id in ids {
            if !seen.contains(id) {
                seen.push(id.clone());
            }
        }
        let seen = seen.clone();
        self.expect_ids("find", ids, collection, doc! { "find": collection, "filter": {} })?;
        for id in &seen {
            let expected = ids.contains(id).then(|| id.clone());
            let by_id = doc! { "find": collection, "filter": { "_id": id.clone() } };
            self.expect_ids("find by _id", expected.as_slice(), collection, by_id)?;
        }
        self.expect_counts(ids.len(), collection)?;
        let reply = self
            .client
            .succeed(&self.database, doc! { "distinct": collection, "key": "_id" })?;
        require_ids("distinct", ids, reply.get_array("values")?)
    }

    fn expect_ids(&mut self, path: &str, ids: &[Bson], collection: &str, command: Document) -> Result<()> {
        let documents = self.client.read_all(&self.database, collection, command)?;
        let got: Vec<Bson> = documents
            .iter()
            .filter_map(|document| document.get("_id").cloned())
            .collect();
        require_ids(path, ids, &got)
    }

    fn expect_counts(&mut self, expected: usize, collection: &str) -> Result<()> {
        let counts = [
            ("count", doc! { "count": collection }),
            (
                "count with a query",
                doc! { "count": collection, "query": { "_id": { "$exists": true } } },
            ),
        ];
        for (path, command) in counts {
            let reply = self.client.succeed(&self.database, command)?;
            require_count(path, expected, reply.get("n"))?;
        }
        let group = doc! { "$group": { "_id": null, "n": { "$sum": 1 } } };
        let command = doc! { "aggregate": collection, "pipeline": [group], "cursor": {} };
        let groups = self.client.read_all(&self.database, collection, command)?;
        require_count("$group", expected, groups.first().and_then(|group| group.get("n")))
    }
}

fn require_ids(path: &str, expected: &[Bson], got: &[Bson]) -> Result<()> {
    if expect::same_ids(expected, got) {
        return Ok(());
    }
    let list = |ids: &[Bson]| Bson::Array(ids.to_vec());
    Err(format!("{path}: expected {}, got {}", list(expected), list(got)).into())
}

/// No count at all is zero: a group of nothing has no row.
fn require_count(path: &str, expected: usize, got: Option<&Bson>) -> Result<()> {
    let zero = Bson::Int32(0);
    let got = got.unwrap_or(&zero);
    let expected = Bson::Int64(i64::try_from(expected)?);
    if expect::same_ids(std::slice::from_ref(&expected), std::slice::from_ref(got)) {
        return Ok(());
    }
    Err(format!("{path}: expected {expected}, got {got}").into())
}

/// The value at a dotted path; numbers are positions in lists.
fn value_at<'a>(document: &'a Document, path: &str) -> Option<&'a Bson> {
    let mut names = path.split('.');
    let mut value = document.get(names.next()?)?;
    for name in names {
        value = match value {
            Bson::Document(document) => document.get(name)?,
            Bson::Array(values) => values.get(name.parse::<usize>().ok()?)?,
            _ => return None,
        };
    }
    Some(value)
}
