//! The draft of one commit of the catalog: what a change reads, and what it writes.
//!
//! Every change is decided from rows that were read in the write batch that it commits with, at the head that the commit is based on. So it holds whoever else
//! writes to the store: when another commit came first, the write batch is decided again on what is there then. The cache is never asked. Besides the
//! rows themselves a commit keeps up the index of their names and the log of changes.

use bolide_model::rid::{ContainerRid, DatabaseRid, EncryptionKeyRid, PermissionRid, UserRid};
use bolide_model::{Error, Lsn, Result, UnixSeconds};
use bolide_storage::{Key, Scan, Space};
use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::budget::DefinitionBudget;
use super::names::{self, Name};
use super::rows::{
    AccountRow, ContainerRow, DatabaseRow, EncryptionKeyRow, PermissionRow, Row, RowKey, UserRow, damaged, decode,
};
use super::{changes, container_not_found, database_not_found, encryption_keys, permissions, users};
use crate::format::etag::Etag;
use crate::format::keys;
use crate::partition::write_batch::{Decision, WriteBatch};

/// Rows and bytes of one page of a scan.
const PAGE_ROWS: usize = 5_000;
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// When a change of the catalog committed: what the changed resource's `_etag` and `_ts` are made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommitPoint {
    pub lsn: Lsn,
    pub now: UnixSeconds,
}

impl CommitPoint {
    pub fn etag(self) -> Etag {
        Etag::of_write(0, self.lsn, 0)
    }
}

/// Rows that a commit wrote, or removed (`None`), each once.
pub(super) type Changes = Vec<(RowKey, Option<Row>)>;

/// See the module.
pub(super) struct CatalogBatch<'c, 'r> {
    write_batch: &'c mut WriteBatch<'r>,
    changes: Changes,
    /// The change is the server's own doing: what grows by it is counted, and no reason to refuse.
    is_exempt: bool,
}

/// What was committed, besides what the decision gave back.
#[derive(Debug)]
pub(super) struct Committed {
    /// The commit's log sequence number.
    pub lsn: Lsn,
    pub changes: Changes,
}

impl CatalogBatch<'_, '_> {
    /// Drafts one commit, and checks that its definitions fit. `None` if there is nothing to commit.
    ///
    /// # Errors
    /// Those of `decide`; `QuotaExceeded`. Then nothing is drafted.
    pub fn draft<T>(
        write_batch: &mut WriteBatch<'_>,
        budget: &DefinitionBudget,
        decide: impl FnOnce(&mut CatalogBatch<'_, '_>) -> Decision<T>,
    ) -> Decision<(T, Option<Committed>)> {
        write_batch.batch(|write_batch| {
            let mut batch = CatalogBatch {
                write_batch,
                changes: Vec::new(),
                is_exempt: false,
            };
            let value = decide(&mut batch)?;
            if !batch.is_exempt {
                budget.check(&batch.changes)?;
            }
            Ok((value, batch.finish()))
        })
    }

    /// Reads, and drafts nothing.
    pub fn read_only<T>(
        write_batch: &mut WriteBatch<'_>,
        read: impl FnOnce(&mut CatalogBatch<'_, '_>) -> Decision<T>,
    ) -> Decision<T> {
        read(&mut CatalogBatch {
            write_batch,
            changes: Vec::new(),
            is_exempt: false,
        })
    }

    fn finish(mut self) -> Option<Committed> {
        if self.changes.is_empty() {
            return None;
        }
        let lsn = self.commit_point().lsn;
        let rows = self.changes.iter().map(|(key, _)| *key);
        self.write_batch.put(changes::key(lsn), changes::encode(rows));
        if let Some(old) = lsn.0.checked_sub(changes::KEPT) {
            self.write_batch.delete(changes::key(Lsn(old)));
        }
        Some(Committed {
            lsn,
            changes: self.changes,
        })
    }

    /// When the change commits.
    pub fn commit_point(&mut self) -> CommitPoint {
        CommitPoint {
            // All writes of one commit share the number.
            lsn: self.write_batch.next_lsn(),
            now: self.write_batch.seconds(),
        }
    }

    /// Lets definitions grow without regard to what they may take.
    pub fn is_exempt(&mut self) {
        self.is_exempt = true;
    }

    /// The newest commit that what is read belongs to.
    pub fn head(&self) -> Lsn {
        self.write_batch.head()
    }

    fn read<R: DeserializeOwned>(&mut self, key: RowKey) -> Decision<Option<R>> {
        let value = self.write_batch.entry(&key.key())?;
        Ok(value.map(|value| decode(&value)).transpose()?)
    }

    /// The account's row, which a new account does not have yet.
    pub fn account(&mut self) -> Decision<AccountRow> {
        Ok(self.read(RowKey::Account)?.unwrap_or_default())
    }

    /// # Errors
    /// `NotFound`, as in all that follow.
    pub fn database(&mut self, rid: DatabaseRid) -> Decision<DatabaseRow> {
        let row = self.read(RowKey::Database(rid))?;
        Ok(row.ok_or_else(|| database_not_found(&rid.to_string()))?)
    }

