//! How much the definitions of an account may take, all kinds together.
//!
//! All of them stay in memory while the account is open, so they are limited by what they take there: each counts its own bytes and a
//! fixed amount for what the server keeps beside it. What would take their sum above the limit is refused; deleting gives back.
//!
//! An account may have more than the limit, because the limit was lowered or because ranges were split. It opens all the same, and takes
//! whatever lets no definition grow.

use std::collections::HashMap;

use bolide_model::container::ContainerProperties;
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixSeconds};
use bolide_storage::Key;
use bytes::Bytes;
use serde_json::Value;

use super::permissions::PermissionProperties;
use super::records::{ContainerRow, DatabaseRow, EncryptionKeyRow, PermissionRow, ScriptRow, UserRow};
use crate::partition::round::{Round, Step};

/// Definitions may take this part of the memory for requests, beside it: one of so many.
const MEMORY_PART: usize = 4;
/// What definitions may take in any case, in bytes.
const LEAST_LIMIT: usize = 128 * 1024 * 1024;

/// The limit on definitions of an account whose requests may hold `memory_bytes`, in bytes.
pub(crate) fn limit_of(memory_bytes: usize) -> usize {
    (memory_bytes / MEMORY_PART).max(LEAST_LIMIT)
}

/// What definitions take, and may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefinitionUsage {
    /// Bytes that they take.
    pub used_bytes: usize,
    /// Bytes that they may take together.
    pub limit_bytes: usize,
}

