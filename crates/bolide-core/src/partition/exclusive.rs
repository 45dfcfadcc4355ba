//! An exclusive transaction: the only one of its write batch, decided step by step. Scripts run as such.
//!
//! The transactions of a write batch are functions of the rows that were read, and are decided again whenever more rows were read. A script cannot be
//! decided like that: each of its steps depends on the result of the previous one. So the script gets the partition to itself. All of its steps see
//! one head and the effects of the previous steps. All effects become one commit with one log sequence number (TTL-252), or none is committed. Server
//! time is read once, when the transaction begins: it decides in every step what has expired, and is the commit's stamp.

use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_model::time::CommitTime;
use bolide_model::ttl::Settings;
use bolide_model::{Error, ErrorKind, Lsn, Reason, Result, UnixMillis};
use bolide_storage::{
    Engine, EngineError, Head, HeldSnapshot, HoldError, Page, PartitionId, ReadRequest, ReadResponse, Scan, Space,
};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::engine_error;
use super::state::PartitionState;
use super::tombstones::TombstoneView;
use super::visibility::Visibility;
use super::write_batch::{Decided, Decision, Loaded, Stop, Suspended, WriteBatch};
use crate::format::record::Record;

/// Why a step ended early.
#[derive(Debug)]
pub(crate) enum ExclusiveEnd {
    /// The partition's head has moved since the transaction began: discard everything and begin again.
    Stale,
    /// The step is refused; it changed nothing.
    Refused(Error),
}

impl From<Error> for ExclusiveEnd {
    fn from(error: Error) -> ExclusiveEnd {
        ExclusiveEnd::Refused(error)
    }
}

/// One page of a scan in an exclusive transaction.
pub(crate) struct ExclusivePage {
    /// Visible records with their keys, in key order.
    pub items: Vec<(Bytes, Record)>,
    /// Key at which the scan continues; `None` at the end.
    pub next: Option<Bytes>,
}

/// See the module.
pub(crate) struct ExclusiveTransaction {
    source: Source,
    partition: PartitionId,
    head: Head,
    now: UnixMillis,
    loaded: Loaded,
    /// `None` only while a step is being decided.
    draft: Option<Suspended>,
}

/// Where a transaction reads rows.
enum Source {
    /// From the engine; the transaction is stale if the head moves.
    Engine(Arc<dyn Engine>),
    /// From a snapshot that is held: the head does not move.
    Held(Arc<dyn HeldSnapshot>),
    /// There are none.
    Nothing,
}

impl ExclusiveTransaction {
    /// Like [`ExclusiveTransaction::over`], over a partition that did not exist when the snapshot was taken.
    pub fn over_nothing(partition: PartitionId, now: UnixMillis) -> ExclusiveTransaction {
        let head = Head::first(now);
        ExclusiveTransaction {
            source: Source::Nothing,
            partition,
            head,
            now,
            loaded: Loaded::default(),
            draft: Some(Suspended::new(now, head.lsn, PartitionState::default())),
        }
    }

    /// Creates a transaction over a held snapshot. It has nothing to itself: others write the partition meanwhile, and its draft is never committed.
    pub fn over(
        held: Arc<dyn HeldSnapshot>,
        partition: PartitionId,
        head: Head,
        now: UnixMillis,
        state: PartitionState,
    ) -> ExclusiveTransaction {
        ExclusiveTransaction {
            source: Source::Held(held),
            partition,
            head,
            now,
            loaded: Loaded::default(),
            draft: Some(Suspended::new(now, head.lsn, state)),
        }
    }

    pub fn new(
        engine: Arc<dyn Engine>,
        partition: PartitionId,
        head: Head,
        now: UnixMillis,
        state: PartitionState,
    ) -> ExclusiveTransaction {
        ExclusiveTransaction {
            source: Source::Engine(engine),
            partition,
            head,
            now,
            loaded: Loaded::default(),
            draft: Some(Suspended::new(now, head.lsn, state)),
        }
    }

    /// Gives the transaction its place in the order of all commits.
    #[must_use]
    pub fn at(self, time: CommitTime) -> ExclusiveTransaction {
        ExclusiveTransaction {
            draft: self.draft.map(|draft| draft.at(time)),
            ..self
        }
    }

    /// Waits out versions that are about to end, if `waits_out`.
    #[must_use]
    pub fn waiting_out(self, waits_out: bool) -> ExclusiveTransaction {
        ExclusiveTransaction {
            draft: self.draft.map(|draft| draft.waiting_out(waits_out)),
            ..self
        }
    }

