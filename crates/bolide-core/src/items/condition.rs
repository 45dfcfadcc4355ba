//! Conditions of patches: cheap ones are evaluated during the decision, others before it.
//!
//! ```text
//!   worker: cheap? ──yes──▶ evaluated on the version that is patched
//!              │ no
//!              ▼
//!   a query thread evaluates a version ──▶ worker: still this version? ──yes──▶ the verdict holds
//!                        ▲                                  │ no: another was written meanwhile
//!                        └──────────────────────────────────┘
//! ```
//!
//! A partition's worker decides all writes of the partition, so it spends at most some microseconds on the condition of one of them.

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

/// Maximum work of a worker for all conditions of one request. A unit is about one nanosecond.
const WORK_IN_WORKER: u64 = 50_000;

/// Minimum share of that work for one condition, however many conditions the request has.
const MIN_WORK: u64 = 5_000;

/// Maximum work for a condition of a request that has the partition to itself anyway.
const WORK_IN_EXCLUSIVE: u64 = 5_000_000;

/// Maximum size in bytes of a document that a worker parses.
pub(super) const DOCUMENT_BYTES: usize = 64 * 1024;

/// Maximum length in bytes of a condition that is compiled at once; longer ones are compiled on a query thread.
const TEXT_BYTES: usize = 2 * 1024;

/// Maximum work to compile a condition at once; if it needs more, it is compiled on a query thread.
const WORK_TO_COMPILE: u64 = 500_000;

/// Maximum time for evaluating or compiling a condition on a query thread.
pub(super) const TIME: Duration = Duration::from_secs(5);

/// Time after which a client should try again when an item changed too fast.
pub(super) const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Maximum number of times a condition is evaluated again because the item has changed.
const TRIES: usize = 8;

/// A condition, and its result for one version of the item.
#[derive(Debug, Clone)]
pub(crate) struct Judged {
    condition: Condition,
    verdict: Option<(LogPosition, bool)>,
    /// Maximum work for evaluating it on another version during the decision.
    work: u64,
}

impl Judged {
    /// Returns the condition of a request that has the partition to itself.
    pub fn in_exclusive(condition: Condition) -> Judged {
        Judged {
            condition,
            verdict: None,
            work: WORK_IN_EXCLUSIVE,
        }
    }

    /// Returns one of the `conditions` conditions of a request.
    pub fn one_of(conditions: usize, condition: Condition) -> Judged {
        Judged {
            work: (WORK_IN_WORKER / conditions.max(1) as u64).max(MIN_WORK),
            ..Judged::in_exclusive(condition)
        }
    }

    /// Tells whether a version meets the condition.
    ///
    /// # Errors
    /// `Unprepared` if the condition must be evaluated before the decision, because that is too much work for a worker; the errors of evaluating it.
    pub fn holds(&self, rid: ContainerRid, record: &Record, now: UnixMillis) -> Decision<bool> {
        if let Some((version, holds)) = self.verdict
            && version == record.version()
        {
            return Ok(holds);
        }
        if record.document_bytes().len() > DOCUMENT_BYTES {
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

/// Returns how often a request with such conditions is decided again, as a range to iterate over.
pub(crate) fn tries() -> std::ops::Range<usize> {
    0..TRIES
}

impl Runtime {
    /// Compiles a patch's condition.
    ///
    /// # Errors
    /// `QuerySyntax`; `BadRequest` if it takes too much work; `Throttled` if there is no memory for it.
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

    /// Evaluates a condition on the version that is stored now. Does nothing if the item does not exist.
    ///
    /// # Errors
    /// `BadRequest` if it takes too much work or time; the errors of evaluating it.
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