/// A definition, as its row has it.
#[derive(Clone, Copy)]
pub(super) enum Definition<'d> {
    Database(&'d DatabaseRow),
    Container(&'d ContainerRow),
    User(&'d UserRow),
    Permission(&'d PermissionRow),
    Script(&'d ScriptRow),
    EncryptionKey(&'d EncryptionKeyRow),
}

/// What the server keeps for a definition beside its own bytes: its record, its places in maps, for a container also its gate and meters, and for
/// each of its partitions a worker. In bytes; measured as the resident memory of an account with thousands of a kind, divided by their
/// number, and rounded up.
mod fixed {
    pub(super) const DATABASE: usize = 1280;
    /// With the definition of a usual container, whose settings can be changed whatever is left, and the ttls that it had.
    pub(super) const CONTAINER: usize = 8 * 1024;
    pub(super) const PARTITION: usize = 8 * 1024;
    pub(super) const USER: usize = 768;
    pub(super) const PERMISSION: usize = 768;
    pub(super) const SCRIPT: usize = 768;
    pub(super) const ENCRYPTION_KEY: usize = 2048;
}

/// What [`parsed_bytes`] gives for the definition of a usual container: about ten paths.
const USUAL_DEFINITION: usize = 4 * 1024;
/// What a name in a path takes in memory, and what an object takes, besides their text.
const NAME: usize = 64;
const OBJECT: usize = 160;

impl Definition<'_> {
    /// The row to store.
    fn encode(self) -> Bytes {
        match self {
            Definition::Database(row) => row.encode(),
            Definition::Container(row) => row.encode(),
            Definition::User(row) => row.encode(),
            Definition::Permission(row) => row.encode(),
            Definition::Script(row) => row.encode(),
            Definition::EncryptionKey(row) => row.encode(),
        }
    }

    /// What it counts, in bytes. It depends on what its owner defines and on the number of its partitions only, not on its throughput or
    /// on when it was written.
    fn bytes(self) -> usize {
        match self {
            Definition::Database(row) => fixed::DATABASE + row.id.len(),
            Definition::Container(row) => {
                let unusual = parsed_bytes(&row.properties).saturating_sub(USUAL_DEFINITION);
                fixed::CONTAINER + row.placements.len() * fixed::PARTITION + unusual
            }
            // Its name is kept twice: with it, and to find it by.
            Definition::User(row) => fixed::USER + 2 * row.id.len(),
            Definition::Permission(row) => fixed::PERMISSION + grant_bytes(&row.grant),
            Definition::Script(row) => fixed::SCRIPT + row.draft.id.len() + row.draft.body.len(),
            Definition::EncryptionKey(row) => {
                let written = Value::Object(row.properties.to_json());
                fixed::ENCRYPTION_KEY + written.to_string().len()
            }
        }
    }
}

/// About what a container's definition takes in memory: up to thirty times its text, where that is nothing but paths.
fn parsed_bytes(properties: &ContainerProperties) -> usize {
    let written = Value::Object(properties.to_json()).to_string();
    let structure = written.bytes().map(|byte| match byte {
        b'/' => NAME,
        b'{' => OBJECT,
        _ => 0,
    });
    written.len() + structure.sum::<usize>()
}

fn grant_bytes(grant: &PermissionProperties) -> usize {
    let PermissionProperties {
        id,
        mode: _,
        mode_text,
        resource,
        partition_key,
    } = grant;
    let key = partition_key.as_ref().map_or(0, |key| key.to_header_json().len());
    id.len() + mode_text.len() + resource.len() + key
}

/// What is counted: see the module. Follows commits as the catalog in memory does.
#[derive(Debug)]
pub(super) struct DefinitionBudget {
    usage: DefinitionUsage,
    /// By the key of the row.
    sizes: HashMap<Bytes, usize>,
}

/// What a commit makes of a row.
struct Resized {
    key: Bytes,
    /// 0 for one that is gone.
    bytes: usize,
    /// It grows by the server's own doing: counted, and no reason to refuse.
    is_upkeep: bool,
}

/// What a commit does to definitions.
#[derive(Default)]
pub(super) struct Resizing(Vec<Resized>);

impl DefinitionBudget {
    pub fn new(limit_bytes: usize) -> DefinitionBudget {
        DefinitionBudget {
            usage: DefinitionUsage {
                used_bytes: 0,
                limit_bytes,
            },
            sizes: HashMap::new(),
        }
    }

    pub fn usage(&self) -> DefinitionUsage {
        self.usage
    }

    /// Counts a row that is stored already.
    pub fn count(&mut self, key: Key, definition: Definition<'_>) {
        self.resize(key.bytes, definition.bytes());
    }

    /// Counts what was committed.
    pub fn apply(&mut self, resizing: Resizing) {
        for Resized { key, bytes, .. } in resizing.0 {
            self.resize(key, bytes);
        }
    }

    fn resize(&mut self, key: Bytes, bytes: usize) {
        let before = match bytes {
            0 => self.sizes.remove(&key),
            // A key may be a part of something larger.
            _ => self.sizes.insert(Bytes::copy_from_slice(&key), bytes),
        };
        self.usage.used_bytes = self.usage.used_bytes - before.unwrap_or(0) + bytes;
    }

    /// # Errors
    /// `QuotaExceeded` if definitions would grow above the limit.
    fn check(&self, resizing: &Resizing) -> Result<()> {
        let (mut after, mut is_asked_for) = (self.usage.used_bytes, false);
        for Resized { key, bytes, is_upkeep } in &resizing.0 {
            let before = self.sizes.get(key).copied().unwrap_or(0);
            after = after - before + bytes;
            is_asked_for |= *bytes > before && !is_upkeep;
        }
        let DefinitionUsage {
            used_bytes,
            limit_bytes,
        } = self.usage;
        if !is_asked_for || after <= used_bytes || after <= limit_bytes {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::QuotaExceeded,
            format!(
                "The definitions of databases, containers, users, permissions, client encryption keys and scripts stay in memory, and would \
                 take more than they may. Delete some, or start the server with a higher --memory-limit: they may take a quarter of it. \
                 used={used_bytes} more={} limit={limit_bytes} bytes",
                after - used_bytes
            ),
        ))
    }
}

/// The draft of one commit of the catalog.
pub(super) struct CatalogRound<'c, 'r> {
    round: &'c mut Round<'r>,
    resizing: Resizing,
}

impl CatalogRound<'_, '_> {
    /// Drafts one commit, and checks that its definitions fit.
    ///
    /// # Errors
    /// Those of `decide`; `QuotaExceeded`. Then nothing is drafted.
    pub fn draft<T>(
        round: &mut Round<'_>,
        budget: &DefinitionBudget,
        decide: impl FnOnce(&mut CatalogRound<'_, '_>) -> Step<T>,
    ) -> Step<(T, Resizing)> {
        round.batch(|round| {
            let mut draft = CatalogRound {
                round,
                resizing: Resizing::default(),
            };
            let value = decide(&mut draft)?;
            budget.check(&draft.resizing)?;
            Ok((value, draft.resizing))
        })
    }

    /// The commit's log sequence number.
    pub fn next_lsn(&mut self) -> Lsn {
        self.round.next_lsn()
    }

    /// The commit's second.
    pub fn seconds(&self) -> UnixSeconds {
        self.round.seconds()
    }

    /// Writes a definition, once in a commit.
    pub fn define(&mut self, key: Key, definition: Definition<'_>) {
        self.write(key, definition, false);
    }

    /// As [`CatalogRound::define`], for one that the server itself extends: it is never refused.
    pub fn extend(&mut self, key: Key, definition: Definition<'_>) {
        self.write(key, definition, true);
    }

    fn write(&mut self, key: Key, definition: Definition<'_>, is_upkeep: bool) {
        self.resizing.0.push(Resized {
            key: key.bytes.clone(),
            bytes: definition.bytes(),
            is_upkeep,
        });
        self.round.put(key, definition.encode());
    }

    /// Writes a row that is no definition.
    pub fn put(&mut self, key: Key, value: Bytes) {
        self.round.put(key, value);
    }

    /// Removes a row of any kind.
    pub fn delete(&mut self, key: Key) {
        self.resizing.0.push(Resized {
            key: key.bytes.clone(),
            bytes: 0,
            is_upkeep: false,
        });
        self.round.delete(key);
    }
}

#[cfg(test)]
mod tests;
