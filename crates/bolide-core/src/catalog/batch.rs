//! The draft of one commit of the catalog: the rows that a change reads and writes.
//!
//! Every change is decided from rows that were read in the write batch that commits it, at the head on which the commit is based. So it is correct
//! whoever else writes to the store: if another commit came first, the write batch is decided again on the new rows. The cache is never used for a
//! decision. Besides the rows themselves, a commit updates the index of their names and the log of changes.

use bolide_model::error::Resource;
use bolide_model::rid::{ContainerRid, DatabaseRid, EncryptionKeyRid, PermissionRid, UserRid};
use bolide_model::{Error, Lsn, Result, UnixMillis, UnixSeconds};
use bolide_storage::{Key, Scan, Space};
use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::budget::DefinitionBudget;
use super::changes;
use super::events::{self, CatalogEvent};
use super::names::{self, Name};
use super::rows::{
    AccountRow, ContainerRow, DatabaseRow, EncryptionKeyRow, PermissionRow, Row, RowKey, UserRow, damaged, decode,
};
use crate::format::etag::Etag;
use crate::format::keys::{self, LogPosition};
use crate::partition::write_batch::{Decision, WriteBatch};

/// Maximum number of rows and of bytes of one page of a scan.
const PAGE_ROWS: usize = 5_000;
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// Position and time of a commit of the catalog: the changed resource's `_etag` and `_ts` are made from them.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommitPoint {
    pub lsn: Lsn,
    pub now: UnixSeconds,
    pub millis: UnixMillis,
}

impl CommitPoint {
    pub fn etag(self) -> Etag {
        Etag::of_write(0, self.lsn, 0)
    }
}

/// Rows that a commit wrote, or removed (`None`), each row once.
pub(super) type Changes = Vec<(RowKey, Option<Row>)>;

/// See the module.
pub(super) struct CatalogBatch<'c, 'r> {
    write_batch: &'c mut WriteBatch<'r>,
    changes: Changes,
    events: Vec<CatalogEvent>,
    /// Whether the change is made by the server itself: what it adds is counted, but never refused.
    is_exempt: bool,
}

/// A commit, without the value that its decision returned.
#[derive(Debug)]
pub(super) struct Committed {
    /// The commit's log sequence number.
    pub lsn: Lsn,
    pub changes: Changes,
}

impl CatalogBatch<'_, '_> {
    /// Drafts one commit, and checks that its definitions do not exceed their limit. Returns `None` if there is nothing to commit.
    ///
    /// # Errors
    /// The errors of `decide`; `QuotaExceeded`. Nothing is drafted then.
    pub fn draft<T>(
        write_batch: &mut WriteBatch<'_>,
        budget: &DefinitionBudget,
        decide: &mut dyn FnMut(&mut CatalogBatch<'_, '_>) -> Decision<T>,
    ) -> Decision<(T, Option<Committed>)> {
        write_batch.batch(|write_batch| {
            let mut batch = CatalogBatch {
                write_batch,
                changes: Vec::new(),
                events: Vec::new(),
                is_exempt: false,
            };
            let value = decide(&mut batch)?;
            if !batch.is_exempt {
                budget.check(&batch.changes)?;
            }
            Ok((value, batch.finish()))
        })
    }

    /// Calls `read`, which reads rows and drafts nothing.
    pub fn read_only<T>(
        write_batch: &mut WriteBatch<'_>,
        read: &mut dyn FnMut(&mut CatalogBatch<'_, '_>) -> Decision<T>,
    ) -> Decision<T> {
        read(&mut CatalogBatch {
            write_batch,
            changes: Vec::new(),
            events: Vec::new(),
            is_exempt: false,
        })
    }

    fn finish(mut self) -> Option<Committed> {
        if self.changes.is_empty() && self.events.is_empty() {
            return None;
        }
        let lsn = self.commit_point().lsn;
        let rows = self.changes.iter().map(|(key, _)| *key);
        self.write_batch.put(changes::key(lsn), changes::encode(rows));
        if let Some(old) = lsn.0.checked_sub(changes::KEPT) {
            self.write_batch.delete(changes::key(Lsn(old)));
        }
        for position in events::forgotten(lsn) {
            self.write_batch.delete(keys::history(position));
        }
        let (time, now) = (self.write_batch.time, self.write_batch.now);
        // Times of later processes are behind it (`open`).
        self.write_batch.state.history_last = time;
        for (event, seq) in self.events.iter().zip(0..events::OF_COMMIT) {
            let key = keys::history(LogPosition { lsn, seq });
            self.write_batch.put(key, event.encode(time, now));
        }
        Some(Committed {
            lsn,
            changes: self.changes,
        })
    }

