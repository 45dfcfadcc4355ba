//! Writes with triggers: the triggers before the write, the write, and the triggers after it, as one transaction (cosmos-rest §11.4).

use std::sync::Arc;

use bolide_model::document::{Document, Patch};
use bolide_model::error::ItemOperation;
use bolide_model::partition_key::PartitionKey;
use bolide_model::{Error, Lsn, Reason, Result, UnixSeconds};
use bolide_script::{Call, Kind};
use futures_util::future::BoxFuture;

use super::budget::ScriptBudget;
use super::execute::{Charged, ScriptClock, ScriptRunner, call};
use super::permits::ScriptPermit;
use super::run::run;
use super::transaction::ScriptTransaction;
use crate::container::{
    Container, ContainerState, Script, ScriptKind, ScriptQuarantine, Scripts, TriggerOperation, TriggerTime,
};
use crate::items::{ItemTarget, ItemWritten, Judged, epk_of_key};
use crate::partition::exclusive::{ExclusiveEnd, ExclusiveJob, ExclusiveTransaction};
use crate::partition::orders::Order;
use crate::response::ChargedResult;
use crate::runtime::RequestContext;

/// A write of one item, with the triggers that it names.
#[derive(Debug, Clone)]
pub struct TriggeredWrite {
    /// Ids of triggers to run before it, in order.
    pub before: Vec<String>,
    /// Ids of triggers to run after it, in order.
    pub after: Vec<String>,
    /// The partition key of the item; `None` takes that of the document.
    pub partition_key: Option<PartitionKey>,
    /// The write.
    pub write: ItemWrite,
    /// Write only if the stored item is this version.
    pub if_match: Option<String>,
}

/// A write of one item.
#[derive(Debug, Clone)]
pub enum ItemWrite {
    /// See [`crate::CreateItem`].
    Create(Document),
    /// See [`crate::UpsertItem`].
    Upsert(Document),
    /// See [`crate::ReplaceItem`].
    Replace(ItemTarget, Document),
    /// See [`crate::PatchItem`]. Triggers see no body: there is no document before the item is read.
    Patch(ItemTarget, Patch),
    /// See [`crate::DeleteItem`].
    Delete(ItemTarget),
}

/// The result of a write with triggers.
#[derive(Debug, Clone)]
pub struct TriggeredWritten {
    /// The item as it is now stored; `None` after a delete.
    pub written: Option<ItemWritten>,
    /// The response's body, if a trigger after the write changed it. JSON text.
    pub body: Option<String>,
}

impl ItemWrite {
    fn document(&self) -> Option<&Document> {
        match self {
            ItemWrite::Create(document) | ItemWrite::Upsert(document) | ItemWrite::Replace(_, document) => {
                Some(document)
            }
            ItemWrite::Patch(..) | ItemWrite::Delete(_) => None,
        }
    }

    fn set_document(&mut self, changed: Document) {
        match self {
            ItemWrite::Create(document) | ItemWrite::Upsert(document) | ItemWrite::Replace(_, document) => {
                *document = changed;
            }
            ItemWrite::Patch(..) | ItemWrite::Delete(_) => {}
        }
    }

    /// Returns the result of `getOperationType`.
    fn operation(&self) -> &'static str {
        match self {
            ItemWrite::Create(_) => "Create",
            ItemWrite::Upsert(_) => "Upsert",
            ItemWrite::Replace(..) => "Replace",
            ItemWrite::Patch(..) => "Update",
            ItemWrite::Delete(_) => "Delete",
        }
    }

    fn is_met_by(&self, operation: TriggerOperation) -> bool {
        match operation {
            TriggerOperation::All => true,
            TriggerOperation::Create => matches!(self, ItemWrite::Create(_) | ItemWrite::Upsert(_)),
            TriggerOperation::Upsert => matches!(self, ItemWrite::Upsert(_)),
            TriggerOperation::Replace | TriggerOperation::Update => {
                matches!(
                    self,
                    ItemWrite::Replace(..) | ItemWrite::Patch(..) | ItemWrite::Upsert(_)
                )
            }
            TriggerOperation::Delete => matches!(self, ItemWrite::Delete(_)),
        }
    }
}

