//! An engine in trouble: wraps any engine and injects what shared storage does on bad days.
//!
//! Conflicts where there are none, commits whose outcome is unknown (done, lost, or still on their way), calls that find nobody, held
//! snapshots that are lost before their time, and a clock known only roughly. Everything the wrapper says is allowed by the contract of
//! [`Engine`], so whatever stands on an engine must give the same results on it. Which call is hit follows from the seed, for callers that
//! make their calls one by one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bolide_model::UnixMillis;
use bolide_model::time::Span;
use fastrand::Rng;
use parking_lot::Mutex;

use crate::{
    Batch, CommitToken, Engine, EngineError, EngineFuture, Head, Held, HoldError, HomeId, JointOutcome, Outcome,
    PartitionId, ReadRequest, ReadResponse, Resolved, Ticket,
};

/// How often what goes wrong.
#[derive(Debug, Clone, Copy)]
pub struct Faults {
    /// The same seed and the same calls give the same faults.
    pub seed: u64,
    /// Of 100 commits, those told [`Outcome::Stale`] although their base is the head.
    pub stale_percent: u64,
    /// Of 100 commits, those told [`Outcome::Unknown`]. They share three fates: done, lost, and late.
    pub unknown_percent: u64,
    /// Of 100 calls of any kind, those told [`EngineError::Unavailable`] before anything happened. Of 100 reads of held snapshots, as many lose
    /// theirs.
    pub down_percent: u64,
    /// How far both ends of [`Engine::time`] are from the truth.
    pub span_ms: i64,
}

impl Faults {
    /// A bad day: every kind of trouble, often.
    pub fn bad_day(seed: u64) -> Faults {
        Faults {
            seed,
            stale_percent: 10,
            unknown_percent: 15,
            down_percent: 10,
            span_ms: 3,
        }
    }
}

/// An engine that has [`Faults`].
pub struct FaultyEngine {
    inner: Arc<dyn Engine>,
    faults: Faults,
    choices: Arc<Mutex<Rng>>,
    /// Commits of unknown outcome that may still arrive.
    late: Mutex<Vec<Late>>,
}

/// A commit that may still arrive: of one partition, or a joint one.
struct Late {
    batches: Vec<(PartitionId, Batch)>,
    /// It is on its way to the engine just now: nobody can tell what becomes of it.
    is_arriving: bool,
}

impl Late {
    fn new(batches: Vec<(PartitionId, Batch)>) -> Late {
        Late {
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

/// Takes a late commit from the list once it has arrived, or whoever delivers it has given up.
struct Delivery<'a> {
    late: &'a Mutex<Vec<Late>>,
    batches: Vec<(PartitionId, Batch)>,
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        let is_it = |late: &Late| {
            let mut batches = self.batches.iter();
            batches.all(|(partition, batch)| late.has(*partition, batch.token))
        };
        self.late.lock().retain(|late| !is_it(late));
    }
}

/// What becomes of a commit.
enum Fate {
    Away,
    Stale,
    /// Unknown, and it was carried out.
    Done,
    /// Unknown, and it never arrived.
    Lost,
    /// Unknown, and it arrives before a later commit, or never: resolving decides which.
    Late,
    /// No fault.
    Fine,
}

impl FaultyEngine {
    /// `inner`, with trouble.
    pub fn new(inner: Arc<dyn Engine>, faults: Faults) -> FaultyEngine {
        FaultyEngine {
            inner,
            faults,
            choices: Arc::new(Mutex::new(Rng::with_seed(faults.seed))),
            late: Mutex::default(),
        }
    }

    fn fate(&self) -> Fate {
        let mut choices = self.choices.lock();
        let Faults {
            stale_percent,
            unknown_percent,
            down_percent,
            ..
        } = self.faults;
        match choices.u64(..100) {
            roll if roll < down_percent => Fate::Away,
            roll if roll < down_percent + stale_percent => Fate::Stale,
            roll if roll < down_percent + stale_percent + unknown_percent => match choices.u64(..3) {
                0 => Fate::Done,
                1 => Fate::Lost,
                _ => Fate::Late,
            },
            _ => Fate::Fine,
        }
    }

    fn stumble(&self) -> Result<(), EngineError> {
        if is_hit(&mut self.choices.lock(), self.faults.down_percent) {
            Err(away())
        } else {
            Ok(())
        }
    }

