//! The full check of a container's storage: every item has all of its entries, and every entry has its item (TTL-267, P5). If there is a history, its
//! last versions are the stored ones (TTL-274).
//!
//! The check runs while requests are served. Each range is checked in small pages. Each page is decided by the range's worker at one head, like a
//! step of the purge; the rows that it needs are read ahead, so that writers hardly wait:
//!
//!   items ──▶ do they have their entries? ── entries ──▶ do they have their item? ── history ──▶ does it end with the stored versions?
//!
//! The counters must agree with a tally of the items in all pages, which the worker updates with each commit
//! ([`Tally`](crate::partition::state::Tally)). Requests and changes of the container can proceed between two pages. If a range is split meanwhile,
//! its children are checked.

mod documents;
mod entries;
mod history;
mod items;

use std::collections::VecDeque;
use std::sync::Arc;

use bolide_model::{Error, ErrorKind, Result};
use bolide_storage::{Key, Scan, Space};
use bytes::Bytes;

use crate::admin::Admin;
use crate::admin::statistics::ghosts;
use crate::container::{Container, ContainerState};
use crate::format::keys;
use crate::memory::MemoryBudget;
use crate::partition::Partition;
use crate::partition::write_batch::{Decision, WriteBatch};
use history::Walked;

/// Maximum number of problems that are kept in words; further ones are ignored.
const PROBLEMS: usize = 100;

/// Maximum number of rows and of bytes of one page, so that users' writes are not delayed.
const ROWS: usize = 64;
const BYTES: usize = 128 * 1024;
/// Number of values that are read at once: their sizes are known only afterwards.
const LOOKED_UP: usize = 16;

/// Maximum number of attempts of a page. An attempt fails if a commit fails that the page shares with other transactions.
const PAGE_TRIES: usize = 5;
/// Maximum number of attempts to check a range.
const RANGE_TRIES: usize = 5;

/// The result of a full check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifyReport {
    /// Stored items, ghosts included, each counted when its page was read.
    pub stored: u64,
    /// Items that are live.
    pub live: u64,
    /// The problems that were found, at most a hundred.
    pub problems: Vec<String>,
}

impl VerifyReport {
    /// Returns whether no problems were found.
    pub fn is_ok(&self) -> bool {
        self.problems.is_empty()
    }

    fn problem(&mut self, what: impl FnOnce() -> String) {
        if self.problems.len() < PROBLEMS {
            self.problems.push(what());
        }
    }

    fn add(&mut self, other: VerifyReport) {
        self.stored += other.stored;
        self.live += other.live;
        self.problems.extend(other.problems);
        self.problems.truncate(PROBLEMS);
    }
}

impl Admin<'_> {
    /// See `Account::verify`.
    pub(crate) async fn verify(&self, container: &Arc<Container>) -> Result<VerifyReport> {
        let _alone = container.check_alone().await;
        let layout = container.enter().await?.state.layout.clone();
        let mut ranges: VecDeque<u32> = layout.partitions.iter().map(|partition| partition.range).collect();
        let mut report = VerifyReport::default();
        while let Some(range) = ranges.pop_front() {
            match check_range(container, self.memory(), range).await? {
                Some(found) => report.add(found),
                None => {
                    let layout = container.enter().await?.state.layout.clone();
                    let children = layout.partitions.iter().filter(|child| child.parents.contains(&range));
                    ranges.extend(children.map(|child| child.range));
                }
            }
        }
        Ok(report)
    }
}

/// Why the check of a range ended early.
enum Halt {
    /// The range was split.
    Split,
    /// Rows that were checked already have changed unnoticed: begin again.
    Disturbed,
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Halt {
        Halt::Failed(error)
    }
}

/// Checks one range; returns `None` if it was split meanwhile.
async fn check_range(container: &Arc<Container>, memory: &MemoryBudget, range: u32) -> Result<Option<VerifyReport>> {
    for _ in 0..RANGE_TRIES {
        let check = RangeCheck { container, range };
        match check.run(memory).await {
            Ok(report) => return Ok(Some(report)),
            Err(Halt::Split) => return Ok(None),
            Err(Halt::Disturbed) => {}
            Err(Halt::Failed(error)) => return Err(error),
        }
    }
    Err(Error::new(
        ErrorKind::Unavailable,
        format!("the check of range {range} was disturbed {RANGE_TRIES} times; try again"),
    ))
}

/// The check of one range.
struct RangeCheck<'c> {
    container: &'c Arc<Container>,
    range: u32,
}

