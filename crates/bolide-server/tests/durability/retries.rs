//! Kills the server between writes of the MongoDB API and their replies. The client sends them again after the restart, as drivers do: a write that was
//! carried out gets its stored reply, any other is carried out now, so each takes effect exactly once (mongo.md §7).

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bson::raw::cstr;
use bson::spec::BinarySubtype;
use bson::{Binary, RawDocument, RawDocumentBuf, rawdoc};

use crate::mongo_client::MongoClient;
use crate::random::Random;
use crate::server::{Server, ServerFiles};

const OPTIONS: [&str; 1] = ["--mongo-no-auth"];
const ROUNDS: u64 = 12;
const SEED: u64 = 20_260_502;
const WRITERS: u8 = 4;
/// `NoSuchTransaction`.
const UNKNOWN: i32 = 251;

/// Adds the fields of a session's write.
fn in_session(mut command: RawDocumentBuf, session: u8, number: i64) -> RawDocumentBuf {
    let id = Binary {
        subtype: BinarySubtype::Uuid,
        bytes: vec![session; 16],
    };
    if command.get("$db").expect("valid").is_none() {
        command.append(cstr!("$db"), "db");
    }
    command.append(cstr!("lsid"), rawdoc! { "id": id });
    command.append(cstr!("txnNumber"), number);
    command
}

fn in_transaction(command: RawDocumentBuf, session: u8, number: i64, begins: bool) -> RawDocumentBuf {
    let mut command = in_session(command, session, number);
    command.append(cstr!("autocommit"), false);
    if begins {
        command.append(cstr!("startTransaction"), true);
    }
    command
}

fn commit(session: u8, number: i64) -> RawDocumentBuf {
    in_transaction(
        rawdoc! { "commitTransaction": 1, "$db": "admin" },
        session,
        number,
        false,
    )
}

fn increment(collection: &str, id: i32) -> RawDocumentBuf {
    let statement = rawdoc! { "q": { "_id": id }, "u": { "$inc": { "n": 1 } } };
    rawdoc! { "update": collection, "updates": [statement] }
}

fn succeed(client: &mut MongoClient, command: &RawDocumentBuf) -> RawDocumentBuf {
    let reply = client.run(command).expect("the server answers");
    assert_eq!(reply.get_f64("ok").ok(), Some(1.0), "{command:?}: {reply:?}");
    assert!(reply.get("writeErrors").expect("valid").is_none(), "{reply:?}");
    reply
}

/// All documents of a collection, in the order of their `_id`.
fn documents(client: &mut MongoClient, collection: &str) -> Vec<RawDocumentBuf> {
    let find = rawdoc! { "find": collection, "sort": { "_id": 1 }, "batchSize": 100_000, "$db": "db" };
    let reply = succeed(client, &find);
    let batch = reply
        .get_document("cursor")
        .and_then(|cursor| cursor.get_array("firstBatch"));
    let batch = batch.expect("a batch").into_iter();
    batch
        .map(|document| document.expect("valid").as_document().expect("a document").to_owned())
        .collect()
}

/// The fields of a reply that a retry must repeat.
fn result(reply: &RawDocument) -> RawDocumentBuf {
    let mut result = RawDocumentBuf::new();
    for field in reply {
        let (name, value) = field.expect("valid");
        if !["ok", "$clusterTime", "operationTime", "retriedStmtIds"].contains(&name.as_str()) {
            result.append(name, value);
        }
    }
    result
}

