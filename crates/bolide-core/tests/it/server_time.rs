//! Server time across crashes (TTL-203): a wall clock that steps, a process that is killed, and answers that must stay true.
//!
//! A crash is a copy of the directory, taken while the store is open, as a killed process leaves it. The wall clock is virtual; the account treats
//! it as the machine's clock.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use bolide_core::{
    Account, AccountOptions, Container, CreateItem, FeedStart, ItemTarget, PatchItem, ReadChanges, ReadFeed, ReadItem,
    ScanScope,
};
use bolide_model::container::ContainerProperties;
use bolide_model::document::{Document, Patch};
use bolide_model::time::Clock;
use bolide_model::{ErrorKind, UnixMillis};
use bolide_storage_lsm::{Durability, LsmEngine, LsmOptions};
use serde_json::json;
use tempfile::TempDir;

use crate::random::RandomChoices;
use crate::test_container::{definition, key};

/// In the middle of a second, not at its boundary.
const START: UnixMillis = UnixMillis(1_700_000_000_400);
const PROGRAMS: u64 = 12;
const STEPS: u64 = 60;

/// A server on a machine whose wall clock steps.
struct Machine {
    wall: Arc<Clock>,
    home: TempDir,
    account: Arc<Account>,
    container: Arc<Container>,
}

impl Machine {
    async fn new() -> Machine {
        let wall = Arc::new(Clock::virtual_at(START));
        let home = tempfile::tempdir().unwrap();
        let account = start(&wall, home.path()).await;
        let ctx = account.begin().await.unwrap();
        let database = account.create_database(&ctx, "d", None).await.unwrap();
        let properties = ContainerProperties::from_json(&definition(&json!({"defaultTtl": -1}))).unwrap();
        let created = account.create_container(&ctx, database.rid, properties, None).await;
        Machine {
            container: created.unwrap(),
            wall,
            home,
            account,
        }
    }

    /// Kills the server, sets the wall clock by `step_ms`, and starts it again.
    async fn crash(&mut self, step_ms: i64) {
        let left = tempfile::tempdir().unwrap();
        copy(self.home.path(), left.path());
        self.wall.advance(step_ms);
        let account = start(&self.wall, left.path()).await;
        self.container = account.all_containers().pop().unwrap();
        // Later writes of the killed process do not matter.
        self.account.close().await.unwrap();
        (self.account, self.home) = (account, left);
    }

    async fn create(&self, id: &str, ttl: i64) {
        let body = json!({"id": id, "pk": "p", "ttl": ttl});
        let create = CreateItem {
            document: Document::parse(body.to_string().as_bytes()).unwrap(),
            partition_key: None,
        };
        let ctx = self.account.begin().await.unwrap();
        self.account.create_item(&ctx, &self.container, create).await.unwrap();
    }

    async fn has(&self, id: &str) -> bool {
        let read = ReadItem {
            target: ItemTarget::Id(id.into()),
            partition_key: key("p"),
            if_none_match: None,
        };
        let ctx = self.account.begin().await.unwrap();
        self.account.read_item(&ctx, &self.container, &read).await.is_ok()
    }

    async fn listed(&self) -> HashSet<String> {
        let ctx = self.account.begin().await.unwrap();
        let read = ReadFeed::default();
        let page = self.account.read_feed(&ctx, &self.container, &read).await.unwrap();
        page.value.items.iter().map(|item| item.id().to_owned()).collect()
    }

    async fn changed(&self) -> HashSet<String> {
        let ctx = self.account.begin().await.unwrap();
        let read = ReadChanges {
            scope: ScanScope::default(),
            start: FeedStart::Beginning,
            max_items: None,
        };
        let page = self.account.change_feed(&ctx, &self.container, &read).await.unwrap();
        page.value.items.iter().map(|item| item.id().to_owned()).collect()
    }

    /// Tries to patch an item; a patch of a missing item commits nothing.
    async fn can_be_patched(&self, id: &str) -> bool {
        let patch = PatchItem {
            target: ItemTarget::Id(id.into()),
            partition_key: key("p"),
            patch: Patch::from_value(&json!([{"op": "set", "path": "/n", "value": 1}])).unwrap(),
            if_match: None,
        };
        let ctx = self.account.begin().await.unwrap();
        match self.account.patch_item(&ctx, &self.container, patch).await {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.error.kind, ErrorKind::NotFound);
                false
            }
        }
    }
}

