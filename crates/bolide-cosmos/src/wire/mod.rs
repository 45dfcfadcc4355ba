//! Between HTTP and the core's plain data: reading requests, writing responses.

pub(crate) mod ascii;
pub(crate) mod binary_json;
pub(crate) mod body;
mod header_list;
pub(crate) mod headers;
pub(crate) mod hybrid_row;
mod payload;
pub(crate) mod percent;
mod reply;
pub(crate) mod scope;

pub use payload::Payload;
pub(crate) use reply::{Reply, envelope};

/// Maximum number of operations of a batch or bulk request (cosmos-rest §3.6).
pub(crate) const BATCH_OPERATIONS: usize = 100;
