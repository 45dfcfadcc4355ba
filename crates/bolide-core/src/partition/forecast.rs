//! How many items end when (TTL-272), without going through them each time somebody asks.
//!
//! Entries of a queue stand in the order of their ends. Cuts divide it:
//!
//! ```text
//!   expired │ within a minute │ an hour │ a day │ seven days │ thirty days │ later
//!           ▲ the horizon
//! ```
//!
//! What lies between two cuts is counted once; from then on every write keeps the count, and as time goes on a cut passes entries, each of
//! them once. That costs O(1) for each item and cut over the item's life. Counts are kept in memory only, from the first time that somebody
//! asks.

use bolide_model::ttl::{Class, Policy, Settings};
use bolide_model::{Result, UnixSeconds};
use bolide_storage::Page;

use super::write_batch::{Decision, WriteBatch};
use crate::format::keys::{ExpiryPosition, LogPosition};
use crate::format::queues::{self, Queue, QueueEntry};
use crate::format::record::Record;

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;
/// Ends of the slices of a forecast, in seconds from now; the last one is open.
pub(crate) const SLICES: [i64; 6] = [60, HOUR, DAY, 7 * DAY, 30 * DAY, i64::MAX];
/// The horizon, and the ends of all slices but the open one.
const CUTS: usize = SLICES.len();

const BYTES: usize = 512 * 1024;

/// See the module.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Forecast {
    own: Option<QueueForecast<ExpiryPosition>>,
    /// Of the log, entries that live by the default.
    inherited: Option<QueueForecast<LogPosition>>,
}

/// One queue of expiry, cut into slices.
#[derive(Debug, Clone, PartialEq)]
struct QueueForecast<P> {
    /// Entries before it are counted; `None`: all.
    upto: Option<P>,
    /// What the cuts are for: before a cut lies what has a lower base.
    bounds: [i64; CUTS],
    /// Ascending.
    cuts: [P; CUTS],
    /// What is counted before the first cut, between each two, and behind the last.
    items: [u64; CUTS + 1],
}

/// The live items of a partition by slice, and where the first of each queue stands.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ends {
    pub items: [u64; SLICES.len()],
    pub own: Option<ExpiryPosition>,
    pub inherited: Option<LogPosition>,
}

/// Counts what is not counted yet and moves the cuts to where they belong now, past so many entries each; `None` if that was not all.
pub(crate) fn count_some(batch: &mut WriteBatch<'_>, settings: &Settings, rows: usize) -> Decision<Option<Ends>> {
    let now = batch.seconds();
    let mut forecast = batch.state.forecast.as_deref().cloned().unwrap_or_default();
    let (horizon, policy) = (batch.horizon(settings), settings.policy);
    let own = bounds(now, horizon.own, 0);
    let mut is_complete = QueueForecast::count(&mut forecast.own, batch, own, rows)?;
    match policy {
        Policy::After(seconds) => {
            let inherited = bounds(now, horizon.inherited, i64::from(seconds));
            is_complete &= QueueForecast::count(&mut forecast.inherited, batch, inherited, rows)?;
        }
        Policy::Off | Policy::OwnOnly => forecast.inherited = None,
    }
    let ends = is_complete.then(|| forecast.ends());
    batch.state.forecast = Some(Box::new(forecast));
    Ok(ends)
}

/// The bases before which the cuts are at `now`, of items that end so many seconds after their base.
fn bounds(now: UnixSeconds, horizon: i64, ttl_seconds: i64) -> [i64; CUTS] {
    let first = horizon.saturating_add(1);
    let mut bounds = [first; CUTS];
    for (bound, slice) in bounds.iter_mut().skip(1).zip(SLICES) {
        *bound = now.0.saturating_add(slice).saturating_sub(ttl_seconds).max(first);
    }
    bounds
}

impl Forecast {
    /// Takes note of a record that is now stored.
    pub fn added(&mut self, record: &Record) {
        self.change(record, |items| *items += 1);
    }

    /// Takes note of a record that is no longer stored.
    pub fn removed(&mut self, record: &Record) {
        self.change(record, |items| *items = items.saturating_sub(1));
    }

    fn change(&mut self, record: &Record, change: impl Fn(&mut u64)) {
        match (record.stamp().class, record.expiry_position()) {
            (Class::Inherited, _) => {
                if let Some(items) = self
                    .inherited
                    .as_mut()
                    .and_then(|queue| queue.items_at(record.version()))
                {
                    change(items);
                }
            }
            (Class::Own, Some(position)) => {
                if let Some(items) = self.own.as_mut().and_then(|queue| queue.items_at(position)) {
                    change(items);
                }
            }
            (Class::Own | Class::Never, _) => {}
        }
    }

