//! A test for claims: one container of an account in memory, under a clock that is moved by hand.
//!
//! Times are seconds after 1970, small ones: a claim starts at 100. Documents are JSON with `id` and, unless they say otherwise,
//! partition key `pk` = `"p"`.

use std::sync::Arc;
use std::time::Duration;

use bolide_core::{
    Account, AccountOptions, ChargedResult, Container, CreateItem, DeleteItem, FeedStart, ItemRead, ItemTarget,
    ItemWritten, OperationError, PatchItem, PurgeMode, ReadChanges, ReadFeed, ReadItem, ReplaceItem, RequestContext,
    Response, ScanScope, ScriptDraft, ScriptHosting, ScriptKind, StoredItem, Throughput, UpsertItem,
};
use bolide_model::container::ContainerProperties;
use bolide_model::document::{Document, Patch};
use bolide_model::partition_key::{Component, PartitionKey};
use bolide_model::time::{Clock, Monotonic};
use bolide_model::{Error, ErrorKind, UnixMillis};
use bolide_storage::Engine;
use bolide_storage::memory::MemoryEngine;
use serde_json::{Value, json};

use crate::probe::Probe;

/// The result of a request for a claim: the value, or the kind of its refusal.
pub type Seen<T> = Result<T, ErrorKind>;

/// When claims start, in seconds.
pub const START: i64 = 100;

/// The container, with its account, engine and clock; see the module.
pub struct TestContainer {
    pub clock: Arc<Clock>,
    pub engine: Arc<Probe>,
    pub account: Arc<Account>,
    pub container: Arc<Container>,
}

/// Returns options of an account whose clock is moved by hand.
pub fn options() -> AccountOptions {
    AccountOptions {
        virtual_clock: true,
        script_hosting: ScriptHosting::Threads,
        script_errors,
        ..AccountOptions::default()
    }
}

/// The errors that scripts of tests see for refused operations, with numbers like those that clients get.
fn script_errors(error: &Error) -> OperationError {
    let number = match error.kind {
        ErrorKind::NotFound => 404,
        ErrorKind::Conflict | ErrorKind::UniqueKeyConflict => 409,
        ErrorKind::PreconditionFailed | ErrorKind::PatchConditionFailed => 412,
        ErrorKind::TooLarge => 413,
        ErrorKind::Throttled { .. } => 429,
        _ => 400,
    };
    OperationError {
        number,
        message: error.to_string(),
    }
}

/// As [`options`], with enough time for scripts that none is stopped because other requests write, however busy the machine is.
pub fn patient_options() -> AccountOptions {
    AccountOptions {
        script_time: Duration::from_secs(1000),
        ..options()
    }
}

/// As [`options`], with background work, which runs when `monotonic` is moved.
pub fn background_options(monotonic: &Monotonic) -> AccountOptions {
    AccountOptions {
        virtual_clock: false,
        monotonic: monotonic.clone(),
        ..options()
    }
}

/// Runs the background work of an account until `happened` returns true: whenever it sleeps, the clock is moved to the time at which it wakes.
pub async fn run_background(monotonic: &Monotonic, happened: impl AsyncFn() -> bool) {
    for _ in 0..10_000 {
        if happened().await {
            return;
        }
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        if let Some(until) = monotonic.next_wake() {
            monotonic.advance(until - monotonic.now());
        }
    }
    panic!("it never happened");
}

