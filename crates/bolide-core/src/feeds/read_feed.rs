//! The read feed: all live items, range by range, in the order of insertion within a logical partition (cosmos-rest §5.7).

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_model::{RequestUnits, Result, UnixMillis, charge, limits};

use super::held::Held;
use super::walk::bear;
use super::{ItemWalk, Scope, Slice, page_items};
use crate::account::{Account, RequestContext};
use crate::answer::{Answer, Answered, Work};
use crate::container::{Container, ContainerState};
use crate::continuation;
use crate::executor::Watch;
use crate::items::StoredItem;
use crate::memory::{MemoryBudget, MemoryShare};

/// Lists items.
#[derive(Debug, Clone, Default)]
pub struct ReadFeed {
    /// Of which part of the container.
    pub scope: Scope,
    /// Most items of the page; `None`: the server decides.
    pub max_items: Option<usize>,
    /// From an earlier page.
    pub continuation: Option<String>,
}

/// A page of items.
#[derive(Debug)]
pub struct FeedPage {
    /// Live items.
    pub items: Vec<StoredItem>,
    /// Where the next page goes on; `None` if this is the last.
    pub continuation: Option<String>,
    /// The memory that it takes; to be held until it is written out.
    pub memory: MemoryShare,
}

const KIND: &[u8] = b"read feed";

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
    ) -> Answered<FeedPage> {
        let visit = container.enter().await?;
        let rid = container.rid().bytes();
        let owner: [&[u8]; 2] = [KIND, &rid];
        let after = read
            .continuation
            .as_deref()
            .map(|text| continuation::decode(&owner, text))
            .transpose()?;
        let slices = read.scope.slices(&visit.state)?;
        self.admit_all(ctx, &slices, &visit)?;
        let most = page_items(read.max_items);

        let filling = Filling {
            container: container.clone(),
            state: visit.state.clone(),
            slices,
            now: ctx.now,
            after,
            most,
            page_time: self.query_page_time(),
            memory: self.memory().clone(),
            held: Held::of(self.memory()),
        };
        let (page, work) = self.execute_in(container, |watch| filling.run(watch)).await?;
        self.charge_touched(ctx, &visit, &work);
        Ok(Answer { value: page, work })
    }
}

/// A page to be filled.
struct Filling {
    container: Arc<Container>,
    state: Arc<ContainerState>,
    slices: Vec<Slice>,
    now: UnixMillis,
    after: Option<Vec<u8>>,
    most: usize,
    page_time: Duration,
    memory: MemoryBudget,
    held: Held,
}

impl Filling {
    async fn run(mut self, watch: Arc<Watch>) -> Result<(FeedPage, Work)> {
        let rid = self.container.rid().bytes();
        let owner: [&[u8]; 2] = [KIND, &rid];
        let until = Instant::now() + self.page_time;
        let mut walk = ItemWalk::new(
            &self.memory,
            &self.container,
            &self.state,
            self.slices,
            self.now,
            self.after.as_deref(),
        );
        let mut page = FeedPage {
            items: Vec::new(),
            continuation: None,
            memory: MemoryShare::default(),
        };
        let mut last_key = None;
        let mut goes_on = false;
        let mut bytes = 0;
        let mut costs: Vec<(u32, RequestUnits)> = Vec::new();
        'pages: loop {
            watch.check()?;
            let read = match walk.next_page().await {
                Ok(Some(read)) => read,
                Ok(None) => break,
                Err(error) if error.is_throttled() && !page.items.is_empty() => {
                    goes_on = true;
                    break;
                }
                Err(error) => return Err(error),
            };
            // From here on the page's own share counts them; nothing waits before.
            drop(read.memory);
            let is_long = Instant::now() >= until && !page.items.is_empty();
            for walked in read.items {
                let is_full = page.items.len() == self.most || bytes >= limits::PAGE_BYTES || self.held.is_short();
                if is_full || is_long {
                    goes_on = true;
                    break 'pages;
                }
                bytes += walked.item.record().size();
                costs.push((walked.range, charge::point_read(walked.item.record().size())));
                last_key = Some(walked.key);
                page.items.push(walked.item);
                self.held.grow(bytes, page.items.len())?;
            }
        }
        page.continuation = last_key
            .filter(|_| goes_on)
            .map(|key| continuation::encode(&owner, &key));
        page.memory = self.held.into_share();
        let mut touched = walk.touched().to_vec();
        for (range, cost) in &costs {
            bear(&mut touched, *range, *cost);
        }
        Ok((page, Work::of_feed(touched)))
    }
}
