//! Carries out a program on a server and on the model, and compares what clients see.

use bolide_core::PurgeMode;
use bson::raw::cstr;
use bson::{Bson, Document, RawDocument, RawDocumentBuf, Timestamp, doc, rawdoc};

use super::super::Purging;
use super::RandomChoices;
use super::model::Model;
use super::program::{CORE_INDEX, Step, Steps};
use crate::commands::fixture::{NOW, Shell, code_of};

const STEPS: usize = 60;
const DUPLICATE: i32 = 11000;
/// `IndexOptionsConflict`, `IndexNotFound`.
const OTHER_OPTIONS: i32 = 85;
const NO_INDEX: i32 = 27;

/// Runs the program of a seed.
pub async fn run(seed: u64, purging: Purging) {
    let mut runner = Runner::new(seed, purging).await;
    for at in 0..STEPS {
        runner.steps.now = runner.model.now;
        let step = runner.steps.step();
        runner.place = format!("step {at}, {purging:?}: {step:?}");
        runner.step(step).await;
        if purging == Purging::Eager {
            runner.purge(None).await;
        }
        if runner.steps.choices.percent(40) {
            runner.audit().await;
        }
    }
    runner.audit().await;
    runner.purge(None).await;
    runner.audit().await;
}

pub(super) struct Runner {
    pub(super) shell: Shell,
    pub(super) model: Model,
    steps: Steps,
    purging: Purging,
    pub(super) collection: &'static str,
    /// For messages.
    pub(super) place: String,
    /// The latest `operationTime`.
    time: Timestamp,
}

impl Runner {
    async fn new(seed: u64, purging: Purging) -> Runner {
        let shell = Shell::new().await;
        let unique = rawdoc! { "key": { "u": 1 }, "name": "u_1", "unique": true, "sparse": true };
        shell.ok(rawdoc! { "createIndexes": "c", "indexes": [unique] }).await;
        Runner {
            shell,
            model: Model::at(NOW.0),
            steps: Steps {
                choices: RandomChoices::new(seed),
                now: NOW.0,
            },
            purging,
            collection: "c",
            place: String::new(),
            time: Timestamp { time: 0, increment: 0 },
        }
    }

    pub(super) async fn run(&mut self, command: RawDocumentBuf) -> RawDocumentBuf {
        let reply = self.shell.run(command).await;
        let time = reply.get_timestamp("operationTime").expect("a time");
        // P3: time never falls.
        assert!(
            (time.time, time.increment) >= (self.time.time, self.time.increment),
            "{}",
            self.place
        );
        self.time = time;
        reply
    }