    pub fn container(&mut self, rid: ContainerRid) -> Decision<ContainerRow> {
        let row = self.container_if_there(rid)?;
        Ok(row.ok_or_else(|| container_not_found(&rid.to_string()))?)
    }

    pub fn container_if_there(&mut self, rid: ContainerRid) -> Decision<Option<ContainerRow>> {
        self.read(RowKey::Container(rid))
    }

    pub fn user(&mut self, rid: UserRid) -> Decision<UserRow> {
        let row = self.read(RowKey::User(rid))?;
        Ok(row.ok_or_else(|| users::not_found(&rid.to_string()))?)
    }

    pub fn permission(&mut self, rid: PermissionRid) -> Decision<PermissionRow> {
        let row = self.read(RowKey::Permission(rid))?;
        Ok(row.ok_or_else(|| permissions::not_found(&rid.to_string()))?)
    }

    pub fn encryption_key(&mut self, rid: EncryptionKeyRid) -> Decision<EncryptionKeyRow> {
        let row = self.read(RowKey::EncryptionKey(rid))?;
        Ok(row.ok_or_else(|| encryption_keys::not_found(&rid.to_string()))?)
    }

    /// A row of any kind.
    pub fn row(&mut self, key: RowKey) -> Decision<Option<Row>> {
        let value = self.write_batch.entry(&key.key())?;
        Ok(value.map(|value| Row::decode(key, &value)).transpose()?)
    }

    /// Rows of any kind, read together.
    pub fn rows(&mut self, keys: &[RowKey]) -> Decision<Changes> {
        let values = self
            .write_batch
            .entries(&keys.iter().map(|key| key.key()).collect::<Vec<_>>())?;
        let rows = keys.iter().zip(values);
        let rows = rows.map(|(key, value)| Ok((*key, value.map(|value| Row::decode(*key, &value)).transpose()?)));
        Ok(rows.collect::<Result<_>>()?)
    }

    /// The row that has a name.
    pub fn named(&mut self, name: Name<'_>) -> Decision<Option<RowKey>> {
        let key = name.key();
        let value = self.write_batch.entry(&key)?;
        Ok(value.map(|value| names::target(&key.bytes, &value)).transpose()?)
    }

    /// Keys and values of a space that begin with `prefix`, from one snapshot. To be called before anything is written.
    pub fn scan(&mut self, space: Space, prefix: &Bytes) -> Decision<Vec<(Bytes, Bytes)>> {
        self.scan_from(space, prefix.clone(), keys::after_prefix(prefix), false)
    }

    /// As [`CatalogBatch::scan`], without values.
    pub fn scan_keys(&mut self, space: Space, prefix: &Bytes) -> Decision<Vec<Bytes>> {
        let rows = self.scan_from(space, prefix.clone(), keys::after_prefix(prefix), true)?;
        Ok(rows.into_iter().map(|(key, _)| key).collect())
    }

    /// What the log of changes has from a commit on.
    pub fn changes_from(&mut self, lsn: Lsn) -> Decision<Vec<(Bytes, Bytes)>> {
        self.scan_from(Space::Log, changes::key(lsn).bytes, None, false)
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

    /// Writes a row that was not there: its key was taken from a counter, or from this commit's number.
    ///
    /// # Errors
    /// `Corrupt` if there is such a row.
    pub fn create(&mut self, key: RowKey, row: impl Into<Row>) -> Decision<()> {
        if self.write_batch.entry(&key.key())?.is_some() {
            return Err(damaged(&format!("a new row is there already: {key:?}")).into());
        }
        self.put(key, row.into(), &[]);
        Ok(())
    }

    /// Writes a row in the place of the one that was read.
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

    /// Removes a row with its names.
    pub fn remove(&mut self, key: RowKey) -> Decision<()> {
        if let Some(before) = self.row(key)? {
            for (name, _) in names::entries(key, &before) {
                self.write_batch.delete(index_key(name));
            }
        }
        self.remove_alone(key);
        Ok(())
    }

    /// Removes a row that has no name.
    pub fn remove_alone(&mut self, key: RowKey) {
        self.write_batch.delete(key.key());
        self.changes.push((key, None));
    }

    /// Removes rows, and all the names that lead to them.
    ///
    /// # Errors
    /// `Corrupt` if one is of an unknown kind.
    pub fn remove_all(&mut self, rows: &[Bytes], names: Vec<Bytes>) -> Result<()> {
        for key in rows {
            self.remove_alone(RowKey::parse(key)?);
        }
        for name in names {
            self.write_batch.delete(index_key(name));
        }
        Ok(())
    }

    /// Writes entries of the index that are missing or wrong, and removes those that lead nowhere. Tells whether there were any.
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

/// Refuses a change of another version than the caller means.
///
/// # Errors
/// `PreconditionFailed`.
pub(super) fn check_etag(etag: Etag, if_match: Option<&str>) -> Result<()> {
    etag.check(if_match)
}

/// The error for a name that another resource has.
pub(super) fn taken(what: &str) -> Error {
    Error::conflict(format!(
        "Resource with specified id, name, or unique index already exists: {what}."
    ))
}

fn index_key(name: Bytes) -> Key {
    Key::new(Space::Index, name)
}
