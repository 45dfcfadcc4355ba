//! A literal model of snapshot isolation with expiry.
//!
//! All committed versions are kept until others take their place: the model knows no purge. A transaction copies them when it begins, and is judged at
//! that time (TTL-290). A command outside of transactions is a transaction of one command. At the commit, each document that was written must still be the
//! version of the snapshot, and live; otherwise the first committer has won (TTL-292). A command of a transaction that writes what another open transaction
//! has written, or what is not as in its snapshot any more, is a conflict at once.

use std::collections::{BTreeMap, BTreeSet};

use super::program::{Doc, Op};

/// `DuplicateKey`, `WriteConflict`.
pub const DUPLICATE: i32 = 11000;
pub const CONFLICT: i32 = 112;

/// What a command answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Docs(Vec<Doc>),
    Count(i32),
    Written {
        n: i32,
        modified: i32,
        upserted: Option<i32>,
    },
    Done,
    Error(i32),
}

/// The times to live of a collection.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Of the index on `_ts`, in seconds.
    pub core: Option<i32>,
    /// Of the index on `at`, in seconds.
    pub date: Option<i64>,
    /// Whether `u` is unique.
    pub is_unique: bool,
}

/// Collection and id.
type Key = (usize, i32);

#[derive(Debug, Clone)]
struct Version {
    doc: Doc,
    /// `_ts`, in seconds.
    modified: i64,
    /// Which commit made it.
    commit: u64,
    /// Which commit inserted the document.
    birth: u64,
}

/// What only one open transaction may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    /// A stored document: its key, and the commit that inserted it.
    Document(Key, u64),
    Id(Key),
    /// A value of `u` in a collection in which it is unique.
    Unique(usize, i32),
}

/// The database.
#[derive(Debug, Clone)]
pub struct Model {
    rules: Vec<Rules>,
    stored: BTreeMap<Key, Version>,
    commits: u64,
    /// What open transactions have written, and which of them.
    claims: BTreeMap<Claim, usize>,
    begun: usize,
    /// In milliseconds after the start, which is at the beginning of a second.
    pub now: i64,
}

/// A transaction that has begun.
#[derive(Debug, Clone)]
pub struct Transaction {
    began: i64,
    snapshot: BTreeMap<Key, Version>,
    /// What it wrote, over the snapshot; `None`: deleted.
    own: BTreeMap<Key, Option<Version>>,
    /// The live version of the snapshot under each document that was written.
    bases: BTreeMap<Key, Option<u64>>,
    number: usize,
    /// What the command at hand writes.
    written: Vec<Written>,
    /// The stored documents that it has written.
    changed: BTreeSet<(Key, u64)>,
}

#[derive(Debug, Clone)]
struct Written {
    key: Key,
    /// Absent after a delete.
    u: Option<i32>,
    kind: WriteKind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum WriteKind {
    Insert,
    /// Of a document of the snapshot: the commit that inserted it.
    ChangeStored(u64),
    /// Of a document that the transaction itself has inserted.
    ChangeOwn,
}

impl Rules {
    fn is_live(&self, version: &Version, now: i64) -> bool {
        let by_date = match (self.date, version.doc.at) {
            (Some(seconds), Some(at)) => now < at + seconds * 1_000,
            _ => true,
        };
        let ttl = self.core.map(|default| version.doc.ttl.unwrap_or(default));
        let by_core = match ttl {
            None | Some(-1) => true,
            Some(ttl) => now.div_euclid(1_000) < version.modified + i64::from(ttl),
        };
        by_date && by_core
    }
}

impl Model {
    pub fn new(rules: Vec<Rules>, stored: &[(usize, Doc)]) -> Model {
        let mut model = Model {
            rules,
            stored: BTreeMap::new(),
            commits: 0,
            claims: BTreeMap::new(),
            begun: 0,
            now: 0,
        };
        for (collection, doc) in stored {
            let version = Version {
                doc: doc.clone(),
                modified: 0,
                commit: 0,
                birth: 0,
            };
            model.stored.insert((*collection, doc.id), version);
        }
        model
    }

    pub fn begin(&mut self) -> Transaction {
        self.begun += 1;
        Transaction {
            began: self.now,
            snapshot: self.stored.clone(),
            own: BTreeMap::new(),
            bases: BTreeMap::new(),
            number: self.begun,
            written: Vec::new(),
            changed: BTreeSet::new(),
        }
    }

    /// Ends a transaction without a commit.
    pub fn abort(&mut self, transaction: &Transaction) {
        self.claims.retain(|_, owner| *owner != transaction.number);
    }

    /// Runs a command outside of transactions.
    pub fn run(&mut self, collection: usize, op: &Op) -> Answer {
        let mut transaction = self.begin();
        let answer = transaction.decide(self, collection, op);
        if !matches!(answer, Answer::Error(_)) {
            assert_eq!(self.commit(&transaction), Answer::Done, "nothing happened in between");
        }
        answer
    }

