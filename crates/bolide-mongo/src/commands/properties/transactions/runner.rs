//! Sends a program's commands in an order, and compares every answer with the model's.

use bolide_core::PurgeMode;
use bson::raw::{RawBsonRef, cstr};
use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};

use super::super::Purging;
use super::model::{Answer, Model, Rules, Transaction};
use super::program::{COLLECTIONS, Doc, Op, Program, Step};
use crate::commands::fixture::{NOW, Shell, code_of};

/// The program begins at the next full second after the clock of the tests, in milliseconds.
const START: i64 = NOW.0 - NOW.0 % 1_000 + 1_000;

/// The rules of [`COLLECTIONS`].
const RULES: [Rules; 3] = [
    Rules {
        core: None,
        date: Some(2),
        is_unique: true,
    },
    Rules {
        core: Some(4),
        date: Some(0),
        is_unique: false,
    },
    Rules {
        core: None,
        date: None,
        is_unique: false,
    },
];

struct Runner<'p> {
    shell: Shell,
    model: Model,
    purging: Purging,
    sessions: Vec<Session>,
    program: &'p Program,
}

/// A session, and the transaction that it has open.
#[derive(Default)]
struct Session {
    number: i64,
    open: Option<Transaction>,
}

/// Runs a program with its steps in this order.
pub async fn run(program: &Program, order: &[usize], purging: Purging) {
    let mut runner = Runner::new(program, purging).await;
    let mut next = vec![0; program.sessions.len()];
    for (at, session) in order.iter().enumerate() {
        let step = &program.sessions[*session][next[*session]];
        next[*session] += 1;
        let place = || format!("step {at}: session {session}: {step:?} of {order:?}, {purging:?}, {program:#?}");
        runner.step(*session, step, &place).await;
        if purging == Purging::Eager {
            runner.purge().await;
        }
    }
    // After everything has ended, the rest is compared.
    for collection in 0..COLLECTIONS.len() {
        let expected = runner.model.run(collection, &Op::FindAll(101));
        let answer = runner.send(None, collection, &Op::FindAll(101)).await;
        assert_eq!(answer, expected, "at the end of {order:?}, {purging:?}, {program:#?}");
    }
    for collection in COLLECTIONS {
        let container = runner
            .shell
            .state
            .account
            .find_collection("db", collection)
            .expect("it exists");
        let report = runner.shell.state.account.verify(&container).await.expect("a report");
        assert_eq!(report.problems, Vec::<String>::new());
    }
}

