//! Rights: the account key that each operation needs, and for each kind of resource token the mode it needs, or that such tokens do not allow it.
//!
//! Admission uses the table of operations. `docs/security.md` shows the table, written by a test from the same rows, and a test of the server
//! compares all operations and senders with that page.
//!
//! Other checks are made elsewhere: that the item, script or partition key of a request is the token's own, in the code of resource tokens; the
//! partition key of each operation of a bulk request, when it is carried out.

use bolide_core::PermissionMode;
use bolide_model::account_key::Access;

/// The scope of a resource token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// A container.
    Container,
    /// A container, but only the items of one partition key, or below a prefix of one.
    PartitionKey,
    /// One item.
    Item,
    /// One stored procedure, trigger or user-defined function.
    Script,
}

/// The rights that an operation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rights {
    /// The required account key.
    pub key: Access,
    /// The required mode of a token for a container, a partition key, an item, a script.
    tokens: [Option<PermissionMode>; 4],
}

impl Rights {
    pub(super) const fn new(key: Access, tokens: [Option<PermissionMode>; 4]) -> Rights {
        Rights { key, tokens }
    }

    /// The required mode of such a token; `None`: such tokens do not allow it.
    pub(crate) fn token(self, bound: Bound) -> Option<PermissionMode> {
        self.tokens[bound as usize]
    }
}

pub(super) const READ: Option<PermissionMode> = Some(PermissionMode::Read);
pub(super) const ALL: Option<PermissionMode> = Some(PermissionMode::All);
pub(super) const NONE: Option<PermissionMode> = None;

#[cfg(test)]
mod tests;
