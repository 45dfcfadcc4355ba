//! Feeds: all items, and all changes.

use std::sync::Arc;

use bolide_model::Result;

use super::Account;
use crate::catalog::Catalog;
use crate::container::Container;
use crate::feeds::{ChangePage, FeedPage, ReadChanges, ReadFeed, VersionPage};
use crate::response::ChargedResult;
use crate::runtime::RequestContext;

impl Account {
    /// Lists live items. No page is empty but the only one, and each is judged when it is asked for (TTL-247, TTL-248).
    ///
    /// # Errors
    /// `BadRequest` for a continuation that is not one; `RangeGone` if the range asked for was split.
    pub async fn read_feed(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        read: &ReadFeed,
    ) -> ChargedResult<FeedPage> {
        self.runtime().read_feed(ctx, container, read).await
    }

    /// Reads changes.
    ///
    /// # Errors
    /// `BadRequest` for a continuation that is not one; `RangeGone` if the range asked for was split.
    pub async fn change_feed(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        read: &ReadChanges,
    ) -> ChargedResult<ChangePage> {
        self.runtime().change_feed(ctx, container, read).await
    }

    /// Reads changes in all versions, deletes included.
    ///
    /// # Errors
    /// - `BadRequest`: the container keeps no history; the feed is to start at its beginning or at a time, which this mode cannot; the
    ///   continuation is none, or older than the retention, so that changes behind it are gone.
    /// - `RangeGone`: the range asked for was split.
    pub async fn all_versions(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        read: &ReadChanges,
    ) -> ChargedResult<VersionPage> {
        self.runtime().all_versions(ctx, container, read).await
    }

    /// Begins the history of a container without `changeFeedPolicy`, as its feed is to start from now: it is kept for seven days from now on, as
    /// in an account with continuous backup. Does nothing where there is a policy, or a history.
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
