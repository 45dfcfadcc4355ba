//! Transactional batches: several operations on one logical partition, of which all are committed or none (cosmos-rest §5.8).
//!
//! The operations are decided in order, each on the effects of those before it, at one server time and with one LSN (TTL-208, TTL-243). If one is
//! refused, none of them is committed.

use std::sync::Arc;

use bolide_model::document::{Document, Patch};
use bolide_model::epk::Epk;
use bolide_model::error::ItemOperation;
use bolide_model::partition_key::PartitionKey;
use bolide_model::{Error, ErrorKind, Lsn, RequestUnits, Result, charge, limits};

use super::condition::{self, Judged};
use super::logical_partition::LogicalPartition;
use super::prepare::{PreparedItem, epk_of_key, own_key};
use super::write::{Kind, Written};
use super::{ItemTarget, ItemWritten};
use crate::container::{Container, ContainerState, ReadGuard};
use crate::content::StoredItem;
use crate::format::etag::Etag;
use crate::partition::write_batch::{Decision, Stop, WriteBatch};
use crate::response::{ChargedResult, Response};
use crate::runtime::{RequestContext, Runtime};

/// Operations on one logical partition, of which all are committed or none.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The partition key of all items.
    pub partition_key: PartitionKey,
    /// The operations, in order.
    pub operations: Vec<BatchOperation>,
    /// Of which operations the answer has the written item; of none, where it is shorter. A batch whose answer would be larger than a page is
    /// refused.
    pub answers_written: Vec<bool>,
}

/// One operation of a batch.
#[derive(Debug, Clone)]
pub enum BatchOperation {
    /// See [`super::CreateItem`].
    Create {
        /// The whole item.
        document: Document,
    },
    /// See [`super::UpsertItem`].
    Upsert {
        /// The whole item.
        document: Document,
        /// Replace only this version.
        if_match: Option<String>,
    },
    /// See [`super::ReplaceItem`].
    Replace {
        /// The item to replace.
        id: String,
        /// The whole new item.
        document: Document,
        /// Replace only this version.
        if_match: Option<String>,
    },
    /// See [`super::PatchItem`].
    Patch {
        /// The item to change.
        id: String,
        /// What to change.
        patch: Patch,
        /// Change only this version.
        if_match: Option<String>,
    },
    /// See [`super::DeleteItem`].
    Delete {
        /// The item to delete.
        id: String,
        /// Delete only this version.
        if_match: Option<String>,
    },
    /// See [`super::ReadItem`].
    Read {
        /// The item to read.
        id: String,
        /// Return no body if the item still is this version.
        if_none_match: Option<String>,
    },
    /// An invalid operation, which is refused whatever is stored.
    Invalid {
        /// The reason.
        error: Error,
    },
}

/// The outcome of a batch.
#[derive(Debug, Clone)]
pub enum BatchResponse {
    /// All operations were committed; their results, in the same order.
    Committed(Vec<OperationResult>),
    /// Nothing was committed, because of one operation.
    RolledBack {
        /// The operation that was refused, counted from 0.
        at: usize,
        /// The reason.
        error: Error,
    },
}

/// The result of one operation of a committed batch.
#[derive(Debug, Clone)]
pub struct OperationResult {
    /// What it did.
    pub done: OperationDone,
    /// Its cost in request units.
    pub charge: RequestUnits,
}

/// What an operation did.
#[derive(Debug, Clone)]
pub enum OperationDone {
    /// Wrote an item.
    Written(ItemWritten),
    /// Read an item.
    Read(StoredItem),
    /// Read an item that still is the version the caller knows.
    NotModified {
        /// That version.
        etag: Etag,
    },
    /// Deleted an item.
    Deleted,
}

