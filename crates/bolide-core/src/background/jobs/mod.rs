//! What runs in the background, one module for each queue of a partition.

pub(crate) mod delete_by_key;
pub(crate) mod expire;
