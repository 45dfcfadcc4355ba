//! The embedded engine: an LSM store (fjall) in a directory of this machine.
//!
//! All partitions share five key spaces on disk, one per [`bolide_storage::Space`]; a key is the partition's id followed by the key
//! inside the partition ([`layout`]). One thread, the committer, owns all writes:
//!
//!   commit ──job──▶ committer: check base, merge waiting commits ──one batch, one fsync──▶ publish a view ──▶ reply to all
//!   read ──▶ the newest view: a store snapshot and the heads that belong to it
//!
//! - [`engine`] is what callers use; [`committer`] the thread behind it; [`view`] the snapshots that reads use, and [`held`] those that outlive a call.
//! - [`store_dir`] guards the directory: owner, format, lock. [`durable_watermark`] records beside the store how far it was durable, and [`journal`]
//!   looks for damage, because the store itself drops what it cannot read without an error.
//! - [`presence`] checks that the files are still in their place, [`tables`] finds tables that were changed on the disk.
//! - [`snapshots`] keeps snapshots of the store beside it, and replaces the store by one of them.
//! - [`space`] watches the disk: the store cannot continue after a failed write, so writes are refused before the disk is full.
//!
//! Out of scope: everything about documents and expiry, which the core decides above the `Engine` trait.
mod committer;
mod deleted_journals;
mod durable_watermark;
mod engine;
mod error;
mod held;
mod journal;
mod layout;
mod memtables;
mod options;
mod presence;
mod priority;
mod snapshots;
mod space;
mod store;
mod store_dir;
mod tables;
mod versions;
mod view;

pub use engine::{LsmEngine, ReplaceError, Successor};
pub use error::OpenError;
pub use options::{Durability, LsmOptions};
pub use snapshots::{Issued, Kept, MAX_SNAPSHOTS, Prepared, Replacement, SnapshotError, Steps};
pub use space::FreeSpace;
