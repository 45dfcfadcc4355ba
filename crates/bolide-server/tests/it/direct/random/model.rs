//! A literal model of one container, for clients in direct mode: the whole history of its settings, and TTL-225 item by item.
//!
//! It calls no code of the product. From answers it takes only labels that it cannot know: etags.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// Partition key and id.
pub type Name = (&'static str, &'static str);

/// An item as it is sent.
#[derive(Debug, Clone)]
pub struct Doc {
    pub name: Name,
    /// `None`: no member `ttl`.
    pub ttl: Option<Value>,
    pub n: i64,
}

/// A change by a patch.
#[derive(Debug, Clone)]
pub enum Change {
    SetTtl(Value),
    RemoveTtl,
    SetN(i64),
    AddToN(i64),
}

#[derive(Debug, Clone)]
pub enum Write {
    Create(Doc),
    Upsert(Doc),
    Replace(Doc),
    Patch(Name, Change),
    Delete(Name),
}

/// A stored version, live or a ghost.
#[derive(Debug, Clone)]
pub struct Version {
    pub name: Name,
    /// Without system properties.
    pub body: Map<String, Value>,
    /// `_ts`.
    pub written: i64,
    /// `None` until an answer told it.
    pub etag: Option<String>,
    /// Number of its write.
    pub order: u64,
}

/// An event of the all-versions feed.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// `create`, `replace`, `delete`, and `expired` for a delete because of the time to live.
    pub kind: &'static str,
    /// The second of the commit.
    pub at: i64,
    /// `n` of the new version.
    pub n: Value,
}

#[derive(Debug, Clone)]
pub struct Model {
    /// What the clock shows, in milliseconds.
    pub clock_ms: i64,
    /// Server time, which never falls (TTL-202).
    pub now_ms: i64,
    /// The default from a second on, oldest first.
    history: Vec<(i64, Option<i64>)>,
    pub versions: Vec<Version>,
    /// Number of writes so far.
    pub writes: u64,
    pub events: BTreeMap<Name, Vec<Event>>,
}

impl Doc {
    pub fn body(&self) -> Map<String, Value> {
        let (pk, id) = self.name;
        let mut body = Map::new();
        body.insert("id".into(), id.into());
        body.insert("pk".into(), pk.into());
        body.insert("n".into(), self.n.into());
        if let Some(ttl) = &self.ttl {
            body.insert("ttl".into(), ttl.clone());
        }
        body
    }
}

impl Change {
    /// The operation of a patch.
    pub fn to_json(&self) -> Value {
        match self {
            Change::SetTtl(ttl) => json!({"op": "set", "path": "/ttl", "value": ttl}),
            Change::RemoveTtl => json!({"op": "remove", "path": "/ttl"}),
            Change::SetN(n) => json!({"op": "set", "path": "/n", "value": n}),
            Change::AddToN(n) => json!({"op": "incr", "path": "/n", "value": n}),
        }
    }

    /// Whether it can be applied.
    fn apply(&self, body: &mut Map<String, Value>) -> bool {
        match self {
            Change::SetTtl(ttl) => body.insert("ttl".into(), ttl.clone()),
            Change::RemoveTtl => return body.remove("ttl").is_some(),
            Change::SetN(n) => body.insert("n".into(), (*n).into()),
            Change::AddToN(by) => {
                let n = body["n"].as_i64().expect("a whole number") + by;
                body.insert("n".into(), n.into())
            }
        };
        true
    }
}

impl Write {
    pub fn name(&self) -> Name {
        match self {
            Write::Create(doc) | Write::Upsert(doc) | Write::Replace(doc) => doc.name,
            Write::Patch(name, _) | Write::Delete(name) => *name,
        }
    }
}

impl Write {
    /// Whether the item that it sends may be stored (TTL-215).
    pub fn has_usable_ttl(&self) -> bool {
        match self {
            Write::Create(doc) | Write::Upsert(doc) | Write::Replace(doc) => is_usable(doc.ttl.as_ref()),
            Write::Patch(..) | Write::Delete(_) => true,
        }
    }
}

impl Model {
    pub fn new(clock_ms: i64, default_ttl: Option<i64>) -> Model {
        Model {
            clock_ms,
            now_ms: clock_ms,
            history: vec![(clock_ms / 1000, default_ttl)],
            versions: Vec::new(),
            writes: 0,
            events: BTreeMap::new(),
        }
    }

    /// Server time in whole seconds.
    pub fn now(&self) -> i64 {
        self.now_ms / 1000
    }

