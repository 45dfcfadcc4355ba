//! Converts the clients' calls to requests, and answers to outcomes.

use std::sync::Arc;

use bolide_core::{
    Account, Batch, BatchOperation, BatchResponse, Container, Cost, CreateItem, DeleteItem, FeedStart, ItemRead,
    ItemTarget, OperationDone, PatchItem, QueryItems, ReadChanges, ReadFeed, ReadItem, ReplaceItem, StoredItem,
    UpsertItem,
};
use bolide_model::document::{Document, Patch};
use bolide_model::{Error, ErrorKind};
use serde_json::{Value, json};

use super::action::{Action, Body, Call, Listing, Outcome, Refused, Seen};
use super::procedure;
use crate::test_container::{definition, key, scope_of, shown};

/// Returns the definition of the container that the clients share.
pub fn shared_definition() -> Value {
    definition(&json!({
        "defaultTtl": -1,
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
        "changeFeedPolicy": {"retentionDuration": 10_000_000},
    }))
}

fn seen<T>(answer: bolide_core::ChargedResult<T>, seen: impl FnOnce(T) -> Seen) -> Answered<Outcome> {
    let (answer, lsn) = answered(answer)?;
    let outcome = match answer {
        Ok(answer) => Outcome::Seen(seen(answer)),
        Err(error) => refused(&error),
    };
    Ok((outcome, lsn))
}

/// The account and the container of a round.
pub struct Track {
    pub account: Arc<Account>,
    pub container: Arc<Container>,
}

impl Action {
    pub(super) fn id(&self) -> &'static str {
        match self {
            Action::Create(body) | Action::Upsert(body) | Action::Replace(body, _) => body.id,
            Action::Increment(id, _) | Action::Delete(id, _) | Action::Read(id) => id,
        }
    }

    fn to_operation(&self) -> BatchOperation {
        match self.clone() {
            Action::Create(body) => BatchOperation::Create {
                document: document(&body),
            },
            Action::Upsert(body) => BatchOperation::Upsert {
                document: document(&body),
                if_match: None,
            },
            Action::Replace(body, if_match) => BatchOperation::Replace {
                id: body.id.to_owned(),
                document: document(&body),
                if_match,
            },
            Action::Increment(id, if_match) => BatchOperation::Patch {
                id: id.to_owned(),
                patch: increment(),
                if_match,
            },
            Action::Delete(id, if_match) => BatchOperation::Delete {
                id: id.to_owned(),
                if_match,
            },
            Action::Read(id) => BatchOperation::Read {
                id: id.to_owned(),
                if_none_match: None,
            },
        }
    }
}

fn document(body: &Body) -> Document {
    let mut item = json!({"id": body.id, "pk": "p", "n": body.n, "u": body.u});
    if let Some(ttl) = body.ttl {
        item["ttl"] = ttl.into();
    }
    Document::parse(item.to_string().as_bytes()).expect("an item")
}

fn increment() -> Patch {
    Patch::from_value(&json!([{"op": "incr", "path": "/n", "value": 1}])).expect("a patch")
}

fn number(item: &StoredItem, name: &str) -> i64 {
    shown(item)[name].as_i64().expect("a whole number")
}

fn written(item: &StoredItem, created: bool) -> Seen {
    Seen::Written {
        created,
        n: number(item, "n"),
        etag: item.etag().to_string(),
    }
}

fn found(item: &StoredItem) -> Seen {
    Seen::Found {
        n: number(item, "n"),
        u: number(item, "u"),
        etag: item.etag().to_string(),
    }
}

/// The answer to a call, and the position that it showed; or an error that is not about the call: the store, or the server, could not carry it out.
type Answered<T> = Result<(T, u64), Error>;

/// In the place of a position, where an answer has none.
pub const NO_POSITION: u64 = 0;

fn position(cost: &Cost) -> u64 {
    let positions = cost.touched.iter().map(|touched| touched.lsn.0);
    positions.max().expect("an answer about items shows a position")
}

fn answered<T>(answer: bolide_core::ChargedResult<T>) -> Answered<Result<T, Error>> {
    match answer {
        Ok(answer) => Ok((Ok(answer.value), position(&answer.cost))),
        Err(refusal) if is_trouble(&refusal.error) => Err(refusal.error),
        Err(refusal) => Ok((Err(refusal.error), position(&refusal.cost))),
    }
}

