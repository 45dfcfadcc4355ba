//! Feeds: the read feed of items, and the feeds of changes.
//!
//! [`read_feed`] scans live items ([`crate::scan`]), [`change_feed`] the log, and [`all_versions`] the history.

mod all_versions;
mod change_feed;
mod page_memory;
mod read_feed;

pub use all_versions::{ItemChange, VersionPage};
pub use change_feed::{ChangePage, FeedStart, ReadChanges};
pub use read_feed::{FeedPage, ReadFeed};

use bolide_model::limits;

/// Returns the maximum number of items of a page of a feed or a query, from the number that its request asks for.
pub(crate) fn page_items(asked: Option<usize>) -> usize {
    asked.unwrap_or(limits::PAGE_ITEMS).clamp(1, limits::PAGE_ITEMS)
}
