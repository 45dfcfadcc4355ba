//! Bolide for tests: a database server that starts in milliseconds, and a clock that the test moves.
//!
//! ```no_run
//! # fn main() -> Result<(), bolide_testing::Error> {
//! use std::time::Duration;
//!
//! use bolide_testing::Bolide;
//!
//! let db = Bolide::start()?;
//! // … a client of Cosmos DB with db.endpoint() and db.key(), or one of MongoDB with db.mongo_uri()
//! db.clock().advance(Duration::from_secs(30 * 24 * 60 * 60))?;
//! # Ok(())
//! # }
//! ```
//!
//! A server keeps its data in memory, listens on free ports of 127.0.0.1 and has a virtual clock, unless [`Bolide::options`] says otherwise. It ends
//! when it is dropped, and never outlives the process that started it. The binary is found as [`find_binary`] says.
#![expect(
    clippy::disallowed_methods,
    reason = "it waits for a process, by the machine's clock; the server's clock is asked over HTTP"
)]

mod admin;
mod binary;
mod clock;
mod error;
mod options;
mod server;

pub use binary::find_binary;
pub use clock::Clock;
pub use error::Error;
pub use options::Options;
pub use server::Bolide;
