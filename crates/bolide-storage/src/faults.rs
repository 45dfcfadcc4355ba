//! Fault injection: wraps any engine and adds the failures that shared storage can have.
//!
//! It reports conflicts that do not exist, unknown outcomes of commits (done, lost, or delayed), unavailable engines, held snapshots that end early,
//! and an imprecise clock. The contract of [`Engine`] allows all of this, so everything built on an engine must give the same results on this one.
//! For callers that make their calls one after the other, the seed determines which calls fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bolide_model::UnixMillis;
use bolide_model::time::Span;
use fastrand::Rng;
use parking_lot::Mutex;

use crate::{
    Batch, CommitToken, Engine, EngineError, EngineFuture, Head, HeldSnapshot, HoldError, HomeId, JointOutcome, Key,
    Outcome, PartitionId, ReadRequest, ReadResponse, Resolved, Ticket, WriteLock,
};

/// How often each fault occurs.
#[derive(Debug, Clone, Copy)]
pub struct Faults {
    /// The same seed and the same calls give the same faults.
    pub seed: u64,
    /// Percentage of commits that return [`Outcome::Stale`] although their base is the head.
    pub stale_percent: u64,
    /// Percentage of commits that return [`Outcome::Unknown`]. Of these, a third each is done, lost and delayed.
    pub unknown_percent: u64,
    /// Percentage of calls of any kind that return [`EngineError::Unavailable`] before anything happened, and of reads of held snapshots that end the snapshot.
    pub down_percent: u64,
    /// How far both ends of [`Engine::time`] are from the true time.
    pub span_ms: i64,
}

impl Faults {
    /// Every kind of fault, often.
    pub fn frequent(seed: u64) -> Faults {
        Faults {
            seed,
            stale_percent: 10,
            unknown_percent: 15,
            down_percent: 10,
            span_ms: 3,
        }
    }
}

/// An engine with injected [`Faults`].
pub struct FaultyEngine {
    inner: Arc<dyn Engine>,
    faults: Faults,
    choices: Arc<Mutex<Rng>>,
    /// Commits reported as unknown that may still be carried out.
    delayed: Mutex<Vec<DelayedCommit>>,
}

/// A commit, single or joint, that may still be carried out.
struct DelayedCommit {
    batches: Vec<(PartitionId, Batch)>,
    /// It is being carried out now: its outcome cannot be known yet.
    is_arriving: bool,
}

impl DelayedCommit {
    fn new(batches: Vec<(PartitionId, Batch)>) -> DelayedCommit {
        DelayedCommit {
            batches,
            is_arriving: false,
        }
    }

    fn touches(&self, partition: PartitionId) -> bool {
        self.batches.iter().any(|(of, _)| *of == partition)
    }

    fn has(&self, partition: PartitionId, token: CommitToken) -> bool {
        self.batches
            .iter()
            .any(|(of, batch)| *of == partition && batch.token == token)
    }
}

/// A delayed commit that is being carried out. Takes it off the list when dropped: it is done, or its caller gave up.
struct Delivery<'a> {
    delayed: &'a Mutex<Vec<DelayedCommit>>,
    batches: Vec<(PartitionId, Batch)>,
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        let is_it = |delayed: &DelayedCommit| {
            let mut batches = self.batches.iter();
            batches.all(|(partition, batch)| delayed.has(*partition, batch.token))
        };
        self.delayed.lock().retain(|delayed| !is_it(delayed));
    }
}

/// The fault chosen for a commit.
enum InjectedFault {
    Unavailable,
    Stale,
    /// The outcome is reported as unknown; the commit was carried out.
    Done,
    /// The outcome is reported as unknown; the commit is never carried out.
    Lost,
    /// The outcome is reported as unknown; the commit is carried out before a later one, or never if it is resolved first.
    Delayed,
    /// No fault.
    None,
}

impl FaultyEngine {
    /// Adds `faults` to `inner`.
    pub fn new(inner: Arc<dyn Engine>, faults: Faults) -> FaultyEngine {
        FaultyEngine {
            inner,
            faults,
            choices: Arc::new(Mutex::new(Rng::with_seed(faults.seed))),
            delayed: Mutex::default(),
        }
    }

