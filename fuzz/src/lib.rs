//! What the fuzz targets do with their bytes: one module for each, with the claims that must hold of any input.
//!
//! They live apart from the targets so that a test on the stable toolchain runs them too, on the seeds and on changes of them:
//! `crates/bolide-server/tests/decoders`.

pub mod change_feed;
pub mod container;
pub mod continuation;
pub mod document;
pub mod epk;
pub mod hybrid_row;
mod input;
pub mod partition_key;
pub mod patch;
pub mod query;
pub mod request;
pub mod resume_filter;
pub mod stored_bytes;
mod test_account;