    // Long: an arm for each kind of step.
    async fn step(&mut self, step: Step) {
        match step {
            Step::Insert(id, document) => self.insert(id, document).await,
            Step::Replace(id, document, upserts) => {
                let replacement = raw(&document);
                self.update(id, replacement, upserts, |_| document.clone()).await;
            }
            Step::Set(id, field, value) => {
                let set = raw(&doc! {"$set": {field: value.clone()}});
                let change = |document: &Document| {
                    let mut document = document.clone();
                    document.insert(field, value.clone());
                    document
                };
                self.update(id, set, false, change).await;
            }
            Step::Unset(id, field) => {
                let unset = raw(&doc! {"$unset": {field: ""}});
                let change = |document: &Document| {
                    let fields = document.iter().filter(|(name, _)| *name != field);
                    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
                };
                self.update(id, unset, false, change).await;
            }
            Step::Touch(id) => {
                self.update(id, rawdoc! { "$max": { "n": -1 } }, false, Document::clone)
                    .await;
            }
            Step::IncrementAll => self.increment_all().await,
            Step::Delete(id) => {
                let n = i32::from(self.model.find(id).is_some());
                self.delete(rawdoc! { "q": { "_id": id }, "limit": 1 }, n).await;
                self.model.delete(id);
            }
            Step::DeleteFlagged => {
                let is_flagged = |document: &Document| document.get("p") == Some(&Bson::Int32(1));
                let live = self.model.live().into_iter().filter(|version| is_flagged(&version.doc));
                let flagged: Vec<i32> = live.map(|version| version.id).collect();
                let n = i32::try_from(flagged.len()).expect("small");
                self.delete(rawdoc! { "q": { "p": 1 }, "limit": 0 }, n).await;
                flagged.into_iter().for_each(|id| self.model.delete(id));
            }
            Step::RemoveLast => {
                let remove = rawdoc! { "findAndModify": self.collection, "sort": { "_id": -1 }, "remove": true };
                let reply = self.run(remove).await;
                let value = reply
                    .get("value")
                    .expect("valid")
                    .and_then(|value| value.as_document().map(parsed));
                let last = self.model.live().into_iter().max_by_key(|version| version.id).cloned();
                assert_eq!(
                    value,
                    last.as_ref().map(|version| version.doc.clone()),
                    "{}",
                    self.place
                );
                last.into_iter().for_each(|version| self.model.delete(version.id));
            }
            Step::Rename => {
                let (from, to) = if self.collection == "c" { ("c", "d") } else { ("d", "c") };
                let (from, to) = (format!("db.{from}"), format!("db.{to}"));
                let rename = rawdoc! { "renameCollection": from, "to": to, "$db": "admin" };
                assert_eq!(code_of(&self.run(rename).await), 0, "{}", self.place);
                self.collection = if self.collection == "c" { "d" } else { "c" };
            }
            Step::Wait(millis) => self.wait(millis),
            Step::ReadSlowly(millis) => self.read_slowly(millis).await,
            Step::Purge(most) if self.purging == Purging::AtTimes => self.purge(most).await,
            Step::Purge(_) => {}
            Step::Restart => self.shell.restart().await,
            _ => self.change_indexes(step).await,
        }
    }

    fn wait(&mut self, millis: i64) {
        self.model.now += millis;
        self.shell.advance(millis);
        self.model.judge();
    }

    async fn insert(&mut self, id: i32, document: Document) {
        let reply = self
            .run(rawdoc! { "insert": self.collection, "documents": [raw(&document)] })
            .await;
        let is_refused = self.model.find(id).is_some() || self.model.is_taken(id, &document);
        let expected = if is_refused { (0, DUPLICATE) } else { (1, 0) };
        assert_eq!(
            (reply.get_i32("n").expect("a number"), statement_code(&reply)),
            expected,
            "{}",
            self.place
        );
        if !is_refused {
            self.model.write(id, document);
        }
    }

    /// Updates one document by its `_id`.
    async fn update(&mut self, id: i32, update: RawDocumentBuf, upserts: bool, change: impl Fn(&Document) -> Document) {
        let statement = rawdoc! { "q": { "_id": id }, "u": update, "upsert": upserts };
        let reply = self
            .run(rawdoc! { "update": self.collection, "updates": [statement] })
            .await;
        let before = self.model.find(id).map(|version| version.doc.clone());
        let after = match &before {
            None if !upserts => None,
            before => Some(change(before.as_ref().unwrap_or(&doc! {"_id": id}))),
        };
        let is_taken = after.as_ref().is_some_and(|after| self.model.is_taken(id, after));
        let n = i32::from(after.is_some() && !is_taken);
        let is_changed = before.is_some() && bytes(before.as_ref()) != bytes(after.as_ref());
        let expected = (n, if is_changed { n } else { 0 }, if is_taken { DUPLICATE } else { 0 });
        let answer = (
            reply.get_i32("n").expect("a number"),
            reply.get_i32("nModified").expect("a number"),
            statement_code(&reply),
        );
        assert_eq!(answer, expected, "{} {before:?} {after:?}", self.place);
        let has_upserted = reply.get("upserted").expect("valid").is_some();
        assert_eq!(has_upserted, n == 1 && before.is_none(), "{}", self.place);
        if let Some(after) = after.filter(|_| n == 1) {
            self.model.write(id, after);
        }
    }

