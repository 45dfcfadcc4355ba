//! What the fuzz targets do with their bytes: one module for each, with the claims that must hold of any input.
//!
//! They live apart from the targets so that a test on the stable toolchain runs them too, on the seeds and on changes of them:
//! `crates/bolide-server/tests/decoders`.

pub mod change_feed;
pub mod container;
pub mod continuation;
pub mod document;
pub mod epk;
mod input;
pub mod partition_key;
pub mod patch;
pub mod query;
pub mod request;
mod rig;
pub mod stored_bytes;

/// A claim that any bytes must keep.
pub type Target = fn(&[u8]);

/// Every target by the name of its binary and its seeds.
pub const TARGETS: [(&str, Target); 10] = [
    ("change_feed", change_feed::run),
    ("container", container::run),
    ("continuation", continuation::run),
    ("document", document::run),
    ("epk", epk::run),
    ("partition_key", partition_key::run),
    ("patch", patch::run),
    ("query", query::run),
    ("request", request::run),
    ("stored_bytes", stored_bytes::run),
];