    fn next_fault(&self) -> InjectedFault {
        let mut choices = self.choices.lock();
        let Faults {
            stale_percent,
            unknown_percent,
            down_percent,
            ..
        } = self.faults;
        match choices.u64(..100) {
            roll if roll < down_percent => InjectedFault::Unavailable,
            roll if roll < down_percent + stale_percent => InjectedFault::Stale,
            roll if roll < down_percent + stale_percent + unknown_percent => match choices.u64(..3) {
                0 => InjectedFault::Done,
                1 => InjectedFault::Lost,
                _ => InjectedFault::Delayed,
            },
            _ => InjectedFault::None,
        }
    }

    fn maybe_unavailable(&self) -> Result<(), EngineError> {
        if is_hit(&mut self.choices.lock(), self.faults.down_percent) {
            Err(unavailable())
        } else {
            Ok(())
        }
    }

    /// Carries out some of the delayed commits of a partition, chosen at random.
    async fn deliver(&self, partition: PartitionId) -> Result<(), EngineError> {
        for delivery in self.arriving(partition) {
            let batches = delivery.batches.clone();
            let arrived = match <[_; 1]>::try_from(batches) {
                Ok([(partition, batch)]) => self.inner.commit(partition, batch).await.map(drop),
                Err(batches) => self.inner.commit_together(batches).await.map(drop),
            };
            match arrived {
                // If the partition is gone by now, its delayed commits are dropped.
                Ok(()) | Err(EngineError::NoPartition(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn arriving(&self, partition: PartitionId) -> Vec<Delivery<'_>> {
        let mut choices = self.choices.lock();
        let mut delayed = self.delayed.lock();
        delayed
            .iter_mut()
            .filter(|delayed| !delayed.is_arriving && delayed.touches(partition) && choices.bool())
            .map(|delayed| {
                delayed.is_arriving = true;
                Delivery {
                    delayed: &self.delayed,
                    batches: delayed.batches.clone(),
                }
            })
            .collect()
    }

    /// Drops a delayed commit, so that it is never carried out once it was resolved. Unavailable while it is being carried out.
    fn forget(&self, partition: PartitionId, token: CommitToken) -> Result<(), EngineError> {
        let mut delayed = self.delayed.lock();
        let Some(at) = delayed.iter().position(|delayed| delayed.has(partition, token)) else {
            return Ok(());
        };
        if delayed[at].is_arriving {
            return Err(unavailable());
        }
        delayed.remove(at);
        Ok(())
    }
}

impl Engine for FaultyEngine {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn checks_new_keys(&self) -> bool {
        self.inner.checks_new_keys()
    }

    fn read(
        &self,
        partition: PartitionId,
        request: ReadRequest,
    ) -> EngineFuture<'_, Result<ReadResponse, EngineError>> {
        Box::pin(async move {
            self.maybe_unavailable()?;
            self.inner.read(partition, request).await
        })
    }

    fn read_and_lock(
        &self,
        partition: PartitionId,
        keys: Vec<Key>,
    ) -> EngineFuture<'_, Result<(ReadResponse, Option<WriteLock>), EngineError>> {
        Box::pin(async move {
            self.maybe_unavailable()?;
            self.inner.read_and_lock(partition, keys).await
        })
    }

    fn commit(&self, partition: PartitionId, batch: Batch) -> EngineFuture<'_, Result<Outcome, EngineError>> {
        Box::pin(async move {
            self.deliver(partition).await?;
            let ticket = batch.ticket();
            match self.next_fault() {
                InjectedFault::Unavailable => Err(unavailable()),
                InjectedFault::Stale => Ok(Outcome::Stale),
                InjectedFault::None => self.inner.commit(partition, batch).await,
                InjectedFault::Done => match self.inner.commit(partition, batch).await {
                    Ok(Outcome::Done(_)) => Ok(Outcome::Unknown(ticket)),
                    outcome => outcome,
                },
                InjectedFault::Lost => Ok(Outcome::Unknown(ticket)),
                InjectedFault::Delayed => {
                    self.delayed.lock().push(DelayedCommit::new(vec![(partition, batch)]));
                    Ok(Outcome::Unknown(ticket))
                }
            }
        })
    }

    fn commit_together(
        &self,
        batches: Vec<(PartitionId, Batch)>,
    ) -> EngineFuture<'_, Result<JointOutcome, EngineError>> {
        Box::pin(async move {
            for (partition, _) in &batches {
                self.deliver(*partition).await?;
            }
            let unknown = JointOutcome::unknown(&batches);
            match self.next_fault() {
                // With no batches there is no ticket to resolve.
                _ if batches.is_empty() => self.inner.commit_together(batches).await,
                InjectedFault::Unavailable => Err(unavailable()),
                InjectedFault::Stale => Ok(JointOutcome::Stale),
                InjectedFault::None => self.inner.commit_together(batches).await,
                InjectedFault::Done => match self.inner.commit_together(batches).await {
                    Ok(JointOutcome::Done(_)) => Ok(unknown),
                    outcome => outcome,
                },
                InjectedFault::Lost => Ok(unknown),
                InjectedFault::Delayed => {
                    self.delayed.lock().push(DelayedCommit::new(batches));
                    Ok(unknown)
                }
            }
        })
    }

