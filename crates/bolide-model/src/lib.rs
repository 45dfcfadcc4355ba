//! The vocabulary of Bolide: types shared by both protocols, the core and the engines.
//!
//! [`time`] and [`ttl`] hold the clock and the one rule of expiry; [`partition_key`] and [`epk`] determine the position of an item; [`path`] is the
//! position of a value in a document; [`rid`] and [`names`] are the ids of resources, [`snapshot_name`] those of snapshots; [`container`] is the definition of a container; [`document`]
//! reads and stores JSON documents; [`account_key`] has the keys of clients; [`error`] lists the errors, and [`limits`] the limits.

pub mod account_key;
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
pub mod snapshot_name;
pub mod time;
pub mod ttl;

pub use charge::RequestUnits;
pub use error::{Error, ErrorKind, Reason, Result};
pub use lsn::Lsn;
pub use snapshot_name::SnapshotName;
pub use time::{UnixMillis, UnixSeconds};
