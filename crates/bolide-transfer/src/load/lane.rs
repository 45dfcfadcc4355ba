//! One of the threads that write: a request at a time, again for the items that were not written yet.

use std::collections::BTreeMap;
use std::sync::mpsc::Receiver;

use parking_lot::RwLock;
use serde_json::Value;

use super::ledger::{Done, Ledger};
use super::{OnConflict, Operation, Target};
use crate::client::{Answer, Draft, Retries};
use crate::container::Ranges;
use crate::failure::{Failure, Result};
use crate::item::{Item, same_content};

/// Items from this size are written alone: in a bulk request they could exceed the size of a request.
const SINGLE_BYTES: usize = 1024 * 1024;

/// Sub-status of an operation that was left out because the response was full.
const RESPONSE_FULL: u32 = 3402;

/// A lane.
pub(super) struct Lane<'a> {
    target: &'a Target<'a>,
    ledger: &'a Ledger,
    ranges: &'a RwLock<Ranges>,
    /// Whether the server has refused bulk requests.
    writes_singly: bool,
}

/// The status of one write, alone or in a bulk request.
struct Verdict {
    status: u16,
    sub_status: u32,
    retry_after_ms: Option<u64>,
    message: String,
    /// Whether an earlier try may have been carried out.
    was_repeated: bool,
}

/// What to do after it.
enum Next {
    Done(Done),
    Throttled(Option<u64>),
    Unavailable,
    /// The item belongs to another range now.
    Moved,
}

