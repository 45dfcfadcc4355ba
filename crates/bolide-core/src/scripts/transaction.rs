//! The part of an exclusive transaction that a script can access: one logical partition, without ghosts. No operation reaches beyond it (TTL-252).

use std::sync::Arc;

use bolide_model::document::Document;
use bolide_model::epk::Epk;
use bolide_model::partition_key::PartitionKey;
use bolide_model::rid::ItemRid;
use bolide_model::{Error, ErrorKind, RequestUnits, Result, UnixMillis, charge, limits};
use bolide_query::{Environment, PageLimit, Progress, Query};
use bolide_script::{Document as Name, Operation, Reply};
use bytes::Bytes;
use serde_json::Value;
use uuid::Uuid;

use super::budget::{Running, ScriptBudget};
use super::functions::QueryFunctions;
use super::permits::ScriptPermit;
use super::run::out_of_time;
use crate::container::{Container, ContainerState};
use crate::content::StoredItem;
use crate::continuation::{self, script_query};
use crate::format::keys;
use crate::items::{ItemTarget, ItemWritten, LogicalPartition, PreparedItem, Written, own_key};
use crate::partition::exclusive::{ExclusiveEnd, ExclusiveTransaction};
use crate::partition::write_batch::{Decision, WriteBatch};
use crate::sql::query_error;

/// Maximum number of rows and of bytes of one page that a query reads.
const WALK_ROWS: usize = 500;
const WALK_BYTES: usize = 1024 * 1024;
/// Maximum number of rows in a page of results, if the script sets no size (cosmos-rest §11.3).
const PAGE_ROWS: usize = 100;
const KIND: &[u8] = b"script query";

/// See the module.
pub(super) struct ScriptTransaction {
    container: Arc<Container>,
    state: Arc<ContainerState>,
    key: PartitionKey,
    /// Range of the item keys of the logical partition: start, and end (exclusive).
    from: Bytes,
    to: Option<Bytes>,
    logical: LogicalPartition,
    permit: ScriptPermit,
}

/// A request to the exclusive transaction.
pub(super) enum ScriptRequest {
    /// An operation on one item.
    Point(Operation),
    /// The items from a key on.
    Items {
        /// The first key.
        from: Bytes,
    },
}

/// The response to a [`ScriptRequest`].
pub(super) enum ScriptResponse {
    Reply(Reply),
    Items(Items),
}

/// Live items with their keys.
pub(super) struct Items {
    items: Vec<(Bytes, StoredItem)>,
    /// Key at which the scan continues; `None` at the end.
    next: Option<Bytes>,
    now: UnixMillis,
}

/// A query of a script.
pub(super) struct ScriptQuery {
    pub text: String,
    pub parameters: Vec<(String, Value)>,
    pub page_size: Option<usize>,
    pub continuation: Option<String>,
}

impl ScriptTransaction {
    pub fn new(
        container: Arc<Container>,
        state: Arc<ContainerState>,
        key: PartitionKey,
        epk: Epk,
        permit: ScriptPermit,
    ) -> Result<ScriptTransaction> {
        let partition = state.layout.partition_of(&epk)?.clone();
        let from = Bytes::copy_from_slice(epk.as_bytes());
        Ok(ScriptTransaction {
            to: keys::after_prefix(&from),
            from,
            key,
            logical: LogicalPartition::new(container.clone(), state.clone(), partition, epk),
            container,
            state,
            permit,
        })
    }

    pub async fn answer(
        &self,
        exclusive: &mut ExclusiveTransaction,
        budget: &ScriptBudget,
        ask: ScriptRequest,
    ) -> Result<ScriptResponse, ExclusiveEnd> {
        match ask {
            ScriptRequest::Point(operation) => self
                .point(exclusive, budget, operation)
                .await
                .map(ScriptResponse::Reply),
            ScriptRequest::Items { from } => self.items(exclusive, &from).await.map(ScriptResponse::Items),
        }
    }

