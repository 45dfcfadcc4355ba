//! The clients, and the rounds of calls in which they race.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bolide_core::{Account, Container, PurgeMode};
use bolide_model::container::ContainerProperties;
use bolide_model::time::Clock;
use bolide_model::{ErrorKind, UnixMillis};
use tokio::sync::Barrier;

use super::action::{Action, Body, Call, IDS, Listing, Outcome, Seen};
use super::checker::Made;
use super::followers::Followers;
use super::procedure;
use super::track::{Track, shared_definition};
use crate::random::{Kind, RandomChoices, Store};
use crate::test_container::{START, patient_options};

const CLIENTS: usize = 4;
/// Maximum number of splits of one container.
const MAX_SPLITS: usize = 3;
/// Number of calls of one client in one round.
const CALLS: u64 = 4;

/// A container that the clients share.
pub struct SharedContainer {
    clock: Arc<Clock>,
    store: Store,
    /// The accounts over the store, each with its container.
    accounts: Vec<(Arc<Account>, Arc<Container>)>,
    second: i64,
    moments: Arc<AtomicU64>,
    clients: Vec<Client>,
    choices: RandomChoices,
    followers: Followers,
    splits: usize,
    /// Number of deletions of the whole key since the last purge; only few are allowed at once.
    deletions: usize,
}

/// A client with what it knows.
pub struct Client {
    pub number: usize,
    pub choices: RandomChoices,
    /// The etag it saw last, by id; it may be stale by now.
    etags: HashMap<&'static str, String>,
}

impl SharedContainer {
    pub async fn begin(kind: Kind, seed: u64) -> SharedContainer {
        let clock = Arc::new(Clock::virtual_at(middle_of(START)));
        let store = Store::new(kind, clock.clone());
        let open = async || {
            let account = Account::open(store.engine().clone(), patient_options()).await;
            account.expect("an account")
        };
        let account = open().await;
        let ctx = account.begin().await.expect("a clock");
        let database = account.create_database(&ctx, "d", None).await.expect("a new database");
        let properties = ContainerProperties::from_json(&shared_definition()).expect("a definition");
        let container = account.create_container(&ctx, database.rid, properties, None).await;
        let container = container.expect("a new container");
        procedure::define(&account, &container).await;
        let followers = Followers::from_now(&account, &container).await;
        let mut accounts = vec![(account, container)];
        for _ in 1..kind.accounts() {
            let account = open().await;
            let container = account.container_by_rid(accounts[0].1.rid()).expect("the container");
            accounts.push((account, container));
        }
        let clients = (0..CLIENTS).map(|number| Client::new(number, seed));
        SharedContainer {
            clock,
            store,
            accounts,
            followers,
            splits: 0,
            deletions: 0,
            second: START,
            moments: Arc::default(),
            clients: clients.collect(),
            choices: RandomChoices::new(seed * 1000 + 999),
        }
    }

