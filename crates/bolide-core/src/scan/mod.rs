//! Scans of the live items of a part of a container.
//!
//! [`scope`] says which part a request reads, [`item_scan`] scans its live items, [`parallel`] does so on several threads.

mod item_scan;
mod parallel;
mod scanned_items;
mod scope;

pub(crate) use item_scan::{ItemScan, add_charge, begin_at, record_range};
pub(crate) use parallel::{Helpers, ItemTest};
pub(crate) use scanned_items::{LeftOut, ScannedItem, ScannedItems, WALK_BYTES};
pub use scope::ScanScope;
pub(crate) use scope::Slice;
