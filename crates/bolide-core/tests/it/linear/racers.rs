//! The clients, and the round that they race in.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_core::{
    Account, Batch, BatchAnswer, BatchOperation, Container, CreateItem, DeleteItem, ItemRead, ItemTarget,
    OperationDone, PatchItem, PurgeMode, ReadFeed, ReadItem, ReplaceItem, StoredItem, UpsertItem, Work,
};
use bolide_model::container::ContainerProperties;
use bolide_model::document::{Document, Patch};
use bolide_model::time::Clock;
use bolide_model::{Error, UnixMillis};
use serde_json::json;
use tokio::sync::Barrier;

use super::action::{Action, Body, Call, IDS, Outcome, Refused, Seen};
use super::checker::Made;
use crate::random::{Dice, Kind, Store};
use crate::stage::{START, definition, key, options, scope_of, shown};

const CLIENTS: usize = 4;
/// Calls of one client in one round.
const CALLS: u64 = 4;

/// A container that is raced on.
pub struct Race {
    clock: Arc<Clock>,
    _store: Store,
    account: Arc<Account>,
    container: Arc<Container>,
    second: i64,
    moments: Arc<AtomicU64>,
    clients: Vec<Client>,
    dice: Dice,
}

/// A client with what it knows.
struct Client {
    number: usize,
    dice: Dice,
    /// The etag it saw last, by id; it may be stale by now.
    etags: HashMap<&'static str, String>,
}

