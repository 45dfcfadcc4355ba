//! Going through the live items of a part of a container.
//!
//! [`scope`] says which part a request is about, [`item_scan`] goes through its live items.

mod item_scan;
mod scope;

pub(crate) use item_scan::{ItemWalk, WALK_BYTES, WalkedItem, WalkedItems, bear, begin_at, touch};
pub use scope::Scope;
pub(crate) use scope::Slice;