pub async fn start(wall: &Arc<Clock>, home: &Path) -> Arc<Account> {
    let options = LsmOptions {
        durability: Durability::Buffered,
        ..LsmOptions::default()
    };
    let engine = LsmEngine::open(home, wall.clone(), options).unwrap();
    let options = AccountOptions {
        background_purge: false,
        ..AccountOptions::default()
    };
    Account::open(Arc::new(engine), options).await.unwrap()
}

/// Copies the directory of an engine that is open. Snapshots, which a new engine makes room for in the background, are left out.
pub fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name() == "snapshots" {
            continue;
        }
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn item_seen_expired_stays_so_over_a_crash_and_a_clock_set_back() {
    let mut machine = Machine::new().await;
    machine.create("a", 10).await;
    machine.wall.advance(60_000);
    assert!(!machine.has("a").await);
    machine.crash(-60_000).await;
    assert!(!machine.has("a").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_write_to_an_expired_item_is_no_less_final_than_a_read() {
    let mut machine = Machine::new().await;
    machine.create("a", 10).await;
    machine.wall.advance(60_000);
    assert!(!machine.can_be_patched("a").await);
    machine.crash(-60_000).await;
    assert!(!machine.can_be_patched("a").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shown_time_does_not_fall_by_a_millisecond() {
    let mut machine = Machine::new().await;
    for step in [1, 7, 99_600, 3] {
        machine.wall.advance(step);
        let shown = machine.account.shown_time().await;
        machine.crash(-step).await;
        assert!(machine.account.shown_time().await >= shown);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_without_a_step_moves_time_ahead_by_no_more_than_a_moment() {
    // An item must not expire early either.
    let mut machine = Machine::new().await;
    for _ in 0..5 {
        machine.wall.advance(730);
        machine.has("a").await;
        machine.crash(0).await;
        let ahead = machine.account.server_time().0 - machine.wall.now().0;
        assert!((0..=50).contains(&ahead), "ahead={ahead}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_was_seen_absent_stays_absent_over_random_steps_and_crashes() {
    for seed in 0..PROGRAMS {
        run(seed).await;
    }
}

async fn run(seed: u64) {
    let mut choices = RandomChoices::new(seed);
    let mut machine = Machine::new().await;
    let (mut created, mut gone) = (0, HashSet::new());
    let mut second = machine.account.begin().await.unwrap().now.seconds();
    for step in 0..STEPS {
        let at = format!("seed={seed} step={step}");
        match choices.roll(10) {
            0..3 => {
                machine
                    .create(&format!("i{created}"), 1 + choices.roll(30) as i64)
                    .await;
                created += 1;
            }
            3..5 => drop(machine.wall.advance(choices.roll(12_000) as i64)),
            5 => drop(machine.wall.advance(-(choices.roll(20_000) as i64))),
            6..9 => {
                let (is_there, way): (HashSet<String>, _) = match choices.roll(4) {
                    0 => (machine.listed().await, "list"),
                    1 => (machine.changed().await, "changes"),
                    way => {
                        let mut there = HashSet::new();
                        for id in (0..created).map(|n| format!("i{n}")) {
                            let is_there = match way {
                                2 => machine.has(&id).await,
                                _ => !gone.contains(&id) && machine.can_be_patched(&id).await,
                            };
                            there.extend(is_there.then_some(id));
                        }
                        (there, "each")
                    }
                };
                let back: Vec<_> = is_there.intersection(&gone).collect();
                assert!(back.is_empty(), "{at} {way}: {back:?} came back");
                gone.extend(
                    (0..created)
                        .map(|n| format!("i{n}"))
                        .filter(|id| !is_there.contains(id)),
                );
            }
            _ => machine.crash(-(choices.roll(40_000) as i64)).await,
        }
        let now = machine.account.begin().await.unwrap().now.seconds();
        assert!(now >= second, "{at}: server time fell from {second:?} to {now:?}");
        second = now;
    }
    machine.account.close().await.unwrap();
}