impl<'a> Lane<'a> {
    pub fn new(target: &'a Target<'a>, ledger: &'a Ledger, ranges: &'a RwLock<Ranges>) -> Lane<'a> {
        Lane {
            target,
            ledger,
            ranges,
            writes_singly: false,
        }
    }

    /// Writes batches until there are no more, or until a write fails.
    pub fn run(mut self, batches: &Receiver<Vec<Operation>>) {
        for batch in batches {
            if self.ledger.has_failed() {
                return;
            }
            if let Err(failure) = self.write(batch) {
                self.ledger.fail(failure);
                self.target.client.stop().set();
                return;
            }
        }
    }

    /// Writes all items of a batch.
    fn write(&mut self, batch: Vec<Operation>) -> Result<()> {
        let mut retries = Retries::default();
        let mut pending = batch;
        loop {
            let mut again = Vec::new();
            let (mut throttled, mut is_unavailable, mut has_moved) = (None, false, false);
            for (range, group) in self.by_range(pending) {
                let verdicts = self.send(&range, &group)?;
                let mut done = Vec::with_capacity(group.len());
                for (mut operation, verdict) in group.into_iter().zip(verdicts) {
                    let next = self.next(&operation, &verdict)?;
                    match next {
                        Next::Done(how) => {
                            done.push((operation.number, operation.text.len(), how));
                            continue;
                        }
                        Next::Throttled(ms) => throttled = throttled.max(Some(ms.unwrap_or_default())),
                        Next::Unavailable => is_unavailable = true,
                        Next::Moved => has_moved = true,
                    }
                    operation.may_be_own |= verdict.was_repeated || verdict.status == 408;
                    again.push(operation);
                }
                self.ledger.done(done);
            }
            if again.is_empty() {
                return Ok(());
            }
            if has_moved {
                *self.ranges.write() = Ranges::read(self.target.client, &self.target.container.name)?;
            }
            let wait = match throttled {
                Some(ms) if !is_unavailable && !has_moved => retries.throttled((ms > 0).then_some(ms)),
                _ => retries.unavailable(),
            };
            let Some(wait) = wait else {
                return Err(self.refused(&again[0], "the server was not available for too long"));
            };
            self.target.client.stop().wait(wait)?;
            pending = again;
        }
    }

    /// Groups items by the id of their range. They keep their order.
    fn by_range(&self, operations: Vec<Operation>) -> BTreeMap<String, Vec<Operation>> {
        let ranges = self.ranges.read();
        let mut groups: BTreeMap<String, Vec<Operation>> = BTreeMap::new();
        for operation in operations {
            let range = &ranges.0[ranges.index_of(&operation.epk)];
            groups.entry(range.id.clone()).or_default().push(operation);
        }
        groups
    }

    /// Sends items of one range; one verdict for each.
    fn send(&mut self, range: &str, group: &[Operation]) -> Result<Vec<Verdict>> {
        let is_large = group.iter().any(|operation| operation.text.len() >= SINGLE_BYTES);
        if self.writes_singly || is_large {
            return group.iter().map(|operation| self.send_single(operation)).collect();
        }
        let answer = self.send_bulk(range, group)?;
        if answer.status == 410 {
            return Ok(group.iter().map(|_| Verdict::of(&answer)).collect());
        }
        if let Some(verdicts) = verdicts(&answer, group.len()) {
            return Ok(verdicts);
        }
        // A server without bulk requests, or one that refuses this one: the refusals of single writes name the item.
        let mut verdicts = Vec::with_capacity(group.len());
        for operation in group {
            let verdict = self.send_single(operation)?;
            self.writes_singly |= (200..300).contains(&verdict.status);
            verdicts.push(verdict);
        }
        Ok(verdicts)
    }

    fn send_bulk(&self, range: &str, group: &[Operation]) -> Result<Answer> {
        let kind = match self.target.on_conflict {
            OnConflict::Replace => "Upsert",
            OnConflict::Fail | OnConflict::Skip => "Create",
        };
        let mut body = Vec::with_capacity(group.iter().map(|operation| operation.text.len() + 128).sum());
        for operation in group {
            body.push(if body.is_empty() { b'[' } else { b',' });
            let key = Value::String(self.target.container.header_of(&operation.key));
            body.extend_from_slice(
                format!("{{\"operationType\":\"{kind}\",\"partitionKey\":{key},\"resourceBody\":").as_bytes(),
            );
            body.extend_from_slice(&operation.text);
            body.push(b'}');
        }
        body.push(b']');
        let path = self.target.container.name.feed("docs");
        let draft = Draft::post(&path, body)
            .header("x-ms-cosmos-is-batch-request", "True")
            .header("x-ms-cosmos-batch-atomic", "False")
            .header("x-ms-cosmos-batch-continue-on-error", "True")
            .header("x-ms-documentdb-partitionkeyrangeid", range)
            .header("prefer", "return=minimal");
        self.target.client.send(&draft)
    }

    fn send_single(&self, operation: &Operation) -> Result<Verdict> {
        let path = self.target.container.name.feed("docs");
        let mut draft = Draft::post(&path, operation.text.clone())
            .header(
                "x-ms-documentdb-partitionkey",
                self.target.container.header_of(&operation.key),
            )
            .header("prefer", "return=minimal");
        if self.target.on_conflict == OnConflict::Replace {
            draft = draft.header("x-ms-documentdb-is-upsert", "True");
        }
        self.target.client.send(&draft).map(|answer| Verdict::of(&answer))
    }

    /// Decides what a verdict means for its item.
    ///
    /// # Errors
    /// The server refuses the item, or it is there already and may not be.
    fn next(&self, operation: &Operation, verdict: &Verdict) -> Result<Next> {
        Ok(match verdict.status {
            201 => Next::Done(Done::Created),
            200 => Next::Done(Done::Replaced),
            409 => self.conflict(operation, verdict)?,
            429 => Next::Throttled(verdict.retry_after_ms),
            408 | 424 | 449 | 503 => Next::Unavailable,
            410 => Next::Moved,
            413 if verdict.sub_status == RESPONSE_FULL => Next::Unavailable,
            _ => return Err(self.refused(operation, &verdict.message)),
        })
    }

    /// Decides about an item that is there already, or whose unique key is.
    fn conflict(&self, operation: &Operation, verdict: &Verdict) -> Result<Next> {
        let on_conflict = self.target.on_conflict;
        let may_be_own = operation.may_be_own || verdict.was_repeated;
        if on_conflict == OnConflict::Skip && !self.target.container.has_unique_keys && !may_be_own {
            return Ok(Next::Done(Done::Skipped));
        }
        let Some(existing) = self.read(operation)? else {
            if self.target.container.has_unique_keys {
                return Err(self.refused(
                    operation,
                    "another item of the partition key has a value of its unique key",
                ));
            }
            // It was deleted, or expired, since.
            return Ok(Next::Unavailable);
        };
        if may_be_own && self.is_same(operation, &existing) {
            return Ok(Next::Done(Done::Own));
        }
        match on_conflict {
            OnConflict::Skip => Ok(Next::Done(Done::Skipped)),
            OnConflict::Fail | OnConflict::Replace => Err(self.refused(
                operation,
                "it is there already (--on-conflict skip or replace would go on)",
            )),
        }
    }

    fn is_same(&self, operation: &Operation, existing: &Item) -> bool {
        let written: Value = serde_json::from_slice(&operation.text).unwrap_or_default();
        written
            .as_object()
            .is_some_and(|written| same_content(written, existing))
    }

    /// The stored item with the id and partition key of an operation.
    fn read(&self, operation: &Operation) -> Result<Option<Item>> {
        let name = &self.target.container.name;
        let path = ["dbs", &name.database, "colls", &name.container, "docs", &operation.id];
        let draft = Draft::get(&path).header(
            "x-ms-documentdb-partitionkey",
            self.target.container.header_of(&operation.key),
        );
        let answer = self.target.client.send(&draft)?;
        match (answer.status, answer.json()) {
            (404, _) => Ok(None),
            (200, Value::Object(item)) => Ok(Some(item)),
            _ => Err(self.refused(operation, &answer.message())),
        }
    }

    fn refused(&self, operation: &Operation, why: &str) -> Failure {
        Failure::new(format!(
            "{}the item with id `{}` and partition key {}: {why}",
            self.target.place(operation.start),
            operation.id,
            operation.key.to_header_json()
        ))
    }
}

impl Verdict {
    fn of(answer: &Answer) -> Verdict {
        Verdict {
            status: answer.status,
            sub_status: answer.sub_status(),
            retry_after_ms: answer.retry_after_ms(),
            message: if answer.is_success() {
                String::new()
            } else {
                answer.message()
            },
            was_repeated: answer.was_repeated,
        }
    }
}

/// The verdicts of a bulk request; `None` if its answer is no list of them.
fn verdicts(answer: &Answer, count: usize) -> Option<Vec<Verdict>> {
    if !matches!(answer.status, 200 | 207) {
        return None;
    }
    let Value::Array(results) = serde_json::from_slice(&answer.body).ok()? else {
        return None;
    };
    let verdict = |result: &Value| {
        let status = u16::try_from(result["statusCode"].as_u64()?).ok()?;
        let words = result["message"].as_str().unwrap_or_default();
        Some(Verdict {
            status,
            sub_status: u32::try_from(result["subStatusCode"].as_u64().unwrap_or_default()).ok()?,
            retry_after_ms: result["retryAfterMilliseconds"].as_u64(),
            message: match words.is_empty() {
                true => format!("status {status}"),
                false => format!("status {status}: {words}"),
            },
            was_repeated: answer.was_repeated,
        })
    };
    let verdicts: Option<Vec<Verdict>> = results.iter().map(verdict).collect();
    verdicts.filter(|verdicts| verdicts.len() == count)
}
