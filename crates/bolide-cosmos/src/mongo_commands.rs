//! Commands of MongoDB: what the admin API needs of the server, which has a front end for them.

use bolide_model::account_key::Access;
use bolide_model::{RequestUnits, Result};
use bytes::Bytes;
use futures_util::future::BoxFuture;

/// Runs commands for senders who have shown an account key here.
pub trait MongoCommands: Send + Sync {
    /// Runs a command on a database, with the rights of a key. `command`: Extended JSON, canonical or relaxed.
    ///
    /// A command that writes is carried out to its end even if the future is dropped; one that reads is ended then, an `aggregate` with `$out`, too.
    ///
    /// # Errors
    /// `Throttled`: no memory for the command or for the text of its reply, or too many run. What the command itself refuses is a reply.
    fn run(&self, database: String, command: Bytes, access: Access) -> BoxFuture<'_, Result<CommandReply>>;
}

/// The reply of a command.
#[derive(Debug)]
pub struct CommandReply {
    /// Why there is no result.
    pub failure: Option<CommandFailure>,
    /// The reply as canonical Extended JSON.
    pub body: Bytes,
    /// What the command has consumed.
    pub charge: RequestUnits,
}

/// The error of a command.
#[derive(Debug)]
pub struct CommandFailure {
    /// Its number.
    pub code: i32,
    /// The name of the number.
    pub name: String,
    /// The text for people.
    pub message: String,
}