    pub fn commit(&mut self, transaction: &Transaction) -> Answer {
        self.abort(transaction);
        let mut after = self.stored.clone();
        self.commits += 1;
        for (key, written) in &transaction.own {
            let live = self
                .stored
                .get(key)
                .filter(|version| self.rules[key.0].is_live(version, self.now));
            match transaction.bases[key] {
                Some(base) if live.is_none_or(|live| live.commit != base) => return Answer::Error(CONFLICT),
                None if written.is_some() && live.is_some() => return Answer::Error(CONFLICT),
                None if written.is_none() => continue,
                _ => {}
            }
            after.remove(key);
            if let Some(version) = written {
                let version = Version {
                    modified: self.now.div_euclid(1_000),
                    commit: self.commits,
                    birth: version.birth.min(self.commits),
                    ..version.clone()
                };
                after.insert(*key, version);
            }
        }
        for (key, written) in &transaction.own {
            let is_unique = self.rules[key.0].is_unique;
            let Some(u) = written.as_ref().and_then(|version| version.doc.u).filter(|_| is_unique) else {
                continue;
            };
            let mut others = after
                .iter()
                .filter(|(other, _)| other.0 == key.0 && !transaction.own.contains_key(other));
            if others.any(|(_, other)| other.doc.u == Some(u) && self.rules[key.0].is_live(other, self.now)) {
                return Answer::Error(CONFLICT);
            }
        }
        self.stored = after;
        Answer::Done
    }
}

impl Transaction {
    /// Returns what it sees of a collection.
    fn visible(&self, model: &Model, collection: usize) -> Vec<Version> {
        let mut all: BTreeMap<Key, Option<Version>> = self
            .snapshot
            .iter()
            .map(|(key, version)| (*key, Some(version.clone())))
            .collect();
        all.extend(self.own.clone());
        let of_collection = all.into_iter().filter(|((of, _), _)| *of == collection);
        let versions = of_collection.filter_map(|(_, version)| version);
        versions
            .filter(|version| model.rules[collection].is_live(version, self.began))
            .collect()
    }

    fn find(&self, model: &Model, collection: usize, id: i32) -> Option<Doc> {
        let mut visible = self.visible(model, collection).into_iter().map(|version| version.doc);
        visible.find(|doc| doc.id == id)
    }

    /// Writes a document, or deletes it. Returns whether its unique key is free.
    fn write(&mut self, model: &Model, collection: usize, id: i32, doc: Option<Doc>) -> bool {
        let is_unique = model.rules[collection].is_unique;
        if let Some(u) = doc.as_ref().and_then(|doc| doc.u).filter(|_| is_unique) {
            let visible = self.visible(model, collection);
            if visible.iter().any(|other| other.doc.id != id && other.doc.u == Some(u)) {
                return false;
            }
        }
        let key = (collection, id);
        let visible = self.visible(model, collection);
        let birth = visible.iter().find(|version| version.doc.id == id);
        let birth = birth.map(|version| version.birth);
        self.written.push(Written {
            key,
            u: doc.as_ref().and_then(|doc| doc.u).filter(|_| is_unique),
            kind: match birth {
                None => WriteKind::Insert,
                Some(u64::MAX) => WriteKind::ChangeOwn,
                Some(birth) => WriteKind::ChangeStored(birth),
            },
        });
        let base = self.snapshot.get(&key);
        let base = base.filter(|version| model.rules[collection].is_live(version, self.began));
        self.bases.entry(key).or_insert(base.map(|version| version.commit));
        let version = doc.map(|doc| Version {
            doc,
            modified: self.began.div_euclid(1_000),
            commit: u64::MAX,
            birth: birth.unwrap_or(u64::MAX),
        });
        self.own.insert(key, version);
        true
    }

    /// Changes a document if it is there.
    fn update(&mut self, model: &Model, collection: usize, id: i32, change: impl Fn(&mut Doc)) -> Answer {
        let Some(before) = self.find(model, collection, id) else {
            return Answer::Written {
                n: 0,
                modified: 0,
                upserted: None,
            };
        };
        let mut after = before.clone();
        change(&mut after);
        let modified = i32::from(after != before);
        if !self.write(model, collection, id, Some(after)) {
            return Answer::Error(DUPLICATE);
        }
        Answer::Written {
            n: 1,
            modified,
            upserted: None,
        }
    }

    /// Runs a command of the transaction. After an error it has ended.
    pub fn run(&mut self, model: &mut Model, collection: usize, op: &Op) -> Answer {
        let answer = self.decide(model, collection, op);
        if matches!(answer, Answer::Error(_)) {
            model.abort(self);
            return answer;
        }
        match self.claim(model) {
            true => answer,
            false => {
                model.abort(self);
                Answer::Error(CONFLICT)
            }
        }
    }

