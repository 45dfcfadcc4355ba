//! Limits the memory that the definitions of an account take, all kinds together.
//!
//! All definitions stay in memory while the account is open, so they are limited by the memory they take: each counts its own bytes and a fixed
//! amount for what the server keeps for it. A change that would bring the sum above the limit is refused; deletions lower the sum.
//!
//! An account may be above the limit because the limit was lowered or because ranges were split. It still opens, and accepts every change that makes
//! no definition larger.
//!
//! Each process has its own sum, which follows its cache. If several processes share a store, each refuses changes by its own sum, so together they
//! may exceed the limit by the definitions that they create at the same moment.

use std::collections::HashMap;

use bolide_model::container::ContainerProperties;
use bolide_model::{Reason, Result};
use serde_json::Value;

use super::batch::Changes;
use super::permissions::PermissionProperties;
use super::rows::{Row, RowKey};

/// Divisor of the memory for requests: definitions may take a quarter of that amount, in addition to it.
const MEMORY_PART: usize = 4;
/// Minimum of the limit, in bytes, so that a small server can hold a usual number of definitions.
const MIN_LIMIT: usize = 128 * 1024 * 1024;

/// Returns the limit in bytes on the definitions of an account whose requests may use `memory_bytes`.
pub(crate) fn limit_of(memory_bytes: usize) -> usize {
    (memory_bytes / MEMORY_PART).max(MIN_LIMIT)
}

/// The memory that definitions take and their limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefinitionUsage {
    /// Bytes that definitions take.
    pub used_bytes: usize,
    /// Bytes that definitions may take together.
    pub limit_bytes: usize,
}

/// Memory that the server uses for a definition besides its own bytes: its record and its entries in maps, for a container also its gate and meters,
/// and for each of its partitions a worker. In bytes; measured as the resident memory of an account with thousands of definitions of a kind, divided
/// by their number and rounded up.
mod fixed {
    pub(super) const DATABASE: usize = 1280;
    /// Includes the definition of a usual container, so that its settings can be changed even when no memory is left, and its former ttls.
    pub(super) const CONTAINER: usize = 8 * 1024;
    pub(super) const PARTITION: usize = 8 * 1024;
    pub(super) const USER: usize = 768;
    pub(super) const PERMISSION: usize = 768;
    pub(super) const SCRIPT: usize = 768;
    pub(super) const ENCRYPTION_KEY: usize = 2048;
}

/// The result of [`parsed_bytes`] for the definition of a usual container, with about ten paths.
const USUAL_DEFINITION: usize = 4 * 1024;
/// Memory of a name in a path and of an object, in bytes, besides their text.
const NAME: usize = 64;
const OBJECT: usize = 160;

/// Returns the bytes that a row counts; 0 if it is no definition. They depend only on the definition and on the number of its partitions, not on its
/// throughput or on when it was written.
fn bytes_of(row: &Row) -> usize {
    match row {
        Row::Account(_) | Row::Dropped(_) => 0,
        Row::Database(row) => fixed::DATABASE + row.id.len(),
        Row::Container(row) => {
            let unusual = parsed_bytes(&row.properties).saturating_sub(USUAL_DEFINITION);
            fixed::CONTAINER + row.placements.len() * fixed::PARTITION + unusual
        }
        // All of them are in memory too.
        Row::Centroids(centroids) => centroids.lists() * (centroids.dimensions() + size_of::<f64>()),
        // Its name is stored twice: in the row and in a map that finds the user by name.
        Row::User(row) => fixed::USER + 2 * row.id.len(),
        Row::Permission(row) => fixed::PERMISSION + grant_bytes(&row.grant),
        Row::Script(row) => fixed::SCRIPT + row.draft.id.len() + row.draft.body.len(),
        Row::EncryptionKey(row) => {
            let written = Value::Object(row.properties.to_json());
            fixed::ENCRYPTION_KEY + written.to_string().len()
        }
    }
}

/// Returns about the memory in bytes of a container's definition: up to thirty times the size of its text, if that consists of paths only.
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

/// The sum of all definitions; see the module. It follows commits as the cache does.
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

    /// Returns the keys of all counted definitions.
    pub fn known(&self) -> Vec<RowKey> {
        self.sizes.keys().copied().collect()
    }

    /// Counts the rows of a commit.
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
        Err(Reason::DefinitionsTooLarge {
            used: used_bytes,
            more: after - used_bytes,
            limit: limit_bytes,
        }
        .into())
    }
}

#[cfg(test)]
mod tests;
