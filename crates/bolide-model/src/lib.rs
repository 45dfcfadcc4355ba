//! The vocabulary of Bolide: what both protocols, the core and the engines speak of.
//!
//! [`time`] and [`ttl`] hold the clock and the one rule of expiry; [`partition_key`] and [`epk`] say where an item lives;
//! [`path`] where in a document a value lives; [`rid`] and [`names`] how resources are called; [`container`] what a container's definition may be; [`document`] how a JSON
//! document is taken in and stored; [`error`] what can go wrong, and [`limits`] how much of everything there may be.

pub mod charge;
pub mod container;
pub mod document;
pub mod encryption_key;
pub mod epk;
pub mod error;
pub mod limits;
pub mod lsn;
pub mod names;
pub mod partition_key;
pub mod path;
pub mod rid;
pub mod time;
pub mod ttl;

pub use charge::RequestUnits;
pub use error::{Error, ErrorKind, Reason, Result};
pub use lsn::Lsn;
pub use time::{UnixMillis, UnixSeconds};
