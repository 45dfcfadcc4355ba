//! Documents of the programs, and versions of items.

use bolide_model::epk::Epk;
use bolide_model::partition_key::{Component, PartitionKey, PartitionKeyDefinition};
use serde_json::{Map, Value, json};

/// A document: `{"id", "pk", "n", …}` with a ttl, a unique value `u` and padding, each if set.
#[derive(Debug, Clone, PartialEq)]
pub struct Doc {
    pub pk: &'static str,
    pub id: &'static str,
    pub ttl: Ttl,
    pub n: i64,
    pub u: Option<i64>,
    /// Number of bytes of padding.
    pub pad: usize,
}

/// The value of the property `ttl`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ttl {
    Absent,
    Whole(i64),
    /// A whole number spelled with a fraction: `20.0` is 20 (TTL-212).
    WholeSpelledLong(i64),
    Fraction,
    Text,
    Null,
}

/// One operation of a patch.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    SetTtl(Ttl),
    RemoveTtl,
    SetN(i64),
    IncrementN(i64),
    SetU(i64),
}

impl Ttl {
    /// Returns the value as the server returns it.
    pub fn value(self) -> Option<Value> {
        match self {
            Ttl::Absent => None,
            Ttl::Whole(seconds) | Ttl::WholeSpelledLong(seconds) => Some(seconds.into()),
            Ttl::Fraction => Some(json!(20.5)),
            Ttl::Text => Some("20".into()),
            Ttl::Null => Some(Value::Null),
        }
    }

    /// Returns the ttl of a body (−1 or *n* if it is usable), and whether it is usable or missing (TTL-217).
    pub fn of(body: &Map<String, Value>) -> (Option<i64>, bool) {
        let own = body.get("ttl").and_then(Value::as_i64);
        let usable = own.filter(|own| *own == -1 || (1..=2_147_483_647).contains(own));
        (usable, usable.is_some() || !body.contains_key("ttl"))
    }
}

impl Doc {
    /// Returns the body as a client sends it.
    pub fn text(&self) -> String {
        let text = Value::Object(self.body()).to_string();
        match self.ttl {
            Ttl::WholeSpelledLong(seconds) => {
                text.replace(&format!("\"ttl\":{seconds}"), &format!("\"ttl\":{seconds}.0"))
            }
            _ => text,
        }
    }

    /// Returns the body as the server returns it, without system properties.
    pub fn body(&self) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("id".into(), self.id.into());
        body.insert("pk".into(), self.pk.into());
        if let Some(ttl) = self.ttl.value() {
            body.insert("ttl".into(), ttl);
        }
        body.insert("n".into(), self.n.into());
        let place = serde_json::json!({"type": "Point", "coordinates": [self.n, 0]});
        body.insert("p".into(), place);
        if let Some(u) = self.u {
            body.insert("u".into(), u.into());
        }
        if self.pad > 0 {
            body.insert("pad".into(), "x".repeat(self.pad).into());
        }
        body
    }
}

impl Change {
    /// Returns the operation as a client sends it.
    pub fn to_json(&self) -> Value {
        match self {
            Change::SetTtl(ttl) => json!({"op": "set", "path": "/ttl", "value": ttl.value()}),
            Change::RemoveTtl => json!({"op": "remove", "path": "/ttl"}),
            Change::SetN(n) => json!({"op": "set", "path": "/n", "value": n}),
            Change::IncrementN(by) => json!({"op": "incr", "path": "/n", "value": by}),
            Change::SetU(u) => json!({"op": "set", "path": "/u", "value": u}),
        }
    }

    /// Changes a body; returns whether the operation can be applied.
    pub fn apply(&self, body: &mut Map<String, Value>) -> bool {
        match self {
            Change::SetTtl(ttl) => {
                body.insert("ttl".into(), ttl.value().unwrap_or(Value::Null));
            }
            Change::RemoveTtl => return body.shift_remove("ttl").is_some(),
            Change::SetN(n) => {
                body.insert("n".into(), (*n).into());
            }
            Change::IncrementN(by) => {
                let n = body["n"].as_i64().expect("documents have a number n");
                body.insert("n".into(), (n + by).into());
            }
            Change::SetU(u) => {
                body.insert("u".into(), (*u).into());
            }
        }
        true
    }
}

/// One version of an item.
#[derive(Debug, Clone)]
pub struct Version {
    pub pk: &'static str,
    pub id: &'static str,
    pub body: Map<String, Value>,
    /// *t*, as the server understood it when the version was written.
    pub own: Option<i64>,
    /// `_ts`.
    pub written: i64,
    /// The server's labels for the version and for the item.
    pub etag: String,
    pub rid: String,
    /// Its position among all insertions, and among all writes.
    pub inserted: u64,
    pub order: u64,
    /// The same number for all writes of one transaction.
    pub transaction: u64,
    pub epk: Epk,
}

impl Version {
    pub fn is_called(&self, pk: &str, id: &str) -> bool {
        self.pk == pk && self.id == id
    }

    /// Returns the bytes that quotas count.
    pub fn bytes(&self) -> u64 {
        Value::Object(self.body.clone()).to_string().len() as u64
    }
}

/// Returns the effective partition key of a logical partition in a container with partition key `/pk`.
pub fn epk_of(pk: &str) -> Epk {
    let definition = PartitionKeyDefinition::from_json(&json!({"paths": ["/pk"], "kind": "Hash", "version": 2}))
        .expect("a definition");
    Epk::of(&definition, &PartitionKey(vec![Component::String(pk.into())]))
}
