//! Batches of the programs: all of their writes, or none.

use bolide_core::{Batch, BatchOperation, BatchResponse, ItemWritten, OperationDone, OperationResult};
use bolide_model::document::{Document, Patch};
use serde_json::Value;

use super::program::Op;
use super::runner::{Runner, Stepped, Stop};
use crate::model::{Change, Doc, Model, Write};
use crate::test_container::key;

impl Runner {
    pub(super) async fn batch(&mut self, pk: &'static str, ops: Vec<Op>) -> Stepped {
        // A batch of unknown outcome could not be told from one of other writes.
        self.be_calm(true);
        let writes: Vec<Write> = ops.into_iter().filter_map(|op| self.write_of(op)).collect();
        let batch = Batch {
            partition_key: key(pk),
            operations: writes.iter().map(operation).collect(),
        };
        let want = refused_at(self.model.clone(), &writes);
        let ctx = self.begin().await?;
        let answer = self.account().batch(&ctx, self.container(), batch).await;
        let answer = answer.map_err(|refusal| Stop::Wrong(format!("batch: {refusal:?}")))?;
        self.charged(&answer.cost);
        let answered = match (answer.value, want) {
            (BatchResponse::Committed(results), None) => self.batch_done(&writes, &results)?,
            (BatchResponse::RolledBack { at, error }, Some((want_at, kinds)))
                if at == want_at && kinds.contains(&error.kind) =>
            {
                format!("rolled back at {at}: {:?}", error.kind)
            }
            (got, want) => {
                return Err(Stop::Wrong(format!(
                    "{writes:?}\n  got  {got:?}\n  want refused at {want:?}"
                )));
            }
        };
        self.be_calm(false);
        Ok(format!("{answered} {:?}", answer.cost.charge))
    }

    fn batch_done(&mut self, writes: &[Write], results: &[OperationResult]) -> Result<String, Stop> {
        self.model.begin_transaction();
        for (write, result) in writes.iter().zip(results) {
            let plan = self
                .model
                .plan(write)
                .map_err(|kinds| format!("{write:?}: {kinds:?}"))?;
            let written: Option<&ItemWritten> = match &result.done {
                OperationDone::Written(written) => Some(written),
                OperationDone::Deleted => None,
                other => return Err(Stop::Wrong(format!("{write:?}: {other:?}"))),
            };
            self.written(write, plan, written)?;
        }
        self.model.end_transaction();
        Ok(format!("{} done", results.len()))
    }
}

/// The first write that is refused, and why; each is judged over the effects of those before it.
fn refused_at(mut model: Model, writes: &[Write]) -> Option<(usize, Vec<bolide_model::ErrorKind>)> {
    for (at, write) in writes.iter().enumerate() {
        match model.plan(write) {
            // Labels that no client knows.
            Ok(plan) => model.carry_out(plan, &format!("in the batch {at}"), ""),
            Err(kinds) => return Some((at, kinds)),
        }
    }
    None
}

fn operation(write: &Write) -> BatchOperation {
    let document = |doc: &Doc| Document::parse(doc.text().as_bytes()).expect("programs send JSON objects");
    match write.clone() {
        Write::Create(doc) => BatchOperation::Create {
            document: document(&doc),
        },
        Write::Upsert(doc, if_match) => BatchOperation::Upsert {
            document: document(&doc),
            if_match,
        },
        Write::Replace(id, doc, if_match) => BatchOperation::Replace {
            id: id.into(),
            document: document(&doc),
            if_match,
        },
        Write::Patch(_, id, changes, if_match) => {
            let operations: Vec<Value> = changes.iter().map(Change::to_json).collect();
            BatchOperation::Patch {
                id: id.into(),
                patch: Patch::from_value(&operations.into()).expect("programs send patches"),
                if_match,
            }
        }
        Write::Delete(_, id, if_match) => BatchOperation::Delete {
            id: id.into(),
            if_match,
        },
    }
}
