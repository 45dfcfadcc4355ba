//! A fixture of unit tests that need stored items: an account in memory with a virtual clock, and one container with partition key `/pk`. Times are
//! seconds since 1970; the clock starts at 100. Documents get the partition key `"p"` if they have none.

use std::sync::Arc;
use std::time::Duration;

use bolide_model::container::ContainerProperties;
use bolide_model::document::Document;
use bolide_model::partition_key::{Component, PartitionKey};
use bolide_model::time::{Clock, Monotonic};
use bolide_model::{ErrorKind, UnixMillis};
use bolide_storage::memory::MemoryEngine;
use bolide_storage::{Engine, PartitionId, ReadRequest, Scan, Space};
use bytes::Bytes;
use serde_json::{Value, json};

use crate::api::Account;
use crate::background::PurgeMode;
use crate::container::{Container, ContainerState};
use crate::content::StoredItem;
use crate::feeds::ReadFeed;
use crate::format::record::Record;
use crate::items::{DeleteItem, ItemRead, ItemTarget, ReadItem, ReplaceItem, UpsertItem};
use crate::partition::Partition;
use crate::response::ChargedResult;
use crate::runtime::{AccountOptions, RequestContext};
use crate::throughput::Throughput;

/// See the module.
pub(crate) struct Fixture {
    pub clock: Arc<Clock>,
    pub engine: Arc<MemoryEngine>,
    pub account: Arc<Account>,
    pub container: Arc<Container>,
}

/// A partition key of one string.
pub(crate) fn key(pk: &str) -> PartitionKey {
    PartitionKey(vec![Component::String(pk.into())])
}

fn document(body: &Value) -> Document {
    let mut body = body.clone();
    if body.get("pk").is_none() {
        body["pk"] = "p".into();
    }
    Document::parse(body.to_string().as_bytes()).expect("tests send JSON objects")
}

fn kind_of<T>(answered: ChargedResult<T>) -> Result<T, ErrorKind> {
    answered
        .map(|answer| answer.value)
        .map_err(|refusal| refusal.error.kind)
}

/// Options of an account that shares an engine: its clocks are moved and its heartbeats written by hand.
pub(crate) fn options_by_hand(monotonic: Monotonic) -> AccountOptions {
    /// Longer than any test.
    const NEVER: Duration = Duration::from_secs(1_000_000);
    AccountOptions {
        virtual_clock: true,
        monotonic,
        heartbeat_interval: Some(NEVER),
        ..AccountOptions::default()
    }
}

async fn open(engine: &Arc<MemoryEngine>) -> Arc<Account> {
    let options = AccountOptions {
        virtual_clock: true,
        ..AccountOptions::default()
    };
    Account::open(engine.clone(), options).await.expect("an account")
}

impl Fixture {
    /// The same container, opened by a process that knows no more than what is stored.
    pub async fn reopened(&self) -> Fixture {
        let account = open(&self.engine).await;
        Fixture {
            clock: self.clock.clone(),
            engine: self.engine.clone(),
            container: account.all_containers().pop().expect("the container"),
            account,
        }
    }

    /// A container in one range, whose definition has `more`.
    pub async fn with(more: Value) -> Fixture {
        Fixture::with_throughput(more, None).await
    }

    /// A container with as many ranges as its throughput needs: one for each 10,000 request units.
    pub async fn with_throughput(more: Value, throughput: Option<Throughput>) -> Fixture {
        let clock = Arc::new(Clock::virtual_at(UnixMillis(100_000)));
        let engine = Arc::new(MemoryEngine::new(clock.clone()));
        let account = open(&engine).await;
        Fixture::in_account((clock, engine), account, more, throughput).await
    }

    /// The same in an account that is open.
    pub async fn in_account(
        (clock, engine): (Arc<Clock>, Arc<MemoryEngine>),
        account: Arc<Account>,
        more: Value,
        throughput: Option<Throughput>,
    ) -> Fixture {
        let ctx = account.begin().await.expect("a clock");
        let database = account.create_database(&ctx, "d", None).await.expect("a new database");
        let mut definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
        for (name, value) in more.as_object().into_iter().flatten() {
            definition[name] = value.clone();
        }
        let properties = ContainerProperties::from_json(&definition).expect("a definition");
        let created = account.create_container(&ctx, database.rid, properties, throughput);
        Fixture {
            container: created.await.expect("a new container"),
            clock,
            engine,
            account,
        }
    }

    /// Sets the clock to a second.
    pub fn at(&self, second: i64) {
        self.clock.set(UnixMillis(second * 1000));
    }

