//! The outcome of a write (TTL-215…218, TTL-235…242, TTL-251, TTL-255).

use bolide_model::ErrorKind;
use serde_json::{Map, Value};

use super::versions::epk_of;
use super::{Change, Doc, Model, Ttl, Version};

/// A write, with its `If-Match` header as it is sent.
#[derive(Debug, Clone)]
pub enum Write {
    Create(Doc),
    Upsert(Doc, Option<String>),
    /// Replaces the item with this id in the document's logical partition; another id in the document renames the item.
    Replace(&'static str, Doc, Option<String>),
    Patch(&'static str, &'static str, Vec<Change>, Option<String>),
    Delete(&'static str, &'static str, Option<String>),
}

/// A write that will succeed.
#[derive(Debug, Clone)]
pub struct Plan {
    pub is_new: bool,
    /// The new version, without the server's labels; `None` for a delete.
    pub version: Option<Version>,
    /// The etag of the version that it replaces or deletes.
    replaced: Option<String>,
    /// Etags of the ghosts that it removes.
    ghosts: Vec<String>,
    /// Etags of the items deleted with their key that it removes.
    dropped: Vec<String>,
}

/// The kinds of error that a refusal may have.
pub type Refused = Vec<ErrorKind>;

impl Write {
    /// Returns the partition key and the id of the write's item.
    pub fn name(&self) -> (&'static str, &'static str) {
        match self {
            Write::Create(doc) | Write::Upsert(doc, _) | Write::Replace(_, doc, _) => (doc.pk, doc.id),
            Write::Patch(pk, id, ..) | Write::Delete(pk, id, _) => (pk, id),
        }
    }
}

impl Model {
    /// Decides a write at *T*.
    pub fn plan(&self, write: &Write) -> Result<Plan, Refused> {
        match write {
            Write::Create(doc) => {
                let draft = self.draft(doc.pk, doc.id, doc.body())?;
                self.insert(draft)
            }
            Write::Upsert(doc, if_match) => {
                let draft = self.draft(doc.pk, doc.id, doc.body())?;
                match self.live(doc.pk, doc.id) {
                    Some(live) => {
                        check_match(live, if_match.as_deref())?;
                        self.overwrite(live, draft)
                    }
                    None => self.insert(draft),
                }
            }
            Write::Replace(id, doc, if_match) => {
                let draft = self.draft(doc.pk, doc.id, doc.body())?;
                let live = self.live(doc.pk, id).ok_or_else(|| vec![ErrorKind::NotFound])?;
                check_match(live, if_match.as_deref())?;
                self.overwrite(live, draft)
            }
            Write::Patch(pk, id, changes, if_match) => {
                let live = self.live(pk, id).ok_or_else(|| vec![ErrorKind::NotFound])?;
                check_match(live, if_match.as_deref())?;
                let mut body = live.body.clone();
                if !changes.iter().all(|change| change.apply(&mut body)) {
                    return Err(vec![ErrorKind::BadRequest]);
                }
                let draft = self.draft(live.pk, live.id, body)?;
                self.overwrite(live, draft)
            }
            Write::Delete(pk, id, if_match) => {
                let live = self.live(pk, id).ok_or_else(|| vec![ErrorKind::NotFound])?;
                check_match(live, if_match.as_deref())?;
                Ok(Plan {
                    is_new: false,
                    version: None,
                    replaced: Some(live.etag.clone()),
                    ghosts: Vec::new(),
                    dropped: Vec::new(),
                })
            }
        }
    }

    /// Executes a plan, with the labels that the server gave the version.
    pub fn carry_out(&mut self, plan: Plan, etag: &str, rid: &str) {
        self.purged_and_removed(
            |version| plan.ghosts.contains(&version.etag),
            |version| plan.dropped.contains(&version.etag),
        );
        let replaced = self
            .versions
            .iter()
            .position(|version| Some(&version.etag) == plan.replaced.as_ref());
        let before = replaced.map(|at| self.versions.remove(at));
        self.writes += 1;
        self.transactions += u64::from(!self.is_in_transaction);
        let version = plan.version.map(|version| Version {
            etag: etag.to_owned(),
            rid: rid.to_owned(),
            transaction: self.transactions,
            ..version
        });
        self.versions.extend(version.clone());
        self.events.written(self.now(), version, before);
    }