    /// Returns the log sequence number and time with which the change will be committed.
    pub fn commit_point(&mut self) -> CommitPoint {
        CommitPoint {
            // All writes of one commit have the same number.
            lsn: self.write_batch.next_lsn(),
            now: self.write_batch.seconds(),
            millis: self.write_batch.now,
        }
    }

    /// Adds an event for change streams.
    pub fn event(&mut self, event: CatalogEvent) {
        self.events.push(event);
    }

    /// Exempts this change from the limit on definitions.
    pub fn is_exempt(&mut self) {
        self.is_exempt = true;
    }

    /// Returns the log sequence number of the newest commit that the rows read belong to.
    pub fn head(&self) -> Lsn {
        self.write_batch.head()
    }

    fn read<R: DeserializeOwned>(&mut self, key: RowKey) -> Decision<Option<R>> {
        let value = self.write_batch.entry(&key.key())?;
        Ok(value.map(|value| decode(&value)).transpose()?)
    }

    /// Returns the account's row, or the default if the account has none yet.
    pub fn account(&mut self) -> Decision<AccountRow> {
        Ok(self.read(RowKey::Account)?.unwrap_or_default())
    }

    /// # Errors
    /// `NotFound` if the row does not exist, as for the functions that follow.
    pub fn database(&mut self, rid: DatabaseRid) -> Decision<DatabaseRow> {
        let row = self.read(RowKey::Database(rid))?;
        Ok(row.ok_or_else(|| Error::missing(Resource::Database, &rid))?)
    }

    pub fn container(&mut self, rid: ContainerRid) -> Decision<ContainerRow> {
        let row = self.container_if_there(rid)?;
        Ok(row.ok_or_else(|| Error::missing(Resource::Container, &rid))?)
    }

    pub fn container_if_there(&mut self, rid: ContainerRid) -> Decision<Option<ContainerRow>> {
        self.read(RowKey::Container(rid))
    }

    pub fn user(&mut self, rid: UserRid) -> Decision<UserRow> {
        let row = self.read(RowKey::User(rid))?;
        Ok(row.ok_or_else(|| Error::missing(Resource::User, &rid))?)
    }

    pub fn permission(&mut self, rid: PermissionRid) -> Decision<PermissionRow> {
        let row = self.read(RowKey::Permission(rid))?;
        Ok(row.ok_or_else(|| Error::missing(Resource::Permission, &rid))?)
    }

    pub fn encryption_key(&mut self, rid: EncryptionKeyRid) -> Decision<EncryptionKeyRow> {
        let row = self.read(RowKey::EncryptionKey(rid))?;
        Ok(row.ok_or_else(|| Error::missing(Resource::EncryptionKey, &rid))?)
    }

    /// Reads a row of any kind.
    pub fn row(&mut self, key: RowKey) -> Decision<Option<Row>> {
        let value = self.write_batch.entry(&key.key())?;
        Ok(value.map(|value| Row::decode(key, &value)).transpose()?)
    }

    /// Reads several rows of any kind at once.
    pub fn rows(&mut self, keys: &[RowKey]) -> Decision<Changes> {
        let values = self
            .write_batch
            .entries(&keys.iter().map(|key| key.key()).collect::<Vec<_>>())?;
        let rows = keys.iter().zip(values);
        let rows = rows.map(|(key, value)| Ok((*key, value.map(|value| Row::decode(*key, &value)).transpose()?)));
        Ok(rows.collect::<Result<_>>()?)
    }

    /// Returns the key of the row that has a name.
    pub fn named(&mut self, name: Name<'_>) -> Decision<Option<RowKey>> {
        let key = name.key();
        let value = self.write_batch.entry(&key)?;
        Ok(value.map(|value| names::target(&key.bytes, &value)).transpose()?)
    }

    /// Returns the keys and values of a space whose keys begin with `prefix`, from one snapshot. Must be called before anything is written.
    pub fn scan(&mut self, space: Space, prefix: &Bytes) -> Decision<Vec<(Bytes, Bytes)>> {
        self.scan_from(space, prefix.clone(), keys::after_prefix(prefix), false)
    }