    async fn increment_all(&mut self) {
        let statement = rawdoc! { "q": {}, "u": { "$inc": { "n": 1 } }, "multi": true };
        let reply = self
            .run(rawdoc! { "update": self.collection, "updates": [statement] })
            .await;
        let live: Vec<(i32, Document)> = self
            .model
            .live()
            .into_iter()
            .map(|version| (version.id, version.doc.clone()))
            .collect();
        assert_eq!(
            reply.get_i32("nModified").expect("a number"),
            i32::try_from(live.len()).expect("small"),
            "{}",
            self.place
        );
        for (id, mut document) in live {
            let n = document.get_i32("n").expect("a number");
            document.insert("n", n + 1);
            self.model.write(id, document);
        }
    }

    async fn delete(&mut self, statement: RawDocumentBuf, expected: i32) {
        let reply = self
            .run(rawdoc! { "delete": self.collection, "deletes": [statement] })
            .await;
        assert_eq!(reply.get_i32("n").expect("a number"), expected, "{}", self.place);
    }

    async fn change_indexes(&mut self, step: Step) {
        let Some((command, expected)) = self.index_command(&step) else {
            return;
        };
        let reply = self.run(command).await;
        assert_eq!(code_of(&reply), expected, "{} {reply:?}", self.place);
        if expected != 0 {
            return;
        }
        match step {
            Step::CreateIndex(rule) if !self.model.dates.contains(&rule) => self.model.dates.push(rule),
            Step::CreateCoreIndex(seconds) => self.model.core = Some(seconds),
            Step::ChangeIndex(CORE_INDEX, seconds) => self.model.core = Some(seconds),
            Step::ChangeIndex(name, seconds) => {
                let rule = self
                    .model
                    .dates
                    .iter_mut()
                    .find(|rule| rule.name == name)
                    .expect("it exists");
                rule.seconds = seconds;
            }
            Step::DropIndex(CORE_INDEX) => self.model.core = None,
            Step::DropIndex(name) => self.model.dates.retain(|rule| rule.name != name),
            Step::DropAllIndexes => {
                self.model.dates.clear();
                self.model.core = None;
                // The model always has the unique index.
                let unique = rawdoc! { "key": { "u": 1 }, "name": "u_1", "unique": true, "sparse": true };
                self.shell
                    .ok(rawdoc! { "createIndexes": self.collection, "indexes": [unique] })
                    .await;
            }
            _ => {}
        }
        self.model.judge();
    }

    /// Returns the command that changes an index, and the code of its error.
    fn index_command(&self, step: &Step) -> Option<(RawDocumentBuf, i32)> {
        Some(match step {
            Step::CreateIndex(rule) => {
                let key = raw(&doc! {rule.path: 1});
                let mut index = rawdoc! { "key": key, "name": rule.name, "expireAfterSeconds": rule.seconds };
                if rule.is_partial {
                    index.append(cstr!("partialFilterExpression"), rawdoc! { "p": 1 });
                }
                let there = self.model.dates.iter().find(|other| other.name == rule.name);
                let expected = there.map_or(0, |other| if other == rule { 0 } else { OTHER_OPTIONS });
                (
                    rawdoc! { "createIndexes": self.collection, "indexes": [index] },
                    expected,
                )
            }
            Step::CreateCoreIndex(seconds) => {
                let index = rawdoc! { "key": { "_ts": 1 }, "name": CORE_INDEX, "expireAfterSeconds": *seconds };
                let expected = match self.model.core {
                    Some(other) if other != *seconds => OTHER_OPTIONS,
                    _ => 0,
                };
                (
                    rawdoc! { "createIndexes": self.collection, "indexes": [index] },
                    expected,
                )
            }
            // Which of two errors comes first is not defined.
            Step::ChangeIndex(name, -1) if !self.exists(name) => return None,
            Step::ChangeIndex(name, seconds) => {
                let index = rawdoc! { "name": *name, "expireAfterSeconds": *seconds };
                let command = rawdoc! { "collMod": self.collection, "index": index };
                (command, if self.exists(name) { 0 } else { NO_INDEX })
            }
            Step::DropIndex(name) => {
                let command = rawdoc! { "dropIndexes": self.collection, "index": *name };
                (command, if self.exists(name) { 0 } else { NO_INDEX })
            }
            _ => (rawdoc! { "dropIndexes": self.collection, "index": "*" }, 0),
        })
    }

