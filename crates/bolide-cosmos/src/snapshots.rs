//! Snapshots of the account: what the admin API needs of the server, which keeps them.

use bolide_model::{Result, SnapshotName, UnixMillis};
use futures_util::future::BoxFuture;

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Its name.
    pub name: SnapshotName,
    /// Server time when it was taken.
    pub time: UnixMillis,
}

/// The snapshots of an account. A replacement of the account's content is carried out to its end even if the future is dropped.
pub trait Snapshots: Send + Sync {
    /// All snapshots, by name.
    ///
    /// # Errors
    /// `Unavailable` if they cannot be read.
    fn list(&self) -> BoxFuture<'_, Result<Vec<SnapshotInfo>>>;

    /// Keeps the account as it is now. Replaces a snapshot of that name.
    ///
    /// # Errors
    /// `QuotaExceeded` if there are too many; `StorageFull`, `Unavailable`: then nothing has changed.
    fn take(&self, name: SnapshotName) -> BoxFuture<'_, Result<SnapshotInfo>>;

    /// Removes a snapshot.
    ///
    /// # Errors
    /// `NotFound`; `Unavailable` if it cannot be removed.
    fn remove(&self, name: SnapshotName) -> BoxFuture<'_, Result<()>>;

    /// Replaces the account's content by that of a snapshot, or by none. Returns server time afterwards.
    ///
    /// # Errors
    /// `NotFound`; `StorageFull`, `Unavailable`: then the content is as before.
    fn restore(&self, name: Option<SnapshotName>) -> BoxFuture<'_, Result<UnixMillis>>;

    /// Makes the process die after so many steps of snapshots and replacements; 0: never. For tests of crashes.
    fn set_fault(&self, steps: u64);
}