    /// Begins a transaction with the following writes.
    pub fn begin_transaction(&mut self) {
        self.transactions += 1;
        self.is_in_transaction = true;
    }

    pub fn end_transaction(&mut self) {
        self.is_in_transaction = false;
    }

    /// Returns a version as it would be written now. Its ttl must be usable, whether TTL is on or off (TTL-215, TTL-216).
    fn draft(&self, pk: &'static str, id: &'static str, body: Map<String, Value>) -> Result<Version, Refused> {
        let (own, is_usable) = Ttl::of(&body);
        if !is_usable {
            return Err(vec![ErrorKind::BadRequest]);
        }
        Ok(Version {
            pk,
            id,
            body,
            own,
            written: self.now(),
            etag: String::new(),
            rid: String::new(),
            inserted: self.writes + 1,
            order: self.writes + 1,
            transaction: 0,
            epk: epk_of(pk),
        })
    }

    fn insert(&self, draft: Version) -> Result<Plan, Refused> {
        if self.live(draft.pk, draft.id).is_some() {
            return Err(vec![ErrorKind::Conflict]);
        }
        let ghosts = self.ghosts_in_the_way(&draft, None)?;
        Ok(Plan {
            is_new: true,
            dropped: self.dropped_in_the_way(&draft),
            version: Some(draft),
            replaced: None,
            ghosts,
        })
    }

    fn overwrite(&self, live: &Version, draft: Version) -> Result<Plan, Refused> {
        let is_taken = draft.id != live.id && self.live(draft.pk, draft.id).is_some();
        let ghosts = self.ghosts_in_the_way(&draft, Some(live));
        if is_taken {
            // If there are two conflicts at once, either may be reported.
            let mut kinds = ghosts.err().unwrap_or_default();
            kinds.push(ErrorKind::Conflict);
            return Err(kinds);
        }
        Ok(Plan {
            is_new: false,
            ghosts: ghosts?,
            dropped: self.dropped_in_the_way(&draft),
            replaced: Some(live.etag.clone()),
            version: Some(Version {
                inserted: live.inserted,
                rid: live.rid.clone(),
                ..draft
            }),
        })
    }

    /// Returns the ghosts that hold the id or the unique value; if another live item holds the value, it is a conflict (TTL-251).
    fn ghosts_in_the_way(&self, draft: &Version, itself: Option<&Version>) -> Result<Vec<String>, Refused> {
        let others = || {
            self.versions
                .iter()
                .filter(|other| other.pk == draft.pk && itself.is_none_or(|itself| itself.etag != other.etag))
        };
        let shares_value = |other: &&Version| self.has_unique_key && unique_value(other) == unique_value(draft);
        if others().filter(shares_value).any(|other| self.is_live(other)) {
            return Err(vec![ErrorKind::UniqueKeyConflict]);
        }
        let in_the_way = others().filter(|other| shares_value(other) || other.id == draft.id);
        Ok(in_the_way
            .filter(|other| !self.is_live(other))
            .map(|ghost| ghost.etag.clone())
            .collect())
    }
}

impl Model {
    /// Returns the items deleted with their key that still hold the id or the unique value. They are no conflict.
    fn dropped_in_the_way(&self, draft: &Version) -> Vec<String> {
        let is_in_the_way = |dropped: &&Version| {
            let shares_value = self.has_unique_key && unique_value(dropped) == unique_value(draft);
            dropped.pk == draft.pk && (shares_value || dropped.id == draft.id)
        };
        let in_the_way = self.dropped.iter().filter(is_in_the_way);
        in_the_way.map(|dropped| dropped.etag.clone()).collect()
    }
}

/// Returns the unique value. A missing value counts as null: two items without it are in conflict.
fn unique_value(version: &Version) -> &Value {
    version.body.get("u").unwrap_or(&Value::Null)
}

fn check_match(live: &Version, if_match: Option<&str>) -> Result<(), Refused> {
    match if_match {
        Some(header) if header != "*" && header != live.etag => Err(vec![ErrorKind::PreconditionFailed]),
        _ => Ok(()),
    }
}
