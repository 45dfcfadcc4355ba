//! The change feed in its latest-version mode: each live item once, in the order of its last write (cosmos-rest §8.2).
//!
//! Deletes are not shown, nor is anything of an item from its expiry on (TTL-249): the log has one entry for each stored item, and
//! what is expired is left out. A continuation names the next LSN of each range of its scope; a child of a split goes on
//! where its parent stood, since it inherits the parent's log.

use bolide_model::{Error, ErrorKind, Lsn, RequestUnits, Result, UnixMillis, UnixSeconds, charge, limits};
use bolide_storage::{Ask, Key, Scan, Space};
use bytes::Bytes;

use super::places::{Place, decode, encode, resume};
use super::walk::touch;
use super::{Scope, Slice};
use crate::account::{Account, RequestContext};
use crate::answer::{Answer, Answered, RangePosition, Work};
use crate::container::{Container, Visit};
use crate::items::{StoredItem, judged_at};
use crate::keys::{self, LogPosition};
use crate::partition::Partition;
use crate::record::{LogEntry, Record};

/// Log entries looked at in one read.
const PAGE_ROWS: usize = 1_000;
const PAGE_BYTES: usize = 1024 * 1024;

/// Reads changes.
#[derive(Debug, Clone)]
pub struct ReadChanges {
    /// Of which part of the container.
    pub scope: Scope,
    /// Since when.
    pub start: FeedStart,
    /// Most items of the page; a transaction is not cut in two, so a page may have more. `None`: the server decides.
    pub max_items: Option<usize>,
}

/// Where a change feed starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedStart {
    /// With the oldest change.
    Beginning,
    /// With the next change.
    Now,
    /// With the first change of this second or later.
    Time(UnixSeconds),
    /// Where a page ended.
    After(String),
}

/// A page of changes.
#[derive(Debug, Clone)]
pub struct ChangePage {
    /// Live items in the order of their last write, range by range.
    pub items: Vec<StoredItem>,
    /// Where the next page starts. Never empty.
    pub continuation: String,
}

impl Account {
    /// Reads changes.
    ///
    /// # Errors
    /// `BadRequest` for a continuation that is not one; `RangeGone` if the range asked for was split.
    pub async fn change_feed(
        &self,
        ctx: &RequestContext,
        container: &Container,
        read: &ReadChanges,
    ) -> Answered<ChangePage> {
        let visit = container.enter().await?;
        let slices = read.scope.slices(&visit.state)?;
        self.admit_all(ctx, &slices, &visit)?;
        let _reading = container.reading_at(ctx.now.seconds());
        let mut places = start(&read.start, &slices).await?;
        let now = match slices.first() {
            // As in a walk: what the purge removed before the registration was due by now.
            Some(slice) => ctx.now.max(slice.partition.now().await?),
            None => ctx.now,
        };
        let most = read
            .max_items
            .unwrap_or(limits::PAGE_ITEMS)
            .clamp(1, limits::PAGE_ITEMS);

        let mut items = Vec::new();
        let mut touched = Vec::new();
        for (slice, place) in slices.iter().zip(&mut places) {
            if items.len() >= most {
                break;
            }
            let reader = ChangeReader {
                container,
                visit: &visit,
                slice,
                now,
            };
            place.next = reader
                .read(place.next, most - items.len(), &mut items, &mut touched)
                .await?;
        }
        for slice in &slices {
            touch(&mut touched, slice.partition.range, slice.partition.lsn());
        }
        let charge = items
            .iter()
            .map(|item: &StoredItem| charge::point_read(item.record().size()))
            .sum::<RequestUnits>();
        let work = Work {
            charge: RequestUnits(charge.0.max(1.0)).rounded(),
            touched,
        };
        self.charge_touched(ctx, &visit, &work);
        Ok(Answer {
            value: ChangePage {
                items,
                continuation: encode(&places),
            },
            work,
        })
    }
}

async fn start(start: &FeedStart, slices: &[Slice]) -> Result<Vec<Place>> {
    let known = match start {
        FeedStart::After(text) => Some(decode(text)?),
        _ => None,
    };
    let mut places = Vec::with_capacity(slices.len());
    for slice in slices {
        let partition = &slice.partition;
        let next = match start {
            FeedStart::Beginning => Lsn(0),
            FeedStart::Now => partition.lsn().next(),
            FeedStart::Time(second) => first_since(partition, *second).await?,
            FeedStart::After(_) => resume(partition, known.as_deref().unwrap_or_default()),
        };
        places.push(Place {
            range: partition.range,
            next,
        });
    }
    Ok(places)
}