/// Returns whether an error is not about the call.
fn is_trouble(error: &Error) -> bool {
    matches!(
        error.kind,
        ErrorKind::Unavailable | ErrorKind::Timeout | ErrorKind::Throttled { .. }
    )
}

fn refused(error: &Error) -> Outcome {
    Outcome::Refused(Refused::of(&error.kind))
}

impl Track {
    /// As [`Track::attempt`], where nothing keeps the server from carrying out the call.
    pub async fn make(&self, call: &Call) -> (Outcome, u64) {
        self.attempt(call).await.expect("a store without faults")
    }

    /// Carries out a call. Returns its outcome and the position in the answer.
    ///
    /// # Errors
    /// `Timeout`: the call was carried out or not; all other errors: it was not.
    pub async fn attempt(&self, call: &Call) -> Answered<Outcome> {
        match call {
            Call::One(action) => self.one(action).await,
            Call::Batch(actions) => self.batch(actions).await,
            Call::Script(actions) => {
                let ctx = self.account.begin().await?;
                let execute = procedure::call(actions);
                let answer = self.account.execute_procedure(&ctx, &self.container, execute).await;
                let (executed, lsn) = answered(answer)?;
                let executed = executed.expect("a script");
                Ok((Outcome::Ran(procedure::outcomes(actions, &executed)), lsn))
            }
            Call::DropAll => {
                let ctx = self.account.begin().await?;
                let partition_key = key("p");
                let dropped = self.account.delete_all_of_key(&ctx, &self.container, &partition_key);
                let (dropped, lsn) = answered(dropped.await)?;
                Ok((dropped.map_or_else(|error| refused(&error), |()| Outcome::Dropped), lsn))
            }
            Call::List(listing) => self.list(*listing).await,
            Call::Changes => self.changes().await,
            Call::Change(_) => panic!("it is a part of a call"),
            Call::Find(u) => {
                let text = "SELECT c.id, c._etag FROM c WHERE c.u = @u";
                self.query(text, vec![("@u".to_owned(), (*u).into())]).await
            }
            Call::Count => {
                let (rows, lsn) = self.rows("SELECT VALUE COUNT(1) FROM c", Vec::new()).await?;
                Ok((Outcome::Counted(rows[0].as_u64().expect("a number")), lsn))
            }
            Call::Usage => {
                let usage = self.account.usage(&self.container).await?;
                Ok((Outcome::Counted(usage.items), NO_POSITION))
            }
            Call::DefaultTtl(default) => self.define(*default).await,
        }
    }

    async fn define(&self, default: Option<i64>) -> Answered<Outcome> {
        let ctx = self.account.begin().await?;
        let mut definition = shared_definition();
        definition["defaultTtl"] = default.into();
        let replaced = self.account.replace_container(&ctx, &self.container, &definition, None);
        let outcome = match replaced.await {
            Ok(_) => Outcome::Defined,
            Err(error) if error.kind == ErrorKind::Unavailable => Outcome::NotDefined,
            Err(error) if is_trouble(&error) => return Err(error),
            Err(error) => panic!("no definition is refused so: {error:?}"),
        };
        // Its answer has no position, so one is read afterwards.
        loop {
            if let Ok((_, lsn)) = self.list(Listing::ReadFeed).await {
                return Ok((outcome, lsn));
            }
        }
    }

    async fn one(&self, action: &Action) -> Answered<Outcome> {
        let (account, container) = (&self.account, &self.container);
        let ctx = account.begin().await?;
        let target = ItemTarget::Id(action.id().to_owned());
        let partition_key = key("p");
        let answer = match action.clone() {
            Action::Create(body) => {
                let create = CreateItem {
                    document: document(&body),
                    partition_key: None,
                };
                account.create_item(&ctx, container, create).await
            }
            Action::Upsert(body) => {
                let upsert = UpsertItem {
                    document: document(&body),
                    partition_key: None,
                    if_match: None,
                };
                account.upsert_item(&ctx, container, upsert).await
            }
            Action::Replace(body, if_match) => {
                let replace = ReplaceItem {
                    target,
                    partition_key,
                    document: document(&body),
                    if_match,
                };
                account.replace_item(&ctx, container, replace).await
            }
            Action::Increment(_, if_match) => {
                let patch = PatchItem {
                    target,
                    partition_key,
                    patch: increment(),
                    if_match,
                };
                account.patch_item(&ctx, container, patch).await
            }
            Action::Delete(_, if_match) => {
                let delete = DeleteItem {
                    target,
                    partition_key,
                    if_match,
                };
                let deleted = account.delete_item(&ctx, container, delete).await;
                return seen(deleted, |()| Seen::Deleted);
            }
            Action::Read(_) => {
                let read = ReadItem {
                    target,
                    partition_key,
                    if_none_match: None,
                };
                let read = account.read_item(&ctx, container, &read).await;
                return seen(read, |read| match read {
                    ItemRead::Found(item) => found(&item),
                    ItemRead::NotModified { .. } => panic!("a read without a condition is never spared"),
                });
            }
        };
        seen(answer, |answer| written(&answer.item, answer.created))
    }

