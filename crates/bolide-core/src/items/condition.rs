//! Conditions of patches: cheap ones are judged where the patch is decided, others before.
//!
//! ```text
//!   worker: cheap? ──yes──▶ judged over the version that is patched
//!              │ no
//!              ▼
//!   a thread for queries judges a version ──▶ worker: still this version? ──yes──▶ the verdict holds
//!                        ▲                                  │ no: another was written meanwhile
//!                        └──────────────────────────────────┘
//! ```
//!
//! A partition's worker decides for everybody who writes to the partition, so it spends no more than some microseconds on what one of them
//! wants to know.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::epk::Epk;
use bolide_model::rid::ContainerRid;
use bolide_model::{Error, ErrorKind, Result, UnixMillis};
use bolide_query::{Environment, Interrupt, QueryError};

use super::ItemTarget;
use super::read::find;
use crate::container::ContainerState;
use crate::content::StoredItem;
use crate::executor::Watch;
use crate::format::keys::LogPosition;
use crate::format::record::Record;
use crate::partition::write_batch::{Decision, Stop};
use crate::partition::{AsOf, Partition};
use crate::runtime::Runtime;
use crate::sql::{Condition, QueryMemory, query_error};

/// Work that a worker does for the conditions of one request: about so many nanoseconds.
const WORK_IN_WORKER: u64 = 50_000;

/// Work that a worker does for a condition in any case.
const MIN_WORK: u64 = 5_000;

/// Work for a condition while the partition is given to the request anyway.
const WORK_IN_TURN: u64 = 5_000_000;

/// Larger documents are not gone through in a worker.
pub(super) const DOCUMENT_BYTES: usize = 64 * 1024;

/// Longer texts are compiled on a thread for queries.
const TEXT_BYTES: usize = 2 * 1024;

/// Work to compile a text at once.
const WORK_TO_COMPILE: u64 = 500_000;

/// How long a condition may take.
pub(super) const TIME: Duration = Duration::from_secs(5);

/// How long clients are asked to wait before they try again what changed too fast.
pub(super) const RETRY_AFTER: Duration = Duration::from_millis(100);

/// How often a condition is judged again because the item has changed.
const TRIES: usize = 8;

/// A condition, and what it came to for one version of the item.
#[derive(Debug, Clone)]
pub(crate) struct Judged {
    condition: Condition,
    verdict: Option<(LogPosition, bool)>,
    /// Work for judging it over another version.
    work: u64,
}

impl Judged {
    /// The condition of a request that has the partition for itself.
    pub fn in_turn(condition: Condition) -> Judged {
        Judged {
            condition,
            verdict: None,
            work: WORK_IN_TURN,
        }
    }

    /// One of so many conditions of a request.
    pub fn one_of(conditions: usize, condition: Condition) -> Judged {
        Judged {
            work: (WORK_IN_WORKER / conditions.max(1) as u64).max(MIN_WORK),
            ..Judged::in_turn(condition)
        }
    }

    /// Whether a version meets the condition.
    ///
    /// # Errors
    /// `Unprepared` if it must be judged first, because that is too much work for a worker. What evaluating it raises.
    pub fn holds(&self, rid: ContainerRid, record: &Record, now: UnixMillis) -> Decision<bool> {
        if let Some((version, holds)) = self.verdict
            && version == record.version()
        {
            return Ok(holds);
        }
        if record.document_text().len() > DOCUMENT_BYTES {
            return Err(unjudged());
        }
        let environment = Environment {
            now_ms: now.0,
            item_work: self.work,
            ..Environment::default()
        };
        let item = StoredItem::new(rid, record.clone()).to_json();
        self.condition.holds(&item, environment).map_err(|error| match error {
            QueryError::Interrupted(Interrupt::TooMuchWork) => unjudged(),
            other => Stop::Refused(query_error(other)),
        })
    }
}

fn unjudged() -> Stop {
    let kind = ErrorKind::Throttled {
        retry_after: RETRY_AFTER,
    };
    Stop::Unprepared(Error::new(
        kind,
        "The condition of the patch is expensive, and the item changes faster than the condition can be judged; try again later.",
    ))
}

/// How often a request with such conditions is decided again.
pub(crate) fn tries() -> std::ops::Range<usize> {
    0..TRIES
}

impl Runtime {
    /// Compiles a patch's condition.
    ///
    /// # Errors
    /// `QuerySyntax`; `BadRequest` if it takes too much work; `Throttled` without memory for it.
    pub(crate) async fn compile_condition(&self, text: &str) -> Result<Condition> {
        let memory = QueryMemory::of(self.memory());
        if text.len() <= TEXT_BYTES {
            let environment = Environment {
                item_work: WORK_TO_COMPILE,
                memory: Some(memory.clone()),
                ..Environment::default()
            };
            match Condition::compile(text, environment) {
                Err(QueryError::Interrupted(Interrupt::TooMuchWork)) => {}
                compiled => return compiled.map_err(query_error),
            }
        }
        let text = text.to_owned();
        let work = async move |watch: Arc<Watch>| {
            let environment = Environment {
                interrupts: Some(watch.interrupts()),
                memory: Some(memory),
                ..Environment::default()
            };
            Condition::compile(&text, environment).map_err(query_error)
        };
        self.executor().run(TIME, work).await
    }

    /// Judges a condition over the version that is stored now; without one there is nothing to judge.
    ///
    /// # Errors
    /// `BadRequest` if it takes too much work or time; what evaluating it raises.
    pub(crate) async fn judge(
        &self,
        state: &ContainerState,
        rid: ContainerRid,
        partition: &Partition,
        (epk, target): (&Epk, &ItemTarget),
        judged: &mut Judged,
    ) -> Result<()> {
        let now = partition.now().await?;
        let settings = &state.settings;
        let (Some(record), _) = find(partition, epk, target, AsOf::Time { settings, now }).await? else {
            return Ok(());
        };
        let version = record.version();
        let condition = judged.condition.clone();
        let memory = QueryMemory::of(self.memory());
        let work = async move |watch: Arc<Watch>| {
            let environment = Environment {
                now_ms: now.0,
                interrupts: Some(watch.interrupts()),
                memory: Some(memory),
                ..Environment::default()
            };
            let item = StoredItem::new(rid, record).to_json();
            condition.holds(&item, environment).map_err(query_error)
        };
        judged.verdict = Some((version, self.executor().run(TIME, work).await?));
        Ok(())
    }
}