/// Returns a definition with partition key `/pk`, extended by `more`.
pub fn definition(more: &Value) -> Value {
    let mut definition = json!({"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    for (name, value) in more.as_object().into_iter().flatten() {
        definition[name] = value.clone();
    }
    definition
}

/// Returns a partition key of one string.
pub fn key(pk: &str) -> PartitionKey {
    PartitionKey(vec![Component::String(pk.into())])
}

/// Stores a stored procedure in a container.
pub async fn define_procedure(account: &Account, container: &Arc<Container>, name: &str, source: &str) {
    let draft = ScriptDraft {
        id: name.into(),
        body: source.into(),
        fires: None,
    };
    let ctx = account.begin().await.expect("a clock");
    let created = account
        .create_script(&ctx, container, ScriptKind::StoredProcedure, draft, false)
        .await;
    created.expect("a script");
}

/// Returns the scope of one partition key.
pub fn scope_of(pk: &str) -> ScanScope {
    ScanScope {
        partition_key: Some(key(pk)),
        ..ScanScope::default()
    }
}

/// Returns the item as a client sees it.
pub fn shown(item: &StoredItem) -> Value {
    serde_json::from_slice(&item.to_json()).expect("items are shown as JSON")
}

pub fn ids(items: &[StoredItem]) -> Vec<&str> {
    items.iter().map(StoredItem::id).collect()
}

fn document(body: &Value) -> Document {
    let mut body = body.clone();
    if body.get("pk").is_none() {
        body["pk"] = "p".into();
    }
    Document::parse(body.to_string().as_bytes()).expect("claims send JSON objects")
}

impl TestContainer {
    /// Creates a container whose definition has `more`.
    pub async fn with(more: Value) -> TestContainer {
        TestContainer::with_throughput(more, None).await
    }

    /// Creates a container with a default ttl.
    pub async fn with_ttl(default_ttl: i64) -> TestContainer {
        TestContainer::with(json!({"defaultTtl": default_ttl})).await
    }

    pub async fn with_throughput(more: Value, throughput: Option<Throughput>) -> TestContainer {
        TestContainer::with_options(more, throughput, options()).await
    }

    pub async fn with_options(more: Value, throughput: Option<Throughput>, options: AccountOptions) -> TestContainer {
        let clock = Arc::new(Clock::virtual_at(UnixMillis(START * 1000)));
        let engine = Arc::new(MemoryEngine::new(clock.clone()));
        TestContainer::over(engine, clock, more, throughput, options).await
    }

    /// Creates a container on an engine that the claim keeps, too.
    pub async fn over(
        engine: Arc<dyn Engine>,
        clock: Arc<Clock>,
        more: Value,
        throughput: Option<Throughput>,
        options: AccountOptions,
    ) -> TestContainer {
        let engine = Arc::new(Probe::new(engine));
        let account = Account::open(engine.clone(), options).await.expect("a new account");
        let ctx = account.begin().await.expect("a clock");
        let database = account.create_database(&ctx, "d", None).await.expect("a new database");
        let properties = ContainerProperties::from_json(&definition(&more)).expect("a definition");
        let container = account
            .create_container(&ctx, database.rid, properties, throughput)
            .await
            .expect("a new container");
        TestContainer {
            clock,
            engine,
            account,
            container,
        }
    }

    /// Opens the same data in a new server process.
    pub async fn reopen(self) -> TestContainer {
        self.reopen_with(options()).await
    }

    /// Opens the same data in a new server process with these options.
    pub async fn reopen_with(self, options: AccountOptions) -> TestContainer {
        let TestContainer { clock, engine, .. } = self;
        let account = Account::open(engine.clone() as Arc<dyn Engine>, options)
            .await
            .expect("an account");
        let container = account.all_containers().pop().expect("its container");
        TestContainer {
            clock,
            engine,
            account,
            container,
        }
    }

    /// Opens another server process on the same data, over a given engine.
    pub async fn beside(&self, engine: Arc<dyn Engine>) -> TestContainer {
        let engine = Arc::new(Probe::new(engine));
        let account = Account::open(engine.clone() as Arc<dyn Engine>, options())
            .await
            .expect("an account");
        let container = account.all_containers().pop().expect("its container");
        TestContainer {
            clock: self.clock.clone(),
            engine,
            account,
            container,
        }
    }

    /// Sets the clock to a second.
    pub fn at(&self, second: i64) {
        self.clock.set(UnixMillis(second * 1000));
    }

    pub async fn begin(&self) -> RequestContext {
        self.account.begin().await.expect("a clock")
    }

    pub async fn create(&self, body: Value) -> Seen<StoredItem> {
        let create = CreateItem {
            document: document(&body),
            partition_key: None,
        };
        let written = self
            .account
            .create_item(&self.begin().await, &self.container, create)
            .await;
        seen(written).map(|written: ItemWritten| written.item)
    }

    /// Upserts an item. Returns it, and whether it was created.
    pub async fn upsert(&self, body: Value, if_match: Option<&str>) -> Seen<(StoredItem, bool)> {
        let upsert = UpsertItem {
            document: document(&body),
            partition_key: None,
            if_match: if_match.map(str::to_owned),
        };
        let written = self
            .account
            .upsert_item(&self.begin().await, &self.container, upsert)
            .await;
        seen(written).map(|written: ItemWritten| (written.item, written.created))
    }

    pub async fn replace(&self, id: &str, body: Value, if_match: Option<&str>) -> Seen<StoredItem> {
        let document = document(&body);
        let replace = ReplaceItem {
            target: ItemTarget::Id(id.into()),
            partition_key: document.partition_key(&self.container.properties().partition_key),
            document,
            if_match: if_match.map(str::to_owned),
        };
        let written = self
            .account
            .replace_item(&self.begin().await, &self.container, replace)
            .await;
        seen(written).map(|written: ItemWritten| written.item)
    }

    pub async fn patch(&self, id: &str, operations: Value, if_match: Option<&str>) -> Seen<StoredItem> {
        let patch = PatchItem {
            target: ItemTarget::Id(id.into()),
            partition_key: key("p"),
            patch: Patch::from_value(&operations).expect("claims send patches"),
            if_match: if_match.map(str::to_owned),
        };
        let written = self
            .account
            .patch_item(&self.begin().await, &self.container, patch)
            .await;
        seen(written).map(|written: ItemWritten| written.item)
    }

    pub async fn delete(&self, id: &str, if_match: Option<&str>) -> Seen<()> {
        let delete = DeleteItem {
            target: ItemTarget::Id(id.into()),
            partition_key: key("p"),
            if_match: if_match.map(str::to_owned),
        };
        seen(
            self.account
                .delete_item(&self.begin().await, &self.container, delete)
                .await,
        )
    }

    /// Returns the item, if it is visible.
    pub async fn read(&self, id: &str) -> Seen<StoredItem> {
        match self.read_unless(id, None).await? {
            ItemRead::Found(item) => Ok(item),
            ItemRead::NotModified { .. } => panic!("a read without a condition is never spared"),
        }
    }

    pub async fn read_unless(&self, id: &str, if_none_match: Option<&str>) -> Seen<ItemRead> {
        let read = ReadItem {
            target: ItemTarget::Id(id.into()),
            partition_key: key("p"),
            if_none_match: if_none_match.map(str::to_owned),
        };
        seen(
            self.account
                .read_item(&self.begin().await, &self.container, &read)
                .await,
        )
    }

    /// Returns whether the item is visible.
    pub async fn has(&self, id: &str) -> bool {
        self.read(id).await.is_ok()
    }

    /// Returns one page of the read feed, and its continuation.
    pub async fn list(&self, size: usize, continuation: Option<String>) -> (Vec<StoredItem>, Option<String>) {
        let read = ReadFeed {
            max_items: Some(size),
            continuation,
            ..ReadFeed::default()
        };
        loop {
            let ctx = self.begin().await;
            let answer = self.account.read_feed(&ctx, &self.container, &read).await;
            if let Some(page) = page(answer).await {
                return (page.items, page.continuation);
            }
        }
    }

    /// Returns the ids in the read feed.
    pub async fn listed(&self) -> Vec<String> {
        let (mut listed, mut continuation) = (Vec::new(), None);
        loop {
            let (items, next) = self.list(1000, continuation).await;
            listed.extend(ids(&items).into_iter().map(str::to_owned));
            continuation = next;
            if continuation.is_none() {
                return listed;
            }
        }
    }

    /// Returns one page of the change feed, and its continuation.
    pub async fn changes(&self, start: FeedStart, size: usize) -> (Vec<StoredItem>, String) {
        let read = ReadChanges {
            scope: ScanScope::default(),
            start,
            max_items: Some(size),
        };
        loop {
            let ctx = self.begin().await;
            let answer = self.account.change_feed(&ctx, &self.container, &read).await;
            if let Some(page) = page(answer).await {
                return (page.items, page.continuation);
            }
        }
    }

    /// Replaces the container's definition by one with `more`.
    pub async fn define(&self, more: Value) -> Seen<()> {
        let ctx = self.begin().await;
        let sent = definition(&more);
        let replaced = self.account.replace_container(&ctx, &self.container, &sent, None).await;
        replaced.map(|_| ()).map_err(|error| error.kind)
    }

    /// Purges all ghosts. Returns the number of ghosts removed.
    pub async fn purge(&self) -> u64 {
        let purged = self.account.purge(&self.container, PurgeMode::Force, None).await;
        purged.expect("a purge")
    }

    /// Returns the number of live items by the quota statistics.
    pub async fn count(&self) -> u64 {
        self.account.usage(&self.container).await.expect("figures").items
    }

    /// Runs a full check of the storage, and asserts that it finds no problem.
    pub async fn assert_sound(&self) {
        let report = self.account.verify(&self.container).await.expect("a check");
        assert_eq!(report.problems, Vec::<String>::new());
    }
}

fn seen<T>(answer: Result<Response<T>, bolide_core::Refusal>) -> Seen<T> {
    answer.map(|answer| answer.value).map_err(|refusal| refusal.error.kind)
}

/// Returns the page of a response; `None` if it was ended for a change of its container, and must be requested again as clients do.
async fn page<T>(answer: ChargedResult<T>) -> Option<T> {
    match seen(answer) {
        Err(ErrorKind::Throttled { retry_after }) => {
            tokio::time::sleep(retry_after).await;
            None
        }
        page => Some(page.expect("a page")),
    }
}
