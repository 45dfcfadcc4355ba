//! One budget for the memory that requests take: bodies, answers, the state of queries, scripts.
//!
//! A request reserves a share of the budget before it allocates much memory, and drops the share together with what it allocated. When the
//! budget is used up, requests that can wait do so in order of arrival; the others are refused. The store's memory (its cache and memtables)
//! has limits of its own.
//!
//! Requests that hold much memory and wait for more could wait for each other. So a large body gets all its memory at once, before it is read,
//! and all bodies that are still arriving get at most a part of the budget. The rest serves the bodies that have arrived, whose processing needs
//! more memory.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bolide_model::{Error, ErrorKind, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Unit in which memory is counted, in bytes: sizes are rounded up to it.
const UNIT_BYTES: usize = 1024;

/// How long clients are asked to wait before they try again when there was no memory.
pub(crate) const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Maximum size of a small share, in bytes. A part of the budget is kept for small shares, so that requests for small items are served while
/// large ones wait.
const SMALL_BYTES: usize = 64 * 1024;
/// The part of the budget that is kept for small shares: one of this many parts.
const SMALL_PART: usize = 4;

/// The part of the memory for large shares that bodies may take while they arrive: one of this many parts.
const ARRIVING_PART: usize = 2;

/// How much memory may be allocated already while its share is waited for: one of this many parts of the budget, in addition to the budget.
const HELD_PART: usize = 16;

/// Memory that requests share.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
    small_units: usize,
    large_units: usize,
    /// The part of `large` that bodies may take while they arrive.
    arriving: Arc<Semaphore>,
    arriving_units: usize,
    /// Memory that is allocated already while its share is waited for.
    held: Arc<Semaphore>,
    /// Number of requests that wait for a share.
    waiting: Arc<AtomicUsize>,
}

impl MemoryBudget {
    /// Creates a budget of `limit_bytes` bytes.
    pub fn new(limit_bytes: usize) -> MemoryBudget {
        // A share larger than a permit's number can express is refused, so a larger budget could not be used.
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

    /// Returns the size of the whole budget, in bytes.
    pub fn limit_bytes(&self) -> usize {
        (self.small_units + self.large_units) * UNIT_BYTES
    }

    /// Returns the maximum size of one share, in bytes: all but the part that is kept for small shares.
    pub fn longest_share(&self) -> usize {
        self.large_units * UNIT_BYTES
    }

    /// Returns how many bytes are taken now.
    pub fn used_bytes(&self) -> usize {
        self.limit_bytes() - (self.small.available_permits() + self.large.available_permits()) * UNIT_BYTES
    }

    /// Returns whether any request waits for a share.
    pub fn is_short(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Takes `bytes` bytes, without waiting.
    ///
    /// # Errors
    /// `Throttled` if they are not available now; `TooLarge` if they never will be.
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

    /// Takes `bytes` bytes, after the requests that asked earlier for a share of the same kind (small or large); waits up to `timeout`.
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

    /// Grows a share to `bytes` bytes, without waiting. A share that becomes large takes no more of the part kept for small shares.
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

    /// Grows a share to `bytes` bytes, and waits for them up to `timeout`.
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
        // If the memory is available, this request must not count as waiting even for an instant: others end their work when a request waits.
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

    /// Takes `bytes` bytes for a body that has not arrived yet, after the requests that asked earlier for such bodies; waits up to `timeout`. Call
    /// [`MemoryShare::arrived`] when the body has arrived and everything made from it has its memory.
    ///
    /// # Errors
    /// As [`MemoryBudget::try_take`].
    pub async fn take_for_arriving(&self, bytes: usize, timeout: Duration) -> Result<MemoryShare> {
        let units = self.units_of(bytes)?;
        // A body that is longer than what all arriving bodies may take together arrives when no other does.
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

    /// As [`MemoryBudget::take_for_arriving`], for a body that is found to be large when a part of it has arrived: that part takes memory while it
    /// waits for the rest, so only few such bodies may wait.
    ///
    /// # Errors
    /// As [`MemoryBudget::try_take`]; without waiting if too many bytes wait already. The share stays as it was.
    pub async fn grow_for_arriving(&self, share: &mut MemoryShare, bytes: usize, timeout: Duration) -> Result<()> {
        let units = self.units_of(share.bytes())?;
        let _held = self.held.try_acquire_many(units).map_err(|_| self.exhausted())?;
        *share = self.take_for_arriving(bytes, timeout).await?;
        Ok(())
    }

    /// As [`MemoryBudget::grow`], for bytes that are allocated already: they take memory while they wait, so only few of them may.
    ///
    /// # Errors
    /// As [`MemoryBudget::try_grow`]; without waiting if too many bytes wait already.
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

/// One waiting request.
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
    /// From the part that is kept for small shares.
    small: Option<OwnedSemaphorePermit>,
    large: Option<OwnedSemaphorePermit>,
    /// Set while the share is for a body that is arriving: the permit, of the same size, from what arriving bodies may take.
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

    /// Records that the body of this share has arrived and everything made from it has its memory, so that other bodies may arrive.
    pub fn arrived(&mut self) {
        self.arriving = None;
    }

    /// Returns the size of the share, in bytes.
    pub fn bytes(&self) -> usize {
        let units =
            |permit: &Option<OwnedSemaphorePermit>| permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        (units(&self.small) + units(&self.large)) * UNIT_BYTES
    }

    /// Merges another share of the same budget into this one.
    ///
    /// # Panics
    /// If the two shares are of different budgets.
    pub fn merge(&mut self, other: MemoryShare) {
        merge(&mut self.small, other.small);
        merge(&mut self.large, other.large);
        merge(&mut self.arriving, other.arriving);
    }

    /// Gives back all but `bytes` bytes.
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
