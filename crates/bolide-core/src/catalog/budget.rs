//! How much the definitions of an account may take, all kinds together.
//!
//! All of them stay in memory while the account is open, so they are limited by what they take there: each counts its own bytes and a
//! fixed amount for what the server keeps beside it. What would take their sum above the limit is refused; deleting gives back.
//!
//! An account may have more than the limit, because the limit was lowered or because ranges were split. It opens all the same, and takes
//! whatever lets no definition grow.
//!
//! The sum is this process's own, and follows its cache: where several processes share a store, each refuses by what it knows, and together they may
//! pass the limit by what they define at the same moment.

use std::collections::HashMap;

use bolide_model::container::ContainerProperties;
use bolide_model::{Error, ErrorKind, Result};
use serde_json::Value;

use super::batch::Changes;
use super::permissions::PermissionProperties;
use super::rows::{Row, RowKey};

/// Definitions may take this part of the memory for requests, beside it: one of so many.
const MEMORY_PART: usize = 4;
/// What definitions may take in any case, in bytes.
const MIN_LIMIT: usize = 128 * 1024 * 1024;

/// The limit on definitions of an account whose requests may hold `memory_bytes`, in bytes.
pub(crate) fn limit_of(memory_bytes: usize) -> usize {
    (memory_bytes / MEMORY_PART).max(MIN_LIMIT)
}

/// What definitions take, and may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefinitionUsage {
    /// Bytes that they take.
    pub used_bytes: usize,
    /// Bytes that they may take together.
    pub limit_bytes: usize,
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

/// What a row counts, in bytes; 0 if it is no definition. It depends on what its owner defines and on the number of its partitions only, not on its
/// throughput or on when it was written.
fn bytes_of(row: &Row) -> usize {
    match row {
        Row::Account(_) | Row::Dropped => 0,
        Row::Database(row) => fixed::DATABASE + row.id.len(),
        Row::Container(row) => {
            let unusual = parsed_bytes(&row.properties).saturating_sub(USUAL_DEFINITION);
            fixed::CONTAINER + row.placements.len() * fixed::PARTITION + unusual
        }
        // Its name is kept twice: with it, and to find it by.
        Row::User(row) => fixed::USER + 2 * row.id.len(),
        Row::Permission(row) => fixed::PERMISSION + grant_bytes(&row.grant),
        Row::Script(row) => fixed::SCRIPT + row.draft.id.len() + row.draft.body.len(),
        Row::EncryptionKey(row) => {
            let written = Value::Object(row.properties.to_json());
            fixed::ENCRYPTION_KEY + written.to_string().len()
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

// Taken apart as its stored form is, on purpose: whoever adds a member decides here what it counts.
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

/// What is counted: see the module. Follows commits as the cache does.
#[derive(Debug)]
pub(super) struct DefinitionBudget {
    usage: DefinitionUsage,
    sizes: HashMap<RowKey, usize>,
}

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

    /// Every definition that is counted.
    pub fn known(&self) -> Vec<RowKey> {
        self.sizes.keys().copied().collect()
    }

    /// Counts what was committed.
    pub fn apply(&mut self, changes: &Changes) {
        for (key, row) in changes {
            let bytes = row.as_ref().map_or(0, bytes_of);
            let before = match bytes {
                0 => self.sizes.remove(key),
                _ => self.sizes.insert(*key, bytes),
            };
            self.usage.used_bytes = self.usage.used_bytes - before.unwrap_or(0) + bytes;
        }
    }

    /// # Errors
    /// `QuotaExceeded` if definitions would grow above the limit.
    pub fn check(&self, changes: &Changes) -> Result<()> {
        let (mut after, mut is_asked_for) = (self.usage.used_bytes, false);
        for (key, row) in changes {
            let bytes = row.as_ref().map_or(0, bytes_of);
            let before = self.sizes.get(key).copied().unwrap_or(0);
            after = after - before + bytes;
            is_asked_for |= bytes > before;
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

#[cfg(test)]
mod tests;