impl Runtime {
    /// See `Account::batch`.
    pub(crate) async fn batch(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        batch: Batch,
    ) -> ChargedResult<BatchResponse> {
        let has_condition = |operation: &BatchOperation| matches!(operation, BatchOperation::Patch { patch, .. } if patch.condition.is_some());
        let guard = match batch.operations.iter().any(has_condition) {
            true => container.enter_uninterruptible().await?,
            false => container.enter().await?,
        };
        guard.state.check_is_not_collection(ItemOperation::Write)?;
        let epk = epk_of_key(&guard.state, &batch.partition_key)?;
        let key = batch.partition_key;
        let answers_written: Arc<[bool]> = batch.answers_written.into();
        let mut conditions = self.conditions_of(&batch.operations).await;
        let operations = batch
            .operations
            .into_iter()
            .map(|operation| Prepared::new(operation, &key, &guard.state));
        let operations: Arc<Vec<Prepared>> = Arc::new(operations.collect());
        for _ in condition::tries() {
            let done = self
                .batch_once(
                    ctx,
                    container,
                    &guard,
                    &epk,
                    (&operations, &answers_written),
                    &conditions,
                )
                .await?;
            let BatchDecided::Unprepared { at, .. } = done.value else {
                return Ok(done.into_batch());
            };
            if let (Some(Prepared::Patch(target, ..)), Some(Some(Ok(judged)))) =
                (operations.get(at), conditions.get_mut(at))
            {
                let partition = guard.state.layout.partition_of(&epk)?;
                self.judge(&guard.state, container.rid(), partition, (&epk, target), judged)
                    .await?;
            }
        }
        let done = self
            .batch_once(
                ctx,
                container,
                &guard,
                &epk,
                (&operations, &answers_written),
                &conditions,
            )
            .await?;
        Ok(done.into_batch())
    }

    async fn batch_once(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        guard: &ReadGuard<'_>,
        epk: &Epk,
        (operations, answers_written): (&Arc<Vec<Prepared>>, &Arc<[bool]>),
        conditions: &[Condition],
    ) -> ChargedResult<BatchDecided> {
        let (operations, conditions) = (operations.clone(), conditions.to_vec());
        let answers_written = answers_written.clone();
        let decide = move |items: &LogicalPartition, batch: &mut WriteBatch<'_>| {
            decide(items, batch, (&operations, &answers_written), &conditions)
        };
        self.write_as(Kind::Batch, ctx, container, guard, epk.clone(), decide)
            .await
    }

    /// Compiles the conditions of all operations.
    async fn conditions_of(&self, operations: &[BatchOperation]) -> Vec<Condition> {
        let text = |operation: &BatchOperation| match operation {
            BatchOperation::Patch { patch, .. } => patch.condition.clone(),
            _ => None,
        };
        let texts: Vec<Option<String>> = operations.iter().map(text).collect();
        let count = texts.iter().flatten().count();
        let mut conditions = Vec::with_capacity(texts.len());
        for text in texts {
            conditions.push(match text {
                None => None,
                Some(text) => Some(
                    self.compile_condition(&text)
                        .await
                        .map(|condition| Judged::one_of(count, condition)),
                ),
            });
        }
        conditions
    }
}

/// The condition of an operation, if it has one, or the error of its compilation.
type Condition = Option<Result<Judged>>;

/// An operation, checked as far as possible without reading items.
enum Prepared {
    Create(PreparedItem),
    Upsert(PreparedItem, Option<String>),
    Replace(ItemTarget, PreparedItem, Option<String>),
    Patch(ItemTarget, Patch, Option<String>),
    Delete(ItemTarget, Option<String>),
    Read(ItemTarget, Option<String>),
    Invalid(Error),
}

impl Prepared {
    fn new(operation: BatchOperation, key: &PartitionKey, state: &ContainerState) -> Prepared {
        Prepared::check(operation, key, state).unwrap_or_else(Prepared::Invalid)
    }

