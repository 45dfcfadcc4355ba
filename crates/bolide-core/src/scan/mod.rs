//! Going through the live items of a part of a container.
//!
//! [`scope`] says which part a request is about, [`item_scan`] goes through its live items.

mod item_scan;
mod scope;

pub(crate) use item_scan::{ItemScan, ScannedItem, ScannedItems, WALK_BYTES, add_charge, begin_at, record_range};
pub use scope::ScanScope;
pub(crate) use scope::Slice;
