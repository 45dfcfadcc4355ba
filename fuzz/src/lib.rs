//! The code of the fuzz targets: one module for each, with the claims that must hold for any input.
//!
//! It is separate from the targets so that a test on the stable toolchain can run it too, on the seeds and on mutations of them:
//! `crates/bolide-server/tests/decoders`.

pub mod change_feed;
pub mod container;
pub mod continuation;
pub mod copy_page;
pub mod document;
pub mod epk;
pub mod frame;
pub mod hybrid_row;
mod input;
pub mod mongo_bson;
pub mod mongo_filter;
mod mongo_json;
pub mod mongo_message;
pub mod mongo_pipeline;
pub mod mongo_update;
mod mongo_work;
pub mod partition_key;
pub mod patch;
pub mod query;
pub mod request;
pub mod resume_filter;
pub mod stored_bytes;
mod test_account;