    /// Claims what the command at hand writes, unless it is a conflict.
    fn claim(&mut self, model: &mut Model) -> bool {
        let mut claims = Vec::new();
        let mut bases = Vec::new();
        for written in &self.written {
            match written.kind {
                WriteKind::Insert => claims.push(Claim::Id(written.key)),
                WriteKind::ChangeStored(birth) if self.changed.insert((written.key, birth)) => {
                    claims.push(Claim::Document(written.key, birth));
                    bases.push(written.key);
                }
                WriteKind::ChangeStored(_) | WriteKind::ChangeOwn => {}
            }
            claims.extend(written.u.map(|u| Claim::Unique(written.key.0, u)));
        }
        let is_others = |claim: &Claim| model.claims.get(claim).is_some_and(|owner| *owner != self.number);
        let is_live = |(key, version): &(&Key, &Version)| model.rules[key.0].is_live(version, model.now);
        let is_changed = |key: &Key| {
            let now = model.stored.get_key_value(key).filter(is_live);
            now.is_none_or(|(_, version)| Some(version.commit) != self.bases[key])
        };
        let has_holder = |claim: &Claim| {
            let mut others = model.stored.iter().filter(is_live);
            others.any(|(key, version)| {
                let is_own = self.changed.contains(&(*key, version.birth));
                let holds = match claim {
                    Claim::Document(..) => false,
                    Claim::Id(id) => key == id,
                    Claim::Unique(collection, u) => key.0 == *collection && version.doc.u == Some(*u),
                };
                holds && !is_own
            })
        };
        if claims.iter().any(is_others) || bases.iter().any(is_changed) || claims.iter().any(has_holder) {
            return false;
        }
        model
            .claims
            .extend(claims.into_iter().map(|claim| (claim, self.number)));
        true
    }

    // Long: an arm for each kind of command.
    fn decide(&mut self, model: &Model, collection: usize, op: &Op) -> Answer {
        self.written.clear();
        let visible: Vec<Doc> = self
            .visible(model, collection)
            .into_iter()
            .map(|version| version.doc)
            .collect();
        let written = |n: usize, upserted: Option<i32>| {
            let n = i32::try_from(n).expect("small");
            Answer::Written {
                n,
                modified: n - i32::from(upserted.is_some()),
                upserted,
            }
        };
        match op {
            Op::FindAll(_) => Answer::Docs(visible),
            Op::FindOne(id) => Answer::Docs(visible.into_iter().filter(|doc| doc.id == *id).collect()),
            Op::Count => Answer::Count(i32::try_from(visible.len()).expect("small")),
            Op::Insert(doc) => {
                let is_free = visible.iter().all(|other| other.id != doc.id);
                match is_free && self.write(model, collection, doc.id, Some(doc.clone())) {
                    true => Answer::Written {
                        n: 1,
                        modified: 0,
                        upserted: None,
                    },
                    false => Answer::Error(DUPLICATE),
                }
            }
            Op::Increment(id) => self.update(model, collection, *id, |doc| doc.n += 1),
            Op::SetDate(id, at) => self.update(model, collection, *id, |doc| doc.at = Some(*at)),
            Op::Touch(id) => self.update(model, collection, *id, |_| {}),
            Op::Replace(doc, upsert) => {
                if *upsert && self.find(model, collection, doc.id).is_none() {
                    return match self.write(model, collection, doc.id, Some(doc.clone())) {
                        true => written(1, Some(doc.id)),
                        false => Answer::Error(DUPLICATE),
                    };
                }
                match self.update(model, collection, doc.id, |now| *now = doc.clone()) {
                    // Whether the bytes differ depends on the order of fields, which this model does not know.
                    Answer::Written { n, .. } => written(usize::try_from(n).expect("small"), None),
                    other => other,
                }
            }
            Op::Delete(id) => {
                let is_there = visible.iter().any(|doc| doc.id == *id);
                if is_there {
                    self.write(model, collection, *id, None);
                }
                written(usize::from(is_there), None)
            }
            Op::IncrementMany(least) => {
                let found: Vec<&Doc> = visible.iter().filter(|doc| doc.n >= *least).collect();
                for doc in &found {
                    self.update(model, collection, doc.id, |doc| doc.n += 1);
                }
                written(found.len(), None)
            }
            Op::DeleteMany(below) => {
                let found: Vec<&Doc> = visible.iter().filter(|doc| doc.n < *below).collect();
                for doc in &found {
                    self.write(model, collection, doc.id, None);
                }
                written(found.len(), None)
            }
            Op::FindAndIncrement(id) => {
                self.update(model, collection, *id, |doc| doc.n += 1);
                let doc = visible.into_iter().find(|doc| doc.id == *id);
                Answer::Docs(doc.map(|doc| Doc { n: doc.n + 1, ..doc }).into_iter().collect())
            }
        }
    }
}
