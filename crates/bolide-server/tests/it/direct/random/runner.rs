//! Carries a program out on a server and on the model at the same time.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::model::{Change, Event, Model, Name, Write};
use super::program::{KEYS, Match, Program, Step, sent};
use crate::client::{Client, Request, Response};
use crate::direct::call::{Call, Operation};
use crate::direct::frames::Answer;
use crate::direct::sdk::{Sdk, batch, changes, item, items, query};
use crate::listening::certificate;
use crate::server::Server;

/// Ranges are split until there are so many.
const MOST_RANGES: usize = 4;
/// What the clock of each process shows when it starts, in two forms.
pub const START: &str = "--virtual-clock=2023-11-14T22:13:20Z";
pub const START_MS: i64 = 1_700_000_000_000;

/// When ghosts are purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purging {
    /// In the program's own steps.
    AsWritten,
    /// All of them, after each step.
    AtOnce,
    Never,
}

/// How far the change feed of a range was followed.
#[derive(Debug, Clone, Default)]
pub(super) struct Follower {
    /// `None`: from the beginning.
    pub(super) etag: Option<String>,
    /// The number of the last write that it has seen, or need not see.
    pub(super) done: u64,
    /// The highest `_ts` so far.
    pub(super) written: i64,
}

pub struct Runner {
    purging: Purging,
    /// `None` while it does not run.
    server: Option<Server>,
    /// For an engine on the disk.
    data: Option<TempDir>,
    pub(super) sdk: Sdk,
    pub(super) model: Model,
    /// Chooses names and page sizes of the checks.
    pub(super) choices: fastrand::Rng,
    /// All ranges now, with what was read of each.
    pub(super) followers: BTreeMap<u32, Follower>,
    /// Positions in the all-versions feed, by range.
    pub(super) watchers: BTreeMap<u32, String>,
    pub(super) events: BTreeMap<Name, Vec<Event>>,
    /// The etag that each name had last.
    known: BTreeMap<Name, String>,
    /// All etags so far, and those that an answer has shown as missing (P2).
    pub(super) etags: BTreeMap<String, Name>,
    pub(super) gone: BTreeMap<String, Name>,
}

impl Runner {
    pub fn start(program: &Program, purging: Purging, is_on_disk: bool) -> Runner {
        let data = is_on_disk.then(|| TempDir::new().expect("a temporary directory"));
        let server = started(data.as_ref().map(TempDir::path));
        let mut client = server.client();
        client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
        let container = definition(program.default_ttl).to_string();
        client.send(&Request::post("/dbs/d/colls", container)).expect(201);
        let mut sdk = Sdk::new(server.port(), &certificate(&server));
        sdk.log = Some(Vec::new());
        let mut runner = Runner {
            purging,
            server: Some(server),
            data,
            sdk,
            model: Model::new(START_MS, program.default_ttl),
            choices: fastrand::Rng::with_seed(1),
            followers: BTreeMap::from([(0, Follower::default())]),
            watchers: BTreeMap::new(),
            events: BTreeMap::new(),
            known: BTreeMap::new(),
            etags: BTreeMap::new(),
            gone: BTreeMap::new(),
        };
        let begun = runner.versions_after(0, "*").expect(304);
        runner
            .watchers
            .insert(0, begun.header("etag").expect("a position").to_owned());
        runner.note_ranges();
        runner
    }

    /// What all frames were answered.
    pub fn answers(&self) -> &[String] {
        self.sdk.log.as_deref().expect("it is kept")
    }

    pub fn step(&mut self, step: &Step) {
        match step {
            Step::Write(write, on) => self.write(write, *on),
            Step::Batch(key, writes) => self.batch(key, writes),
            Step::SetDefault(default_ttl) => {
                let sent = Request::put("/dbs/d/colls/c", definition(*default_ttl).to_string());
                self.client().send(&sent).expect(200);
                self.model.set_default(*default_ttl);
            }
            Step::Clock(by_ms) => {
                self.move_clock(&json!({"advanceMs": by_ms}));
                self.model.move_clock(*by_ms);
            }
            Step::Purge(most) if self.purging == Purging::AsWritten => self.purge(*most),
            Step::Purge(_) => {}
            Step::Split(nth) => self.split(*nth),
            Step::Reconnect => self.sdk.disconnect(),
            Step::Kill => self.kill(),
        }
        if self.purging == Purging::AtOnce {
            self.purge(None);
        }
        self.check();
    }

    pub(super) fn client(&self) -> Client {
        self.server.as_ref().expect("it runs").client()
    }

    fn move_clock(&self, body: &Value) {
        let clock = Request::put("/_bolide/clock", body.to_string());
        self.client().send(&clock).expect(200);
    }

