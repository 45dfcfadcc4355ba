//! One budget for the memory that requests take: bodies, answers, the state of queries, scripts.
//!
//! Whoever is about to hold much takes a share first and drops it with what it holds. When all is taken, those who can wait do so in
//! the order in which they came; the others are refused. What the store holds (its cache and memtables) has limits of its own.
//!
//! Who waits for more while it holds much could wait for others who do the same. So large bodies are given their memory in one, before they
//! are read, and all that are still arriving have at most a part of it: the rest serves those that have come, which need more to be worked on.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bolide_model::{Error, ErrorKind, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Memory is counted in units of so many bytes: what is smaller is rounded up.
const UNIT_BYTES: usize = 1024;

/// How long clients are asked to wait before they try again what found no memory.
pub(crate) const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Shares up to so many bytes are small: a part of the budget is kept for them, so that requests for small items go on while large ones
/// wait.
const SMALL_BYTES: usize = 64 * 1024;
/// The part that is kept for them: one of so many.
const SMALL_PART: usize = 4;

/// Bodies that have not come yet may take so much of what large shares may have: one of so many parts.
const ARRIVING_PART: usize = 2;

/// What may wait for its share although it is there: one of so many parts of the budget, beside it.
const HELD_PART: usize = 16;

/// Memory that requests share.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    small_units: usize,
    large_units: usize,
    /// Of `large`, what bodies may take that have not come yet.
    arriving: Arc<Semaphore>,
    arriving_units: usize,
    /// What is there although its share has not been taken yet.
    held: Arc<Semaphore>,
    /// How many wait.
    waiting: Arc<AtomicUsize>,
}

impl MemoryBudget {
    /// A budget of so many bytes.
    pub fn new(limit_bytes: usize) -> MemoryBudget {
        // Larger takings than a permit's number can name are refused, so a larger budget would be of no use to anybody.
        let units = (limit_bytes / UNIT_BYTES).clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        let small_units = units / SMALL_PART;
        let large_units = units - small_units;
        let arriving_units = large_units.div_ceil(ARRIVING_PART);
        MemoryBudget {
            small: Arc::new(Semaphore::new(small_units)),
            large: Arc::new(Semaphore::new(large_units)),
            small_units,
            large_units,
            arriving: Arc::new(Semaphore::new(arriving_units)),
            arriving_units,
            held: Arc::new(Semaphore::new(units / HELD_PART)),
            waiting: Arc::default(),
        }
    }

    /// All of it, in bytes.
    pub fn limit_bytes(&self) -> usize {
        (self.small_units + self.large_units) * UNIT_BYTES
    }

    /// The most that one share may have, in bytes: all but what is kept for small ones.
    pub fn longest_share(&self) -> usize {
        self.large_units * UNIT_BYTES
    }

    /// What is taken now, in bytes.
    pub fn used_bytes(&self) -> usize {
        self.limit_bytes() - (self.small.available_permits() + self.large.available_permits()) * UNIT_BYTES
    }