    fn hold(&self, home: HomeId, until: UnixMillis) -> EngineFuture<'_, Result<Arc<dyn HeldSnapshot>, EngineError>> {
        Box::pin(async move {
            self.maybe_unavailable()?;
            let held = FaultySnapshot {
                inner: self.inner.hold(home, until).await?,
                choices: self.choices.clone(),
                down_percent: self.faults.down_percent,
                is_lost: AtomicBool::new(false),
            };
            Ok(Arc::new(held) as Arc<dyn HeldSnapshot>)
        })
    }

    fn resolve(&self, partition: PartitionId, ticket: Ticket) -> EngineFuture<'_, Result<Resolved, EngineError>> {
        Box::pin(async move {
            self.maybe_unavailable()?;
            self.deliver(partition).await?;
            self.forget(partition, ticket.token)?;
            self.inner.resolve(partition, ticket).await
        })
    }

    fn create(&self, partition: PartitionId, head: Head) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.maybe_unavailable()?;
            self.inner.create(partition, head).await
        })
    }

    fn remove(&self, partition: PartitionId) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.maybe_unavailable()?;
            self.inner.remove(partition).await
        })
    }

    fn time(&self) -> Span {
        let Span { lo, hi } = self.inner.time();
        let span_ms = self.faults.span_ms;
        Span {
            lo: UnixMillis(lo.0.saturating_sub(span_ms)),
            hi: UnixMillis(hi.0.saturating_add(span_ms)),
        }
    }

    fn durable_time(&self) -> UnixMillis {
        self.inner.durable_time()
    }

    fn make_time_durable(&self, until: UnixMillis) -> EngineFuture<'_, Result<(), EngineError>> {
        self.inner.make_time_durable(until)
    }

    fn close(&self) -> EngineFuture<'_, Result<(), EngineError>> {
        self.inner.close()
    }
}

impl std::fmt::Debug for FaultyEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyEngine")
            .field("inner", &self.inner.name())
            .field("faults", &self.faults)
            .finish()
    }
}

/// A held snapshot that may end early, and whose reads may find the engine unavailable.
#[derive(Debug)]
struct FaultySnapshot {
    inner: Arc<dyn HeldSnapshot>,
    choices: Arc<Mutex<Rng>>,
    down_percent: u64,
    is_lost: AtomicBool,
}

impl HeldSnapshot for FaultySnapshot {
    fn read(&self, partition: PartitionId, request: ReadRequest) -> EngineFuture<'_, Result<ReadResponse, HoldError>> {
        Box::pin(async move {
            let hit = || is_hit(&mut self.choices.lock(), self.down_percent);
            let (is_away, is_lost) = (hit(), hit());
            if self.is_lost.fetch_or(is_lost, Ordering::SeqCst) || is_lost {
                return Err(HoldError::Expired);
            }
            if is_away {
                return Err(unavailable().into());
            }
            self.inner.read(partition, request).await
        })
    }
}

fn unavailable() -> EngineError {
    EngineError::Unavailable("injected".into())
}

/// Returns true in `percent` of 100 cases.
fn is_hit(choices: &mut Rng, percent: u64) -> bool {
    choices.u64(..100) < percent
}
