//! A literal model of expiry in a collection.
//!
//! Nothing is computed ahead: whenever time or a rule has moved, each version is judged by the rules that are in force, and what is due has ended for
//! ever. The model keeps what has ended, and knows no purge (mongo.md §18.4, TTL-225).

use bson::{Bson, Document};

/// A version of a document.
#[derive(Debug, Clone)]
pub struct Version {
    pub id: i32,
    pub doc: Document,
    /// `_ts`, in seconds.
    pub modified: i64,
    pub has_ended: bool,
}

/// A TTL index on dates.
#[derive(Debug, Clone, PartialEq)]
pub struct DateRule {
    pub name: &'static str,
    pub path: &'static str,
    /// Whether only documents with `p: 1` are in it.
    pub is_partial: bool,
    pub seconds: i64,
}

#[derive(Debug, Clone, Default)]
pub struct Model {
    /// In milliseconds.
    pub now: i64,
    /// `expireAfterSeconds` of the index on `_ts`.
    pub core: Option<i64>,
    pub dates: Vec<DateRule>,
    /// In their natural order.
    versions: Vec<Version>,
}

/// Returns the earliest date on a path, in milliseconds; elements of an array count, those of arrays inside it do not.
fn earliest(doc: &Document, path: &str) -> Option<i64> {
    let of_value = |value: &Bson| match value {
        Bson::DateTime(date) => Some(date.timestamp_millis()),
        Bson::Array(elements) => elements
            .iter()
            .filter_map(Bson::as_datetime)
            .map(|date| date.timestamp_millis())
            .min(),
        _ => None,
    };
    let Some((first, rest)) = path.split_once('.') else {
        return doc.get(path).and_then(of_value);
    };
    match doc.get(first)? {
        Bson::Document(inner) => earliest(inner, rest),
        Bson::Array(elements) => {
            let inner = elements.iter().filter_map(Bson::as_document);
            inner.filter_map(|inner| earliest(inner, rest)).min()
        }
        _ => None,
    }
}

/// Returns a document's own ttl, if its value counts as one (TTL-092 to TTL-095, TTL-285).
fn own_ttl(doc: &Document) -> Option<i64> {
    let ttl = match doc.get("ttl")? {
        Bson::Int32(ttl) => i64::from(*ttl),
        Bson::Int64(ttl) => *ttl,
        Bson::Double(ttl) if ttl.fract() == 0.0 && ttl.abs() < 1e15 => *ttl as i64,
        _ => return None,
    };
    (ttl == -1 || (1..=i64::from(i32::MAX)).contains(&ttl)).then_some(ttl)
}

impl Model {
    /// An empty collection at a time.
    pub fn at(now: i64) -> Model {
        Model {
            now,
            ..Model::default()
        }
    }

    fn is_due(&self, version: &Version) -> bool {
        let by_date = self.dates.iter().any(|rule| {
            let is_in_it = !rule.is_partial || version.doc.get("p") == Some(&Bson::Int32(1));
            let date = earliest(&version.doc, rule.path).filter(|_| is_in_it);
            date.is_some_and(|date| date.saturating_add(rule.seconds * 1_000) <= self.now)
        });
        let ttl = self.core.map(|default| own_ttl(&version.doc).unwrap_or(default));
        let by_core = ttl.is_some_and(|ttl| ttl != -1 && version.modified + ttl <= self.seconds());
        by_date || by_core
    }

    fn seconds(&self) -> i64 {
        self.now.div_euclid(1_000)
    }

    /// Judges all versions; to be called whenever time, a rule or a document has changed.
    pub fn judge(&mut self) {
        let due: Vec<bool> = self.versions.iter().map(|version| self.is_due(version)).collect();
        for (version, is_due) in self.versions.iter_mut().zip(due) {
            version.has_ended |= is_due;
        }
    }

    pub fn live(&self) -> Vec<&Version> {
        self.versions.iter().filter(|version| !version.has_ended).collect()
    }

    pub fn find(&self, id: i32) -> Option<&Version> {
        self.live().into_iter().find(|version| version.id == id)
    }

    /// Whether another live document than `id` has the unique key of `doc`.
    pub fn is_taken(&self, id: i32, doc: &Document) -> bool {
        let key = doc.get("u");
        let mut others = self.live().into_iter().filter(|version| version.id != id);
        key.is_some() && others.any(|version| version.doc.get("u") == key)
    }

    /// Inserts a document, or gives one that is there a new content.
    pub fn write(&mut self, id: i32, doc: Document) {
        let modified = self.seconds();
        let at = self
            .versions
            .iter()
            .position(|version| version.id == id && !version.has_ended);
        match at {
            Some(at) => {
                self.versions[at].doc = doc;
                self.versions[at].modified = modified;
            }
            None => self.versions.push(Version {
                id,
                doc,
                modified,
                has_ended: false,
            }),
        }
        self.judge();
    }

    pub fn delete(&mut self, id: i32) {
        self.versions.retain(|version| version.id != id || version.has_ended);
    }
}
