//! The index of names, in the Index space of partition 0: finds a row by its name.
//!
//! ```text
//!   Index  'D' ‖ name                               → row key of a database
//!          'C' ‖ database rid ‖ name                → of a container
//!          'U' ‖ database rid ‖ name                → of a user
//!          'K' ‖ database rid ‖ name                → of a client encryption key
//!          'P' ‖ user rid ‖ name                    → of a permission
//!          'G' ‖ user rid ‖ digest(16)              → of the permission for a resource: at most one per user and resource
//!          'R' ‖ container rid ‖ kind(1) ‖ name     → of a script ‖ bytes of its source(8)
//! ```
//!
//! With this index a change finds in a few reads whether a name is taken, however many names there are. The entries follow from the rows alone. They
//! are compared with the rows when an account opens, so a store from before there was an index, or one that such a version has written since, gets
//! the missing entries.

use std::collections::BTreeMap;

use bolide_model::rid::{ChildRid, ContainerRid, DatabaseRid, UserRid};
use bolide_storage::{Key, Space};
use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::batch::Changes;
use super::permissions::PermissionProperties;
use super::rows::{CONTAINER, DATABASE, ENCRYPTION_KEY, PERMISSION, Row, RowKey, SCRIPT, USER, prefixed};

const GRANT: u8 = b'G';

/// Bytes of a script's length, which follows its row key.
const LENGTH_BYTES: usize = 8;

/// A name, which leads to at most one row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Name<'n> {
    Database(&'n str),
    Container(DatabaseRid, &'n str),
    User(DatabaseRid, &'n str),
    EncryptionKey(DatabaseRid, &'n str),
    Permission(UserRid, &'n str),
    /// The resource and the partition key for which a permission is granted.
    Grant(UserRid, &'n PermissionProperties),
    /// A script's name. The resource id gives its container and its kind.
    Script(ChildRid, &'n str),
}

impl Name<'_> {
    /// Returns the key in the Index space.
    pub fn bytes(self) -> Bytes {
        match self {
            Name::Database(name) => prefixed(DATABASE, name.as_bytes()),
            Name::Container(database, name) => joined(CONTAINER, &database.bytes(), name.as_bytes()),
            Name::User(database, name) => joined(USER, &database.bytes(), name.as_bytes()),
            Name::EncryptionKey(database, name) => joined(ENCRYPTION_KEY, &database.bytes(), name.as_bytes()),
            Name::Permission(user, name) => joined(PERMISSION, &user.bytes(), name.as_bytes()),
            Name::Grant(user, grant) => joined(GRANT, &user.bytes(), &digest(grant)),
            Name::Script(rid, name) => joined(SCRIPT, &kind_of(rid), name.as_bytes()),
        }
    }

    /// Returns the key with its space.
    pub fn key(self) -> Key {
        Key::new(Space::Index, self.bytes())
    }
}

/// Returns the prefix of the names of a database's containers.
pub(super) fn containers_of(database: DatabaseRid) -> Bytes {
    prefixed(CONTAINER, &database.bytes())
}

/// Returns the prefix of the names of a database's client encryption keys.
pub(super) fn encryption_keys_of(database: DatabaseRid) -> Bytes {
    prefixed(ENCRYPTION_KEY, &database.bytes())
}

/// Returns the prefixes of the names of a database's users, their permissions, and its client encryption keys.
pub(super) fn access_of(database: DatabaseRid) -> [Bytes; 4] {
    [USER, PERMISSION, GRANT, ENCRYPTION_KEY].map(|kind| prefixed(kind, &database.bytes()))
}

/// Returns the prefixes of the names of a user's permissions.
pub(super) fn permissions_of(user: UserRid) -> [Bytes; 2] {
    [PERMISSION, GRANT].map(|kind| prefixed(kind, &user.bytes()))
}

/// Returns the prefix of the names of a container's scripts.
pub(super) fn scripts_of(container: ContainerRid) -> Bytes {
    prefixed(SCRIPT, &container.bytes())
}

/// Returns the keys and values of the entries that lead to a row.
pub(super) fn entries(key: RowKey, row: &Row) -> Vec<(Bytes, Bytes)> {
    let here = key.bytes();
    match (key, row) {
        (RowKey::Database(_), Row::Database(row)) => vec![(Name::Database(&row.id).bytes(), here)],
        (RowKey::Container(rid), Row::Container(row)) => {
            vec![(Name::Container(rid.database(), &row.properties.id).bytes(), here)]
        }
        (RowKey::User(rid), Row::User(row)) => vec![(Name::User(rid.database(), &row.id).bytes(), here)],
        (RowKey::EncryptionKey(rid), Row::EncryptionKey(row)) => {
            vec![(Name::EncryptionKey(rid.database, &row.properties.id).bytes(), here)]
        }
        (RowKey::Permission(rid), Row::Permission(row)) => vec![
            (Name::Permission(rid.user, &row.grant.id).bytes(), here.clone()),
            (Name::Grant(rid.user, &row.grant).bytes(), here),
        ],
        (RowKey::Script(rid), Row::Script(row)) => {
            let length = (row.draft.body.len() as u64).to_be_bytes();
            let value = [&here[..], &length].concat();
            vec![(Name::Script(rid, &row.draft.id).bytes(), value.into())]
        }
        _ => vec![],
    }
}

/// Returns all entries that the index must have for these rows.
pub(super) fn all_entries(rows: &Changes) -> BTreeMap<Bytes, Bytes> {
    let rows = rows.iter().filter_map(|(key, row)| Some((*key, row.as_ref()?)));
    rows.flat_map(|(key, row)| entries(key, row)).collect()
}

/// Returns the key of the row that an index entry leads to.
///
/// # Errors
/// `Corrupt` if the entry is damaged.
pub(super) fn target(entry: &[u8], value: &[u8]) -> bolide_model::Result<RowKey> {
    let length = if entry.first() == Some(&SCRIPT) {
        LENGTH_BYTES
    } else {
        0
    };
    RowKey::parse(&value[..value.len().saturating_sub(length)])
}

/// Returns the length of a script's source in bytes, from the value of its index entry.
pub(super) fn source_bytes(value: &[u8]) -> usize {
    let length = value.last_chunk::<LENGTH_BYTES>().copied().unwrap_or_default();
    u64::from_be_bytes(length) as usize
}

/// Returns a digest of a permission's resource and partition key, because their text can be longer than a key may be.
fn digest(grant: &PermissionProperties) -> [u8; 16] {
    let mut hash = Sha256::new();
    hash.update(grant.resource.trim_matches('/'));
    hash.update([0]);
    if let Some(key) = &grant.partition_key {
        hash.update(key.to_header_json());
    }
    let mut digest = [0; 16];
    digest.copy_from_slice(&hash.finalize()[..16]);
    digest
}

/// Returns the container and the kind of a script, encoded as in its row key.
fn kind_of(rid: ChildRid) -> Bytes {
    let key = RowKey::Script(rid).bytes();
    key.slice(1..1 + rid.container.bytes().len() + 1)
}

fn joined(kind: u8, parent: &[u8], name: &[u8]) -> Bytes {
    prefixed(kind, &[parent, name].concat())
}

#[cfg(test)]
mod tests;