impl Race {
    pub async fn begin(kind: Kind, seed: u64) -> Race {
        let clock = Arc::new(Clock::virtual_at(UnixMillis(START * 1000)));
        let store = Store::new(kind, clock.clone());
        let account = Account::open(store.engine().clone(), options())
            .await
            .expect("a new account");
        let ctx = account.begin().await.expect("a clock");
        let database = account.create_database(&ctx, "d", None).await.expect("a new database");
        let more = json!({"defaultTtl": -1, "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]}});
        let properties = ContainerProperties::from_json(&definition(&more)).expect("a definition");
        let container = account.create_container(&ctx, database.rid, properties, None).await;
        let clients = (0..CLIENTS).map(|number| Client {
            number,
            dice: Dice::new(seed * 1000 + number as u64),
            etags: HashMap::new(),
        });
        Race {
            clock,
            _store: store,
            account,
            container: container.expect("a new container"),
            second: START,
            moments: Arc::default(),
            clients: clients.collect(),
            dice: Dice::new(seed * 1000 + 999),
        }
    }

    /// Lets all clients make their calls at once, perhaps a second later than the round before.
    pub async fn round(&mut self) -> Vec<Made> {
        if self.dice.percent(60) {
            self.second += 1;
            self.clock.set(UnixMillis(self.second * 1000));
        }
        let purge = self.dice.percent(30).then(|| self.purge());
        let start = Arc::new(Barrier::new(CLIENTS));
        let racing: Vec<_> = self
            .clients
            .drain(..)
            .map(|mut client| {
                let track = Track {
                    account: self.account.clone(),
                    container: self.container.clone(),
                    moments: self.moments.clone(),
                    second: self.second,
                };
                let start = start.clone();
                tokio::spawn(async move {
                    start.wait().await;
                    let made = client.run(&track).await;
                    (client, made)
                })
            })
            .collect();
        let mut all = Vec::new();
        for client in racing {
            let (client, made) = client.await.expect("a client");
            self.clients.push(client);
            all.extend(made);
        }
        if let Some(purge) = purge {
            purge.await.expect("a purge");
        }
        all
    }

    fn purge(&self) -> tokio::task::JoinHandle<()> {
        let (account, container) = (self.account.clone(), self.container.clone());
        tokio::spawn(async move {
            account
                .purge(&container, PurgeMode::Force, None)
                .await
                .expect("a purge");
        })
    }

    /// Items, indexes and queues agree in the end.
    pub async fn assert_sound(&self) {
        let report = self.account.verify(&self.container).await.expect("a check");
        assert_eq!(report.problems, Vec::<String>::new());
    }
}

/// Where a round takes place.
struct Track {
    account: Arc<Account>,
    container: Arc<Container>,
    moments: Arc<AtomicU64>,
    second: i64,
}

impl Client {
    async fn run(&mut self, track: &Track) -> Vec<Made> {
        let mut made = Vec::new();
        for _ in 0..=self.dice.roll(CALLS) {
            let call = self.choose();
            let moment = || track.moments.fetch_add(1, Ordering::SeqCst);
            let began = moment();
            let (outcome, lsn) = track.make(&call).await;
            let ended = moment();
            self.learn(&call, &outcome);
            made.push(Made {
                client: self.number,
                began,
                ended,
                second: track.second,
                lsn,
                call,
                outcome,
            });
        }
        made
    }

    fn choose(&mut self) -> Call {
        match self.dice.roll(10) {
            0 => Call::List,
            1..4 => {
                let count = 1 + self.dice.roll(3);
                Call::Batch((0..count).map(|_| self.action()).collect())
            }
            _ => Call::One(self.action()),
        }
    }

    fn action(&mut self) -> Action {
        let id = IDS[self.dice.roll(IDS.len() as u64) as usize];
        let body = Body {
            id,
            n: self.dice.roll(1000) as i64,
            u: self.dice.roll(4) as i64,
            ttl: self.dice.percent(50).then(|| 1 + self.dice.roll(3) as i64),
        };
        let etag = self.dice.percent(60).then(|| self.etags.get(id).cloned()).flatten();
        match self.dice.roll(6) {
            0 => Action::Create(body),
            1 => Action::Upsert(body),
            2 => Action::Replace(body, etag),
            3 => Action::Increment(id, etag),
            4 => Action::Delete(id, etag),
            _ => Action::Read(id),
        }
    }

    /// Remembers the etags that an answer showed.
    fn learn(&mut self, call: &Call, outcome: &Outcome) {
        let (actions, seen) = match (call, outcome) {
            (Call::One(action), Outcome::Seen(seen)) => (std::slice::from_ref(action), std::slice::from_ref(seen)),
            (Call::Batch(actions), Outcome::Committed(seen)) => (&actions[..], &seen[..]),
            _ => return,
        };
        for (action, seen) in actions.iter().zip(seen) {
            if let Seen::Written { etag, .. } | Seen::Found { etag, .. } = seen {
                self.etags.insert(action.id(), etag.clone());
            }
        }
    }
}

impl Action {
    fn id(&self) -> &'static str {
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

/// What a call came to, and the position that its answer showed.
type Answered<T> = Result<(T, u64), (Error, u64)>;

fn position(work: &Work) -> u64 {
    let positions = work.touched.iter().map(|touched| touched.lsn.0);
    positions.max().expect("an answer about items shows a position")
}

fn answered<T>(answer: bolide_core::Answered<T>) -> Answered<T> {
    match answer {
        Ok(answer) => Ok((answer.value, position(&answer.work))),
        Err(refusal) => Err((refusal.error, position(&refusal.work))),
    }
}

impl Track {
    async fn make(&self, call: &Call) -> (Outcome, u64) {
        match call {
            Call::One(action) => match self.one(action).await {
                Ok((seen, lsn)) => (Outcome::Seen(seen), lsn),
                Err((error, lsn)) => (Outcome::Refused(Refused::of(&error.kind)), lsn),
            },
            Call::Batch(actions) => self.batch(actions).await,
            Call::List => self.list().await,
        }
    }

    async fn one(&self, action: &Action) -> Answered<Seen> {
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
        };
        let answer = answered(self.account.batch(&ctx, &self.container, batch).await);
        let (answer, lsn) = answer.expect("a batch");
        let outcome = match answer {
            BatchAnswer::Committed(all) => {
                let seen = all.iter().map(|result| match &result.done {
                    OperationDone::Written(answer) => written(&answer.item, answer.created),
                    OperationDone::Read(item) => found(item),
                    OperationDone::Deleted => Seen::Deleted,
                    OperationDone::NotModified { .. } => panic!("a read without a condition is never spared"),
                });
                Outcome::Committed(seen.collect())
            }
            BatchAnswer::RolledBack { at, error } => Outcome::RolledBack(at, Refused::of(&error.kind)),
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
