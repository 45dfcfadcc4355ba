//! The statements, each with the number of its home written into it.

use bolide_storage::HomeId;

/// A statement of `sql/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Query {
    Commit,
    CommitNew,
    CommitTogether,
    Create,
    Delete,
    DeleteOne,
    DeleteRange,
    Fence,
    Get,
    GetAll,
    Head,
    Heads,
    List,
    Lock,
    LockAndGet,
    LockNewest,
    Owner,
    Put,
    Raise,
    Record,
    Scan,
    ScanDown,
    ScanKeys,
    ScanKeysDown,
    Trim,
}

impl Query {
    #[cfg(test)]
    pub(crate) const ALL: [Query; 25] = [
        Query::Commit,
        Query::CommitNew,
        Query::CommitTogether,
        Query::Create,
        Query::Delete,
        Query::DeleteOne,
        Query::DeleteRange,
        Query::Fence,
        Query::Get,
        Query::GetAll,
        Query::Head,
        Query::Heads,
        Query::List,
        Query::Lock,
        Query::LockAndGet,
        Query::LockNewest,
        Query::Owner,
        Query::Put,
        Query::Raise,
        Query::Record,
        Query::Scan,
        Query::ScanDown,
        Query::ScanKeys,
        Query::ScanKeysDown,
        Query::Trim,
    ];

    /// The text with a placeholder for the home.
    fn template(self) -> &'static str {
        match self {
            Query::Commit => include_str!("../sql/commit.sql"),
            Query::CommitNew => include_str!("../sql/commit_new.sql"),
            Query::CommitTogether => include_str!("../sql/commit_together.sql"),
            Query::Create => include_str!("../sql/create.sql"),
            Query::Delete => include_str!("../sql/delete.sql"),
            Query::DeleteOne => include_str!("../sql/delete_one.sql"),
            Query::DeleteRange => include_str!("../sql/delete_range.sql"),
            Query::Fence => include_str!("../sql/fence.sql"),
            Query::Get => include_str!("../sql/get.sql"),
            Query::GetAll => include_str!("../sql/get_all.sql"),
            Query::Head => include_str!("../sql/head.sql"),
            Query::Heads => include_str!("../sql/heads.sql"),
            Query::List => include_str!("../sql/list.sql"),
            Query::Lock => include_str!("../sql/lock.sql"),
            Query::LockAndGet => include_str!("../sql/lock_and_get.sql"),
            Query::LockNewest => include_str!("../sql/lock_newest.sql"),
            Query::Owner => include_str!("../sql/owner.sql"),
            Query::Put => include_str!("../sql/put.sql"),
            Query::Raise => include_str!("../sql/raise.sql"),
            Query::Record => include_str!("../sql/record.sql"),
            Query::Scan => include_str!("../sql/scan.sql"),
            Query::ScanDown => include_str!("../sql/scan_down.sql"),
            Query::ScanKeys => include_str!("../sql/scan_keys.sql"),
            Query::ScanKeysDown => include_str!("../sql/scan_keys_down.sql"),
            Query::Trim => include_str!("../sql/trim.sql"),
        }
    }

    /// The text for one home.
    pub(crate) fn text(self, home: HomeId) -> String {
        self.template().replace("{part}", &home.0.to_string())
    }
}

#[cfg(test)]
mod tests;
