//! The rows of the catalog, in partition 0.
//!
//! ```text
//!   Meta  'A'                   account: counters and switches
//!         'D' ‖ database rid    a database
//!         'C' ‖ container rid   a container: definition, settings of expiry, ranges
//!         'V' ‖ container rid ‖ index(4)   the centroids of a vector index: no JSON, see `bolide_index::vector`
//!         'U' ‖ user rid        a user of a database
//!         'P' ‖ permission rid  a permission of a user
//!         'R' ‖ container rid ‖ kind(1) ‖ number(8)   a script: 'P' stored procedure, 'T' trigger, 'F' user-defined function
//!         'K' ‖ key rid         a client encryption key of a database
//!         'X' ‖ partition id    a partition that is to be removed, at once or at a second, unless the collection of an open transaction is published
//! ```
//!
//! Values are JSON: rows are few and change rarely, and administrators may want to read them. If a row has members that this version does not know,
//! they are kept when it writes the row again ([`Unknown`]), so that nodes of two versions can share a store while they are upgraded one by one. This
//! holds for the row's own members; a definition inside a row (of a container, of a client encryption key) is read and written with the members that
//! this version knows. A key of an unknown kind is an error, because this version cannot know what the row belongs to.
//!
//! Rows have the same shape on purpose: each declares `etag`, `ts` and `unknown` itself. serde puts all members that no earlier field takes into a
//! flattened `unknown`, so `unknown` must be the last field of the row itself, and cannot be in a struct that rows share.
//!
//! The names of rows are in [`names`](super::names), the latest changes in [`changes`](super::changes).

mod access;
mod account;
mod collection;
mod container;
mod json;
mod property_indexes;
mod script;

use bolide_index::vector::Centroids;
use bolide_model::rid::{ChildKind, ChildRid, ContainerRid, DatabaseRid, EncryptionKeyRid, PermissionRid, UserRid};
use bolide_model::{Error, ErrorKind, Result, UnixSeconds};
use bolide_storage::{Key, PartitionId, Space};
use bytes::{BufMut, Bytes, BytesMut};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) use access::{EncryptionKeyRow, PermissionRow, UserRow};
pub(crate) use account::{AccountRow, DatabaseRow, OfferRow};
pub(crate) use container::{ContainerRow, PendingSettings};
pub(crate) use script::ScriptRow;

// The letters of the kinds; names of a kind have the same (`names`).
const ACCOUNT: u8 = b'A';
pub(super) const DATABASE: u8 = b'D';
pub(super) const CONTAINER: u8 = b'C';
pub(super) const USER: u8 = b'U';
pub(super) const ENCRYPTION_KEY: u8 = b'K';
pub(super) const PERMISSION: u8 = b'P';
pub(super) const SCRIPT: u8 = b'R';
const CENTROIDS: u8 = b'V';
const DROPPED: u8 = b'X';

/// The key of a row. In this order, a row comes after the rows to which it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum RowKey {
    Account,
    Database(DatabaseRid),
    Container(ContainerRid),
    /// The centroids of a vector index, by its id.
    Centroids(ContainerRid, u32),
    Script(ChildRid),
    User(UserRid),
    Permission(PermissionRid),
    EncryptionKey(EncryptionKeyRid),
    /// A partition that is to be removed.
    Dropped(PartitionId),
}

impl RowKey {
    /// Returns the key in the Meta space.
    pub fn bytes(self) -> Bytes {
        match self {
            RowKey::Account => prefixed(ACCOUNT, &[]),
            RowKey::Database(rid) => prefixed(DATABASE, &rid.bytes()),
            RowKey::Container(rid) => prefixed(CONTAINER, &rid.bytes()),
            RowKey::Centroids(rid, index) => prefixed(CENTROIDS, &[&rid.bytes()[..], &index.to_be_bytes()].concat()),
            RowKey::Script(rid) => prefixed(SCRIPT, &script_bytes(rid)),
            RowKey::User(rid) => prefixed(USER, &rid.bytes()),
            RowKey::Permission(rid) => prefixed(PERMISSION, &rid.bytes()),
            RowKey::EncryptionKey(rid) => prefixed(ENCRYPTION_KEY, &rid.bytes()),
            RowKey::Dropped(partition) => prefixed(DROPPED, &partition.0.to_be_bytes()),
        }
    }