impl<'p> Runner<'p> {
    async fn new(program: &'p Program, purging: Purging) -> Runner<'p> {
        let shell = Shell::new().await;
        shell.advance(START - NOW.0);
        for (collection, rules) in COLLECTIONS.iter().zip(RULES) {
            let mut indexes = RawArrayBuf::new();
            indexes.push(rawdoc! { "key": { "n": 1 }, "name": "n_1" });
            if let Some(seconds) = rules.date {
                indexes.push(rawdoc! { "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": seconds });
            }
            if let Some(seconds) = rules.core {
                indexes.push(rawdoc! { "key": { "_ts": 1 }, "name": "_ts_1", "expireAfterSeconds": seconds });
            }
            if rules.is_unique {
                indexes.push(rawdoc! { "key": { "u": 1 }, "name": "u_1", "unique": true, "sparse": true });
            }
            shell
                .ok(rawdoc! { "createIndexes": *collection, "indexes": indexes })
                .await;
        }
        for (collection, doc) in &program.stored {
            shell.insert(COLLECTIONS[*collection], &[to_bson(doc)]).await;
        }
        Runner {
            shell,
            model: Model::new(RULES.to_vec(), &program.stored),
            purging,
            sessions: program.sessions.iter().map(|_| Session::default()).collect(),
            program,
        }
    }

    async fn step(&mut self, session: usize, step: &Step, place: &impl Fn() -> String) {
        match step {
            Step::InTransaction(collection, op) => {
                let mut begins = false;
                if self.sessions[session].open.is_none() {
                    self.sessions[session].number += 1;
                    self.sessions[session].open = Some(self.model.begin());
                    begins = true;
                }
                let mut open = self.sessions[session].open.take().expect("it is open");
                let expected = open.run(&mut self.model, *collection, op);
                let answer = self.send(Some((session, begins)), *collection, op).await;
                assert_eq!(answer, expected, "{}", place());
                // An error ends the transaction.
                if !matches!(answer, Answer::Error(_)) {
                    self.sessions[session].open = Some(open);
                }
            }
            Step::Outside(collection, op) => {
                let expected = self.model.run(*collection, op);
                assert_eq!(self.send(None, *collection, op).await, expected, "{}", place());
            }
            Step::Commit | Step::Abort => {
                let Some(open) = self.sessions[session].open.take() else {
                    return;
                };
                let (name, expected) = match step {
                    Step::Commit => ("commitTransaction", self.model.commit(&open)),
                    _ => {
                        self.model.abort(&open);
                        ("abortTransaction", Answer::Done)
                    }
                };
                let name = <&bson::raw::CStr>::try_from(name).expect("a name");
                let mut command = RawDocumentBuf::new();
                command.append(name, 1);
                command.append(cstr!("$db"), "admin");
                let reply = self.shell.run(self.in_session(command, Some((session, false)))).await;
                let answer = match code_of(&reply) {
                    0 => Answer::Done,
                    code => {
                        let labels = reply.get_array("errorLabels").expect("labels");
                        assert!(
                            labels
                                .into_iter()
                                .any(|label| label.ok() == Some(RawBsonRef::String("TransientTransactionError")))
                        );
                        Answer::Error(code)
                    }
                };
                assert_eq!(answer, expected, "{}", place());
            }
            Step::Wait(millis) => {
                self.model.now += millis;
                self.shell.advance(*millis);
            }
        }
    }

    fn in_session(&self, mut command: RawDocumentBuf, transaction: Option<(usize, bool)>) -> RawDocumentBuf {
        let Some((session, begins)) = transaction else {
            return command;
        };
        let id = Binary {
            subtype: BinarySubtype::Uuid,
            bytes: vec![u8::try_from(session).expect("small"); 16],
        };
        command.append(cstr!("lsid"), rawdoc! { "id": id });
        command.append(cstr!("txnNumber"), self.sessions[session].number);
        command.append(cstr!("autocommit"), false);
        if begins {
            command.append(cstr!("startTransaction"), true);
        }
        command
    }

    /// Sends a command, and reads its answer.
    async fn send(&self, transaction: Option<(usize, bool)>, collection: usize, op: &Op) -> Answer {
        let command = self.in_session(command(COLLECTIONS[collection], op), transaction);
        let reply = self.shell.run(command).await;
        if let code @ 1.. = error_of(&reply) {
            return Answer::Error(code);
        }
        match op {
            Op::FindAll(_) | Op::FindOne(_) => {
                let again = transaction.map(|(session, _)| (session, false));
                Answer::Docs(self.documents(&reply, collection, again).await)
            }
            Op::Count => {
                let batch = reply
                    .get_document("cursor")
                    .and_then(|cursor| cursor.get_array("firstBatch"))
                    .expect("a batch");
                let first = batch.get_document(0).ok();
                Answer::Count(first.map_or(0, |first| first.get_i32("n").expect("a number")))
            }
            Op::FindAndIncrement(_) => {
                let value = reply.get("value").expect("valid").expect("a value");
                Answer::Docs(value.as_document().map(from_bson).into_iter().collect())
            }
            _ => {
                let upserted = reply.get_array("upserted").ok();
                let upserted = upserted.map(|upserted| upserted.get_document(0).expect("a document"));
                let n = reply.get_i32("n").expect("a number");
                let modified = match op {
                    Op::Delete(_) | Op::DeleteMany(_) => n,
                    Op::Replace(..) => n - i32::from(upserted.is_some()),
                    _ => reply.get_i32("nModified").unwrap_or(0),
                };
                Answer::Written {
                    n,
                    modified,
                    upserted: upserted.map(|upserted| upserted.get_i32("_id").expect("an id")),
                }
            }
        }
    }

    /// Reads all batches of a cursor.
    async fn documents(&self, reply: &RawDocument, collection: usize, transaction: Option<(usize, bool)>) -> Vec<Doc> {
        let mut docs = Vec::new();
        let mut reply = reply.to_owned();
        let mut field = "firstBatch";
        loop {
            let cursor = reply.get_document("cursor").expect("a cursor");
            let batch = cursor.get_array(field).expect("a batch");
            docs.extend(
                batch
                    .into_iter()
                    .map(|doc| from_bson(doc.expect("valid").as_document().expect("a document"))),
            );
            let id = cursor.get_i64("id").expect("an id");
            if id == 0 {
                return docs;
            }
            let more = rawdoc! { "getMore": id, "collection": COLLECTIONS[collection], "batchSize": 1 };
            reply = self.shell.ok(self.in_session(more, transaction)).await;
            field = "nextBatch";
        }
    }

    async fn purge(&self) {
        assert_eq!(self.purging, Purging::Eager, "{:?}", self.program);
        let account = &self.shell.state.account;
        for collection in COLLECTIONS {
            let container = account.find_collection("db", collection).expect("it exists");
            account.purge(&container, PurgeMode::Force, None).await.expect("purged");
        }
    }
}

fn command(collection: &str, op: &Op) -> RawDocumentBuf {
    let update = |q: RawDocumentBuf, u: RawDocumentBuf, is_multi: bool, is_upsert: bool| {
        let statement = rawdoc! { "q": q, "u": u, "multi": is_multi, "upsert": is_upsert };
        rawdoc! { "update": collection, "updates": [statement] }
    };
    let delete =
        |q: RawDocumentBuf, limit: i32| rawdoc! { "delete": collection, "deletes": [{ "q": q, "limit": limit }] };
    match op {
        Op::FindAll(batch) => rawdoc! { "find": collection, "sort": { "_id": 1 }, "batchSize": *batch },
        Op::FindOne(id) => rawdoc! { "find": collection, "filter": { "_id": *id } },
        Op::Count => rawdoc! { "aggregate": collection, "pipeline": [{ "$count": "n" }], "cursor": {} },
        Op::Insert(doc) => rawdoc! { "insert": collection, "documents": [to_bson(doc)] },
        Op::Increment(id) => update(rawdoc! { "_id": *id }, rawdoc! { "$inc": { "n": 1 } }, false, false),
        Op::SetDate(id, at) => update(
            rawdoc! { "_id": *id },
            rawdoc! { "$set": { "at": date(*at) } },
            false,
            false,
        ),
        Op::Touch(id) => update(rawdoc! { "_id": *id }, rawdoc! { "$max": { "n": -1 } }, false, false),
        Op::Replace(doc, upsert) => update(rawdoc! { "_id": doc.id }, to_bson(doc), false, *upsert),
        Op::Delete(id) => delete(rawdoc! { "_id": *id }, 1),
        Op::IncrementMany(least) => update(
            rawdoc! { "n": { "$gte": *least } },
            rawdoc! { "$inc": { "n": 1 } },
            true,
            false,
        ),
        Op::DeleteMany(below) => delete(rawdoc! { "n": { "$lt": *below } }, 0),
        Op::FindAndIncrement(id) => {
            rawdoc! { "findAndModify": collection, "query": { "_id": *id }, "update": { "$inc": { "n": 1 } }, "new": true }
        }
    }
}

/// The code of a command's error, or of its only statement's; 0 if there is none.
fn error_of(reply: &RawDocument) -> i32 {
    let of_statement = reply.get_array("writeErrors").ok();
    let of_statement = of_statement.map(|errors| errors.get_document(0).expect("an error"));
    match of_statement {
        Some(error) => error.get_i32("code").expect("a code"),
        None => code_of(reply),
    }
}

fn date(after_start: i64) -> DateTime {
    DateTime::from_millis(START + after_start)
}

fn to_bson(doc: &Doc) -> RawDocumentBuf {
    let mut bson = rawdoc! { "_id": doc.id, "n": doc.n };
    if let Some(at) = doc.at {
        bson.append(cstr!("at"), date(at));
    }
    if let Some(ttl) = doc.ttl {
        bson.append(cstr!("ttl"), ttl);
    }
    if let Some(u) = doc.u {
        bson.append(cstr!("u"), u);
    }
    bson
}

fn from_bson(bson: &RawDocument) -> Doc {
    Doc {
        id: bson.get_i32("_id").expect("an id"),
        n: bson.get_i32("n").expect("a number"),
        at: bson.get_datetime("at").ok().map(|at| at.timestamp_millis() - START),
        ttl: bson.get_i32("ttl").ok(),
        u: bson.get_i32("u").ok(),
    }
}