impl TriggeredWrite {
    /// Returns the partition key of the item to write.
    fn key(&self, state: &ContainerState) -> Result<PartitionKey> {
        match (&self.partition_key, self.write.document()) {
            (Some(key), _) => Ok(key.clone()),
            (None, Some(document)) => Ok(document.partition_key(&state.properties.partition_key)),
            (None, None) => Err(Reason::PartitionKeyRequired.into()),
        }
    }
}

impl ScriptRunner<'_> {
    /// See `Account::write_with_triggers`.
    pub(crate) async fn write_with_triggers(
        &self,
        ctx: &RequestContext,
        container: &Arc<Container>,
        triggered: TriggeredWrite,
    ) -> ChargedResult<TriggeredWritten> {
        container.state().check_is_not_collection(ItemOperation::Script)?;
        let scripts = container.scripts();
        let named = |now| {
            let named = |names: &[String], time| find(&scripts, names, time, &triggered.write, now);
            let before = named(&triggered.before, TriggerTime::Pre)?;
            Ok::<_, Error>((before, named(&triggered.after, TriggerTime::Post)?))
        };
        named(ctx.now.seconds())?;
        let (permit, order) = self
            .transaction_place(container, |state| epk_of_key(state, &triggered.key(state)?))
            .await?;
        // Scripts that ran in the meantime may have caused a trigger to be blocked.
        let (before, after) = named(ctx.now.seconds())?;
        let guard = container.enter_uninterruptible().await?;
        let key = triggered.key(&guard.state)?;
        let epk = epk_of_key(&guard.state, &key)?;
        let partition = guard.state.layout.partition_of(&epk)?.clone();
        self.runtime.admit(ctx, &partition, &guard)?;

        let condition = match &triggered.write {
            ItemWrite::Patch(_, patch) => match patch.condition.as_deref() {
                Some(text) => Some(Judged::in_exclusive(self.runtime.compile_condition(text).await?)),
                None => None,
            },
            _ => None,
        };
        let transaction = Arc::new(ScriptTransaction::new(
            container.clone(),
            guard.state.clone(),
            key,
            epk,
            permit.clone(),
        )?);
        let call = |script: &Arc<Script>| {
            let call = call(container, &guard, script, String::new(), false);
            (call, script.quarantine.clone())
        };
        let (charge, used) = Charged::new();
        let job = Triggered {
            before: before.iter().map(call).collect(),
            after: after.iter().map(call).collect(),
            write: triggered.write,
            condition,
            if_match: triggered.if_match,
            clock: self.script_clock(&guard),
            transaction: transaction.clone(),
            permit,
            order,
            charge,
        };
        let outcome = partition.run_exclusive(job).await;
        self.settle(ctx, &partition, &guard, used.get(), outcome)
    }
}

/// Returns the triggers that a request names.
fn find(
    scripts: &Scripts,
    names: &[String],
    time: TriggerTime,
    write: &ItemWrite,
    now: UnixSeconds,
) -> Result<Vec<Arc<Script>>> {
    let one = |name: &String| {
        let script = scripts.by_id(ScriptKind::Trigger, name);
        let script =
            script.ok_or_else(|| Error::bad_request(format!("there is no trigger of this name. trigger=`{name}`")))?;
        let fires = script
            .fires
            .as_ref()
            .ok_or_else(|| Error::internal("a trigger fires at some time"))?;
        if fires.time != time {
            return Err(Error::bad_request(format!(
                "the trigger is of type {:?} and was included as {time:?}. trigger=`{name}`",
                fires.time
            )));
        }
        if !write.is_met_by(fires.operation) {
            return Err(Error::bad_request(format!(
                "the trigger is for operation {:?} and was included in a {}. trigger=`{name}`",
                fires.operation,
                write.operation()
            )));
        }
        script.check_quarantine(now)?;
        Ok(script.clone())
    };
    names.iter().map(one).collect()
}

struct Triggered {
    before: Vec<(Call, ScriptQuarantine)>,
    after: Vec<(Call, ScriptQuarantine)>,
    write: ItemWrite,
    condition: Option<Judged>,
    if_match: Option<String>,
    clock: ScriptClock,
    transaction: Arc<ScriptTransaction>,
    permit: ScriptPermit,
    order: Order,
    charge: Charged,
}

// Shaped like the job of a procedure on purpose: what they share is `run` and `Charged`, the rest is the form of the trait.
impl ExclusiveJob for Triggered {
    type Output = (TriggeredWritten, Lsn);

