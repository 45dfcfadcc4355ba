//! Items of the programs: writes and point reads.

use bolide_core::{
    ChargedResult, CreateItem, DeleteItem, ItemRead, ItemTarget, ItemWritten, PatchItem, ReadItem, ReplaceItem,
    RequestContext, Response, StoredItem, UpsertItem,
};
use bolide_model::ErrorKind;
use bolide_model::document::{Document, Patch};
use serde_json::Value;

use super::checks::{check_item, differ, labels};
use super::faults::is_fault;
use super::program::Match;
use super::runner::{Runner, Stepped, Stop};
use crate::model::{Change, Plan, Write};
use crate::test_container::key;

impl Runner {
    pub(super) async fn write(&mut self, write: Write) -> Stepped {
        let plan = self.model.plan(&write);
        let ctx = self.begin().await?;
        match (self.send(&ctx, write.clone()).await, plan) {
            (Err(refusal), plan) if is_fault(&refusal.error) => self.settle_write(&write, plan, &refusal.error).await,
            (Err(refusal), Err(kinds)) if kinds.contains(&refusal.error.kind) => {
                self.charged(&refusal.cost);
                Ok(format!("{:?} {:?}", refusal.error.kind, refusal.cost.charge))
            }
            (Ok(answer), Ok(plan)) => {
                self.charged(&answer.cost);
                self.written(&write, plan, answer.value.as_ref())?;
                Ok(format!("done {:?}", answer.cost.charge))
            }
            (got, want) => Err(Stop::Wrong(format!(
                "{write:?}\n  got  {:?}\n  want {want:?}",
                got.map(|answer| answer.value)
            ))),
        }
    }

    /// Sends a write. Returns the written item; `None` for a delete.
    pub(super) async fn send(&self, ctx: &RequestContext, write: Write) -> ChargedResult<Option<ItemWritten>> {
        let (account, container) = (self.account(), self.container());
        let parse = |text: &str| Document::parse(text.as_bytes()).expect("programs send JSON objects");
        let written = match write {
            Write::Create(doc) => {
                let document = parse(&doc.text());
                let partition_key = Some(key(doc.pk));
                account
                    .create_item(
                        ctx,
                        container,
                        CreateItem {
                            document,
                            partition_key,
                        },
                    )
                    .await
            }
            Write::Upsert(doc, if_match) => {
                let upsert = UpsertItem {
                    document: parse(&doc.text()),
                    partition_key: None,
                    if_match,
                };
                account.upsert_item(ctx, container, upsert).await
            }
            Write::Replace(id, doc, if_match) => {
                let replace = ReplaceItem {
                    target: ItemTarget::Id(id.into()),
                    partition_key: key(doc.pk),
                    document: parse(&doc.text()),
                    if_match,
                };
                account.replace_item(ctx, container, replace).await
            }
            Write::Patch(pk, id, changes, if_match) => {
                let operations: Vec<Value> = changes.iter().map(Change::to_json).collect();
                let patch = PatchItem {
                    target: ItemTarget::Id(id.into()),
                    partition_key: key(pk),
                    patch: Patch::from_value(&operations.into()).expect("programs send patches"),
                    if_match,
                };
                account.patch_item(ctx, container, patch).await
            }
            Write::Delete(pk, id, if_match) => {
                let delete = DeleteItem {
                    target: ItemTarget::Id(id.into()),
                    partition_key: key(pk),
                    if_match,
                };
                let deleted = account.delete_item(ctx, container, delete).await?;
                return Ok(Response {
                    value: None,
                    cost: deleted.cost,
                });
            }
        };
        written.map(|answer| Response {
            value: Some(answer.value),
            cost: answer.cost,
        })
    }

    /// Applies an acknowledged write to the model.
    pub(super) fn written(&mut self, write: &Write, plan: Plan, written: Option<&ItemWritten>) -> Result<(), String> {
        let Some(written) = written else {
            differ("a delete answers without an item", plan.version.is_none(), true)?;
            self.model.carry_out(plan, "", "");
            return Ok(());
        };
        differ("created", written.created, plan.is_new)?;
        self.stored(write, plan, &written.item)
    }

    /// Applies a stored version to the model.
    pub(super) fn stored(&mut self, write: &Write, plan: Plan, item: &StoredItem) -> Result<(), String> {
        let (pk, id) = write.name();
        let (etag, rid) = labels(item);
        self.labelled(pk, id, plan, &etag, &rid)?;
        check_item(item, self.model.stored(pk, id).expect("just stored"))
    }

    /// Applies a plan to the model, with the labels that the server gave.
    pub(super) fn labelled(
        &mut self,
        pk: &'static str,
        id: &'static str,
        plan: Plan,
        etag: &str,
        rid: &str,
    ) -> Result<(), String> {
        if !self.etags.insert(etag.to_owned()) {
            return Err(format!("etag {etag} was given twice"));
        }
        self.known.entry((pk, id)).or_default().push(etag.to_owned());
        let rid_before = plan.version.as_ref().map(|version| version.rid.clone());
        if !plan.is_new {
            differ("a replaced item's _rid", Some(rid.to_owned()), rid_before)?;
        }
        self.model.carry_out(plan, etag, rid);
        Ok(())
    }

    pub(super) async fn read(&mut self, pk: &'static str, id: &'static str, on: Match) -> Stepped {
        let if_none_match = self.header(pk, id, on);
        let ctx = self.begin().await?;
        let read = ReadItem {
            target: ItemTarget::Id(id.into()),
            partition_key: key(pk),
            if_none_match: if_none_match.clone(),
        };
        let answer = self.account().read_item(&ctx, self.container(), &read).await;
        let want = self.model.live(pk, id).cloned();
        let (cost, status) = match (&answer, &want) {
            (Err(refusal), _) if is_fault(&refusal.error) => return Err(Stop::Fault),
            (Err(refusal), None) if refusal.error.kind == ErrorKind::NotFound => (&refusal.cost, "missing"),
            (Ok(Response { value, cost }), Some(version)) => {
                let is_known = if_none_match.is_some_and(|header| header == "*" || header == version.etag);
                match value {
                    ItemRead::NotModified { etag } if is_known => {
                        differ("etag", &etag.to_string(), &version.etag)?;
                        (cost, "not modified")
                    }
                    ItemRead::Found(item) if !is_known => {
                        self.shown(item)?;
                        check_item(item, version)?;
                        (cost, "found")
                    }
                    other => return Err(Stop::Wrong(format!("read {pk}/{id}: got {other:?}, known {is_known}"))),
                }
            }
            (got, want) => return Err(Stop::Wrong(format!("read {pk}/{id}\n  got  {got:?}\n  want {want:?}"))),
        };
        let answered = format!("{status} {:?}", cost.charge);
        self.charged(&cost.clone());
        if want.is_none() {
            let known = self.known.get(&(pk, id)).cloned().unwrap_or_default();
            self.missed(|etag| known.iter().any(|known| known == etag));
        }
        Ok(answered)
    }
}
