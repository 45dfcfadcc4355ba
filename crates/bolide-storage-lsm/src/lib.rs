//! The embedded engine: an LSM store (fjall) in a directory of this machine.
//!
//! All partitions share five key spaces on disk, one per [`bolide_storage::Space`]; a key is the partition's id followed by the key
//! inside the partition ([`layout`]). One thread, the committer, owns all writes:
//!
//!   commit ──job──▶ committer: check base, merge what waits ──one batch, one fsync──▶ publish a view ──▶ answer everybody
//!   read ──▶ the newest view: a store snapshot and the heads that belong to it
//!
//! - [`engine`] is what callers see; [`committer`] the thread behind it; [`view`] what reads stand on, and [`held`] what of it is kept for longer.
//! - [`store_dir`] guards the directory: whose it is, which format, who has it open. [`durable_watermark`] remembers beside the store how far it was
//!   durable, and [`journal`] looks for damage, because the store itself drops what it cannot read without a word.
//! - [`presence`] looks whether the files are still in their place, [`tables`] finds tables that were changed on the disk.
//! - [`space`] watches the disk: the store cannot go on after a failed write, so writes are refused before the disk is full.
//!
//! Out of scope: everything about documents and expiry, which the core decides above the `Engine` trait.
mod committer;
mod durable_watermark;
mod engine;
mod error;
mod held;
mod journal;
mod layout;
mod options;
mod presence;
mod space;
mod store;
mod store_dir;
mod tables;
mod view;

pub use engine::LsmEngine;
pub use error::OpenError;
pub use options::{Durability, LsmOptions};
pub use space::FreeSpace;
