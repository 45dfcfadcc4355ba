//! Feeds: all items, and all changes.
//!
//! [`scope`] says which part of a container a request is about, [`walk`] goes through its live items, and on top of them stand
//! [`read_feed`] and queries; [`change_feed`] goes through the log instead, and [`all_versions`] through the history.

mod all_versions;
mod change_feed;
mod held;
mod places;
mod read_feed;
mod scope;
mod walk;

pub use all_versions::{ItemChange, VersionPage};
pub use change_feed::{ChangePage, FeedStart, ReadChanges};
pub use read_feed::{FeedPage, ReadFeed};
pub use scope::Scope;
pub(crate) use scope::{KeyInterval, Slice};
pub(crate) use walk::{ItemWalk, WALK_BYTES, WalkedItems, bear, touch};

use bolide_model::limits;

/// How many items a page may have, of a feed or a query, by what its request asks for.
pub(crate) fn page_items(asked: Option<usize>) -> usize {
    asked.unwrap_or(limits::PAGE_ITEMS).clamp(1, limits::PAGE_ITEMS)
}
