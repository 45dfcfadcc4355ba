//! What an item is to clients: where its document places it, and its JSON text.

pub(crate) mod logical;
mod stored_item;

pub use stored_item::StoredItem;