    fn exists(&self, name: &str) -> bool {
        match name {
            CORE_INDEX => self.model.core.is_some(),
            _ => self.model.dates.iter().any(|rule| rule.name == name),
        }
    }

    /// What has ended between the batches of a cursor is left out (TTL-290).
    async fn read_slowly(&mut self, millis: i64) {
        let first = self.run(rawdoc! { "find": self.collection, "batchSize": 1 }).await;
        let mut live = self.model.live().into_iter().map(|version| version.doc.clone());
        let cursor = first.get_document("cursor").expect("a cursor");
        let batch = cursor.get_array("firstBatch").expect("a batch");
        let found: Vec<Document> = batch
            .into_iter()
            .map(|document| document_of(document.expect("valid")))
            .collect();
        assert_eq!(found, live.next().into_iter().collect::<Vec<_>>(), "{}", self.place);
        self.wait(millis);
        let id = cursor.get_i64("id").expect("an id");
        if id == 0 {
            return;
        }
        let first: Vec<i32> = found
            .iter()
            .map(|document| document.get_i32("_id").expect("an id"))
            .collect();
        let rest = self
            .model
            .live()
            .into_iter()
            .filter(|version| !first.contains(&version.id));
        let rest: Vec<Document> = rest.map(|version| version.doc.clone()).collect();
        let more = self.run(rawdoc! { "getMore": id, "collection": self.collection }).await;
        let batch = more
            .get_document("cursor")
            .and_then(|cursor| cursor.get_array("nextBatch"))
            .expect("a batch");
        let found: Vec<Document> = batch
            .into_iter()
            .map(|document| document_of(document.expect("valid")))
            .collect();
        assert_eq!(found, rest, "{}", self.place);
    }

    /// Removes ghosts: as many as there are, if all are asked for (P6).
    async fn purge(&mut self, most: Option<u64>) {
        let account = &self.shell.state.account;
        let container = account.find_collection("db", self.collection).expect("it exists");
        let before = account.verify(&container).await.expect("a report");
        let ghosts = before.stored - before.live;
        let purged = account.purge(&container, PurgeMode::Force, most).await.expect("purged");
        assert_eq!(purged, ghosts.min(most.unwrap_or(u64::MAX)), "{}", self.place);
    }

    pub(super) async fn all(&mut self, command: RawDocumentBuf) -> Vec<Document> {
        let reply = self.run(command).await;
        let cursor = reply.get_document("cursor");
        let cursor = cursor.unwrap_or_else(|_| panic!("{}: {reply:?}", self.place));
        assert_eq!(cursor.get_i64("id").expect("an id"), 0);
        let batch = cursor.get_array("firstBatch").expect("a batch");
        batch
            .into_iter()
            .map(|document| document_of(document.expect("valid")))
            .collect()
    }
}

fn statement_code(reply: &RawDocument) -> i32 {
    match reply.get_array("writeErrors") {
        Ok(errors) => errors
            .get_document(0)
            .and_then(|error| error.get_i32("code"))
            .expect("a code"),
        Err(_) => code_of(reply),
    }
}

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).expect("valid")
}

pub(super) fn parsed(document: &RawDocument) -> Document {
    Document::try_from(document).expect("valid")
}

fn document_of(value: bson::RawBsonRef<'_>) -> Document {
    parsed(value.as_document().expect("a document"))
}

fn bytes(document: Option<&Document>) -> Option<Vec<u8>> {
    document.map(|document| raw(document).into_bytes())
}