/// Waits until another client sees documents: then the write is done, and its sender has not read the reply.
fn wait_until_seen(client: &mut MongoClient, collection: &str, expected: &[RawDocumentBuf]) {
    for _ in 0..5_000 {
        if documents(client, collection) == expected {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{:?} instead of {expected:?}", documents(client, collection));
}

#[test]
fn a_write_whose_reply_was_lost_is_answered_from_its_record() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let files = ServerFiles::new(root.path());
    let upsert = rawdoc! { "q": { "_id": 7 }, "u": { "$inc": { "n": 1 } }, "upsert": true };
    let modify = rawdoc! { "findAndModify": "c", "query": { "_id": 1 }, "update": { "$inc": { "n": 1 } }, "new": true };
    let remove = rawdoc! { "findAndModify": "c", "query": { "_id": 2 }, "remove": true };
    // Each command, the documents after it, and its result.
    let one = |n: i32| rawdoc! { "_id": 1, "n": n };
    let steps = [
        (
            rawdoc! { "insert": "c", "documents": [{ "_id": 1, "n": 0 }, { "_id": 2 }, { "_id": 3 }] },
            vec![one(0), rawdoc! { "_id": 2 }, rawdoc! { "_id": 3 }],
            rawdoc! { "n": 3 },
        ),
        (
            increment("c", 1),
            vec![one(1), rawdoc! { "_id": 2 }, rawdoc! { "_id": 3 }],
            rawdoc! { "n": 1, "nModified": 1 },
        ),
        (
            modify,
            vec![one(2), rawdoc! { "_id": 2 }, rawdoc! { "_id": 3 }],
            rawdoc! { "lastErrorObject": { "n": 1, "updatedExisting": true }, "value": { "_id": 1, "n": 2 } },
        ),
        (
            remove,
            vec![one(2), rawdoc! { "_id": 3 }],
            rawdoc! { "lastErrorObject": { "n": 1 }, "value": { "_id": 2 } },
        ),
        (
            rawdoc! { "delete": "c", "deletes": [{ "q": {}, "limit": 1 }] },
            vec![rawdoc! { "_id": 3 }],
            rawdoc! { "n": 1 },
        ),
        (
            rawdoc! { "update": "c", "updates": [upsert] },
            vec![rawdoc! { "_id": 3 }, rawdoc! { "_id": 7, "n": 1 }],
            rawdoc! { "n": 1, "nModified": 0, "upserted": [{ "index": 0, "_id": 7 }] },
        ),
    ];
    for (number, (command, after, expected)) in (1..).zip(steps) {
        let command = in_session(command, 1, number);
        let server = files.start_with(&OPTIONS);
        let mut sender = MongoClient::connect(server.mongo_port()).expect("it listens");
        sender.send(&command).expect("it reads");
        let mut other = MongoClient::connect(server.mongo_port()).expect("it listens");
        wait_until_seen(&mut other, "c", &after);
        server.kill();
        let server = files.start_with(&OPTIONS);
        let mut sender = MongoClient::connect(server.mongo_port()).expect("it listens");
        for _ in 0..2 {
            let reply = succeed(&mut sender, &command);
            assert_eq!(sorted(&result(&reply)), sorted(&expected), "{command:?}");
            assert_eq!(documents(&mut sender, "c"), after, "{command:?}");
        }
        server.assert_no_panic();
        server.stop();
    }
}

/// Fields by name.
fn sorted(document: &RawDocument) -> Vec<String> {
    let mut fields: Vec<String> = document
        .iter()
        .map(|field| format!("{:?}", field.expect("valid")))
        .collect();
    fields.sort();
    fields
}

#[test]
fn a_commit_whose_reply_was_lost_is_known_after_the_restart() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let files = ServerFiles::new(root.path());
    let server = files.start_with(&OPTIONS);
    let mut sender = MongoClient::connect(server.mongo_port()).expect("it listens");
    for collection in ["a", "b"] {
        succeed(
            &mut sender,
            &rawdoc! { "insert": collection, "documents": [{ "_id": 1, "n": 0 }], "$db": "db" },
        );
    }
    succeed(&mut sender, &in_transaction(increment("a", 1), 1, 1, true));
    succeed(&mut sender, &in_transaction(increment("b", 1), 1, 1, false));
    sender.send(&commit(1, 1)).expect("it reads");
    let mut other = MongoClient::connect(server.mongo_port()).expect("it listens");
    wait_until_seen(&mut other, "a", &[rawdoc! { "_id": 1, "n": 1 }]);
    server.kill();

    let server = files.start_with(&OPTIONS);
    let mut sender = MongoClient::connect(server.mongo_port()).expect("it listens");
    for _ in 0..2 {
        succeed(&mut sender, &commit(1, 1));
        for collection in ["a", "b"] {
            assert_eq!(documents(&mut sender, collection), [rawdoc! { "_id": 1, "n": 1 }]);
        }
    }
    // Another transaction, another session, and one that was not committed are not known.
    for (session, number) in [(1, 2), (2, 1)] {
        let reply = sender.run(&commit(session, number)).expect("an answer");
        assert_eq!(reply.get_i32("code").ok(), Some(UNKNOWN), "{reply:?}");
    }
    succeed(&mut sender, &in_transaction(increment("a", 1), 1, 2, true));
    server.kill();
    let server = files.start_with(&OPTIONS);
    let mut sender = MongoClient::connect(server.mongo_port()).expect("it listens");
    let reply = sender.run(&commit(1, 2)).expect("an answer");
    assert_eq!(reply.get_i32("code").ok(), Some(UNKNOWN), "{reply:?}");
    assert_eq!(documents(&mut sender, "a"), [rawdoc! { "_id": 1, "n": 1 }]);
    server.stop();
}