    fn write(&mut self, write: &Write, on: Match) {
        let (etag, call) = (self.etag(write.name(), on), call(write));
        let call = match &etag {
            Some(etag) => call.matching(etag),
            None => call,
        };
        let before = self.model.writes;
        let status = self.model.write(write, etag.as_deref());
        let answer = self.sdk.write(&call).expect("an answer").expect(u32::from(status));
        if self.model.writes > before {
            self.written(write.name(), &answer.json());
        }
        self.expect_ttl_named(status, &answer, write);
    }

    /// A refusal because of the time to live says so (TTL-215).
    fn expect_ttl_named(&self, status: u16, answer: &Answer, write: &Write) {
        let is_removal = matches!(write, Write::Patch(_, Change::RemoveTtl));
        if status == 400 && !is_removal {
            let text = answer.json().to_string();
            assert!(text.contains("ttl"), "{text}");
        }
    }

    fn batch(&mut self, key: &'static str, writes: &[(Write, Match)]) {
        let mut after = self.model.clone();
        let (mut operations, mut expected) = (Vec::new(), Vec::new());
        let mut is_done = true;
        for (write, on) in writes {
            let etag = self.etag(write.name(), *on);
            operations.push(in_batch(write, etag.as_deref()));
            if is_done {
                // Here bodies are looked at before items.
                let status = match write.has_usable_ttl() {
                    true => after.write(write, etag.as_deref()),
                    false => 400,
                };
                is_done = status < 400;
                expected.push(status);
            } else {
                expected.push(424);
            }
        }
        if !is_done {
            let failed = expected.iter().position(|status| (400..424).contains(status));
            let failed = failed.expect("one failed");
            expected[..failed].fill(424);
        }
        let answer = self.sdk.write(&batch(sent(key), &operations.into()));
        let answer = answer.expect("an answer").expect(if is_done { 200 } else { 207 });
        let results = answer.json();
        let results = results.as_array().expect("a list");
        let statuses: Vec<u16> = results
            .iter()
            .map(|result| u16::try_from(result["statusCode"].as_u64().expect("a status")).expect("a status"))
            .collect();
        assert_eq!(statuses, expected, "{writes:?}");
        if !is_done {
            return;
        }
        self.model = after;
        for (at, (write, _)) in writes.iter().enumerate() {
            let is_last = !writes[at + 1..].iter().any(|(later, _)| later.name() == write.name());
            let etag = &results[at]["eTag"];
            if is_last && !matches!(write, Write::Delete(_)) {
                self.written(write.name(), &results[at]["resourceBody"]);
            } else if let Some(etag) = etag.as_str() {
                self.etags.insert(etag.to_owned(), write.name());
            }
        }
    }

    /// Notes the version that an answer to a write shows.
    fn written(&mut self, name: Name, body: &Value) {
        let etag = body["_etag"].as_str().expect("an etag").to_owned();
        self.model.label(name, &etag);
        let is_new = self.etags.insert(etag.clone(), name).is_none();
        assert!(is_new, "etag {etag} was given twice");
        self.known.insert(name, etag);
        self.same_item(body);
    }

    pub(super) fn etag(&self, name: Name, on: Match) -> Option<String> {
        const FOREIGN: &str = "\"00000000-0000-0000-0000-00000000beef\"";
        match on {
            Match::None => None,
            Match::Newest => Some(self.known.get(&name).map_or(FOREIGN, String::as_str).to_owned()),
            Match::Foreign => Some(FOREIGN.to_owned()),
        }
    }

    /// P6: the purge removes ghosts only, and all of them unless it is told otherwise.
    fn purge(&mut self, most: Option<u64>) {
        let mut body = json!({"mode": "force"});
        if let Some(most) = most {
            body["max"] = most.into();
        }
        let purge = Request::post("/_bolide/dbs/d/colls/c/purge", body.to_string());
        let purged = self.client().send(&purge).expect(200).json();
        let names: Vec<Name> = self.model.ghosts().map(|ghost| ghost.name).collect();
        let count = (names.len() as u64).min(most.unwrap_or(u64::MAX));
        assert_eq!(purged["purged"], count, "ghosts {names:?}");
        self.watch();
        // Which of the ghosts were removed, the feed tells.
        let removed: Vec<Name> = names.into_iter().filter(|name| self.is_told_expired(*name)).collect();
        assert_eq!(removed.len() as u64, count, "P7");
        self.model.purge(&removed);
    }

    fn is_told_expired(&self, name: Name) -> bool {
        let told = self.events.get(&name).map_or(0, Vec::len);
        told > self.model.events.get(&name).map_or(0, Vec::len)
    }