    pub fn move_clock(&mut self, by_ms: i64) {
        self.clock_ms += by_ms;
        self.now_ms = self.now_ms.max(self.clock_ms);
    }

    pub fn set_default(&mut self, default_ttl: Option<i64>) {
        // The same again begins no new stretch (TTL-231).
        if self.history.last().expect("a beginning").1 != default_ttl {
            self.history.push((self.now(), default_ttl));
        }
    }

    /// TTL-225: whether in some stretch of the history the end of the stretch, or now, reached `_ts` and the ttl in force in it.
    pub fn is_expired(&self, version: &Version) -> bool {
        let own = version.body.get("ttl").and_then(Value::as_i64);
        let ends = self.history.iter().skip(1).map(|(start, _)| *start).chain([self.now()]);
        let mut stretches = self.history.iter().zip(ends);
        stretches.any(|((_, default_ttl), end)| {
            let ttl = match (default_ttl, own) {
                (None, _) => -1,
                (Some(_), Some(own)) => own,
                (Some(default_ttl), None) => *default_ttl,
            };
            ttl != -1 && end.min(self.now()) >= version.written + ttl
        })
    }

    pub fn live_items(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| !self.is_expired(version))
    }

    pub fn ghosts(&self) -> impl Iterator<Item = &Version> {
        self.versions.iter().filter(|version| self.is_expired(version))
    }

    pub fn live(&self, name: Name) -> Option<&Version> {
        self.live_items().find(|version| version.name == name)
    }

    /// Carries a write out; returns the status of its answer. `if_match`: the etag that is sent.
    pub fn write(&mut self, write: &Write, if_match: Option<&str>) -> u16 {
        let live = self.live(write.name()).cloned();
        // A missing item is missed first, as in the service.
        let is_missed = matches!(write, Write::Replace(_)) && live.is_none();
        if !write.has_usable_ttl() && !is_missed {
            return 400;
        }
        match (write, live) {
            (Write::Create(_), Some(_)) => 409,
            (Write::Create(doc) | Write::Upsert(doc), None) => {
                self.put(doc.name, doc.body(), "create");
                201
            }
            (_, None) => 404,
            (_, Some(live)) if if_match.is_some_and(|sent| live.etag.as_deref() != Some(sent)) => 412,
            (Write::Upsert(doc) | Write::Replace(doc), Some(_)) => {
                self.put(doc.name, doc.body(), "replace");
                200
            }
            (Write::Patch(name, change), Some(mut live)) => {
                if !change.apply(&mut live.body) || !is_usable(live.body.get("ttl")) {
                    return 400;
                }
                self.put(*name, live.body, "replace");
                200
            }
            (Write::Delete(name), Some(_)) => {
                self.versions.retain(|version| version.name != *name);
                self.note(*name, "delete", Value::Null);
                204
            }
        }
    }

    /// The etag of the version that was written last.
    pub fn label(&mut self, name: Name, etag: &str) {
        let written = self.versions.iter_mut().find(|version| version.name == name);
        written.expect("it was written").etag = Some(etag.to_owned());
    }

    /// Removes ghosts.
    pub fn purge(&mut self, names: &[Name]) {
        for name in names {
            let is_ghost = self.ghosts().any(|ghost| ghost.name == *name);
            assert!(is_ghost, "P6: {name:?} was purged and is no ghost");
            self.versions.retain(|version| version.name != *name);
            self.note(*name, "expired", Value::Null);
        }
    }

    fn put(&mut self, name: Name, body: Map<String, Value>, kind: &'static str) {
        // A writer purges the ghost in its own transaction (TTL-255).
        if self.ghosts().any(|ghost| ghost.name == name) {
            self.purge(&[name]);
        }
        self.versions.retain(|version| version.name != name);
        self.writes += 1;
        self.note(name, kind, body["n"].clone());
        self.versions.push(Version {
            name,
            body,
            written: self.now(),
            etag: None,
            order: self.writes,
        });
    }

    fn note(&mut self, name: Name, kind: &'static str, n: Value) {
        let at = self.now();
        self.events.entry(name).or_default().push(Event { kind, at, n });
    }
}

/// TTL-215.
fn is_usable(ttl: Option<&Value>) -> bool {
    let Some(ttl) = ttl else { return true };
    ttl.as_i64()
        .is_some_and(|ttl| ttl == -1 || (1..=2_147_483_647).contains(&ttl))
}