/// Writes with retries until the server is gone, and knows what must be stored.
struct Writer {
    number: u8,
    /// `txnNumber` of its last write.
    sent: i64,
    /// `n` of its counter, in the collection `counters` and, by transactions, in `left` and `right`.
    counter: i32,
    moved: i32,
    /// The ids of its documents.
    there: BTreeSet<i32>,
    /// What has no reply yet.
    pending: Option<Pending>,
}

#[derive(Debug, Clone)]
enum Pending {
    Insert(i32),
    Delete(i32),
    Update,
    FindAndModify,
    Commit,
}

impl Writer {
    fn id(&self) -> i32 {
        i32::from(self.number)
    }

    fn command(&self, pending: &Pending) -> RawDocumentBuf {
        let id = self.id();
        let command = match pending {
            Pending::Insert(id) => rawdoc! { "insert": "documents", "documents": [{ "_id": *id }] },
            Pending::Delete(id) => rawdoc! { "delete": "documents", "deletes": [{ "q": { "_id": *id }, "limit": 1 }] },
            Pending::Update => increment("counters", id),
            Pending::FindAndModify => {
                let update = rawdoc! { "$inc": { "n": 1 } };
                rawdoc! { "findAndModify": "counters", "query": { "_id": id }, "update": update, "new": true }
            }
            Pending::Commit => return commit(self.number, self.sent),
        };
        in_session(command, self.number, self.sent)
    }

    /// Checks the reply, and notes the effect of a write that has taken place once.
    fn complete(&mut self, pending: &Pending, reply: &RawDocument) {
        if matches!(pending, Pending::Commit) && reply.get_i32("code").ok() == Some(UNKNOWN) {
            // It was not committed, and its writes are gone.
            return;
        }
        assert_eq!(reply.get_f64("ok").ok(), Some(1.0), "{pending:?}: {reply:?}");
        match pending {
            Pending::Insert(id) => {
                assert_eq!(reply.get_i32("n").ok(), Some(1), "{pending:?}: {reply:?}");
                self.there.insert(*id);
            }
            Pending::Delete(id) => {
                assert_eq!(reply.get_i32("n").ok(), Some(1), "{pending:?}: {reply:?}");
                self.there.remove(id);
            }
            Pending::Update => {
                assert_eq!(reply.get_i32("nModified").ok(), Some(1), "{pending:?}: {reply:?}");
                self.counter += 1;
            }
            Pending::FindAndModify => {
                self.counter += 1;
                let value = reply.get_document("value").expect("a document");
                assert_eq!(value.get_i32("n").ok(), Some(self.counter), "{reply:?}");
            }
            Pending::Commit => self.moved += 1,
        }
    }

    /// One write, or what is left of the last one.
    fn write(&mut self, client: &mut MongoClient) -> io::Result<()> {
        let pending = match self.pending.take() {
            Some(pending) => pending,
            None => {
                self.sent += 1;
                let next = i32::try_from(self.sent).expect("few writes") * 10 + self.id();
                match self.sent % 5 {
                    0 => Pending::Insert(next),
                    1 => Pending::Update,
                    2 => Pending::FindAndModify,
                    3 => self
                        .there
                        .first()
                        .map_or(Pending::Insert(next), |id| Pending::Delete(*id)),
                    _ => {
                        for (collection, begins) in [("left", true), ("right", false)] {
                            let update =
                                in_transaction(increment(collection, self.id()), self.number, self.sent, begins);
                            let reply = client.run(&update)?;
                            assert_eq!(reply.get_i32("nModified").ok(), Some(1), "{reply:?}");
                        }
                        Pending::Commit
                    }
                }
            }
        };
        self.pending = Some(pending.clone());
        let reply = client.run(&self.command(&pending))?;
        self.complete(&pending, &reply);
        self.pending = None;
        Ok(())
    }