    /// Lets late commits of a partition arrive, by chance.
    async fn deliver(&self, partition: PartitionId) -> Result<(), EngineError> {
        for delivery in self.arriving(partition) {
            let batches = delivery.batches.clone();
            let arrived = match <[_; 1]>::try_from(batches) {
                Ok([(partition, batch)]) => self.inner.commit(partition, batch).await.map(drop),
                Err(batches) => self.inner.commit_together(batches).await.map(drop),
            };
            match arrived {
                // A partition that is gone by now takes its late commits along.
                Ok(()) | Err(EngineError::NoPartition(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn arriving(&self, partition: PartitionId) -> Vec<Delivery<'_>> {
        let mut choices = self.choices.lock();
        let mut late = self.late.lock();
        late.iter_mut()
            .filter(|late| !late.is_arriving && late.touches(partition) && choices.bool())
            .map(|late| {
                late.is_arriving = true;
                Delivery {
                    late: &self.late,
                    batches: late.batches.clone(),
                }
            })
            .collect()
    }

    /// What has not arrived by now never will: that is what resolving is for. Unavailable while it is on its way.
    fn forget(&self, partition: PartitionId, token: CommitToken) -> Result<(), EngineError> {
        let mut late = self.late.lock();
        let Some(at) = late.iter().position(|late| late.has(partition, token)) else {
            return Ok(());
        };
        if late[at].is_arriving {
            return Err(away());
        }
        late.remove(at);
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

    fn read(
        &self,
        partition: PartitionId,
        request: ReadRequest,
    ) -> EngineFuture<'_, Result<ReadResponse, EngineError>> {
        Box::pin(async move {
            self.stumble()?;
            self.inner.read(partition, request).await
        })
    }

    fn commit(&self, partition: PartitionId, batch: Batch) -> EngineFuture<'_, Result<Outcome, EngineError>> {
        Box::pin(async move {
            self.deliver(partition).await?;
            let ticket = batch.ticket();
            match self.fate() {
                Fate::Away => Err(away()),
                Fate::Stale => Ok(Outcome::Stale),
                Fate::Fine => self.inner.commit(partition, batch).await,
                Fate::Done => match self.inner.commit(partition, batch).await {
                    Ok(Outcome::Done(_)) => Ok(Outcome::Unknown(ticket)),
                    outcome => outcome,
                },
                Fate::Lost => Ok(Outcome::Unknown(ticket)),
                Fate::Late => {
                    self.late.lock().push(Late::new(vec![(partition, batch)]));
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
            match self.fate() {
                // Nobody could resolve it.
                _ if batches.is_empty() => self.inner.commit_together(batches).await,
                Fate::Away => Err(away()),
                Fate::Stale => Ok(JointOutcome::Stale),
                Fate::Fine => self.inner.commit_together(batches).await,
                Fate::Done => match self.inner.commit_together(batches).await {
                    Ok(JointOutcome::Done(_)) => Ok(unknown),
                    outcome => outcome,
                },
                Fate::Lost => Ok(unknown),
                Fate::Late => {
                    self.late.lock().push(Late::new(batches));
                    Ok(unknown)
                }
            }
        })
    }

    fn hold(&self, home: HomeId, until: UnixMillis) -> EngineFuture<'_, Result<Arc<dyn Held>, EngineError>> {
        Box::pin(async move {
            self.stumble()?;
            let held = FaultyHeld {
                inner: self.inner.hold(home, until).await?,
                choices: self.choices.clone(),
                down_percent: self.faults.down_percent,
                is_lost: AtomicBool::new(false),
            };
            Ok(Arc::new(held) as Arc<dyn Held>)
        })
    }

    fn resolve(&self, partition: PartitionId, ticket: Ticket) -> EngineFuture<'_, Result<Resolved, EngineError>> {
        Box::pin(async move {
            self.stumble()?;
            self.deliver(partition).await?;
            self.forget(partition, ticket.token)?;
            self.inner.resolve(partition, ticket).await
        })
    }

    fn create(&self, partition: PartitionId, head: Head) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.stumble()?;
            self.inner.create(partition, head).await
        })
    }

    fn remove(&self, partition: PartitionId) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.stumble()?;
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

/// A held snapshot that may be lost, and reads of it that may find nobody.
#[derive(Debug)]
struct FaultyHeld {
    inner: Arc<dyn Held>,
    choices: Arc<Mutex<Rng>>,
    down_percent: u64,
    is_lost: AtomicBool,
}

impl Held for FaultyHeld {
    fn read(&self, partition: PartitionId, request: ReadRequest) -> EngineFuture<'_, Result<ReadResponse, HoldError>> {
        Box::pin(async move {
            let hit = || is_hit(&mut self.choices.lock(), self.down_percent);
            let (is_away, is_lost) = (hit(), hit());
            if self.is_lost.fetch_or(is_lost, Ordering::SeqCst) || is_lost {
                return Err(HoldError::Expired);
            }
            if is_away {
                return Err(away().into());
            }
            self.inner.read(partition, request).await
        })
    }
}

fn away() -> EngineError {
    EngineError::Unavailable("injected".into())
}

/// True in so many of 100 cases.
fn is_hit(choices: &mut Rng, percent: u64) -> bool {
    choices.u64(..100) < percent
}