    /// Whether anybody waits for a share.
    pub fn is_short(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Takes so many bytes at once.
    ///
    /// # Errors
    /// `Throttled` if they are not there now; `TooLarge` if they never will be.
    pub fn try_take(&self, bytes: usize) -> Result<MemoryShare> {
        let units = self.units_of(bytes)?;
        if bytes <= SMALL_BYTES
            && let Ok(permit) = self.small.clone().try_acquire_many_owned(units)
        {
            return Ok(MemoryShare::small(permit));
        }
        match self.large.clone().try_acquire_many_owned(units) {
            Ok(permit) => Ok(MemoryShare::large(permit)),
            Err(_) => Err(self.exhausted()),
        }
    }

    /// Takes so many bytes, behind those who asked before for as little or as much, and waits for them up to `timeout`.
    ///
    /// # Errors
    /// As [`MemoryBudget::try_take`].
    pub async fn take(&self, bytes: usize, timeout: Duration) -> Result<MemoryShare> {
        let exhausted = match self.try_take(bytes) {
            Err(error) if error.is_throttled() => error,
            done => return done,
        };
        let units = self.units_of(bytes)?;
        let is_small = bytes <= SMALL_BYTES && units as usize <= self.small_units;
        let pool = if is_small { &self.small } else { &self.large };
        let _waiting = Waiting::join(&self.waiting);
        match tokio::time::timeout(timeout, pool.clone().acquire_many_owned(units)).await {
            Ok(Ok(permit)) if is_small => Ok(MemoryShare::small(permit)),
            Ok(Ok(permit)) => Ok(MemoryShare::large(permit)),
            _ => Err(exhausted),
        }
    }

    /// Grows a share to so many bytes at once. One that becomes large takes no more of what is kept for small ones.
    ///
    /// # Errors
    /// As [`MemoryBudget::try_take`]; the share stays as it was.
    pub fn try_grow(&self, share: &mut MemoryShare, bytes: usize) -> Result<()> {
        let units = self.units_to_grow(share, bytes)?;
        if units == 0 {
            return Ok(());
        }
        if bytes <= SMALL_BYTES {
            share.merge(self.try_take(units as usize * UNIT_BYTES)?);
            return Ok(());
        }
        let more = self.large.clone().try_acquire_many_owned(units);
        share.merge(MemoryShare::large(more.map_err(|_| self.exhausted())?));
        Ok(())
    }

    /// Grows a share to so many bytes, and waits for them up to `timeout`.
    ///
    /// # Errors
    /// As [`MemoryBudget::try_grow`].
    pub async fn grow(&self, share: &mut MemoryShare, bytes: usize, timeout: Duration) -> Result<()> {
        let units = self.units_to_grow(share, bytes)?;
        if units == 0 {
            return Ok(());
        }
        if bytes <= SMALL_BYTES {
            share.merge(self.take(units as usize * UNIT_BYTES, timeout).await?);
            return Ok(());
        }
        // Who finds it there does not wait, not even for an instant: others end when somebody waits.
        if let Ok(permit) = self.large.clone().try_acquire_many_owned(units) {
            share.merge(MemoryShare::large(permit));
            return Ok(());
        }
        let _waiting = Waiting::join(&self.waiting);
        let taking = self.large.clone().acquire_many_owned(units);
        match tokio::time::timeout(timeout, taking).await {
            Ok(Ok(permit)) => share.merge(MemoryShare::large(permit)),
            _ => return Err(self.exhausted()),
        }
        Ok(())
    }

    /// Takes so many bytes for a body that has not come yet, behind those who asked before for such bodies, and waits for them up to `timeout`.
    /// [`MemoryShare::arrived`] when it has come and all that is made of it has its memory.
    ///
    /// # Errors
    /// As [`MemoryBudget::try_take`].
    pub async fn take_for_arriving(&self, bytes: usize, timeout: Duration) -> Result<MemoryShare> {
        let units = self.units_of(bytes)?;
        // One that is longer than all that bodies may have comes when no other does.
        let arriving_units = units.min(u32::try_from(self.arriving_units).unwrap_or(u32::MAX));
        let at_once = || {
            let arriving = self.arriving.clone().try_acquire_many_owned(arriving_units).ok()?;
            let permit = self.large.clone().try_acquire_many_owned(units).ok()?;
            Some(MemoryShare::arriving(permit, arriving))
        };
        if let Some(share) = at_once() {
            return Ok(share);
        }
        if timeout.is_zero() {
            return Err(self.exhausted());
        }
        let _waiting = Waiting::join(&self.waiting);
        let taking = async {
            let arriving = self.arriving.clone().acquire_many_owned(arriving_units).await.ok()?;
            let permit = self.large.clone().acquire_many_owned(units).await.ok()?;
            Some(MemoryShare::arriving(permit, arriving))
        };
        let taken = tokio::time::timeout(timeout, taking).await.ok().flatten();
        taken.ok_or_else(|| self.exhausted())
    }

    /// As [`MemoryBudget::take_for_arriving`], for a body that turns out to be large when a part of it has come: that part takes memory while
    /// the rest waits, so few of them may.
    ///
    /// # Errors
    /// As [`MemoryBudget::try_take`]; at once if too many bytes wait already. The share stays as it was.
    pub async fn grow_for_arriving(&self, share: &mut MemoryShare, bytes: usize, timeout: Duration) -> Result<()> {
        let units = self.units_of(share.bytes())?;
        let _held = self.held.try_acquire_many(units).map_err(|_| self.exhausted())?;
        *share = self.take_for_arriving(bytes, timeout).await?;
        Ok(())
    }

    /// As [`MemoryBudget::grow`], for bytes that are held already: they take memory while they wait, so few of them may.
    ///
    /// # Errors
    /// As [`MemoryBudget::try_grow`]; at once if too many bytes wait already.
    pub async fn grow_for_held(&self, share: &mut MemoryShare, bytes: usize, timeout: Duration) -> Result<()> {
        match self.try_grow(share, bytes) {
            Err(error) if error.is_throttled() => {}
            done => return done,
        }
        let units = self.units_of(bytes)?;
        let _held = self.held.try_acquire_many(units).map_err(|_| self.exhausted())?;
        self.grow(share, bytes, timeout).await
    }

    fn units_to_grow(&self, share: &MemoryShare, bytes: usize) -> Result<u32> {
        let units = self.units_of(bytes)?;
        let held = share.bytes() / UNIT_BYTES;
        Ok(units.saturating_sub(u32::try_from(held).unwrap_or(u32::MAX)))
    }

    fn units_of(&self, bytes: usize) -> Result<u32> {
        let too_large = || {
            Error::new(
                ErrorKind::TooLarge,
                format!(
                    "the request needs more memory than one may have. bytes={bytes} limit={}",
                    self.longest_share()
                ),
            )
        };
        if bytes > self.longest_share() {
            return Err(too_large());
        }
        u32::try_from(bytes.div_ceil(UNIT_BYTES)).map_err(|_| too_large())
    }

    fn exhausted(&self) -> Error {
        let kind = ErrorKind::Throttled {
            retry_after: RETRY_AFTER,
        };
        Error::new(
            kind,
            format!(
                "The server's memory for requests is used up; try again later. limit={} bytes",
                self.limit_bytes()
            ),
        )
    }
}

/// One of those who wait.
struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'_> {
    fn join(waiting: &AtomicUsize) -> Waiting<'_> {
        waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A part of a [`MemoryBudget`], given back when it is dropped.
#[derive(Debug, Default)]
pub struct MemoryShare {
    /// Of what is kept for small shares.
    small: Option<OwnedSemaphorePermit>,
    large: Option<OwnedSemaphorePermit>,
    /// While it is for a body that has not come: as much of what those may take.
    arriving: Option<OwnedSemaphorePermit>,
}

impl MemoryShare {
    fn small(permit: OwnedSemaphorePermit) -> MemoryShare {
        MemoryShare {
            small: Some(permit),
            ..MemoryShare::default()
        }
    }