    async fn batch(&self, actions: &[Action]) -> Answered<Outcome> {
        let ctx = self.account.begin().await?;
        let batch = Batch {
            partition_key: key("p"),
            operations: actions.iter().map(Action::to_operation).collect(),
            answers_written: Vec::new(),
        };
        let (answer, lsn) = answered(self.account.batch(&ctx, &self.container, batch).await)?;
        let outcome = match answer.expect("a batch") {
            BatchResponse::Committed(all) => {
                let seen = all.iter().map(|result| match &result.done {
                    OperationDone::Written(answer) => written(&answer.item, answer.created),
                    OperationDone::Read(item) => found(item),
                    OperationDone::Deleted => Seen::Deleted,
                    OperationDone::NotModified { .. } => panic!("a read without a condition is never spared"),
                });
                Outcome::Committed(seen.collect())
            }
            BatchResponse::RolledBack { at, error } => Outcome::RolledBack(at, Refused::of(&error.kind)),
        };
        Ok((outcome, lsn))
    }

    async fn list(&self, listing: Listing) -> Answered<Outcome> {
        let ctx = self.account.begin().await?;
        let (items, lsn) = match listing {
            Listing::Query => return self.query("SELECT c.id, c._etag FROM c", Vec::new()).await,
            Listing::ReadFeed => {
                let read = ReadFeed {
                    scope: scope_of("p"),
                    max_items: Some(100),
                    ..ReadFeed::default()
                };
                let (page, lsn) = answered(self.account.read_feed(&ctx, &self.container, &read).await)?;
                (page.expect("a page").items, lsn)
            }
        };
        let pairs = items.iter().map(|item| (item.id().to_owned(), item.etag().to_string()));
        Ok((listed(pairs), lsn))
    }

    /// Reads the change feed to its end: all versions that it shows.
    async fn changes(&self) -> Answered<Outcome> {
        let mut read = ReadChanges {
            scope: scope_of("p"),
            start: FeedStart::Beginning,
            max_items: Some(2),
        };
        let mut versions = Vec::new();
        loop {
            let ctx = self.account.begin().await?;
            let (page, lsn) = answered(self.account.change_feed(&ctx, &self.container, &read).await)?;
            let page = page.expect("a page");
            if page.items.is_empty() {
                return Ok((listed(versions.into_iter()), lsn));
            }
            versions.extend(
                page.items
                    .iter()
                    .map(|item| (item.id().to_owned(), item.etag().to_string())),
            );
            read.start = FeedStart::After(page.continuation);
        }
    }

    /// Runs a query for ids and etags.
    async fn query(&self, text: &str, parameters: Vec<(String, Value)>) -> Answered<Outcome> {
        let (rows, lsn) = self.rows(text, parameters).await?;
        let text_of = |row: &Value, name: &str| row[name].as_str().expect("a string").to_owned();
        let pairs = rows.iter().map(|row| (text_of(row, "id"), text_of(row, "_etag")));
        Ok((listed(pairs), lsn))
    }

    /// Returns the rows of a query over the partition key, which fit one page.
    async fn rows(&self, text: &str, parameters: Vec<(String, Value)>) -> Answered<Vec<Value>> {
        let ctx = self.account.begin().await?;
        let query = QueryItems {
            text: text.to_owned(),
            parameters: Arc::new(parameters),
            scope: scope_of("p"),
            ..QueryItems::default()
        };
        let (page, lsn) = answered(self.account.query(&ctx, &self.container, &query).await)?;
        let page = page.expect("a page");
        assert_eq!(page.continuation, None, "a few rows fit one page");
        let rows = [b"[", &page.rows[..], b"]"].concat();
        Ok((serde_json::from_slice(&rows).expect("rows are JSON"), lsn))
    }
}

fn listed(pairs: impl Iterator<Item = (String, String)>) -> Outcome {
    let mut pairs: Vec<_> = pairs.collect();
    pairs.sort();
    Outcome::Listed(pairs)
}
