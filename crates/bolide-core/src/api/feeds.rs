//! Feeds: the read feed of items, and the feeds of changes.

use std::sync::Arc;

use bolide_model::Result;

use super::Account;
use crate::catalog::Catalog;
use crate::container::Container;
use crate::feeds::{ChangePage, FeedPage, ReadChanges, ReadFeed, VersionPage};
use crate::response::ChargedResult;
use crate::runtime::RequestContext;

impl Account {
    /// Lists live items. No page is empty except an only one, and each shows the items that are live at its request (TTL-247, TTL-248).
    ///
    /// # Errors
    /// `BadRequest` for an invalid continuation; `RangeGone` if the requested range was split.
    pub async fn read_feed(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        read: &ReadFeed,
    ) -> ChargedResult<FeedPage> {
        let read = |()| self.runtime().read_feed(ctx, container, read);
        self.by_current_settings(container, (), read).await
    }

    /// Reads changes in the latest-version mode.
    ///
    /// # Errors
    /// `BadRequest` for an invalid continuation; `RangeGone` if the requested range was split.
    pub async fn change_feed(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        read: &ReadChanges,
    ) -> ChargedResult<ChangePage> {
        let read = |()| self.runtime().change_feed(ctx, container, read);
        self.by_current_settings(container, (), read).await
    }

    /// Reads changes in the all-versions mode, deletes included.
    ///
    /// # Errors
    /// - `BadRequest`: the container keeps no history; the feed shall start at its beginning or at a time, which this mode does not support; the
    ///   continuation is invalid, or older than the retention period, so that changes after it have been removed.
    /// - `RangeGone`: the requested range was split.
    pub async fn all_versions(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        read: &ReadChanges,
    ) -> ChargedResult<VersionPage> {
        let read = |()| self.runtime().all_versions(ctx, container, read);
        self.by_current_settings(container, (), read).await
    }

    /// Begins the history of a container without `changeFeedPolicy`, when its feed shall start from now: changes are kept for seven days from now on,
    /// as in an account with continuous backup. Does nothing if there is a policy or a history.
    pub async fn keep_all_versions(&self, container: &Arc<Container>) -> Result<()> {
        let is_settled = {
            let state = container.state();
            state.keeps_all_versions || state.properties.change_feed_policy.is_some()
        };
        if is_settled {
            return Ok(());
        }
        let container = container.clone();
        let keep = |catalog: Arc<Catalog>| async move { catalog.keep_all_versions(&container).await };
        self.catalog().carry_out(keep).await
    }
}