    fn large(permit: OwnedSemaphorePermit) -> MemoryShare {
        MemoryShare {
            large: Some(permit),
            ..MemoryShare::default()
        }
    }

    fn arriving(permit: OwnedSemaphorePermit, arriving: OwnedSemaphorePermit) -> MemoryShare {
        MemoryShare {
            large: Some(permit),
            arriving: Some(arriving),
            small: None,
        }
    }

    /// The body that it was taken for has come, and what is made of it has its memory: others may come.
    pub fn arrived(&mut self) {
        self.arriving = None;
    }

    /// How many bytes it is.
    pub fn bytes(&self) -> usize {
        let units =
            |permit: &Option<OwnedSemaphorePermit>| permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        (units(&self.small) + units(&self.large)) * UNIT_BYTES
    }

    /// Makes one share of two of the same budget.
    ///
    /// # Panics
    /// If they are of different budgets.
    pub fn merge(&mut self, other: MemoryShare) {
        merge(&mut self.small, other.small);
        merge(&mut self.large, other.large);
        merge(&mut self.arriving, other.arriving);
    }

    /// Gives back all but so many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        let units = bytes.div_ceil(UNIT_BYTES);
        let mut surplus = (self.bytes() / UNIT_BYTES).saturating_sub(units);
        if let Some(arriving) = &mut self.arriving {
            drop(arriving.split(arriving.num_permits().saturating_sub(units)));
        }
        for permit in [&mut self.large, &mut self.small].into_iter().flatten() {
            let given_back = surplus.min(permit.num_permits());
            drop(permit.split(given_back));
            surplus -= given_back;
        }
    }
}

fn merge(permit: &mut Option<OwnedSemaphorePermit>, other: Option<OwnedSemaphorePermit>) {
    match (permit.as_mut(), other) {
        (Some(permit), Some(other)) => permit.merge(other),
        (None, Some(other)) => *permit = Some(other),
        (_, None) => {}
    }
}
