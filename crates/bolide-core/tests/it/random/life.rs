//! Changes of a container and its server: settings, budgets, time, splits, restarts and crashes.

use std::sync::Arc;
use std::time::Duration;

use bolide_core::{
    Account, AccountOptions, Container, IndexUse, Pacing, PacingSettings, PurgeMode, SplitReport, Throughput,
};
use bolide_model::container::ContainerProperties;
use bolide_model::epk::EpkRange;
use bolide_model::{ErrorKind, RequestUnits};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::checks::differ;
use super::program::Setup;
use super::runner::{Purging, Runner, Stepped};
use super::store::{Kind, Store};
use crate::model::Budget;
use crate::test_container::{definition, patient_options};

/// A split in progress.
pub struct Splitting {
    parent: u32,
    /// Number of steps that may still begin before the split ends.
    pub(super) steps_left: usize,
    task: JoinHandle<bolide_model::Result<SplitReport>>,
}

impl Runner {
    pub(super) async fn set_default(&mut self, default_ttl: Option<i64>) -> Stepped {
        self.be_calm(true);
        let ctx = self.begin().await?;
        let sent = container_definition(self.setup, default_ttl);
        let replaced = self
            .account()
            .replace_container(&ctx, self.container(), &sent, None)
            .await;
        let info = replaced.map_err(|error| format!("set default: {error}"))?;
        differ("the default in force", info.properties.policy.to_number(), default_ttl)?;
        self.model.set_default(default_ttl);
        self.be_calm(false);
        Ok("set".into())
    }

    pub(super) async fn pace(&mut self, budget: Budget, price: Option<f64>, counts_only_load: bool) -> Stepped {
        let settings = PacingSettings {
            pacing: match budget {
                Budget::Unlimited => Pacing::Unlimited,
                Budget::Provisioned(ru) => Pacing::Provisioned { ru },
                Budget::Autoscale(max_ru) => Pacing::Autoscale { max_ru },
                Budget::Serverless => Pacing::Serverless,
            },
            delete_ru: price,
            count_only_load: counts_only_load,
        };
        let paced = self.account().set_pacing(self.container(), settings).await;
        paced.map_err(|error| format!("pace: {error}"))?;
        self.counts_only_load = counts_only_load;
        self.model.pace(budget, price);
        Ok("paced".into())
    }

    pub(super) fn consume(&mut self, units: f64) -> Stepped {
        let consumed = self.account().consume(self.container(), RequestUnits(units));
        differ("users may consume", consumed.is_ok(), self.model.consume(units))?;
        Ok(format!("{}", consumed.is_ok()))
    }

    pub(super) fn move_clock(&mut self, by_ms: i64) -> Stepped {
        let by_ms = match self.options.kind {
            // At a second's boundary every request waits, in real time, until an uncertain clock has passed it, so only few programs go there.
            Kind::InTrouble(seed) | Kind::SharedInTrouble(seed, _) if seed % 20 != 0 => by_ms / 100 * 100,
            _ => by_ms,
        };
        self.clock.advance(by_ms);
        self.model.clock_shows(self.clock.now().0);
        self.be_calm(true);
        differ("server time", self.account().server_time().0, self.model.now_ms)?;
        self.be_calm(false);
        Ok(format!("{}", self.model.now_ms))
    }

    /// Begins a split and holds it after some kinds of rows are copied: the following steps use the range meanwhile.
    pub(super) async fn begin_split(&mut self, nth: usize) -> Stepped {
        const MAX: usize = 8;
        let ranges = ranges_of(self.container());
        if ranges.len() >= MAX {
            return Ok("enough ranges".into());
        }
        self.be_calm(true);
        let parent = ranges[nth % ranges.len()].0;
        let (account, container) = (self.account().clone(), self.container().clone());
        self.store.engine().hold_splits();
        let task = tokio::spawn(async move { account.split(&container, Some(parent)).await });
        while self.store.engine().held_scans() == 0 && !task.is_finished() {
            tokio::task::yield_now().await;
        }
        self.splitting = Some(Splitting {
            parent,
            steps_left: nth % 5,
            task,
        });
        self.be_calm(false);
        Ok(format!("splitting {parent}"))
    }

    /// Lets a split end, if one is in progress.
    pub(super) async fn end_split(&mut self) -> Result<(), String> {
        let Some(Splitting { parent, task, .. }) = self.splitting.take() else {
            return Ok(());
        };
        self.be_calm(true);
        self.store.engine().release_scans();
        let split = task.await.map_err(|error| format!("split: {error}"))?;
        let split = match split {
            // The copy cannot follow what other servers write. Nothing has changed then.
            Err(error) if self.servers.len() > 1 && error.kind == ErrorKind::Unavailable => {
                self.be_calm(false);
                return Ok(());
            }
            split => split.map_err(|error| format!("split: {error}"))?,
        };
        differ("the range that was split", &split.parents, &vec![parent])?;
        let refreshed = self.account().refresh_catalog().await;
        refreshed.map_err(|error| format!("the catalog: {error}"))?;
        let mut children: Vec<(u32, EpkRange)> = ranges_of(self.container());
        children.retain(|(id, _)| split.children.contains(id));
        let children: [(u32, EpkRange); 2] = children.try_into().map_err(|other| format!("children: {other:?}"))?;
        self.ranges.extend(split.children);
        for following in self.followings.iter_mut().flatten() {
            if let Some(done) = following.place.get(&parent).copied() {
                following.place.extend(children.iter().map(|(id, _)| (*id, done)));
            }
        }
        self.model.split(parent, children);
        self.be_calm(false);
        Ok(())
    }