    /// Runs the calls of all clients at the same time, sometimes a second later than the previous round.
    pub async fn round(&mut self) -> Vec<Made> {
        if self.choices.percent(60) {
            self.second += 1;
            self.clock.set(middle_of(self.second));
        }
        let purge = (self.choices.percent(30) || self.deletions > 1).then(|| self.purge());
        let split = self.splits < MAX_SPLITS && self.choices.percent(4);
        let split = if split { Some(self.split().await) } else { None };
        let start = Arc::new(Barrier::new(CLIENTS));
        let racing: Vec<_> = self
            .clients
            .drain(..)
            .map(|mut client| {
                let (account, container) = self.accounts[client.number % self.accounts.len()].clone();
                let track = Track { account, container };
                let (moments, second) = (self.moments.clone(), self.second);
                let start = start.clone();
                tokio::spawn(async move {
                    start.wait().await;
                    let made = client.run(&track, &moments, second).await;
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
            self.deletions = 0;
        }
        let is_deletion = |made: &&Made| matches!(made.call, Call::DropAll);
        self.deletions += all.iter().filter(is_deletion).count();
        if let Some(split) = split {
            self.store.engine().release_scans();
            split.await.expect("a split");
            self.splits += 1;
        }
        let (account, container) = self.any();
        self.followers.catch_up(&account, &container).await;
        all
    }

    /// Begins a split: the round's first calls come after its first pages, and some of the others while it ends.
    async fn split(&mut self) -> tokio::task::JoinHandle<()> {
        let (account, container) = self.any();
        let engine = self.store.engine().clone();
        let is_alone = self.accounts.len() == 1;
        engine.hold_splits();
        let split = tokio::spawn(async move {
            match account.split(&container, None).await {
                Ok(_) => {}
                // The copy cannot follow what others write.
                Err(error) => assert!(!is_alone && error.kind == ErrorKind::Unavailable, "{error}"),
            }
        });
        // With several accounts it may be refused before it copies anything.
        while engine.held_scans() == 0 && !split.is_finished() {
            tokio::task::yield_now().await;
        }
        let moments = self.moments.clone();
        let upto = moments.load(Ordering::SeqCst) + self.choices.roll(CLIENTS as u64 * 2);
        tokio::spawn(async move {
            while moments.load(Ordering::SeqCst) < upto && engine.held_scans() > 0 {
                tokio::task::yield_now().await;
            }
            engine.release_scans();
        });
        split
    }

    /// Returns one of the accounts.
    fn any(&mut self) -> (Arc<Account>, Arc<Container>) {
        let at = self.choices.roll(self.accounts.len() as u64);
        self.accounts[at as usize].clone()
    }

    fn purge(&mut self) -> tokio::task::JoinHandle<()> {
        let (account, container) = self.any();
        tokio::spawn(async move {
            account
                .purge(&container, PurgeMode::Force, None)
                .await
                .expect("a purge");
        })
    }

    /// Asserts that items, indexes, queues and feeds agree at the end.
    pub async fn assert_sound(&mut self) {
        let (account, container) = self.any();
        self.followers.assert_complete(&account, &container).await;
        for (account, container) in &self.accounts {
            let report = account.verify(container).await.expect("a check");
            assert_eq!(report.problems, Vec::<String>::new());
        }
    }
}

/// Returns a time inside a second, so that a clock that is not exact still knows the second.
fn middle_of(second: i64) -> UnixMillis {
    UnixMillis(second * 1000 + 500)
}

impl Client {
    pub fn new(number: usize, seed: u64) -> Client {
        Client {
            number,
            choices: RandomChoices::new(seed * 1000 + number as u64),
            etags: HashMap::new(),
        }
    }

    async fn run(&mut self, track: &Track, moments: &AtomicU64, second: i64) -> Vec<Made> {
        let mut made = Vec::new();
        for _ in 0..=self.choices.roll(CALLS) {
            let call = self.choose();
            let moment = || moments.fetch_add(1, Ordering::SeqCst);
            let began = moment();
            let (outcome, lsn) = track.make(&call).await;
            let ended = moment();
            self.learn(&call, &outcome);
            made.push(Made {
                client: self.number,
                began,
                ended,
                seconds: (second, second),
                lsn: Some(lsn),
                call,
                outcome,
            });
        }
        made
    }

    pub fn choose(&mut self) -> Call {
        match self.choices.roll(10) {
            _ if self.choices.percent(2) => Call::DropAll,
            _ if self.choices.percent(3) => Call::DefaultTtl(Some([-1, 1, 2, 3][self.choices.roll(4) as usize])),
            _ if self.choices.percent(8) => {
                let count = 1 + self.choices.roll(3);
                Call::Script((0..count).map(|_| self.action()).collect())
            }
            0 => Call::List(Listing::ReadFeed),
            1..4 => {
                let count = 1 + self.choices.roll(3);
                Call::Batch((0..count).map(|_| self.action()).collect())
            }
            _ => Call::One(self.action()),
        }
    }

    fn action(&mut self) -> Action {
        let id = IDS[self.choices.roll(IDS.len() as u64) as usize];
        let body = Body {
            id,
            n: self.choices.roll(1000) as i64,
            u: self.choices.roll(4) as i64,
            ttl: self.choices.percent(50).then(|| 1 + self.choices.roll(3) as i64),
        };
        let etag = self.choices.percent(60).then(|| self.etags.get(id).cloned()).flatten();
        match self.choices.roll(6) {
            0 => Action::Create(body),
            1 => Action::Upsert(body),
            2 => Action::Replace(body, etag),
            3 => Action::Increment(id, etag),
            4 => Action::Delete(id, etag),
            _ => Action::Read(id),
        }
    }

    /// Stores the etags that an answer showed.
    pub fn learn(&mut self, call: &Call, outcome: &Outcome) {
        let (actions, seen) = match (call, outcome) {
            (Call::One(action), Outcome::Seen(seen)) => (std::slice::from_ref(action), std::slice::from_ref(seen)),
            (Call::Batch(actions), Outcome::Committed(seen)) => (&actions[..], &seen[..]),
            (Call::Script(actions), Outcome::Ran(ran)) => {
                let etags = actions.iter().zip(ran).filter_map(|(action, ran)| match ran {
                    Ok(Seen::Written { etag, .. } | Seen::Found { etag, .. }) => Some((action.id(), etag.clone())),
                    _ => None,
                });
                return self.etags.extend(etags);
            }
            _ => return,
        };
        for (action, seen) in actions.iter().zip(seen) {
            if let Seen::Written { etag, .. } | Seen::Found { etag, .. } = seen {
                self.etags.insert(action.id(), etag.clone());
            }
        }
    }
}