    fn ends(&self) -> Ends {
        let mut ends = Ends {
            items: [0; SLICES.len()],
            own: self.own.as_ref().map(|queue| queue.cuts[0]),
            inherited: self.inherited.as_ref().map(|queue| queue.cuts[0]),
        };
        let own = self.own.iter().map(|queue| queue.items);
        for queue in own.chain(self.inherited.iter().map(|queue| queue.items)) {
            for (sum, items) in ends.items.iter_mut().zip(&queue[1..]) {
                *sum += items;
            }
        }
        ends
    }
}

impl<P: Queue> QueueForecast<P> {
    fn new(bounds: [i64; CUTS]) -> QueueForecast<P> {
        QueueForecast {
            upto: Some(P::default()),
            bounds,
            cuts: [P::default(); CUTS],
            items: [0; CUTS + 1],
        }
    }

    /// The count that an entry is in, if it is counted.
    fn items_at(&mut self, position: P) -> Option<&mut u64> {
        if self.upto.is_some_and(|upto| position >= upto) {
            return None;
        }
        let slice = self.cuts.iter().position(|cut| position < *cut);
        self.items.get_mut(slice.unwrap_or(CUTS))
    }

    /// Counts a part, within one write batch. Returns whether everything is counted and every cut is in its position.
    fn count(
        queue: &mut Option<QueueForecast<P>>,
        batch: &mut WriteBatch<'_>,
        bounds: [i64; CUTS],
        rows: usize,
    ) -> Decision<bool> {
        // Cuts only move forward. A longer default ttl would set them back.
        let is_ahead = |queue: &QueueForecast<P>| queue.bounds.iter().zip(&bounds).any(|(known, bound)| known > bound);
        let queue = match queue {
            Some(known) if !is_ahead(known) => known,
            _ => queue.insert(QueueForecast::new(bounds)),
        };
        if let Some(from) = queue.upto {
            let page = read(batch, from, None, rows)?;
            queue.count_first(&page)?;
            return Ok(false);
        }
        for cut in (0..CUTS).rev() {
            if !queue.advance(batch, cut, bounds[cut], rows)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn count_first(&mut self, page: &Page) -> Result<()> {
        for entry in queues::entries::<P>(page) {
            let (position, base) = counted_base(&entry?);
            let after = position.next();
            self.upto = Some(after);
            let Some(base) = base else { continue };
            for (cut, bound) in self.cuts.iter_mut().zip(self.bounds) {
                if base < bound {
                    *cut = after;
                } else if let Some(exact) = P::of_base(bound) {
                    *cut = exact;
                }
            }
            let slice = self.bounds.iter().position(|bound| base < *bound);
            self.items[slice.unwrap_or(CUTS)] += 1;
        }
        if !page.more {
            self.upto = None;
            for (cut, bound) in self.cuts.iter_mut().zip(self.bounds) {
                *cut = P::of_base(bound).unwrap_or(*cut);
            }
        }
        Ok(())
    }

    /// Moves a cut forward to a bound, and no further than the next cut; tells whether it is there.
    fn advance(&mut self, batch: &mut WriteBatch<'_>, cut: usize, bound: i64, rows: usize) -> Decision<bool> {
        let limit = self.cuts.get(cut + 1).copied();
        let from = self.cuts[cut];
        if limit.is_none_or(|limit| from < limit) && P::of_base(bound) != Some(from) {
            let page = read(batch, from, limit, rows)?;
            for entry in queues::entries::<P>(&page) {
                let (position, base) = counted_base(&entry?);
                if base.is_some_and(|base| base >= bound) {
                    return Ok(self.arrive(cut, bound));
                }
                self.cuts[cut] = position.next();
                if base.is_some() {
                    self.items[cut + 1] = self.items[cut + 1].saturating_sub(1);
                    self.items[cut] += 1;
                }
            }
            if page.more {
                return Ok(false);
            }
        }
        Ok(self.arrive(cut, bound))
    }

    fn arrive(&mut self, cut: usize, bound: i64) -> bool {
        self.bounds[cut] = bound;
        self.cuts[cut] = P::of_base(bound).unwrap_or(self.cuts[cut]);
        true
    }
}

fn read<P: Queue>(batch: &mut WriteBatch<'_>, from: P, to: Option<P>, rows: usize) -> Decision<Page> {
    let scan = queues::scan(from, to, rows, BYTES);
    Ok(batch.scan_raw(&[scan])?.pop().unwrap_or_default())
}

/// Where an entry is, and its base if it is counted.
fn counted_base<P: Queue>(entry: &QueueEntry<P>) -> (P, Option<i64>) {
    (entry.position, entry.belongs().then_some(entry.stamp.base.0))
}
