//! Converts the clients' calls to requests, and answers to outcomes.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bolide_core::{
    Account, Batch, BatchOperation, BatchResponse, Container, Cost, CreateItem, DeleteItem, ItemRead, ItemTarget,
    OperationDone, PatchItem, ReadFeed, ReadItem, ReplaceItem, StoredItem, UpsertItem,
};
use bolide_model::document::{Document, Patch};
use bolide_model::{Error, ErrorKind};
use serde_json::{Value, json};

use super::action::{Action, Body, Call, Outcome, Refused, Seen};
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

/// The account and the container of a round.
pub struct Track {
    pub account: Arc<Account>,
    pub container: Arc<Container>,
    pub moments: Arc<AtomicU64>,
    pub second: i64,
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

/// The outcome of a call, and the position that its answer showed.
type Positioned<T> = Result<(T, u64), (Error, u64)>;

fn position(cost: &Cost) -> u64 {
    let positions = cost.touched.iter().map(|touched| touched.lsn.0);
    positions.max().expect("an answer about items shows a position")
}

fn answered<T>(answer: bolide_core::ChargedResult<T>) -> Positioned<T> {
    match answer {
        Ok(answer) => Ok((answer.value, position(&answer.cost))),
        Err(refusal) => Err((refusal.error, position(&refusal.cost))),
    }
}

impl Track {
    pub async fn make(&self, call: &Call) -> (Outcome, u64) {
        match call {
            Call::One(action) => match self.one(action).await {
                Ok((seen, lsn)) => (Outcome::Seen(seen), lsn),
                Err((error, lsn)) => (Outcome::Refused(Refused::of(&error.kind)), lsn),
            },
            Call::Batch(actions) => self.batch(actions).await,
            Call::Script(actions) => {
                let ctx = self.account.begin().await.expect("a clock");
                let execute = procedure::call(actions);
                let answer = answered(self.account.execute_procedure(&ctx, &self.container, execute).await);
                let (executed, lsn) = answer.expect("a script");
                (Outcome::Ran(procedure::outcomes(actions, &executed)), lsn)
            }
            Call::DropAll => {
                let ctx = self.account.begin().await.expect("a clock");
                let partition_key = key("p");
                let dropped = self.account.delete_all_of_key(&ctx, &self.container, &partition_key);
                match answered(dropped.await) {
                    Ok(((), lsn)) => (Outcome::Dropped, lsn),
                    Err((error, lsn)) => (Outcome::Refused(Refused::of(&error.kind)), lsn),
                }
            }
            Call::List => self.list().await,
            Call::DefaultTtl(default) => self.define(*default).await,
        }
    }

    async fn define(&self, default: i64) -> (Outcome, u64) {
        let ctx = self.account.begin().await.expect("a clock");
        let mut definition = shared_definition();
        definition["defaultTtl"] = default.into();
        let replaced = self.account.replace_container(&ctx, &self.container, &definition, None);
        let outcome = match replaced.await {
            Ok(_) => Outcome::Defined,
            Err(error) if error.kind == ErrorKind::Unavailable => Outcome::NotDefined,
            Err(error) => panic!("no definition is refused so: {error:?}"),
        };
        // Its answer has no position.
        let (_, lsn) = self.list().await;
        (outcome, lsn)
    }

    async fn one(&self, action: &Action) -> Positioned<Seen> {
        let (account, container) = (&self.account, &self.container);
        let ctx = account.begin().await.expect("a clock");
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
                let deleted = answered(account.delete_item(&ctx, container, delete).await);
                return deleted.map(|((), lsn)| (Seen::Deleted, lsn));
            }
            Action::Read(_) => {
                let read = ReadItem {
                    target,
                    partition_key,
                    if_none_match: None,
                };
                let read = answered(account.read_item(&ctx, container, &read).await);
                return read.map(|(read, lsn)| match read {
                    ItemRead::Found(item) => (found(&item), lsn),
                    ItemRead::NotModified { .. } => panic!("a read without a condition is never spared"),
                });
            }
        };
        answered(answer).map(|(answer, lsn)| (written(&answer.item, answer.created), lsn))
    }

    async fn batch(&self, actions: &[Action]) -> (Outcome, u64) {
        let ctx = self.account.begin().await.expect("a clock");
        let batch = Batch {
            partition_key: key("p"),
            operations: actions.iter().map(Action::to_operation).collect(),
            answers_written: Vec::new(),
        };
        let answer = answered(self.account.batch(&ctx, &self.container, batch).await);
        let (answer, lsn) = answer.expect("a batch");
        let outcome = match answer {
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
        (outcome, lsn)
    }

    async fn list(&self) -> (Outcome, u64) {
        let ctx = self.account.begin().await.expect("a clock");
        let read = ReadFeed {
            scope: scope_of("p"),
            max_items: Some(100),
            ..ReadFeed::default()
        };
        let (page, lsn) = answered(self.account.read_feed(&ctx, &self.container, &read).await).expect("a page");
        let pairs = page
            .items
            .iter()
            .map(|item| (item.id().to_owned(), item.etag().to_string()));
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort();
        (Outcome::Listed(pairs), lsn)
    }
}