    pub(super) async fn restart(&mut self, is_orderly: bool) -> Stepped {
        self.be_calm(true);
        if is_orderly {
            for (account, _) in &self.servers {
                let closed = account.close().await;
                closed.map_err(|error| format!("close: {error}"))?;
            }
        }
        match self.splitting.take() {
            None => self.servers.clear(),
            Some(splitting) => {
                splitting.task.abort();
                let _ = splitting.task.await;
                self.servers.clear();
                self.store.engine().release_scans();
                // The split ends when the server is dropped.
                while Arc::strong_count(self.store.engine()) > 1 {
                    tokio::time::sleep(Duration::from_micros(100)).await;
                }
            }
        }
        self.store.reopen().await;
        self.open().await?;
        self.be_calm(false);
        Ok("restarted".into())
    }

    pub(super) async fn crash_in_purge(&mut self, commits: i64) -> Stepped {
        if self.options.purging != Purging::AsWritten {
            return self.restart(false).await;
        }
        self.be_calm(true);
        self.store.engine().cut_after(commits);
        // How many items it removed is found out afterwards.
        let _ = self.account().purge(self.container(), PurgeMode::Force, None).await;
        self.servers.clear();
        self.store.engine().mend();
        self.store.reopen().await;
        self.open().await?;
        self.note_purged().await?;
        // The purge in `note_purged` spent units after the start, so the server is started again.
        self.servers.clear();
        self.store.reopen().await;
        self.open().await?;
        self.verify().await?;
        self.be_calm(false);
        Ok("restarted".into())
    }

    /// Opens the account over the store. Server time may only have lost time that no answer has shown (TTL-203).
    async fn open(&mut self) -> Result<(), String> {
        self.servers = open_all(&self.store, self.options.kind).await;
        let now = self.account().server_time();
        if now.0 > self.model.now_ms || now.seconds().0 < self.answered_by {
            return Err(format!(
                "P3: server time was {} and answered by second {}; after the start it is {}",
                self.model.now_ms, self.answered_by, now.0
            ));
        }
        self.model.now_ms = now.0;
        self.model.restarted();
        Ok(())
    }
}

async fn open(store: &Store) -> Arc<Account> {
    let options = AccountOptions {
        index_use: IndexUse::Always,
        ..patient_options()
    };
    Account::open(store.engine().clone(), options)
        .await
        .expect("an account")
}

/// Opens as many accounts over the store as its kind has.
async fn open_all(store: &Store, kind: Kind) -> Vec<(Arc<Account>, Arc<Container>)> {
    let mut servers = Vec::new();
    for _ in 0..kind.accounts() {
        let account = open(store).await;
        let container = account.all_containers().pop().expect("the container");
        servers.push((account, container));
    }
    servers
}

pub(super) async fn create(store: &Store, setup: Setup, kind: Kind) -> Vec<(Arc<Account>, Arc<Container>)> {
    let account = open(store).await;
    let ctx = account.begin().await.expect("a clock");
    let database = account.create_database(&ctx, "d", None).await.expect("a new database");
    let definition = container_definition(setup, setup.default_ttl);
    let properties = ContainerProperties::from_json(&definition).expect("a definition");
    let throughput = setup.has_several_ranges.then_some(Throughput::Manual { ru: 20_000 });
    let container = account
        .create_container(&ctx, database.rid, properties, throughput)
        .await;
    let container = container.expect("a new container");
    super::scripts::define(&account, &container).await;
    drop((account, container));
    open_all(store, kind).await
}

fn container_definition(setup: Setup, default_ttl: Option<i64>) -> Value {
    // Queries with a condition on `n` find their items through these indexes, and sorted ones are read in their order (P4, P5).
    let mut more = json!({"indexingPolicy": {
        "includedPaths": [{"path": "/*"}, {"path": "/n/?"}],
        "compositeIndexes": [
            [{"path": "/pk"}, {"path": "/n"}],
            [{"path": "/n"}, {"path": "/u", "order": "descending"}],
        ],
        "spatialIndexes": [{"path": "/p/?", "types": ["Point"]}],
    }});
    if setup.keeps_history {
        // Longer than any program runs.
        more["changeFeedPolicy"] = json!({"retentionDuration": 10_000_000});
    }
    if setup.has_unique_key {
        more["uniqueKeyPolicy"] = json!({"uniqueKeys": [{"paths": ["/u"]}]});
    }
    if let Some(seconds) = default_ttl {
        more["defaultTtl"] = seconds.into();
    }
    definition(&more)
}

pub(super) fn ranges_of(container: &Container) -> Vec<(u32, EpkRange)> {
    let ranges = container.ranges().ranges.into_iter();
    ranges.map(|range| (range.id, range.epk)).collect()
}