    /// Returns the key with its space.
    pub fn key(self) -> Key {
        Key::new(Space::Meta, self.bytes())
    }

    /// Decodes a key of the Meta space.
    ///
    /// # Errors
    /// `Corrupt` for a key of an unknown kind.
    pub fn parse(key: &[u8]) -> Result<RowKey> {
        RowKey::parsed(key).ok_or_else(|| damaged("a row with an unknown key"))
    }

    fn parsed(key: &[u8]) -> Option<RowKey> {
        let (kind, rest) = key.split_first()?;
        Some(match *kind {
            ACCOUNT if rest.is_empty() => RowKey::Account,
            DATABASE => RowKey::Database(DatabaseRid::from_bytes(rest.try_into().ok()?)),
            CONTAINER => RowKey::Container(ContainerRid::from_bytes(rest.try_into().ok()?)?),
            CENTROIDS => {
                let (container, index) = rest.split_first_chunk::<8>()?;
                let index = u32::from_be_bytes(index.try_into().ok()?);
                RowKey::Centroids(ContainerRid::from_bytes(*container)?, index)
            }
            SCRIPT => RowKey::Script(script_rid(rest)?),
            USER => RowKey::User(UserRid::from_bytes(rest.try_into().ok()?)?),
            PERMISSION => RowKey::Permission(PermissionRid::from_bytes(rest.try_into().ok()?)?),
            ENCRYPTION_KEY => RowKey::EncryptionKey(EncryptionKeyRid::from_bytes(rest.try_into().ok()?)?),
            DROPPED => RowKey::Dropped(PartitionId(u64::from_be_bytes(rest.try_into().ok()?))),
            _ => return None,
        })
    }

    /// Returns the prefix of the keys of partitions that are to be removed.
    pub fn dropped() -> Bytes {
        Bytes::from_static(&[DROPPED])
    }

    /// Returns the prefix of the keys of containers.
    pub fn containers() -> Bytes {
        Bytes::from_static(&[CONTAINER])
    }

    /// Returns the prefix of the keys of a container's scripts.
    pub fn scripts_of(container: ContainerRid) -> Bytes {
        prefixed(SCRIPT, &container.bytes())
    }

    /// Returns the prefix of the keys of the centroids of a container's vector indexes.
    pub fn centroids_of(container: ContainerRid) -> Bytes {
        prefixed(CENTROIDS, &container.bytes())
    }

    /// Returns the prefix of the keys of a user's permissions.
    pub fn permissions_of(user: UserRid) -> Bytes {
        prefixed(PERMISSION, &user.bytes())
    }

    /// Returns the prefixes of the keys of a database's users, their permissions, and its client encryption keys.
    pub fn access_of(database: DatabaseRid) -> [Bytes; 3] {
        [USER, PERMISSION, ENCRYPTION_KEY].map(|kind| prefixed(kind, &database.bytes()))
    }
}

/// A row, by its kind.
#[derive(Debug, Clone)]
pub(super) enum Row {
    Account(AccountRow),
    Database(DatabaseRow),
    Container(Box<ContainerRow>),
    Centroids(Centroids),
    Script(ScriptRow),
    User(UserRow),
    Permission(PermissionRow),
    EncryptionKey(EncryptionKeyRow),
    Dropped(Option<DroppedRow>),
}

impl Row {
    /// Returns the value to store.
    pub fn encode(&self) -> Bytes {
        match self {
            Row::Account(row) => encode(row),
            Row::Database(row) => encode(row),
            Row::Container(row) => encode(row),
            Row::Centroids(centroids) => centroids.encode().into(),
            Row::Script(row) => encode(row),
            Row::User(row) => encode(row),
            Row::Permission(row) => encode(row),
            Row::EncryptionKey(row) => encode(row),
            Row::Dropped(row) => row.as_ref().map_or_else(Bytes::new, encode),
        }
    }

