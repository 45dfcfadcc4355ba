//! An engine for tests: it counts what passes through it, can be made to fail for periods of time, and can be cut off.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use bolide_model::UnixMillis;
use bolide_model::time::Span;
use bolide_storage::faults::{Faults, FaultyEngine};
use bolide_storage::{
    Batch, CommitToken, Engine, EngineError, EngineFuture, Head, HeldSnapshot, HomeId, JointOutcome, Key, Outcome,
    PartitionId, Put, ReadRequest, ReadResponse, Resolved, Scan, Space, Ticket, WriteLock,
};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// The engine; see the module.
pub struct Probe {
    inner: Arc<dyn Engine>,
    faulty: Option<FaultyEngine>,
    /// While above zero, there are no faults.
    calm: AtomicI64,
    /// Number of commits that are still let through; negative: all.
    commits_left: AtomicI64,
    reads: AtomicU64,
    commits: AtomicU64,
    rows: AtomicU64,
    /// Total length of the values that were looked up, in bytes.
    value_bytes: AtomicUsize,
    /// Number of rows that scans have returned.
    found: AtomicU64,
    /// The server time that was made durable through the probe.
    durable_time: AtomicI64,
    /// Scans of these spaces with at least this many rows wait until they are let through, except for those of the catalog.
    holding: Mutex<Vec<(Space, Option<usize>)>>,
    scans: Semaphore,
    held: AtomicUsize,
    /// Whether the answer to the next scan of items waits until it is let through.
    is_next_answer_held: AtomicBool,
    is_next_commit_held: AtomicBool,
    /// Number of commits to the catalog that are let through before the next ones wait; negative: all.
    catalog_commits_left: AtomicI64,
    held_answers: AtomicUsize,
    answers: Semaphore,
    lost: Mutex<Option<Lost>>,
}

/// A commit whose outcome is not reported.
struct Lost {
    is_it: fn(PartitionId, &Batch) -> bool,
    is_done: bool,
    /// The token of the commit, once it was made.
    token: Option<CommitToken>,
}

/// Rows of the pages of a split. Nobody else asks for as many.
///
/// Agrees with: `PAGE_ROWS` in `admin/split/copy.rs`.
const SPLIT_ROWS: usize = 160;

/// The partition of the first container.
const FIRST: PartitionId = PartitionId(1);

/// The traffic through a [`Probe`] between two calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    pub reads: u64,
    pub commits: u64,
    /// Keys looked up, written and removed, and ranges scanned.
    pub rows: u64,
}

/// All rows of a space of a partition.
pub async fn rows_of(engine: &dyn Engine, partition: PartitionId, space: Space) -> Vec<(Bytes, Bytes)> {
    let request = ReadRequest {
        scans: vec![Scan::whole(space)],
        ..ReadRequest::default()
    };
    let mut reply = engine.read(partition, request).await.expect("a partition");
    reply.pages.pop().expect("a page").rows
}

impl Probe {
    pub fn new(inner: Arc<dyn Engine>) -> Probe {
        Probe {
            inner,
            faulty: None,
            calm: AtomicI64::new(1),
            commits_left: AtomicI64::new(-1),
            reads: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            value_bytes: AtomicUsize::new(0),
            found: AtomicU64::new(0),
            durable_time: AtomicI64::new(i64::MIN),
            holding: Mutex::default(),
            scans: Semaphore::new(0),
            held: AtomicUsize::new(0),
            is_next_answer_held: AtomicBool::new(false),
            is_next_commit_held: AtomicBool::new(false),
            catalog_commits_left: AtomicI64::new(-1),
            held_answers: AtomicUsize::new(0),
            answers: Semaphore::new(0),
            lost: Mutex::default(),
        }
    }

    /// Creates a probe whose engine has faults unless it is calm. It starts calm.
    pub fn with_faults(inner: Arc<dyn Engine>, faults: Faults) -> Probe {
        Probe {
            faulty: Some(FaultyEngine::new(inner.clone(), faults)),
            ..Probe::new(inner)
        }
    }