    fn check(&self, client: &mut MongoClient) {
        for (collection, expected) in [("counters", self.counter), ("left", self.moved), ("right", self.moved)] {
            let all = documents(client, collection);
            let counter = all
                .iter()
                .find(|document| document.get_i32("_id").ok() == Some(self.id()));
            let n = counter.map(|counter| counter.get_i32("n").expect("a number"));
            assert_eq!(n, Some(expected), "{collection} of writer {}", self.number);
        }
        let all = documents(client, "documents");
        let ids = all.iter().map(|document| document.get_i32("_id").expect("an id"));
        let own: BTreeSet<i32> = ids.filter(|id| id % 10 == self.id()).collect();
        assert_eq!(own, self.there, "documents of writer {}", self.number);
    }
}

#[test]
fn every_retried_write_takes_effect_exactly_once_however_often_the_server_is_killed() {
    let setting = |name, default| {
        std::env::var(name)
            .ok()
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let (rounds, seed) = (setting("BOLIDE_ROUNDS", ROUNDS), setting("BOLIDE_SEED", SEED));
    let mut random = Random::new(seed, 1);
    let root = tempfile::tempdir().expect("a temporary directory");
    let files = ServerFiles::new(root.path());
    let mut writers: Vec<Writer> = (1..=WRITERS).map(new_writer).collect();
    let server = files.start_with(&OPTIONS);
    let mut client = MongoClient::connect(server.mongo_port()).expect("it listens");
    for collection in ["counters", "left", "right"] {
        for writer in &writers {
            let document = rawdoc! { "_id": writer.id(), "n": 0 };
            succeed(
                &mut client,
                &rawdoc! { "insert": collection, "documents": [document], "$db": "db" },
            );
        }
    }
    server.kill();
    let (mut retries, done) = (0, AtomicU64::new(0));
    for round in 0..rounds {
        println!("round {round} of {rounds}, BOLIDE_SEED={seed}");
        let server = files.start_with(&OPTIONS);
        retries += writers.iter().filter(|writer| writer.pending.is_some()).count();
        run(&mut writers, server, &mut random, &done);
    }
    let server = files.start_with(&OPTIONS);
    let mut client = MongoClient::connect(server.mongo_port()).expect("it listens");
    for writer in &mut writers {
        if writer.pending.is_some() {
            writer.write(&mut client).expect("the server answers");
        }
        writer.check(&mut client);
    }
    println!("{} writes, {retries} retries", done.into_inner());
    assert!(retries > 0, "no reply was ever lost");
    server.assert_no_panic();
    server.stop();
}

fn new_writer(number: u8) -> Writer {
    Writer {
        number,
        sent: 0,
        counter: 0,
        moved: 0,
        there: BTreeSet::new(),
        pending: None,
    }
}

/// Lets the writers write, and kills the server at a random moment.
fn run(writers: &mut [Writer], server: Server, random: &mut Random, done: &AtomicU64) {
    let (port, is_killed) = (server.mongo_port(), AtomicBool::new(false));
    let until = done.load(Ordering::Relaxed) + random.within(1..150);
    let then = Duration::from_micros(random.within(0..3_000));
    std::thread::scope(|scope| {
        for writer in writers {
            let is_killed = &is_killed;
            scope.spawn(move || {
                let Ok(mut client) = MongoClient::connect(port) else {
                    return;
                };
                if writer.pending.is_some() {
                    let _ = writer.write(&mut client).map(|()| writer.check(&mut client));
                }
                while writer.write(&mut client).is_ok() {
                    done.fetch_add(1, Ordering::Relaxed);
                }
                assert!(is_killed.load(Ordering::Relaxed), "the server ended a connection");
            });
        }
        // There is no clock to move in another process, so this waits in real time.
        for _ in 0..10_000 {
            if done.load(Ordering::Relaxed) >= until {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(then);
        is_killed.store(true, Ordering::Relaxed);
        server.kill();
    });
}