    /// Like [`CatalogBatch::scan`], but returns the keys only.
    pub fn scan_keys(&mut self, space: Space, prefix: &Bytes) -> Decision<Vec<Bytes>> {
        let rows = self.scan_from(space, prefix.clone(), keys::after_prefix(prefix), true)?;
        Ok(rows.into_iter().map(|(key, _)| key).collect())
    }

    /// Returns the entries of the log of changes from a commit on.
    pub fn changes_from(&mut self, lsn: Lsn) -> Decision<Vec<(Bytes, Bytes)>> {
        self.scan_from(Space::Log, changes::key(lsn).bytes, Some(keys::log_end()), false)
    }

    fn scan_from(
        &mut self,
        space: Space,
        mut from: Bytes,
        to: Option<Bytes>,
        keys_only: bool,
    ) -> Decision<Vec<(Bytes, Bytes)>> {
        let mut rows = Vec::new();
        loop {
            let scan = Scan {
                space,
                from,
                to: to.clone(),
                reverse: false,
                max_rows: PAGE_ROWS,
                max_bytes: PAGE_BYTES,
                keys_only,
            };
            let page = self.write_batch.scan_raw(&[scan])?.pop().unwrap_or_default();
            rows.extend(page.rows);
            match rows.last() {
                Some((last, _)) if page.more => from = keys::after(last),
                _ => return Ok(rows),
            }
        }
    }

    /// Writes a new row, whose key was taken from a counter or from this commit's number.
    ///
    /// # Errors
    /// `Corrupt` if the row exists already.
    pub fn create(&mut self, key: RowKey, row: impl Into<Row>) -> Decision<()> {
        if self.write_batch.entry(&key.key())?.is_some() {
            return Err(damaged(&format!("a new row is there already: {key:?}")).into());
        }
        self.put(key, row.into(), &[]);
        Ok(())
    }

    /// Replaces a row that was read.
    pub fn replace(&mut self, key: RowKey, row: impl Into<Row>) -> Decision<()> {
        let before = self.row(key)?;
        let before = before.map_or_else(Vec::new, |before| names::entries(key, &before));
        self.put(key, row.into(), &before);
        Ok(())
    }

    fn put(&mut self, key: RowKey, row: Row, names_before: &[(Bytes, Bytes)]) {
        for (name, _) in names_before {
            self.write_batch.delete(index_key(name.clone()));
        }
        for (name, target) in names::entries(key, &row) {
            self.write_batch.put(index_key(name), target);
        }
        self.write_batch.put(key.key(), row.encode());
        self.changes.push((key, Some(row)));
    }

    /// Removes a row and its names.
    pub fn remove(&mut self, key: RowKey) -> Decision<()> {
        if let Some(before) = self.row(key)? {
            for (name, _) in names::entries(key, &before) {
                self.write_batch.delete(index_key(name));
            }
        }
        self.remove_alone(key);
        Ok(())
    }

    /// Removes a row that has no names.
    pub fn remove_alone(&mut self, key: RowKey) {
        self.write_batch.delete(key.key());
        self.changes.push((key, None));
    }

    /// Removes rows, and the given names that lead to them.
    ///
    /// # Errors
    /// `Corrupt` if a row is of an unknown kind.
    pub fn remove_all(&mut self, rows: &[Bytes], names: Vec<Bytes>) -> Result<()> {
        for key in rows {
            self.remove_alone(RowKey::parse(key)?);
        }
        for name in names {
            self.write_batch.delete(index_key(name));
        }
        Ok(())
    }

    /// Writes entries of the name index that are missing or wrong, and removes those that lead to no row. Returns whether there were any.
    pub fn mend_names(&mut self, stored: Vec<(Bytes, Bytes)>, rows: &Changes) -> bool {
        let mut wanted = names::all_entries(rows);
        let mut is_mended = false;
        for (name, target) in stored {
            let entry = wanted.remove(&name);
            if entry.as_ref() == Some(&target) {
                continue;
            }
            is_mended = true;
            match entry {
                Some(entry) => self.write_batch.put(index_key(name), entry),
                None => self.write_batch.delete(index_key(name)),
            }
        }
        is_mended |= !wanted.is_empty();
        for (name, target) in wanted {
            self.write_batch.put(index_key(name), target);
        }
        is_mended
    }
}

/// Refuses a change if the resource is not at the version that the caller expects.
///
/// # Errors
/// `PreconditionFailed`.
pub(super) fn check_etag(etag: Etag, if_match: Option<&str>) -> Result<()> {
    etag.check(if_match)
}

fn index_key(name: Bytes) -> Key {
    Key::new(Space::Index, name)
}