    async fn items(&self, exclusive: &mut ExclusiveTransaction, from: &Bytes) -> Result<Items, ExclusiveEnd> {
        let from = from.max(&self.from);
        let page = exclusive
            .items(&self.state.settings, from, self.to.as_ref(), WALK_ROWS, WALK_BYTES)
            .await?;
        let rid = self.container.rid();
        let shown = |(key, record)| (key, StoredItem::new(rid, record));
        let items = page.items.into_iter().map(shown).collect();
        Ok(Items {
            items,
            next: page.next,
            now: exclusive.now(),
        })
    }

    async fn point(
        &self,
        exclusive: &mut ExclusiveTransaction,
        budget: &ScriptBudget,
        operation: Operation,
    ) -> Result<Reply, ExclusiveEnd> {
        match operation {
            Operation::Read { target, if_none_match } => {
                self.read(exclusive, budget, &target, if_none_match.as_deref()).await
            }
            Operation::Create { document, is_id_needed } => {
                let draft = self.draft(&document, is_id_needed)?;
                self.write(exclusive, budget, |items, batch| items.create(batch, &draft))
                    .await
            }
            Operation::Upsert {
                document,
                is_id_needed,
                if_match,
            } => {
                let draft = self.draft(&document, is_id_needed)?;
                self.write(exclusive, budget, |items, batch| {
                    items.upsert(batch, &draft, if_match.as_deref())
                })
                .await
            }
            Operation::Replace {
                target,
                document,
                if_match,
            } => {
                let target = self.target(&target);
                let draft = self.draft(&document, true)?;
                self.write(exclusive, budget, |items, batch| {
                    items.replace(batch, &target, &draft, if_match.as_deref())
                })
                .await
            }
            Operation::Delete { target, if_match } => {
                let target = self.target(&target);
                self.decide(exclusive, budget, |items, batch| {
                    items.delete(batch, &target, if_match.as_deref())
                })
                .await?;
                Ok(Reply::default())
            }
            Operation::Query { .. } => Err(Error::internal("queries are run by the script's thread").into()),
        }
    }

    async fn read(
        &self,
        exclusive: &mut ExclusiveTransaction,
        budget: &ScriptBudget,
        target: &Name,
        if_none_match: Option<&str>,
    ) -> Result<Reply, ExclusiveEnd> {
        let target = self.target(target);
        let found = exclusive.decide(|batch| self.logical.find_live(batch, &target)).await;
        let size = found.as_ref().map_or(0, |existing| existing.record.size());
        budget.used(charge::point_read(size), 0);
        let item = StoredItem::new(self.container.rid(), found?.record);
        if if_none_match.is_some_and(|known| item.etag().matches(known)) {
            return Ok(Reply {
                not_modified: true,
                ..Reply::default()
            });
        }
        Ok(resource(&item))
    }

    /// Returns the link of a live item by its resource id, for the body that a trigger sees.
    pub async fn self_link(
        &self,
        exclusive: &mut ExclusiveTransaction,
        target: &ItemTarget,
    ) -> Result<String, ExclusiveEnd> {
        let found = exclusive.decide(|batch| self.logical.find_live(batch, target)).await?;
        Ok(StoredItem::new(self.container.rid(), found.record).self_link())
    }

