//! What is measured: a server, and its clients.

use super::plan::{Operation, Workload};
use crate::Result;

/// A connection of one worker.
pub trait Client: Send + 'static {
    /// Does one operation, and waits for its result; returns how many documents it got.
    ///
    /// # Errors
    /// If the system refuses it.
    fn perform(&mut self, operation: &Operation) -> impl Future<Output = Result<u64>> + Send;
}

/// A running server under test; it ends when dropped.
pub trait System {
    type Client: Client;

    /// Makes the table, container or whatever the items of a workload are stored in.
    fn set_up(&self, workload: &Workload) -> impl Future<Output = Result<()>>;

    /// Connects, for operations of a workload.
    fn connect(&self, workload: &Workload) -> impl Future<Output = Result<Self::Client>>;

    /// The server's process.
    fn pid(&self) -> u32;
}