    /// Decodes a stored value.
    ///
    /// # Errors
    /// `Corrupt` if it is damaged.
    pub fn decode(key: RowKey, value: &[u8]) -> Result<Row> {
        Ok(match key {
            RowKey::Account => Row::Account(decode(value)?),
            RowKey::Database(_) => Row::Database(decode(value)?),
            RowKey::Container(_) => Row::Container(decode(value)?),
            RowKey::Centroids(..) => {
                let centroids = Centroids::decode(value);
                Row::Centroids(centroids.ok_or_else(|| damaged("the centroids of a vector index cannot be read"))?)
            }
            RowKey::Script(_) => Row::Script(decode(value)?),
            RowKey::User(_) => Row::User(decode(value)?),
            RowKey::Permission(_) => Row::Permission(decode(value)?),
            RowKey::EncryptionKey(_) => Row::EncryptionKey(decode(value)?),
            RowKey::Dropped(_) if value.is_empty() => Row::Dropped(None),
            RowKey::Dropped(_) => Row::Dropped(Some(decode(value)?)),
        })
    }
}

/// Says why a partition is not removed at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct DroppedRow {
    /// When it is removed. Until then change streams may read its history.
    #[serde(with = "json::seconds")]
    pub until: UnixSeconds,
    /// Whether it belongs to a collection that an open transaction has created; see [`unpublished`](super::unpublished). It has no time of removal.
    #[serde(default, rename = "unpublished", skip_serializing_if = "std::ops::Not::not")]
    pub is_unpublished: bool,
}

impl DroppedRow {
    /// The row of a partition that is kept for a while.
    pub fn until(until: UnixSeconds) -> DroppedRow {
        DroppedRow {
            until,
            is_unpublished: false,
        }
    }

    /// The row of a partition whose collection is not published yet.
    pub fn unpublished() -> DroppedRow {
        DroppedRow {
            until: UnixSeconds(i64::MAX),
            is_unpublished: true,
        }
    }
}

macro_rules! rows {
    ($($row:ty => $kind:ident),* $(,)?) => {$(
        impl From<$row> for Row {
            fn from(row: $row) -> Row {
                Row::$kind(row.into())
            }
        }
    )*};
}

rows! {
    AccountRow => Account,
    DatabaseRow => Database,
    ContainerRow => Container,
    ScriptRow => Script,
    UserRow => User,
    PermissionRow => Permission,
    EncryptionKeyRow => EncryptionKey,
}

/// Members of a row that this version does not know; see the module.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Map<String, Value>", into = "Map<String, Value>")]
pub(crate) struct Unknown(Option<Box<Map<String, Value>>>);

impl From<Map<String, Value>> for Unknown {
    fn from(members: Map<String, Value>) -> Unknown {
        Unknown((!members.is_empty()).then(|| Box::new(members)))
    }
}

impl From<Unknown> for Map<String, Value> {
    fn from(Unknown(members): Unknown) -> Map<String, Value> {
        members.map(|members| *members).unwrap_or_default()
    }
}

/// Decodes a stored row.
///
/// # Errors
/// `Corrupt` if it is damaged.
pub(super) fn decode<R: DeserializeOwned>(value: &[u8]) -> Result<R> {
    serde_json::from_slice(value).map_err(|error| damaged(&format!("a row cannot be read: {error}")))
}

fn encode<R: Serialize>(row: &R) -> Bytes {
    serde_json::to_vec(row)
        .expect("rows have text for names and nothing that JSON cannot say")
        .into()
}

pub(super) fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the catalog is damaged: {what}"))
}

pub(super) fn prefixed(prefix: u8, rest: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(1 + rest.len());
    bytes.put_u8(prefix);
    bytes.put_slice(rest);
    bytes.freeze()
}

fn script_bytes(rid: ChildRid) -> Vec<u8> {
    let kind = match rid.kind {
        ChildKind::Trigger => b'T',
        ChildKind::UserDefinedFunction => b'F',
        _ => b'P',
    };
    let mut bytes = rid.container.bytes().to_vec();
    bytes.push(kind);
    bytes.extend(rid.number.to_be_bytes());
    bytes
}

fn script_rid(bytes: &[u8]) -> Option<ChildRid> {
    let (container, rest) = bytes.split_first_chunk::<8>()?;
    let (kind, number) = rest.split_first()?;
    let kind = match kind {
        b'P' => ChildKind::StoredProcedure,
        b'T' => ChildKind::Trigger,
        b'F' => ChildKind::UserDefinedFunction,
        _ => return None,
    };
    Some(ChildRid::new(
        ContainerRid::from_bytes(*container)?,
        kind,
        u64::from_be_bytes(number.try_into().ok()?),
    ))
}

#[cfg(test)]
mod tests;
