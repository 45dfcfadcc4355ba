//! An engine in trouble: wraps any engine and injects what shared storage does on bad days.
//!
//! Conflicts where there are none, commits whose outcome is unknown (done, lost, or still on their way), calls that find nobody, and a
//! clock known only roughly. Everything the wrapper says is allowed by the contract of [`Engine`], so whatever stands on an
//! engine must give the same results on it. Which call is hit follows from the seed, for callers that make their calls one by one.

use std::collections::HashMap;
use std::sync::Arc;

use bolide_model::UnixMillis;
use bolide_model::time::Span;
use parking_lot::Mutex;

use crate::{Ask, Batch, CommitToken, Down, Engine, EngineFuture, Head, Outcome, PartitionId, Reply, Settled, Ticket};

/// How often what goes wrong.
#[derive(Debug, Clone, Copy)]
pub struct Faults {
    /// The same seed and the same calls give the same faults.
    pub seed: u64,
    /// Of 100 commits, those told [`Outcome::Stale`] although their base is the head.
    pub stale_percent: u64,
    /// Of 100 commits, those told [`Outcome::Unknown`]. They share three fates: done, lost, and late.
    pub unknown_percent: u64,
    /// Of 100 calls of any kind, those told [`Down::Unavailable`] before anything happened.
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
    dice: Mutex<Dice>,
    /// Commits of unknown outcome that may still arrive.
    late: Mutex<HashMap<(PartitionId, CommitToken), Batch>>,
}

/// What becomes of a commit.
enum Fate {
    Away,
    Stale,
    /// Unknown, and it was carried out.
    Done,
    /// Unknown, and it never arrived.
    Lost,
    /// Unknown, and it arrives before a later commit, or never: settling decides which.
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
            dice: Mutex::new(Dice(faults.seed)),
            late: Mutex::default(),
        }
    }

    fn fate(&self) -> Fate {
        let mut dice = self.dice.lock();
        let Faults {
            stale_percent,
            unknown_percent,
            down_percent,
            ..
        } = self.faults;
        match dice.roll(100) {
            roll if roll < down_percent => Fate::Away,
            roll if roll < down_percent + stale_percent => Fate::Stale,
            roll if roll < down_percent + stale_percent + unknown_percent => match dice.roll(3) {
                0 => Fate::Done,
                1 => Fate::Lost,
                _ => Fate::Late,
            },
            _ => Fate::Fine,
        }
    }

    fn stumble(&self) -> Result<(), Down> {
        if self.dice.lock().roll(100) < self.faults.down_percent {
            Err(away())
        } else {
            Ok(())
        }
    }

    /// Lets late commits of a partition arrive, by chance.
    async fn deliver(&self, partition: PartitionId) -> Result<(), Down> {
        let arrived: Vec<Batch> = {
            let mut dice = self.dice.lock();
            let mut late = self.late.lock();
            late.extract_if(|(of, _), _| *of == partition && dice.roll(2) == 0)
                .map(|(_, batch)| batch)
                .collect()
        };
        for batch in arrived {
            self.inner.commit(partition, batch).await?;
        }
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

    fn read(&self, partition: PartitionId, ask: Ask) -> EngineFuture<'_, Result<Reply, Down>> {
        Box::pin(async move {
            self.stumble()?;
            self.inner.read(partition, ask).await
        })
    }

    fn commit(&self, partition: PartitionId, batch: Batch) -> EngineFuture<'_, Result<Outcome, Down>> {
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
                    self.late.lock().insert((partition, batch.token), batch);
                    Ok(Outcome::Unknown(ticket))
                }
            }
        })
    }

    fn settle(&self, partition: PartitionId, ticket: Ticket) -> EngineFuture<'_, Result<Settled, Down>> {
        Box::pin(async move {
            self.stumble()?;
            self.deliver(partition).await?;
            // What has not arrived by now never will: that is what settling is for.
            self.late.lock().remove(&(partition, ticket.token));
            self.inner.settle(partition, ticket).await
        })
    }

    fn create(&self, partition: PartitionId, head: Head) -> EngineFuture<'_, Result<(), Down>> {
        Box::pin(async move {
            self.stumble()?;
            self.inner.create(partition, head).await
        })
    }

    fn remove(&self, partition: PartitionId) -> EngineFuture<'_, Result<(), Down>> {
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

    fn make_time_durable(&self, until: UnixMillis) -> EngineFuture<'_, Result<(), Down>> {
        self.inner.make_time_durable(until)
    }

    fn close(&self) -> EngineFuture<'_, Result<(), Down>> {
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

fn away() -> Down {
    Down::Unavailable("injected".into())
}

/// Chance that can be repeated: SplitMix64.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    /// A number below `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }
}