    fn check(operation: BatchOperation, key: &PartitionKey, state: &ContainerState) -> Result<Prepared> {
        let draft = |document: Document| {
            own_key(state, &document, Some(key))?;
            PreparedItem::new(document, state)
        };
        Ok(match operation {
            BatchOperation::Create { document } => Prepared::Create(draft(document)?),
            BatchOperation::Upsert { document, if_match } => Prepared::Upsert(draft(document)?, if_match),
            BatchOperation::Replace { id, document, if_match } => {
                Prepared::Replace(ItemTarget::Id(id), draft(document)?, if_match)
            }
            BatchOperation::Patch { id, patch, if_match } => Prepared::Patch(ItemTarget::Id(id), patch, if_match),
            BatchOperation::Delete { id, if_match } => Prepared::Delete(ItemTarget::Id(id), if_match),
            BatchOperation::Read { id, if_none_match } => Prepared::Read(ItemTarget::Id(id), if_none_match),
            BatchOperation::Invalid { error } => Prepared::Invalid(error),
        })
    }

    /// Returns the id of its item, if the operation names the item by id.
    fn id(&self) -> Option<&str> {
        match self {
            Prepared::Create(draft) | Prepared::Upsert(draft, _) => Some(&draft.id),
            Prepared::Replace(target, ..)
            | Prepared::Patch(target, ..)
            | Prepared::Delete(target, _)
            | Prepared::Read(target, _) => match target {
                ItemTarget::Id(id) => Some(id),
                ItemTarget::Rid(_) => None,
            },
            Prepared::Invalid(_) => None,
        }
    }

    fn draft(&self) -> Option<&PreparedItem> {
        match self {
            Prepared::Create(draft) | Prepared::Upsert(draft, _) | Prepared::Replace(_, draft, _) => Some(draft),
            _ => None,
        }
    }

    fn decide(
        &self,
        items: &LogicalPartition,
        batch: &mut WriteBatch<'_>,
        condition: &Condition,
    ) -> Decision<Written<OperationDone>> {
        match self {
            Prepared::Create(draft) => Ok(items.create(batch, draft)?.map(OperationDone::Written)),
            Prepared::Upsert(draft, if_match) => Ok(items
                .upsert(batch, draft, if_match.as_deref())?
                .map(OperationDone::Written)),
            Prepared::Replace(target, draft, if_match) => Ok(items
                .replace(batch, target, draft, if_match.as_deref())?
                .map(OperationDone::Written)),
            Prepared::Patch(target, patch, if_match) => {
                let condition = condition
                    .as_ref()
                    .map(|judged| judged.as_ref().map_err(Clone::clone))
                    .transpose()?;
                let written = items.patch(batch, target, patch, (condition, None), if_match.as_deref())?;
                Ok(written.map(OperationDone::Written))
            }
            Prepared::Delete(target, if_match) => Ok(items
                .delete(batch, target, if_match.as_deref())?
                .map(|()| OperationDone::Deleted)),
            Prepared::Read(target, if_none_match) => read(items, batch, target, if_none_match.as_deref()),
            Prepared::Invalid(error) => Err(Stop::Refused(error.clone())),
        }
    }
}

/// The result of deciding a batch.
enum BatchDecided {
    Response(BatchResponse),
    /// The condition of operation `at` must be evaluated before the batch is decided.
    Unprepared {
        at: usize,
        error: Error,
    },
}

impl Response<BatchDecided> {
    fn into_batch(self) -> Response<BatchResponse> {
        let value = match self.value {
            BatchDecided::Response(answer) => answer,
            BatchDecided::Unprepared { at, error } => BatchResponse::RolledBack { at, error },
        };
        Response { value, cost: self.cost }
    }
}

fn read(
    items: &LogicalPartition,
    batch: &mut WriteBatch<'_>,
    target: &ItemTarget,
    if_none_match: Option<&str>,
) -> Decision<Written<OperationDone>> {
    let record = items.find_live(batch, target)?.record;
    let charge = charge::point_read(record.size());
    let etag = record.etag();
    let value = match if_none_match {
        Some(known) if etag.matches(known) => OperationDone::NotModified { etag },
        _ => OperationDone::Read(StoredItem::new(items.container.rid(), record)),
    };
    Ok(Written {
        value,
        lsn: Lsn::default(),
        charge,
    })
}

