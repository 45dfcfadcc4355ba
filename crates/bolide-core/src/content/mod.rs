//! An item as clients see it: the logical partition of its document, and its JSON text.

mod document_id;
pub(crate) mod logical;
mod shard_key;
mod stored_item;

pub use document_id::DocumentId;
pub(crate) use document_id::digest;
pub use shard_key::ShardKey;
pub use stored_item::StoredItem;