    /// Begins or ends a period without faults. Such periods may be nested.
    pub fn be_calm(&self, is_calm: bool) {
        self.calm.fetch_add(if is_calm { 1 } else { -1 }, Ordering::SeqCst);
    }

    /// Lets `commits` more commits through; after them the engine only answers reads.
    pub fn cut_after(&self, commits: i64) {
        self.commits_left.store(commits, Ordering::SeqCst);
    }

    /// Returns whether the commits that [`Probe::cut_after`] let through are done.
    pub fn is_cut(&self) -> bool {
        self.commits_left.load(Ordering::SeqCst) == 0
    }

    pub fn mend(&self) {
        self.cut_after(-1);
    }

    /// Returns all rows of a space of the first container.
    pub async fn rows(&self, space: Space) -> Vec<(Bytes, Bytes)> {
        rows_of(self.inner.as_ref(), FIRST, space).await
    }

    /// Damages the first container's storage: replaces the value of a key, or removes it.
    pub async fn rewrite(&self, key: Key, value: Option<Bytes>) {
        let head = self
            .inner
            .read(FIRST, ReadRequest::default())
            .await
            .expect("a partition")
            .head;
        let (puts, deletes) = match value {
            Some(value) => (vec![Put { key, value }], vec![]),
            None => (vec![], vec![key]),
        };
        let batch = Batch {
            base: head.lsn,
            next: head.lsn.next(),
            stamp: head.stamp,
            edition: head.edition,
            token: CommitToken(1),
            puts,
            deletes,
            new_keys: Vec::new(),
            may_block: false,
        };
        let outcome = self.inner.commit(FIRST, batch).await;
        assert!(matches!(outcome, Ok(Outcome::Done(_))), "{outcome:?}");
    }

    /// Makes all scans wait from now on.
    pub fn hold_scans(&self) {
        self.hold(&Space::ALL, None);
    }

    /// Like [`Probe::hold_scans`], for one space.
    pub fn hold_scans_of(&self, space: Space) {
        self.hold(&[space], None);
    }

    /// Stops splits after they have copied all items, before the history.
    pub fn hold_splits(&self) {
        self.hold(&[Space::Log], Some(SPLIT_ROWS));
    }

    /// Lets splits wait before each page of items.
    pub fn hold_splits_before_items(&self) {
        self.hold(&[Space::Item], Some(SPLIT_ROWS));
    }

    fn hold(&self, spaces: &[Space], max_rows: Option<usize>) {
        self.scans.forget_permits(self.scans.available_permits());
        *self.holding.lock() = spaces.iter().map(|space| (*space, max_rows)).collect();
    }

    /// Waits until `scans` scans wait.
    pub async fn until_held(&self, scans: usize) {
        while self.held_scans() < scans {
            tokio::task::yield_now().await;
        }
    }

    /// Lets `scans` scans run, including later ones.
    pub fn let_through(&self, scans: usize) {
        self.scans.add_permits(scans);
    }

    /// Lets all scans run.
    pub fn release_scans(&self) {
        let mut holding = self.holding.lock();
        holding.clear();
        self.let_through(self.held_scans());
    }

    /// Hides the outcome of the first commit for which `is_it` returns true; `is_done` says whether the commit is made.
    pub fn lose_outcome(&self, is_done: bool, is_it: fn(PartitionId, &Batch) -> bool) {
        *self.lost.lock() = Some(Lost {
            is_it,
            is_done,
            token: None,
        });
    }

    /// Returns `Some` if the outcome of a commit is hidden: `true` if the commit must not be made either.
    fn loses(&self, partition: PartitionId, batch: &Batch) -> Option<bool> {
        let mut lost = self.lost.lock();
        let lost = lost.as_mut()?;
        if lost.token.is_some() || !(lost.is_it)(partition, batch) {
            return None;
        }
        lost.token = Some(batch.token);
        Some(!lost.is_done)
    }

    /// Returns the number of scans that wait.
    pub fn held_scans(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }

    /// Makes the answer to the next scan of items wait after the scan was made.
    pub fn hold_next_answer(&self) {
        self.is_next_answer_held.store(true, Ordering::SeqCst);
    }

    /// Makes the next commit to a partition of a container wait before it is made.
    pub fn hold_next_commit(&self) {
        self.is_next_commit_held.store(true, Ordering::SeqCst);
    }

    /// Lets `commits` more commits to the catalog through; later ones wait before they are made.
    pub fn hold_catalog_commits_after(&self, commits: i64) {
        self.catalog_commits_left.store(commits, Ordering::SeqCst);
    }

    /// Lets commits to the catalog through again, those that wait included.
    pub fn release_catalog_commits(&self) {
        self.catalog_commits_left.store(-1, Ordering::SeqCst);
        self.answers.add_permits(self.held_answers());
    }

    /// Returns whether a commit to the catalog must wait; counts it.
    fn holds_catalog_commit(&self) -> bool {
        let less = |left: i64| (left > 0).then_some(left - 1);
        let left = &self.catalog_commits_left;
        left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less) == Err(0)
    }

    /// Returns the number of answers and commits that wait.
    pub fn held_answers(&self) -> usize {
        self.held_answers.load(Ordering::SeqCst)
    }

    /// Lets the answer or commit through.
    pub fn release_answer(&self) {
        self.answers.add_permits(1);
    }

    /// Returns the traffic since the last call.
    pub fn traffic(&self) -> Traffic {
        Traffic {
            reads: self.reads.swap(0, Ordering::SeqCst),
            commits: self.commits.swap(0, Ordering::SeqCst),
            rows: self.rows.swap(0, Ordering::SeqCst),
        }
    }

    /// Returns the total length of the values that were looked up since the last call, in bytes.
    pub fn value_bytes(&self) -> usize {
        self.value_bytes.swap(0, Ordering::SeqCst)
    }

    /// Returns the number of rows that scans have returned since the last call.
    pub fn found_rows(&self) -> u64 {
        self.found.swap(0, Ordering::SeqCst)
    }

    /// Returns whether a read must wait; counts it if so.
    fn holds(&self, request: &ReadRequest) -> bool {
        let holding = self.holding.lock();
        let waits = |scan: &Scan| {
            let mut held = holding.iter();
            held.any(|(space, max_rows)| scan.space == *space && max_rows.is_none_or(|rows| scan.max_rows == rows))
        };
        let is_held = request.scans.iter().any(waits);
        self.held.fetch_add(usize::from(is_held), Ordering::SeqCst);
        is_held
    }

    fn engine(&self) -> &dyn Engine {
        match &self.faulty {
            Some(faulty) if self.calm.load(Ordering::SeqCst) == 0 => faulty,
            _ => self.inner.as_ref(),
        }
    }

    fn reach(&self) -> Result<&dyn Engine, EngineError> {
        if self.commits_left.load(Ordering::SeqCst) == 0 {
            return Err(EngineError::Unavailable("cut off".into()));
        }
        Ok(self.engine())
    }

    fn reach_to_commit(&self) -> Result<&dyn Engine, EngineError> {
        let engine = self.reach()?;
        let _ = self
            .commits_left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                (left > 0).then_some(left - 1)
            });
        Ok(engine)
    }

    fn count(&self, calls: &AtomicU64, rows: usize) {
        calls.fetch_add(1, Ordering::SeqCst);
        self.rows.fetch_add(rows as u64, Ordering::SeqCst);
    }
}

impl Engine for Probe {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn checks_new_keys(&self) -> bool {
        self.inner.checks_new_keys()
    }