/// Maximum size in bytes of the items that the patches of a batch write together. Nobody else writes to the partition meanwhile, and a short request
/// can patch a large item a hundred times.
const PATCHED_BYTES: usize = 4 * 1024 * 1024;

fn too_large() -> Error {
    let message = format!(
        "The items that the patches of the batch write are larger than a batch may write. limit={PATCHED_BYTES} bytes"
    );
    Error::new(ErrorKind::TooLarge, message)
}

fn too_large_to_answer() -> Error {
    let message = format!(
        "The items that the batch reads and writes are larger than an answer may be. limit={} bytes",
        limits::PAGE_BYTES
    );
    Error::new(ErrorKind::TooLarge, message)
}

/// The results of the operations so far.
struct Results {
    results: Written<Vec<OperationResult>>,
    /// Size in bytes of the documents that the response will contain.
    answered_bytes: usize,
    /// Size in bytes of the documents that patches wrote.
    patched_bytes: usize,
}

impl Default for Results {
    fn default() -> Results {
        Results {
            results: Written {
                value: Vec::new(),
                lsn: Lsn::default(),
                charge: RequestUnits::ZERO,
            },
            answered_bytes: 0,
            patched_bytes: 0,
        }
    }
}

impl Results {
    fn add(&mut self, operation: &Prepared, written: Written<OperationDone>, answers_written: bool) {
        let Written { value, lsn, charge } = written;
        if let (Prepared::Patch(..), OperationDone::Written(written)) = (operation, &value) {
            self.patched_bytes += written.item.record().size();
        }
        self.answered_bytes += match &value {
            OperationDone::Read(item) => item.record().size(),
            OperationDone::Written(written) if answers_written => written.item.record().size(),
            _ => 0,
        };
        self.results.value.push(OperationResult { done: value, charge });
        self.results.lsn = self.results.lsn.max(lsn);
        self.results.charge += charge;
    }
}

fn decide(
    items: &LogicalPartition,
    batch: &mut WriteBatch<'_>,
    (operations, answers_written): (&[Prepared], &[bool]),
    conditions: &[Condition],
) -> Decision<Written<BatchDecided>> {
    items.foresee(
        batch,
        operations.iter().filter_map(Prepared::id),
        operations.iter().filter_map(Prepared::draft),
    )?;
    let mut refused_at = 0;
    let decided = batch.batch(|batch| {
        let mut all = Results::default();
        for (at, (operation, condition)) in operations.iter().zip(conditions).enumerate() {
            refused_at = at;
            let written = operation.decide(items, batch, condition)?;
            all.add(operation, written, answers_written.get(at) == Some(&true));
            if all.answered_bytes > limits::PAGE_BYTES {
                // All operations together exceed the limit; the error is reported for the last one, as in the service.
                refused_at = operations.len() - 1;
                return Err(Stop::Refused(too_large_to_answer()));
            }
            if all.patched_bytes > PATCHED_BYTES {
                return Err(Stop::Refused(too_large()));
            }
        }
        Ok(all.results)
    });
    match decided {
        Ok(all) => {
            // A batch without writes returns the log sequence number of the partition's head.
            let lsn = all.lsn.max(batch.head());
            Ok(Written {
                lsn,
                ..all.map(|results| BatchDecided::Response(BatchResponse::Committed(results)))
            })
        }
        Err(Stop::NeedsRead) => {
            // The items are too large to be read all ahead. The batch is decided again after each read, so the next read takes as many of them as its
            // limit allows.
            items.read_on(batch, operations[refused_at..].iter().filter_map(Prepared::id));
            Err(Stop::NeedsRead)
        }
        Err(stop @ Stop::EndsSoon(_)) => Err(stop),
        Err(Stop::Refused(error)) => {
            let rolled_back = BatchResponse::RolledBack { at: refused_at, error };
            Ok(Written::nothing(batch, BatchDecided::Response(rolled_back)))
        }
        Err(Stop::Unprepared(error)) => {
            let unprepared = BatchDecided::Unprepared { at: refused_at, error };
            Ok(Written::nothing(batch, unprepared))
        }
    }
}
