//! An exclusive transaction: the only one of its write batch, decided step by step, as scripts are.
//!
//! The transactions of a write batch are functions of what was read, and are decided again whenever more was read. A script cannot be: it
//! is asked what it wants next. So the worker hands the partition to it. All steps see one head with the effects of the steps before them, and
//! all effects become one commit with one log sequence number (TTL-252), or none. Server time is read once, when the transaction begins: it
//! judges every step and is the commit's stamp.

use std::collections::BTreeMap;
use std::sync::Arc;

use bolide_model::ttl::Settings;
use bolide_model::{Error, ErrorKind, Lsn, Result, UnixMillis};
use bolide_storage::{Engine, Head, PartitionId, ReadRequest, ReadResponse, Scan, Space};
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
    /// The partition's head moved since the transaction began: discard everything and begin again.
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
    /// Visible records with their keys, in the order of these.
    pub items: Vec<(Bytes, Record)>,
    /// Where the walk goes on; `None` at the end.
    pub next: Option<Bytes>,
}

/// See the module.
pub(crate) struct ExclusiveTransaction {
    engine: Arc<dyn Engine>,
    partition: PartitionId,
    head: Head,
    now: UnixMillis,
    loaded: Loaded,
    /// Absent only while a step is being decided.
    draft: Option<Suspended>,
}

impl ExclusiveTransaction {
    pub fn new(
        engine: Arc<dyn Engine>,
        partition: PartitionId,
        head: Head,
        now: UnixMillis,
        state: PartitionState,
    ) -> ExclusiveTransaction {
        ExclusiveTransaction {
            engine,
            partition,
            head,
            now,
            loaded: Loaded::default(),
            draft: Some(Suspended::new(now, head.lsn, state)),
        }
    }

    /// Where the log stands: the transaction's own number once it has written something.
    pub fn lsn(&self) -> Lsn {
        self.draft.as_ref().map_or(self.head.lsn, Suspended::lsn)
    }

    /// Server time of the whole transaction.
    pub fn now(&self) -> UnixMillis {
        self.now
    }

    /// Decides one step, reading what it needs. A refused step has added nothing.
    pub async fn decide<T>(
        &mut self,
        mut decide: impl FnMut(&mut WriteBatch<'_>) -> Decision<T>,
    ) -> Result<T, ExclusiveEnd> {
        if self.loaded.is_full() {
            // The partition stands where it stood: what is needed again is read again.
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
                Err(Stop::NeedsRead) => {
                    let reply = self.read(self.loaded.read_request(&missing)).await?;
                    self.loaded.take(missing, reply);
                }
            }
        }
    }

    /// A page of visible items between two keys, as the steps before have left them.
    pub async fn items(
        &mut self,
        settings: &Settings,
        from: &Bytes,
        to: Option<&Bytes>,
        max_rows: usize,
        max_bytes: usize,
    ) -> Result<ExclusivePage, ExclusiveEnd> {
        let scan = Scan {
            space: Space::Item,
            from: from.clone(),
            to: to.cloned(),
            reverse: false,
            max_rows,
            max_bytes,
            keys_only: false,
        };
        let request = ReadRequest {
            scans: vec![scan],
            ..ReadRequest::default()
        };
        let page = self.read(request).await?.pages.pop().unwrap_or_default();
        let next = match page.rows.last() {
            Some((key, _)) if page.more => Some(crate::format::keys::after(key)),
            _ => None,
        };
        let end = next.as_ref().or(to);
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
        Ok(ExclusivePage { items, next })
    }

    /// What is to be committed of everything that was drafted.
    pub fn into_decided(mut self, before: &PartitionState) -> Decided {
        let draft = self.draft();
        draft.resume(&self.loaded).into_decided(self.head.lsn, before)
    }

    /// What decides which items exist for its steps.
    fn visibility(&self, settings: &Settings) -> Visibility {
        let tombstones = self
            .draft
            .as_ref()
            .map(|draft| TombstoneView::of(&draft.state().tombstones));
        Visibility::new(settings.horizon(self.now.seconds()), tombstones.unwrap_or_default())
    }

    fn draft(&mut self) -> Suspended {
        self.draft.take().expect("a step puts the draft back")
    }

    async fn read(&self, request: ReadRequest) -> Result<ReadResponse, ExclusiveEnd> {
        let reply = self.engine.read(self.partition, request).await.map_err(engine_error)?;
        if reply.head == self.head {
            Ok(reply)
        } else {
            Err(ExclusiveEnd::Stale)
        }
    }
}

/// A transaction that is decided step by step. May be run again from its start.
pub(crate) trait ExclusiveJob: Send + 'static {
    /// What it comes to.
    type Output: Send;

    /// Decides all steps. What was drafted is committed if this is `Ok`.
    fn run<'t>(
        &'t mut self,
        exclusive: &'t mut ExclusiveTransaction,
    ) -> BoxFuture<'t, Result<Self::Output, ExclusiveEnd>>;
}

/// How an exclusive transaction ended.
pub(crate) enum Taken {
    /// Commit the draft.
    Drafted,
    /// Nothing is to be committed.
    Refused,
    /// Run it again on the new head.
    Stale,
}

/// What the worker runs as an exclusive transaction.
pub(crate) trait TakesPartition: Send {
    fn take<'t>(&'t mut self, exclusive: &'t mut ExclusiveTransaction) -> BoxFuture<'t, Taken>;

    /// The transaction has ended: `Ok` with the head after it, or nothing happened and this is why.
    fn end(self: Box<Self>, ended: &Result<Lsn>);
}

/// A job on its way through a worker.
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
                // Nobody waits for it any more, and others wait for the partition.
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
        // Who hears of its end finds free what it held.
        drop(job);
        let result = match (ended, decided) {
            (_, Some(Err(refusal))) => Err(refusal),
            (Ok(_), Some(Ok(output))) => Ok(output),
            (Err(error), _) => Err(error.clone()),
            (Ok(_), None) => Err(Error::internal("an exclusive transaction ended before it was decided")),
        };
        // The request may be gone; its writes stand.
        let _ = reply.send(result);
    }
}
