//! Feeds: all items, and all changes.
//!
//! [`read_feed`] goes through live items ([`crate::scan`]), [`change_feed`] through the log, and [`all_versions`] through the history.

mod all_versions;
mod change_feed;
mod page_memory;
mod read_feed;

pub use all_versions::{ItemChange, VersionPage};
pub use change_feed::{ChangePage, FeedStart, ReadChanges};
pub use read_feed::{FeedPage, ReadFeed};

use bolide_model::limits;

/// How many items a page may have, of a feed or a query, by what its request asks for.
pub(crate) fn page_items(asked: Option<usize>) -> usize {
    asked.unwrap_or(limits::PAGE_ITEMS).clamp(1, limits::PAGE_ITEMS)
}
