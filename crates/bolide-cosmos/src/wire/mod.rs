//! Between HTTP and the core's plain data: reading requests, writing answers.

pub(crate) mod binary_json;
pub(crate) mod body;
pub(crate) mod headers;
pub(crate) mod hybrid_row;
mod payload;
mod reply;
pub(crate) mod scope;

pub use payload::Payload;
pub(crate) use reply::{Reply, envelope};