    async fn write(
        &self,
        exclusive: &mut ExclusiveTransaction,
        budget: &ScriptBudget,
        decide: impl FnMut(&LogicalPartition, &mut WriteBatch<'_>) -> Decision<Written<ItemWritten>>,
    ) -> Result<Reply, ExclusiveEnd> {
        let written = self.decide(exclusive, budget, decide).await?;
        budget.used(RequestUnits::ZERO, written.item.record().size());
        Ok(resource(&written.item))
    }

    /// Decides one write of the transaction, and counts its request units.
    pub async fn decide<T>(
        &self,
        exclusive: &mut ExclusiveTransaction,
        budget: &ScriptBudget,
        mut decide: impl FnMut(&LogicalPartition, &mut WriteBatch<'_>) -> Decision<Written<T>>,
    ) -> Result<T, ExclusiveEnd> {
        let decided = exclusive.decide(|batch| decide(&self.logical, batch)).await;
        let cost = decided.as_ref().map_or(charge::point_read(0), |written| written.charge);
        budget.used(cost, 0);
        let written = decided?;
        Ok(written.value)
    }

    /// Prepares a document of the script's own logical partition. A document without `id` gets one, unless the script forbids it.
    fn draft(&self, text: &str, is_id_needed: bool) -> Result<PreparedItem> {
        self.draft_of(with_id(text, is_id_needed)?)
    }

    /// Like `draft`, for a document that has its id.
    pub fn draft_of(&self, document: Document) -> Result<PreparedItem> {
        // The service rejects a document of another partition with a plain 400 (cosmos-rest §11.2).
        own_key(&self.state, &document, Some(&self.key)).map_err(|error| Error {
            kind: ErrorKind::BadRequest,
            ..error
        })?;
        PreparedItem::new(document, &self.state)
    }

    fn target(&self, name: &Name) -> ItemTarget {
        match name {
            Name::Id(id) => ItemTarget::Id(id.clone()),
            Name::Rid(rid) => match ItemRid::parse(rid) {
                Some(rid) if rid.container == self.container.rid() => ItemTarget::Rid(rid.number),
                _ => ItemTarget::Id(rid.clone()),
            },
        }
    }

    /// Runs one page of a query on the script's thread, while the script has time and is not cancelled. `items` requests the items from a key on.
    pub fn query(
        &self,
        query: &ScriptQuery,
        running: &Arc<Running>,
        items: impl Fn(Bytes) -> Result<ScriptResponse>,
    ) -> Result<Reply> {
        let environment = Environment {
            interrupts: Some(running.clone()),
            memory: Some(self.permit.query_memory()),
            ..Environment::default()
        };
        let compiled = Query::compile_in(
            &query.text,
            &crate::sql::parameters(&query.parameters),
            &self.container.schema(&self.state.properties),
            environment.clone(),
        )
        .map_err(query_error)?;
        let owner = self.owner(query);
        let owner: Vec<&[u8]> = owner.iter().map(Vec::as_slice).collect();
        let position = match &query.continuation {
            Some(text) => script_query::ScriptQueryPosition::decode(&continuation::decode(&owner, text)?)?,
            None => script_query::ScriptQueryPosition::default(),
        };
        let functions = QueryFunctions::for_script(&self.container, &query.text, running, &self.permit);
        let limit = PageLimit {
            rows: query.page_size.unwrap_or(PAGE_ROWS).clamp(1, limits::PAGE_ITEMS),
            bytes: limits::PAGE_BYTES,
        };
        let environment = Environment {
            random_seed: crate::sql::random_seed(),
            udfs: functions.udfs(),
            ..environment
        };
        let scanned = self.scan(&compiled, &position, limit, &environment, running, items);
        let (finished, after) = functions.or_failure(scanned)?;

        running.budget.used(
            charge::query(
                usize::try_from(finished.metrics.items).unwrap_or(usize::MAX),
                usize::try_from(finished.metrics.item_bytes).unwrap_or(usize::MAX),
                usize::try_from(finished.metrics.row_bytes).unwrap_or(usize::MAX),
            ),
            0,
        );
        let after = after.filter(|_| !compiled.rescans() || compiled.replays());
        let continuation = finished.resume.map(|resume| {
            let next = script_query::ScriptQueryPosition {
                after,
                resume: Some(resume),
            };
            continuation::encode(&owner, &next.encode())
        });
        let rows = String::from_utf8(finished.rows.into_joined()).map_err(|_| Error::internal("rows are JSON text"))?;
        Ok(Reply {
            resource: format!("[{rows}]"),
            continuation,
            not_modified: false,
        })
    }

    fn scan(
        &self,
        query: &Query,
        position: &script_query::ScriptQueryPosition,
        limit: PageLimit,
        environment: &Environment,
        script: &Running,
        items: impl Fn(Bytes) -> Result<ScriptResponse>,
    ) -> Result<(bolide_query::Finished, Option<Bytes>)> {
        let mut after = position.after.clone();
        let replayed = after.clone().filter(|_| query.replays());
        let goes_on = after.as_deref().filter(|_| replayed.is_none());
        let mut next = Some(goes_on.map_or_else(|| self.from.clone(), keys::after));
        let mut execution = None;
        loop {
            let from = next.take().unwrap_or_else(|| self.from.clone());
            let ScriptResponse::Items(page) = items(from)? else {
                return Err(Error::internal("a reply is no items"));
            };
            if execution.is_none() {
                let environment = Environment {
                    now_ms: page.now.0,
                    ..environment.clone()
                };
                let started = query.execution(environment, limit, position.resume.as_deref());
                execution = Some(started.map_err(query_error)?);
            }
            let Some(running) = execution.as_mut() else {
                return Err(Error::internal("an execution was just started"));
            };
            let mut is_end = page.next.is_none() || running.is_done() || !query.reads_items();
            let mut is_full = false;
            if query.reads_items() && !running.is_done() {
                match push(running, page.items, script, replayed.as_ref(), &mut after)? {
                    Progress::Continue => {}
                    Progress::PageFull => (is_full, is_end) = (true, false),
                    Progress::Done => is_end = true,
                }
            }
            if is_end || is_full {
                let finished = execution.take().map(|execution| execution.finish(is_end));
                let finished = finished.ok_or_else(|| Error::internal("an execution was just used"))?;
                return Ok((finished.map_err(query_error)?, after));
            }
            next = page.next;
        }
    }

    /// Returns what a continuation is bound to: container, logical partition, and query.
    fn owner(&self, query: &ScriptQuery) -> Vec<Vec<u8>> {
        vec![
            KIND.to_vec(),
            self.container.rid().bytes().to_vec(),
            self.from.to_vec(),
            query.text.clone().into_bytes(),
            serde_json::to_vec(&query.parameters).unwrap_or_default(),
        ]
    }
}

fn resource(item: &StoredItem) -> Reply {
    Reply {
        resource: String::from_utf8_lossy(&item.to_json()).into_owned(),
        ..Reply::default()
    }
}

/// Returns a document with an id: its own, or a random one (cosmos-rest §11.3).
fn with_id(text: &str, is_id_needed: bool) -> Result<Document> {
    let value: Value = bolide_model::document::parse_json_body(text.as_bytes())?;
    if is_id_needed || value.get("id").is_some() {
        return Document::parse(text.as_bytes());
    }
    let Value::Object(mut members) = value else {
        return Document::parse(text.as_bytes());
    };
    members.insert("id".to_owned(), Uuid::new_v4().to_string().into());
    Document::parse(Value::Object(members).to_string().as_bytes())
}

/// Pushes items until a query has enough. Sets `after` to the key of the last item that the query has processed. Items up to `replayed` were
/// processed before.
fn push(
    execution: &mut bolide_query::Execution,
    items: Vec<(Bytes, StoredItem)>,
    script: &Running,
    replayed: Option<&Bytes>,
    after: &mut Option<Bytes>,
) -> Result<Progress> {
    for (key, item) in items {
        if script.is_over() {
            return Err(out_of_time());
        }
        let (text, number) = (item.to_json(), item.rid().number);
        if replayed.is_some_and(|last| key <= *last) {
            let again = bolide_query::Item::complete(&text).map_err(query_error)?;
            execution.replay(&again, number).map_err(query_error)?;
            continue;
        }
        match execution.push(&text, number).map_err(query_error)? {
            Progress::Continue => *after = Some(key),
            enough => return Ok(enough),
        }
    }
    Ok(Progress::Continue)
}

#[cfg(test)]
mod tests;
