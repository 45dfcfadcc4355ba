//! Who may do what: for each operation the account key it needs, and for each kind of resource token the mode it needs, or that no such
//! token opens it.
//!
//! Whoever lets requests in asks the table of operations; `docs/security.md` shows it, made by a test from the same rows, and a test of the
//! server walks all operations and senders against what the page says.
//!
//! What a row cannot say is checked where it is known: that the item, script or partition key of a request is the token's own, where resource
//! tokens are; the partition key of each operation of a bulk, where it is carried out.

use bolide_core::PermissionMode;

use crate::keys::Access;

/// What a resource token is for.
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

/// Who may do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rights {
    /// The least account key.
    pub key: Access,
    /// The least mode of a token for a container, a partition key, an item, a script.
    tokens: [Option<PermissionMode>; 4],
}

impl Rights {
    pub(super) const fn new(key: Access, tokens: [Option<PermissionMode>; 4]) -> Rights {
        Rights { key, tokens }
    }

    /// The least mode of such a token; `None`: no such token will do.
    pub(crate) fn token(self, bound: Bound) -> Option<PermissionMode> {
        self.tokens[bound as usize]
    }
}

pub(super) const READ: Option<PermissionMode> = Some(PermissionMode::Read);
pub(super) const ALL: Option<PermissionMode> = Some(PermissionMode::All);
pub(super) const NONE: Option<PermissionMode> = None;

#[cfg(test)]
mod tests;