    fn split(&mut self, nth: usize) {
        if self.followers.len() >= MOST_RANGES {
            return;
        }
        let parent = *self.followers.keys().nth(nth % self.followers.len()).expect("a range");
        let split = Request::post(
            "/_bolide/dbs/d/colls/c/split",
            json!({"range": parent.to_string()}).to_string(),
        );
        let split = self.client().send(&split).expect(200).json();
        assert_eq!(split["parents"], json!([parent.to_string()]));
        // Who asks for the parent is told to look for its children; these go on where it was read to.
        let follower = self.followers.remove(&parent).expect("it is followed");
        let watcher = self.watchers.remove(&parent).expect("it is watched");
        for call in [
            changes(parent, follower.etag.as_deref()),
            items(Operation::ReadFeed).range(parent),
            query("SELECT * FROM c", parent),
        ] {
            let gone = self.sdk.read(call);
            assert_eq!((gone.head.status(), gone.sub_status()), (410, 1002));
        }
        let children = self.sdk.pkranges();
        let children: Vec<u32> = children
            .iter()
            .filter(|(_, parents)| parents.last() == Some(&parent))
            .map(|(id, _)| *id)
            .collect();
        assert_eq!(children.len(), 2, "children of {parent}");
        for child in children {
            self.followers.insert(child, follower.clone());
            self.watchers.insert(child, watcher.clone());
        }
        self.note_ranges();
    }

    /// Ends the server as a power failure would, and starts it again. Its clock begins anew; server time does not (TTL-203).
    fn kill(&mut self) {
        let Some(data) = &self.data else {
            return self.sdk.disconnect();
        };
        let (clock_ms, now_ms) = (self.model.clock_ms, self.model.now_ms);
        // Dropping it sends SIGKILL.
        self.server = None;
        let server = started(Some(data.path()));
        self.sdk.move_to(server.port());
        self.server = Some(server);
        // Only a part of the second in which the last request was answered may be lost.
        let restarted_ms = self.server_time();
        assert!(
            (now_ms / 1000 * 1000..=now_ms).contains(&restarted_ms),
            "P3: server time was {now_ms}, and is {restarted_ms}"
        );
        (self.model.clock_ms, self.model.now_ms) = (START_MS, restarted_ms);
        self.check();
        self.move_clock(&json!({"setMs": clock_ms}));
        self.model.move_clock(clock_ms - START_MS);
    }

    /// Server time in milliseconds, as queries see it.
    pub(super) fn server_time(&mut self) -> i64 {
        let range = *self.followers.keys().next().expect("a range");
        let answer = self.sdk.read(query("SELECT VALUE GetCurrentTimestamp()", range));
        let told = answer.expect(200).json();
        told["Documents"][0].as_i64().expect("milliseconds")
    }

    /// Learns which range has which key.
    fn note_ranges(&mut self) {
        for key in KEYS {
            self.sdk.read(item(Operation::Read, sent(key), "none")).expect(404);
        }
    }

    /// A page of the all-versions feed.
    pub(super) fn versions_after(&self, range: u32, from: &str) -> Response {
        let feed = Request::get("/dbs/d/colls/c/docs")
            .header("x-ms-documentdb-partitionkeyrangeid", &range.to_string())
            .header("a-im", "Full-Fidelity Feed")
            .header("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15")
            .header("if-none-match", from);
        self.client().send(&feed)
    }
}

fn started(data: Option<&Path>) -> Server {
    match data {
        Some(data) => Server::on(data, &[START]),
        None => Server::in_memory(&[START]),
    }
}

fn definition(default_ttl: Option<i64>) -> Value {
    let mut definition = json!({
        "id": "c",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2},
        // Minutes: longer than any program runs.
        "changeFeedPolicy": {"retentionDuration": 10_000_000},
    });
    if let Some(seconds) = default_ttl {
        definition["defaultTtl"] = seconds.into();
    }
    definition
}

fn call(write: &Write) -> Call {
    let (key, id) = write.name();
    let text = |body: Map<String, Value>| Value::Object(body).to_string();
    match write {
        Write::Create(doc) => items(Operation::Create).key(sent(key)).body(text(doc.body())),
        Write::Upsert(doc) => items(Operation::Upsert).key(sent(key)).body(text(doc.body())),
        Write::Replace(doc) => item(Operation::Replace, sent(key), id).body(text(doc.body())),
        Write::Patch(_, change) => {
            let patch = json!({"operations": [change.to_json()]});
            item(Operation::Patch, sent(key), id).body(patch.to_string())
        }
        Write::Delete(_) => item(Operation::Delete, sent(key), id),
    }
}

fn in_batch(write: &Write, if_match: Option<&str>) -> Value {
    let id = write.name().1;
    let mut operation = match write {
        Write::Create(doc) => json!({"operationType": "Create", "resourceBody": doc.body()}),
        Write::Upsert(doc) => json!({"operationType": "Upsert", "resourceBody": doc.body()}),
        Write::Replace(doc) => json!({"operationType": "Replace", "id": id, "resourceBody": doc.body()}),
        Write::Patch(_, change) => {
            json!({"operationType": "Patch", "id": id, "resourceBody": {"operations": [change.to_json()]}})
        }
        Write::Delete(_) => json!({"operationType": "Delete", "id": id}),
    };
    if let Some(etag) = if_match {
        operation["ifMatch"] = etag.into();
    }
    operation
}