    /// Returns the newest log sequence number: the transaction's own once it has written something.
    pub fn lsn(&self) -> Lsn {
        self.draft.as_ref().map_or(self.head.lsn, Suspended::lsn)
    }

    /// Returns the server time of the whole transaction.
    pub fn now(&self) -> UnixMillis {
        self.now
    }

    /// Decides one step and reads the rows that it needs. A refused step has no effects.
    pub async fn decide<T>(
        &mut self,
        mut decide: impl FnMut(&mut WriteBatch<'_>) -> Decision<T>,
    ) -> Result<T, ExclusiveEnd> {
        if self.loaded.is_full() {
            // The partition has not changed since; rows that are needed again are read again.
            self.loaded = Loaded::default();
        }
        loop {
            let (decided, missing) = {
                let mut batch = self.draft().resume(&self.loaded);
                let decided = decide(&mut batch);
                let missing = batch.missing();
                self.draft = Some(batch.suspend());
                (decided, missing)
            };
            match decided {
                Ok(value) => return Ok(value),
                Err(Stop::Refused(error) | Stop::Unprepared(error)) => return Err(ExclusiveEnd::Refused(error)),
                Err(Stop::EndsSoon(pause)) => {
                    tokio::time::sleep(pause).await;
                    return Err(ExclusiveEnd::Stale);
                }
                Err(Stop::NeedsRead) => {
                    let reply = self.read(self.loaded.read_request(&missing)).await?;
                    self.loaded.take(missing, reply);
                }
            }
        }
    }

    /// Returns a page of the visible items between two keys, changes of the previous steps included.
    pub async fn items(
        &mut self,
        settings: &Settings,
        from: &Bytes,
        to: Option<&Bytes>,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<ExclusivePage, ExclusiveEnd> {
        let page = self.scan_items((from, to), false, (max_rows, max_bytes)).await?;
        let next = match page.rows.last() {
            Some((key, _)) if page.more => Some(crate::format::keys::after(key)),
            _ => None,
        };
        let end = next.clone();
        let items = self.with_changes(settings, page, (from, end.as_ref().or(to)))?;
        Ok(ExclusivePage { items, next })
    }

    /// Like [`ExclusiveTransaction::items`], but backward: the last items before a key, the last one first. `next` is the key before which to go on.
    pub async fn items_before(
        &mut self,
        settings: &Settings,
        to: Option<&Bytes>,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<ExclusivePage, ExclusiveEnd> {
        let first = Bytes::new();
        let page = self.scan_items((&first, to), true, (max_rows, max_bytes)).await?;
        let next = match page.rows.last() {
            Some((key, _)) if page.more => Some(key.clone()),
            _ => None,
        };
        let from = next.clone().unwrap_or_default();
        let mut items = self.with_changes(settings, page, (&from, to))?;
        items.reverse();
        Ok(ExclusivePage { items, next })
    }

    async fn scan_items(
        &mut self,
        (from, to): (&Bytes, Option<&Bytes>),
        reverse: bool,
        (max_rows, max_bytes): (usize, usize),
    ) -> Result<Page, ExclusiveEnd> {
        let scan = Scan {
            space: Space::Item,
            from: from.clone(),
            to: to.cloned(),
            reverse,
            max_rows,
            max_bytes,
            keys_only: false,
        };
        let request = ReadRequest {
            scans: vec![scan],
            ..ReadRequest::default()
        };
        Ok(self.read(request).await?.pages.pop().unwrap_or_default())
    }

    /// Returns the visible items of a page that covers the keys between two others, with the changes of the previous steps, in the order of their keys.
    fn with_changes(
        &self,
        settings: &Settings,
        page: Page,
        (from, end): (&Bytes, Option<&Bytes>),
    ) -> Result<Vec<(Bytes, Record)>, ExclusiveEnd> {
        let mut rows: BTreeMap<Bytes, Bytes> = page.rows.into_iter().collect();
        for (key, value) in self.draft.iter().flat_map(|draft| draft.effects_in(Space::Item)) {
            if key < from || end.is_some_and(|end| key >= end) {
                continue;
            }
            match value {
                Some(value) => rows.insert(key.clone(), value.clone()),
                None => rows.remove(key),
            };
        }
        let visibility = self.visibility(settings);
        let mut items = Vec::with_capacity(rows.len());
        for (key, value) in rows {
            let record = Record::decode(value)?;
            if visibility.shows(&key, &record) {
                items.push((key, record));
            }
        }
        Ok(items)
    }

    /// Returns the result of all steps, to be committed. `before` is the partition's state before the transaction.
    pub fn into_decided(mut self, before: &PartitionState) -> Decided {
        let draft = self.draft();
        draft.resume(&self.loaded).into_decided(self.head.lsn, before)
    }

    /// Returns the rule that decides which items are visible to its steps.
    fn visibility(&self, settings: &Settings) -> Visibility {
        let tombstones = self
            .draft
            .as_ref()
            .map(|draft| TombstoneView::of(&draft.state().tombstones));
        Visibility::new(settings.horizon(self.now), tombstones.unwrap_or_default())
    }

    fn draft(&mut self) -> Suspended {
        self.draft.take().expect("a step puts the draft back")
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadResponse, ExclusiveEnd> {
        let reply = match &self.source {
            Source::Engine(engine) => match engine.read(self.partition, request).await {
                // Another server has removed the container, or split the range.
                Err(EngineError::NoPartition(_)) if engine.is_shared() => return Err(ExclusiveEnd::Stale),
                read => read.map_err(engine_error)?,
            },
            Source::Held(held) => held.read(self.partition, request).await.map_err(hold_error)?,
            Source::Nothing => ReadResponse {
                head: self.head,
                gets: vec![None; request.gets.len()],
                pages: request.scans.iter().map(|_| Page::default()).collect(),
            },
        };
        if reply.head == self.head {
            Ok(reply)
        } else {
            Err(ExclusiveEnd::Stale)
        }
    }
}

/// Converts an error of a held snapshot.
pub(crate) fn hold_error(error: HoldError) -> Error {
    match error {
        HoldError::Expired => Reason::SnapshotEnded.into(),
        HoldError::Engine(error) => engine_error(error),
    }
}

/// A transaction that is decided step by step. It may be run again from its start.
pub(crate) trait ExclusiveJob: Send + 'static {
    /// The result of the job.
    type Output: Send;

    /// Decides all steps. The draft is committed if this returns `Ok`.
    fn run<'t>(
        &'t mut self,
        exclusive: &'t mut ExclusiveTransaction,
    ) -> BoxFuture<'t, Result<Self::Output, ExclusiveEnd>>;
}

/// How an exclusive transaction ended.
pub(crate) enum Taken {
    /// Commit the draft.
    Drafted,
    /// Commit nothing.
    Refused,
    /// Run it again on the new head.
    Stale,
}

/// An exclusive transaction as the worker runs it.
pub(crate) trait TakesPartition: Send {
    fn take<'t>(&'t mut self, exclusive: &'t mut ExclusiveTransaction) -> BoxFuture<'t, Taken>;

    /// Receives the outcome: `Ok` with the log sequence number after the commit, or the reason why nothing was committed.
    fn end(self: Box<Self>, ended: &Result<Lsn>);
}

/// A job that is queued at a worker or running.
pub(super) struct PendingExclusive<J: ExclusiveJob> {
    job: J,
    decided: Option<Result<J::Output>>,
    reply: oneshot::Sender<Result<J::Output>>,
}

impl<J: ExclusiveJob> PendingExclusive<J> {
    pub fn new(job: J, reply: oneshot::Sender<Result<J::Output>>) -> PendingExclusive<J> {
        PendingExclusive {
            job,
            decided: None,
            reply,
        }
    }
}

impl<J: ExclusiveJob> TakesPartition for PendingExclusive<J> {
    fn take<'t>(&'t mut self, exclusive: &'t mut ExclusiveTransaction) -> BoxFuture<'t, Taken> {
        Box::pin(async move {
            let ended = tokio::select! {
                biased;
                // The client has disconnected; stop, because other writes wait for the partition.
                () = self.reply.closed() => Err(Error::new(ErrorKind::Unavailable, "the client has left").into()),
                ended = self.job.run(exclusive) => ended,
            };
            let (decided, taken) = match ended {
                Ok(output) => (Some(Ok(output)), Taken::Drafted),
                Err(ExclusiveEnd::Refused(error)) => (Some(Err(error)), Taken::Refused),
                Err(ExclusiveEnd::Stale) => (None, Taken::Stale),
            };
            self.decided = decided;
            taken
        })
    }

    fn end(self: Box<Self>, ended: &Result<Lsn>) {
        let PendingExclusive { job, decided, reply } = *self;
        // The job is dropped before the reply is sent, so that the resources it held are free when the client gets the reply.
        drop(job);
        let result = match (ended, decided) {
            (_, Some(Err(refusal))) => Err(refusal),
            (Ok(_), Some(Ok(output))) => Ok(output),
            (Err(error), _) => Err(error.clone()),
            (Ok(_), None) => Err(Error::internal("an exclusive transaction ended before it was decided")),
        };
        // The request may have been cancelled; its writes stay committed.
        let _ = reply.send(result);
    }
}