/// The LSN of the first change of this second or later: the log's `_ts` never falls (TTL-208), so halving finds it.
async fn first_since(partition: &Partition, second: UnixSeconds) -> Result<Lsn> {
    let (mut low, mut high) = (0, partition.lsn().0 + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let from = LogPosition {
            lsn: Lsn(middle),
            seq: 0,
        }
        .to_bytes();
        let rows = scan_log(partition, from, 1).await?.rows;
        match rows.first() {
            Some((_, value)) if LogEntry::decode(value)?.last_modified < second => low = middle + 1,
            _ => high = middle,
        }
    }
    Ok(Lsn(low))
}

struct LogPage {
    rows: Vec<(Bytes, Bytes)>,
    more: bool,
    head: bolide_storage::Head,
}

async fn scan_log(partition: &Partition, from: Bytes, max_rows: usize) -> Result<LogPage> {
    let scan = Scan {
        space: Space::Log,
        from,
        to: Some(keys::log_end()),
        reverse: false,
        max_rows,
        max_bytes: PAGE_BYTES,
        keys_only: false,
    };
    let mut reply = partition
        .read(Ask {
            gets: vec![],
            scans: vec![scan],
        })
        .await?;
    let page = reply.pages.pop().unwrap_or_default();
    Ok(LogPage {
        rows: page.rows,
        more: page.more,
        head: reply.head,
    })
}

/// Reads the changes of one slice.
struct ChangeReader<'a> {
    container: &'a Container,
    visit: &'a Visit<'a>,
    slice: &'a Slice,
    now: UnixMillis,
}

impl ChangeReader<'_> {
    /// Adds up to `most` live items whose last write is `next` or later, and whole transactions. Returns where to go on.
    async fn read(
        &self,
        next: Lsn,
        most: usize,
        items: &mut Vec<StoredItem>,
        touched: &mut Vec<RangePosition>,
    ) -> Result<Lsn> {
        let enough = items.len() + most;
        let mut from = LogPosition { lsn: next, seq: 0 };
        loop {
            let page = scan_log(&self.slice.partition, from.to_bytes(), PAGE_ROWS).await?;
            touch(touched, self.slice.partition.range, page.head.lsn);
            let changes = self.changes(&page)?;
            let found = self.fetch(&changes).await?;
            for (change, item) in changes.iter().zip(found) {
                if items.len() >= enough && change.lsn != lsn_of_last(items) {
                    return Ok(change.lsn);
                }
                items.extend(item);
            }
            match page.rows.last() {
                Some((key, _)) if page.more => from = position_of(key)?.next(),
                _ => return Ok(next.max(page.head.lsn.next())),
            }
        }
    }

    /// The entries of a log page inside the slice.
    fn changes(&self, page: &LogPage) -> Result<Vec<Change>> {
        let mut changes = Vec::new();
        for (key, value) in &page.rows {
            let position = position_of(key)?;
            let entry = LogEntry::decode(value)?;
            if self.slice.contains(&entry.item_key) {
                changes.push(Change {
                    lsn: position.lsn,
                    position,
                    item_key: entry.item_key,
                });
            }
        }
        Ok(changes)
    }

    /// The live items of some changes; `None` for what has ended or was written again since.
    async fn fetch(&self, changes: &[Change]) -> Result<Vec<Option<StoredItem>>> {
        let gets = changes
            .iter()
            .map(|change| Key::new(Space::Item, change.item_key.clone()))
            .collect();
        let reply = self.slice.partition.read(Ask { gets, scans: vec![] }).await?;
        let horizon = self
            .visit
            .state
            .settings
            .horizon(judged_at(self.now, reply.head).seconds());
        let mut items = Vec::with_capacity(changes.len());
        for (change, value) in changes.iter().zip(reply.gets) {
            let record = value.map(Record::decode).transpose()?;
            let current = record.filter(|record| {
                record.version() == change.position
                    && record.stamp().is_live(horizon)
                    && !self.slice.partition.hides(&change.item_key, record)
            });
            items.push(current.map(|record| StoredItem::new(self.container.rid(), record)));
        }
        Ok(items)
    }
}

struct Change {
    lsn: Lsn,
    position: LogPosition,
    item_key: Bytes,
}

/// The transaction of the last item.
fn lsn_of_last(items: &[StoredItem]) -> Lsn {
    items.last().map_or(Lsn(0), StoredItem::lsn)
}

fn position_of(key: &[u8]) -> Result<LogPosition> {
    LogPosition::decode(key).ok_or_else(|| Error::new(ErrorKind::Corrupt, "a key of the log is damaged"))
}
