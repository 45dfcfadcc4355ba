//! Reads through indexes, against scans: every answer is that of the same query over the same documents without an index, in the same order, whatever the
//! documents, the filters and the indexes are, while documents change and end, and indexes come and go.
//!
//! The collection `c` has indexes, and `t` has the same documents without any, but the rule of expiry, which is on a field of its own.

mod orders;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_mql::value::text::render_document;
use bson::{Bson, DateTime, Document, RawArrayBuf, RawDocumentBuf, doc, rawdoc};

use super::{RandomChoices, for_seeds};
use crate::commands::fixture::{Shell, code_of};

const PROGRAMS: u64 = 12;
const STEPS: u64 = 60;
const PATHS: [&str; 7] = ["a", "b", "a.b", "a.c", "b.a", "c", "a.b.c"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_through_indexes_find_what_scans_find() {
    let (served, ordered) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let counts = (served.clone(), ordered.clone());
    for_seeds(PROGRAMS, move |seed| {
        let counts = counts.clone();
        async move {
            let (served, ordered) = run(seed).await;
            counts.0.fetch_add(served, Ordering::Relaxed);
            counts.1.fetch_add(ordered, Ordering::Relaxed);
        }
    })
    .await;
    let served = served.load(Ordering::Relaxed);
    assert!(served > PROGRAMS, "only {served} queries read by an index");
    let ordered = ordered.load(Ordering::Relaxed);
    assert!(
        ordered > PROGRAMS,
        "only {ordered} queries read in the order of an index"
    );
}

struct Program {
    shell: Shell,
    choices: RandomChoices,
    paths: Vec<String>,
    indexes: Vec<String>,
    /// The keys of the indexes.
    patterns: Vec<Document>,
    next: i32,
    /// Queries that read by an index, and in the order of one.
    served: u64,
    ordered: u64,
    is_sharded: bool,
}

/// Returns how many queries read by an index, and how many in the order of one.
async fn run(seed: u64) -> (u64, u64) {
    let mut program = Program {
        shell: Shell::new().await,
        choices: RandomChoices::new(seed),
        paths: Vec::new(),
        indexes: Vec::new(),
        patterns: vec![doc! { "a": 1 }],
        next: 0,
        served: 0,
        ordered: 0,
        is_sharded: seed.is_multiple_of(3),
    };
    for collection in ["c", "t"] {
        if program.is_sharded {
            let key = rawdoc! { "k": "hashed" };
            let command = rawdoc! { "shardCollection": format!("db.{collection}"), "key": key, "$db": "admin" };
            program.shell.ok(command).await;
        }
        let rule = rawdoc! { "key": { "d": 1 }, "name": "d_1", "expireAfterSeconds": 10 };
        let create = rawdoc! { "createIndexes": collection, "indexes": [rule] };
        program.shell.ok(create).await;
    }
    let index = rawdoc! { "key": { "a": 1 }, "name": "a_1" };
    program
        .shell
        .ok(rawdoc! { "createIndexes": "c", "indexes": [index] })
        .await;
    (program.paths, program.indexes) = (vec!["a".to_owned()], vec!["a_1".to_owned()]);
    for _ in 0..STEPS {
        program.step().await;
    }
    let checked = program.shell.ok(rawdoc! { "validate": "c" }).await;
    assert!(
        checked.get_bool("valid").expect("a boolean"),
        "{}",
        render_document(&checked)
    );
    (program.served, program.ordered)
}

impl Program {
    async fn step(&mut self) {
        match self.choices.roll(18) {
            0 | 1 => self.insert().await,
            2 => self.create_index().await,
            3 => self.update().await,
            4 if self.choices.percent(50) => self.delete().await,
            5 if self.choices.percent(50) => self.shell.advance(1_000 * self.choices.roll(6).cast_signed()),
            6 if self.choices.percent(30) => self.drop_index().await,
            7 if self.choices.percent(30) => self.shell.restart().await,
            7 if self.is_sharded => self.split().await,
            8 => self.resting_cursor().await,
            9 => self.resting_order().await,
            10 => self.change_first().await,
            11..14 => self.sorted_query().await,
            _ => self.query().await,
        }
    }

    async fn split(&self) {
        let container = self
            .shell
            .state
            .account
            .find_collection("db", "c")
            .expect("the collection");
        // A small range may have nothing to split.
        let _ = self.shell.state.account.split(&container, None).await;
    }

    async fn insert(&mut self) {
        let number = 1 + self.choices.roll(30);
        for _ in 0..number {
            let mut document = self.document(2);
            document.insert("_id", self.next);
            self.next += 1;
            if self.is_sharded {
                document.insert("k", i32::try_from(self.choices.roll(20)).expect("small"));
            }
            if self.choices.percent(50) {
                let at = self.shell.now() + 1_000 * self.choices.roll(12).cast_signed();
                document.insert("d", DateTime::from_millis(at));
            }
            let document = raw(&document);
            let insert = |collection: &str| rawdoc! { "insert": collection, "documents": [document.clone()] };
            let reply = self.shell.ok(insert("c")).await;
            // Some arrays cannot be indexed together.
            if reply.get("writeErrors").expect("valid").is_none() {
                self.shell.ok(insert("t")).await;
            }
        }
    }

    async fn create_index(&mut self) {
        let mut key = Document::new();
        for _ in 0..=self.choices.roll(2) {
            key.insert(self.choices.pick(&PATHS), self.choices.pick(&[1, 1, -1]));
        }
        match self.choices.roll(8) {
            0 => key = doc! { "$**": 1 },
            1 => {
                key.insert(self.choices.pick(&PATHS), "hashed");
            }
            _ => {}
        }
        let name = format!("i{}", self.next);
        self.next += 1;
        let mut index = doc! { "key": key.clone(), "name": &name };
        match self.choices.roll(6) {
            0 => {
                index.insert("sparse", true);
            }
            1 => {
                index.insert("partialFilterExpression", doc! { "a": { "$gt": 1 } });
            }
            2 => {
                index.insert("collation", doc! { "locale": "en", "strength": 2 });
            }
            _ => {}
        }
        let create = rawdoc! { "createIndexes": "c", "indexes": [raw(&index)] };
        // Two of the same key, arrays that cannot be indexed together, and such.
        if code_of(&self.shell.run(create).await) == 0 {
            self.paths.extend(key.keys().map(|path| path.replace("$**", "a")));
            self.indexes.push(name);
            self.patterns.push(key);
        }
    }

    async fn drop_index(&mut self) {
        let Some(name) = self.indexes.pop() else { return };
        self.patterns.pop();
        self.shell.ok(rawdoc! { "dropIndexes": "c", "index": name }).await;
    }

    /// Moves documents to other keys: to values that every index can have.
    async fn update(&mut self) {
        let filter = raw(&self.filter(1));
        let path = self.choices.pick(&["a", "b", "c"]);
        let value = self.scalar();
        let update = raw(&doc! { "$set": { path: value } });
        let is_multi = self.choices.percent(50);
        let mut replies = Vec::new();
        for collection in ["c", "t"] {
            let statement = rawdoc! { "q": filter.clone(), "u": update.clone(), "multi": is_multi };
            let command = rawdoc! { "update": collection, "updates": [statement] };
            replies.push(self.shell.ok(command).await);
        }
        assert_eq!(replies[0], replies[1], "{}", render_document(&filter));
    }

    async fn delete(&mut self) {
        let filter = raw(&self.filter(1));
        let mut replies = Vec::new();
        for collection in ["c", "t"] {
            let statement = rawdoc! { "q": filter.clone(), "limit": 1 };
            let command = rawdoc! { "delete": collection, "deletes": [statement] };
            replies.push(self.shell.ok(command).await);
        }
        assert_eq!(replies[0], replies[1], "{}", render_document(&filter));
    }

    async fn query(&mut self) {
        let filter = raw(&self.filter(2));
        let find = |collection: &str| rawdoc! { "find": collection, "filter": filter.clone(), "batchSize": 10_000 };
        let expected = self.shell.first_batch(find("t")).await;
        let plan = self
            .shell
            .ok(rawdoc! { "explain": find("c"), "verbosity": "queryPlanner" })
            .await;
        let plan = render_document(&plan);
        assert_eq!(self.shell.first_batch(find("c")).await, expected, "{plan}");
        if plan.contains("IXSCAN") {
            self.served += 1;
        }
        let sorted = |collection: &str| {
            rawdoc! { "find": collection, "filter": filter.clone(), "sort": { "c": -1, "_id": 1 }, "limit": 7 }
        };
        let in_order = self.shell.first_batch(sorted("t")).await;
        assert_eq!(
            self.shell.first_batch(sorted("c")).await,
            in_order,
            "{}",
            render_document(&filter)
        );
        let counted = self.shell.ok(rawdoc! { "count": "c", "query": filter.clone() }).await;
        let n = counted.get_i32("n").expect("a number");
        assert_eq!(
            usize::try_from(n).expect("a count"),
            expected.len(),
            "{}",
            render_document(&filter)
        );
        let distinct = |collection: &str| rawdoc! { "distinct": collection, "key": "b", "query": filter.clone() };
        let values = self.shell.ok(distinct("t")).await;
        assert_eq!(
            self.shell.ok(distinct("c")).await,
            values,
            "{}",
            render_document(&filter)
        );
        let aggregate = |collection: &str| {
            let lookup = rawdoc! { "from": collection, "localField": "c", "foreignField": "a", "as": "found" };
            let stages = [
                rawdoc! { "$match": filter.clone() },
                rawdoc! { "$limit": 3 },
                rawdoc! { "$lookup": lookup },
            ];
            let mut pipeline = RawArrayBuf::new();
            stages.into_iter().for_each(|stage| pipeline.push(stage));
            rawdoc! { "aggregate": collection, "pipeline": pipeline, "cursor": { "batchSize": 10_000 } }
        };
        let joined = self.shell.first_batch(aggregate("t")).await;
        assert_eq!(
            self.shell.first_batch(aggregate("c")).await,
            joined,
            "{}",
            render_document(&filter)
        );
    }

    /// A cursor that rests while others change: what is there all the time, and matches, is found once, and nothing that has ended.
    async fn resting_cursor(&mut self) {
        let filter = raw(&self.filter(1));
        let find = |collection: &str| rawdoc! { "find": collection, "filter": filter.clone(), "batchSize": 10_000 };
        let before = self.shell.first_batch(find("c")).await;
        let opened = rawdoc! { "find": "c", "filter": filter.clone(), "batchSize": 2 };
        let opened = self.shell.ok(opened).await;
        let cursor = opened.get_document("cursor").expect("a cursor");
        let id = cursor.get_i64("id").expect("an id");
        let mut found = ids(cursor.get_array("firstBatch").expect("a batch"));
        let first = found.len();
        self.update().await;
        self.shell.advance(1_000);
        let after = self.shell.first_batch(find("t")).await;
        if id != 0 {
            let more = rawdoc! { "getMore": id, "collection": "c", "batchSize": 10_000 };
            let more = self.shell.ok(more).await;
            let cursor = more.get_document("cursor").expect("a cursor");
            found.extend(ids(cursor.get_array("nextBatch").expect("a batch")));
        }
        let is_in = |list: &[RawDocumentBuf], id: i32| {
            list.iter()
                .any(|document| document.get_i32("_id").is_ok_and(|own| own == id))
        };
        let unchanged = before.iter().filter(|document| after.contains(document));
        let expected = unchanged.map(|document| document.get_i32("_id").expect("an id"));
        let missing: Vec<i32> = expected.filter(|id| !found.contains(id)).collect();
        assert_eq!(missing, [0; 0], "{}", render_document(&filter));
        let all = self
            .shell
            .first_batch(rawdoc! { "find": "t", "batchSize": 10_000 })
            .await;
        let ended: Vec<&i32> = found[first..].iter().filter(|id| !is_in(&all, **id)).collect();
        assert_eq!(ended, [&0; 0], "{}", render_document(&filter));
        let mut once = found.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), found.len(), "{}", render_document(&filter));
    }

    fn scalar(&mut self) -> Bson {
        match self.choices.roll(10) {
            0 => Bson::Null,
            1 => Bson::String(self.choices.pick(&["x", "X", "xy"]).to_owned()),
            2 => Bson::Double(1.5),
            3 => Bson::Boolean(true),
            _ => Bson::Int32(i32::try_from(self.choices.roll(5)).expect("small")),
        }
    }

    fn value(&mut self, depth: u64) -> Bson {
        match self.choices.roll(10) {
            0..3 if depth > 0 => {
                let length = self.choices.roll(4);
                Bson::Array((0..length).map(|_| self.value(depth - 1)).collect())
            }
            3..6 if depth > 0 => Bson::Document(self.document(depth - 1)),
            _ => self.scalar(),
        }
    }

    fn document(&mut self, depth: u64) -> Document {
        let mut document = Document::new();
        for name in ["a", "b", "c"] {
            if self.choices.percent(65) {
                document.insert(name, self.value(depth));
            }
        }
        document
    }

    fn test(&mut self) -> Document {
        let mut test = Document::new();
        for _ in 0..=self.choices.roll(2) {
            let operator = self
                .choices
                .pick(&["$eq", "$gt", "$gte", "$lt", "$lte", "$in", "$exists", "$ne"]);
            let operand = match operator {
                "$in" => Bson::Array(vec![self.value(1), self.scalar()]),
                "$exists" => Bson::Boolean(self.choices.percent(70)),
                _ => self.value(1),
            };
            test.insert(operator, operand);
        }
        test
    }

    fn filter(&mut self, depth: u64) -> Document {
        let mut filter = Document::new();
        for _ in 0..=self.choices.roll(2) {
            let path = match self.paths.is_empty() || self.choices.percent(30) {
                true => self.choices.pick(&PATHS).to_owned(),
                false => {
                    let at = usize::try_from(self.choices.roll(self.paths.len() as u64)).expect("below a length");
                    self.paths[at].clone()
                }
            };
            match self.choices.roll(10) {
                0 | 1 if depth > 0 => {
                    filter.insert("$or", vec![self.filter(depth - 1), self.filter(depth - 1)]);
                }
                2 => {
                    filter.insert(path, doc! { "$elemMatch": self.test() });
                }
                3 if depth > 0 => {
                    filter.insert(path, doc! { "$elemMatch": self.filter(0) });
                }
                4..7 => {
                    filter.insert(path, self.scalar());
                }
                _ => {
                    filter.insert(path, self.test());
                }
            }
        }
        filter
    }
}

fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).expect("BSON")
}

fn ids(batch: &bson::RawArray) -> Vec<i32> {
    let documents = batch.into_iter().map(|document| document.expect("valid"));
    documents
        .map(|document| {
            document
                .as_document()
                .expect("a document")
                .get_i32("_id")
                .expect("an id")
        })
        .collect()
}