    fn read(
        &self,
        partition: PartitionId,
        request: ReadRequest,
    ) -> EngineFuture<'_, Result<ReadResponse, EngineError>> {
        Box::pin(async move {
            self.count(&self.reads, request.gets.len() + request.scans.len());
            if partition != PartitionId::CATALOG && self.holds(&request) {
                self.scans.acquire().await.expect("it is never closed").forget();
                self.held.fetch_sub(1, Ordering::SeqCst);
            }
            let scans_items = request.scans.iter().any(|scan| scan.space == Space::Item);
            let response = self.engine().read(partition, request).await?;
            if scans_items && self.is_next_answer_held.swap(false, Ordering::SeqCst) {
                self.held_answers.fetch_add(1, Ordering::SeqCst);
                self.answers.acquire().await.expect("it is never closed").forget();
                self.held_answers.fetch_sub(1, Ordering::SeqCst);
            }
            let value_bytes = response.gets.iter().flatten().map(Bytes::len).sum();
            self.value_bytes.fetch_add(value_bytes, Ordering::SeqCst);
            let found: usize = response.pages.iter().map(|page| page.rows.len()).sum();
            self.found.fetch_add(found as u64, Ordering::SeqCst);
            Ok(response)
        })
    }

    fn read_and_lock(
        &self,
        partition: PartitionId,
        keys: Vec<Key>,
    ) -> EngineFuture<'_, Result<(ReadResponse, Option<WriteLock>), EngineError>> {
        Box::pin(async move {
            self.count(&self.reads, keys.len());
            self.engine().read_and_lock(partition, keys).await
        })
    }

    fn commit(&self, partition: PartitionId, batch: Batch) -> EngineFuture<'_, Result<Outcome, EngineError>> {
        Box::pin(async move {
            let is_held = match partition {
                PartitionId::CATALOG => self.holds_catalog_commit(),
                _ => self.is_next_commit_held.swap(false, Ordering::SeqCst),
            };
            if is_held {
                self.held_answers.fetch_add(1, Ordering::SeqCst);
                self.answers.acquire().await.expect("it is never closed").forget();
                self.held_answers.fetch_sub(1, Ordering::SeqCst);
            }
            self.count(&self.commits, batch.keys().count());
            let engine = self.reach_to_commit()?;
            let ticket = batch.ticket();
            match self.loses(partition, &batch) {
                None => engine.commit(partition, batch).await,
                Some(true) => Ok(Outcome::Unknown(ticket)),
                Some(false) => {
                    engine.commit(partition, batch).await?;
                    Ok(Outcome::Unknown(ticket))
                }
            }
        })
    }

    fn commit_together(
        &self,
        batches: Vec<(PartitionId, Batch)>,
    ) -> EngineFuture<'_, Result<JointOutcome, EngineError>> {
        Box::pin(async move {
            self.count(
                &self.commits,
                batches.iter().map(|(_, batch)| batch.keys().count()).sum(),
            );
            self.reach_to_commit()?.commit_together(batches).await
        })
    }

    fn hold(&self, home: HomeId, until: UnixMillis) -> EngineFuture<'_, Result<Arc<dyn HeldSnapshot>, EngineError>> {
        Box::pin(async move { self.engine().hold(home, until).await })
    }

    fn resolve(&self, partition: PartitionId, ticket: Ticket) -> EngineFuture<'_, Result<Resolved, EngineError>> {
        Box::pin(async move {
            let lost = self.lost.lock().as_ref().and_then(|lost| lost.token);
            if lost == Some(ticket.token) {
                return Err(EngineError::Unavailable("lost".into()));
            }
            self.reach()?.resolve(partition, ticket).await
        })
    }

    fn create(&self, partition: PartitionId, head: Head) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move { self.reach()?.create(partition, head).await })
    }

    fn remove(&self, partition: PartitionId) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move { self.reach()?.remove(partition).await })
    }

    fn time(&self) -> Span {
        self.engine().time()
    }

    fn durable_time(&self) -> UnixMillis {
        UnixMillis(self.durable_time.load(Ordering::SeqCst))
    }

    fn make_time_durable(&self, until: UnixMillis) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move {
            self.reach()?.make_time_durable(until).await?;
            self.durable_time.fetch_max(until.0, Ordering::SeqCst);
            Ok(())
        })
    }

    fn close(&self) -> EngineFuture<'_, Result<(), EngineError>> {
        Box::pin(async move { self.engine().close().await })
    }
}