    fn run<'t>(
        &'t mut self,
        exclusive: &'t mut ExclusiveTransaction,
    ) -> BoxFuture<'t, Result<Self::Output, ExclusiveEnd>> {
        Box::pin(async move {
            let budget = self.clock.start(exclusive, &mut self.order);
            let ended = self.steps(exclusive, &budget).await;
            self.charge.set(budget.charge());
            Ok((ended?, exclusive.lsn()))
        })
    }
}

impl Triggered {
    async fn steps(
        &self,
        exclusive: &mut ExclusiveTransaction,
        budget: &Arc<ScriptBudget>,
    ) -> Result<TriggeredWritten, ExclusiveEnd> {
        let mut write = self.write.clone();
        let operation = write.operation();
        let link = match &write {
            ItemWrite::Replace(target, _) => Some(self.transaction.self_link(exclusive, target).await?),
            _ => None,
        };
        for (call, quarantine) in &self.before {
            let request = text(write.document(), link.as_deref())?;
            let kind = Kind::PreTrigger { operation, request };
            let call = Call { kind, ..call.clone() };
            let finished = run(exclusive, &self.transaction, budget, &self.permit, call, quarantine).await?;
            if write.document().is_some() {
                let body = finished.body.unwrap_or_default();
                write.set_document(Document::parse(body.as_bytes())?);
            }
        }
        let request = text(write.document(), link.as_deref())?;
        let written = self.carry_out(exclusive, budget, &write).await?;
        let stored = match &written {
            Some(written) => String::from_utf8_lossy(&written.item.to_json()).into_owned(),
            None => "null".to_owned(),
        };
        let mut body: Option<String> = None;
        for (call, quarantine) in &self.after {
            let response = body.as_ref().unwrap_or(&stored).clone();
            let kind = Kind::PostTrigger {
                operation,
                request: request.clone(),
                response: response.clone(),
            };
            let call = Call { kind, ..call.clone() };
            let finished = run(exclusive, &self.transaction, budget, &self.permit, call, quarantine).await?;
            body = finished.body.filter(|left| *left != response).or(body);
        }
        Ok(TriggeredWritten { written, body })
    }

    async fn carry_out(
        &self,
        exclusive: &mut ExclusiveTransaction,
        budget: &ScriptBudget,
        write: &ItemWrite,
    ) -> Result<Option<ItemWritten>, ExclusiveEnd> {
        let transaction = &self.transaction;
        let if_match = self.if_match.as_deref();
        let draft = write
            .document()
            .map(|document| transaction.draft_of(document.clone()))
            .transpose()?;
        let draft = || {
            draft
                .as_ref()
                .ok_or_else(|| Error::internal("a write of a document has one"))
        };
        Ok(match write {
            ItemWrite::Create(_) => {
                let draft = draft()?;
                Some(
                    transaction
                        .decide(exclusive, budget, |items, batch| items.create(batch, draft))
                        .await?,
                )
            }
            ItemWrite::Upsert(_) => {
                let draft = draft()?;
                Some(
                    transaction
                        .decide(exclusive, budget, |items, batch| items.upsert(batch, draft, if_match))
                        .await?,
                )
            }
            ItemWrite::Replace(target, _) => {
                let draft = draft()?;
                let written = transaction.decide(exclusive, budget, |items, batch| {
                    items.replace(batch, target, draft, if_match)
                });
                Some(written.await?)
            }
            ItemWrite::Patch(target, patch) => {
                let condition = self.condition.as_ref();
                let written = transaction.decide(exclusive, budget, |items, batch| {
                    items.patch(batch, target, patch, (condition, None), if_match)
                });
                Some(written.await?)
            }
            ItemWrite::Delete(target) => {
                transaction
                    .decide(exclusive, budget, |items, batch| items.delete(batch, target, if_match))
                    .await?;
                None
            }
        })
    }
}

/// Returns a document as triggers see it. The document of a replace has the `_self` of the item that it replaces, because scripts identify the item
/// by it.
fn text(document: Option<&Document>, self_link: Option<&str>) -> Result<String> {
    let Some(document) = document else {
        return Ok("null".to_owned());
    };
    let text = document.to_stored_text()?;
    let Some((link, members)) = self_link.zip(text.strip_suffix('}')) else {
        return Ok(text);
    };
    // Resource ids need no escapes.
    let comma = if members.len() > 1 { "," } else { "" };
    Ok(format!("{members}{comma}\"_self\":\"{link}\"}}"))
}