    pub async fn begin(&self) -> RequestContext {
        self.account.begin().await.expect("a clock")
    }

    pub fn state(&self) -> Arc<ContainerState> {
        self.container.state()
    }

    /// The first partition.
    pub fn partition(&self) -> Arc<Partition> {
        self.state().layout.partitions[0].clone()
    }

    pub async fn upsert(&self, body: Value) -> StoredItem {
        self.try_upsert(body).await.expect("a write")
    }

    pub async fn try_upsert(&self, body: Value) -> Result<StoredItem, ErrorKind> {
        let upsert = UpsertItem {
            document: document(&body),
            partition_key: None,
            if_match: None,
        };
        let ctx = self.begin().await;
        let written = self.account.upsert_item(&ctx, &self.container, upsert).await;
        kind_of(written).map(|written| written.item)
    }

    /// Replaces the item of an id, under its own id or another one.
    pub async fn try_replace(&self, id: &str, body: Value) -> Result<StoredItem, ErrorKind> {
        let document = document(&body);
        let replace = ReplaceItem {
            target: ItemTarget::Id(id.into()),
            partition_key: document.partition_key(&self.container.properties().partition_key),
            document,
            if_match: None,
        };
        let ctx = self.begin().await;
        let written = self.account.replace_item(&ctx, &self.container, replace).await;
        kind_of(written).map(|written| written.item)
    }

    /// The item of this id, if it is there for requests that begin now.
    pub async fn read(&self, id: &str) -> Option<StoredItem> {
        let read = ReadItem {
            target: ItemTarget::Id(id.into()),
            partition_key: key("p"),
            if_none_match: None,
        };
        let ctx = self.begin().await;
        match kind_of(self.account.read_item(&ctx, &self.container, &read).await) {
            Ok(ItemRead::Found(item)) => Some(item),
            Err(ErrorKind::NotFound) => None,
            other => panic!("{other:?}"),
        }
    }

    /// The ids of all items that are there for requests that begin now, sorted.
    pub async fn listed(&self) -> Vec<String> {
        let (ctx, whole) = (self.begin().await, ReadFeed::default());
        let page = self.account.read_feed(&ctx, &self.container, &whole).await;
        let page = page.expect("a page").value;
        assert!(page.continuation.is_none(), "tests list few items");
        let mut ids: Vec<String> = page.items.iter().map(|item| item.id().to_owned()).collect();
        ids.sort();
        ids
    }

    pub async fn delete(&self, pk: &str, id: &str) {
        self.try_delete(pk, id).await.expect("a deletion");
    }

    pub async fn try_delete(&self, pk: &str, id: &str) -> Result<(), ErrorKind> {
        let delete = DeleteItem {
            target: ItemTarget::Id(id.into()),
            partition_key: key(pk),
            if_match: None,
        };
        let ctx = self.begin().await;
        kind_of(self.account.delete_item(&ctx, &self.container, delete).await)
    }

    /// Deletes all items of a partition key; they stay stored until they are purged.
    pub async fn delete_all_of_key(&self, pk: &str) {
        self.try_delete_all_of_key(pk).await.expect("a deletion");
    }

    pub async fn try_delete_all_of_key(&self, pk: &str) -> Result<(), ErrorKind> {
        let ctx = self.begin().await;
        kind_of(self.account.delete_all_of_key(&ctx, &self.container, &key(pk)).await)
    }

    /// Removes all that is to be removed. Returns how many ghosts there were.
    pub async fn purge(&self) -> u64 {
        let purged = self.account.purge(&self.container, PurgeMode::Force, None).await;
        purged.expect("a purge")
    }

    /// All rows of a space of a partition, as they are stored.
    pub async fn rows(&self, partition: PartitionId, space: Space) -> Vec<(Bytes, Bytes)> {
        let request = ReadRequest {
            scans: vec![Scan::whole(space)],
            ..ReadRequest::default()
        };
        let mut reply = self.engine.read(partition, request).await.expect("a partition");
        reply.pages.pop().expect("a page").rows
    }

    /// The ids of all items that are stored in the first partition, ghosts included.
    pub async fn stored_ids(&self) -> Vec<String> {
        let rows = self.rows(self.partition().id, Space::Item).await;
        let mut ids: Vec<String> = rows
            .into_iter()
            .map(|(_, value)| Record::decode(value).expect("a record").id().to_owned())
            .collect();
        ids.sort();
        ids
    }

    /// The full check finds nothing.
    pub async fn assert_sound(&self) {
        let report = self.account.verify(&self.container).await.expect("a check");
        assert_eq!(report.problems, Vec::<String>::new());
    }
}