impl RangeCheck<'_> {
    async fn run(&self, memory: &MemoryBudget) -> Result<VerifyReport, Halt> {
        let mut report = self.items().await?;
        for space in [Space::Index, Space::Log, Space::Expiry] {
            report.add(self.entries(space).await?);
        }
        report.add(self.history(memory).await?);
        Ok(report)
    }

    async fn items(&self) -> Result<VerifyReport, Halt> {
        let (mut report, mut from) = (VerifyReport::default(), None);
        loop {
            let at = from.clone();
            let checked = self.page(move |batch, state, partition| items::check(batch, state, partition, at.as_ref()));
            match checked.await? {
                items::Checked::Page { found, next } => {
                    report.add(found);
                    match next {
                        Some(next) => from = Some(next),
                        None => return Ok(report),
                    }
                }
                items::Checked::Uncounted => self.count_ghosts().await?,
                items::Checked::Forgotten => return Err(Halt::Disturbed),
            }
        }
    }

    async fn entries(&self, space: Space) -> Result<VerifyReport, Halt> {
        let (mut report, mut place) = (VerifyReport::default(), Some(entries::PageStart::default()));
        while let Some(at) = place {
            let page = self.page(move |batch, state, partition| entries::check(batch, state, partition, space, &at));
            let (found, next) = page.await?;
            report.add(found);
            place = next;
        }
        Ok(report)
    }

    async fn history(&self, memory: &MemoryBudget) -> Result<VerifyReport, Halt> {
        let mut walk = history::HistoryScan::default();
        loop {
            let at = walk.place();
            let read = self.page(move |batch, state, partition| history::read(batch, state, partition, &at));
            match read.await? {
                history::Read::None => return Ok(walk.report),
                history::Read::Overtaken => return Err(Halt::Disturbed),
                history::Read::Page(page) => {
                    if walk.take(page, memory)? == Walked::ToTheEnd {
                        return Ok(walk.report);
                    }
                }
            }
        }
    }

    async fn count_ghosts(&self) -> Result<(), Halt> {
        let guard = self.container.enter_uninterruptible().await?;
        let partition = self.partition(&guard.state)?;
        ghosts::counted_at(&guard.state, &partition).await?;
        Ok(())
    }

    fn partition(&self, state: &ContainerState) -> Result<Arc<Partition>, Halt> {
        let partition = state.layout.partition_with_id(self.range);
        partition.cloned().map_err(|_| Halt::Split)
    }

    /// Decides one page in the range's worker.
    async fn page<T, D>(&self, decide: D) -> Result<T, Halt>
    where
        T: Send + 'static,
        D: Fn(&mut WriteBatch<'_>, &ContainerState, &Partition) -> Decision<T> + Send + Sync + 'static,
    {
        let decide = Arc::new(decide);
        let mut tries = 0;
        loop {
            tries += 1;
            let guard = self.container.enter().await?;
            let state = guard.state.clone();
            let partition = self.partition(&state)?;
            let (decide, checked) = (decide.clone(), partition.clone());
            let page = move |batch: &mut WriteBatch<'_>| decide(batch, &state, &checked);
            partition.read_ahead(&page).await?;
            match partition.background(page).await {
                Err(error) if is_of_commits(&error.kind) && tries < PAGE_TRIES => {}
                decided => return Ok(decided?),
            }
        }
    }
}

/// Tells whether an error may be that of a user's commit which was decided in the same write batch.
fn is_of_commits(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::StorageFull | ErrorKind::Unavailable | ErrorKind::Timeout
    )
}

/// Returns a scan of the next rows of a space.
fn scan(space: Space, from: Bytes, to: Option<Bytes>) -> Scan {
    Scan {
        space,
        from,
        to,
        reverse: false,
        max_rows: ROWS,
        max_bytes: BYTES,
        keys_only: false,
    }
}

/// Returns the values of all keys, or of the first ones if those fill a page.
fn look_up_some(batch: &mut WriteBatch<'_>, keys: &[Key]) -> Decision<Vec<Option<Bytes>>> {
    let (mut values, mut bytes) = (Vec::with_capacity(keys.len()), 0);
    for keys in keys.chunks(LOOKED_UP) {
        if bytes >= BYTES {
            break;
        }
        let found = batch.get_all_raw(keys)?;
        bytes += found.iter().flatten().map(Bytes::len).sum::<usize>();
        values.extend(found);
    }
    Ok(values)
}

fn is_inside(partition: &Partition, item_key: &[u8]) -> bool {
    let epk = keys::epk_of_item(item_key);
    epk >= partition.epk.min.as_bytes() && epk < partition.epk.max.as_bytes()
}
