//! Data in and out: imports, exports and copies of items, as a client of any server that speaks the REST protocol of Azure Cosmos DB for NoSQL.
//!
//! ```text
//!   import   file ──input──▶ items ──load──▶ bulk requests of many lanes ──client──▶ server
//!   export   server ──feed──▶ pages ──output──▶ file
//!   copy     server ──definitions, feed──▶ ──load──▶ another server
//! ```
//!
//! An import or export of a file that was ended at any moment, by a kill too, goes on where it was: a small file beside the data file ([`place`])
//! says up to which position everything is done.

pub mod client;
mod container;
pub mod copy;
pub mod export;
mod failure;
mod feed;
pub mod import;
mod input;
mod item;
mod item_lines;
mod load;
mod output;
mod place;
mod progress;

pub use client::{Client, HttpTransport, Transport};
pub use container::ContainerName;
pub use failure::{Failure, Result};
pub use input::Format;
pub use load::OnConflict;
