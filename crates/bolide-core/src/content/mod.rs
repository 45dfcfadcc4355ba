//! An item as clients see it: the logical partition of its document, and its JSON text.

pub(crate) mod logical;
mod stored_item;

pub use stored_item::StoredItem;
