//! Builds property indexes: gives the items that existed before an index its entries, and removes the entries of dropped indexes.
//!
//! From the commit that adds an index on, writers maintain its entries. The builder goes through the items of each partition in steps, as background work of
//! the partition's worker, and puts the entries of each; an entry that is there already is put again. At the end a change of the catalog lets queries use
//! the index. A build that is interrupted begins again, at the next start at the latest: no query uses an index before it is complete.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bolide_model::epk::Epk;
use bolide_model::{Error, ErrorKind, Result};
use bolide_storage::{Key, Scan, Space};
use bytes::Bytes;
use futures_util::future::OptionFuture;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use super::Background;
use super::rest::Rests;
use super::vector_training::{LastLooks, VectorTraining};
use crate::catalog::{Catalog, Waits};
use crate::container::{Container, ContainerState};
use crate::format::entries;
use crate::format::keys;
use crate::format::record::Record;
use crate::format::text_entries;
use crate::index::{IndexKind, PropertyIndex, PropertyIndexes, WantedIndex, allowed_shape, allows, named_vectors};
use crate::partition::Partition;
use crate::partition::write_batch::{Decision, WriteBatch};

/// Maximum number of items of one step, and approximately of bytes, so that writers in the same write batch do not wait long.
const STEP_ROWS: usize = 200;
const STEP_BYTES: usize = 512 * 1024;
/// Maximum number of items while users are active: their writes wait for half a millisecond. Fewer make more commits, whose syncs are most of the time of a build.
const ROWS_BESIDE_USERS: usize = 50;
/// How often to look for automatic indexes that nobody uses.
const LOOK_FOR_UNUSED: Duration = Duration::from_secs(3600);
/// How often to look whether a container has enough items for a vector index, or has outgrown the one it has.
const LOOK_FOR_GROWTH: Duration = Duration::from_secs(60);
/// Delay before work that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// The task that builds indexes.
pub(crate) struct PropertyIndexBuilds {
    signal: Arc<Notify>,
    stop: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl PropertyIndexBuilds {
    /// Starts the task. It ends by itself when the account is dropped. A container gets vector indexes when it has `vector_items` items.
    pub fn start(background: &Arc<Background>, catalog: &Arc<Catalog>, vector_items: u64) -> PropertyIndexBuilds {
        let (stop, stopped) = watch::channel(false);
        let signal = Arc::new(Notify::new());
        let task = run(
            Arc::downgrade(background),
            Arc::downgrade(catalog),
            signal.clone(),
            (stopped, vector_items),
        );
        PropertyIndexBuilds {
            signal,
            stop,
            task: Mutex::new(Some(tokio::spawn(task))),
        }
    }

    /// Returns what wakes the task: there may be an index to build or to remove.
    pub fn signal(&self) -> &Arc<Notify> {
        &self.signal
    }

    /// Stops the task, and waits for its current step.
    pub async fn stop(&self) {
        let _ = self.stop.send(true);
        let task = self.task.lock().take();
        if let Some(task) = task {
            let _ = task.await;
        }
    }
}

/// Builds and removes what the catalog and the queries ask for until the account is closed.
async fn run(
    background: Weak<Background>,
    catalog: Weak<Catalog>,
    signal: Arc<Notify>,
    (mut stopped, vector_items): (watch::Receiver<bool>, u64),
) {
    let mut looks = LastLooks::new();
    loop {
        let (Some(open), Some(known)) = (background.upgrade(), catalog.upgrade()) else {
            return;
        };
        let clock = open.clock.clone();
        let (mut has_failed, mut has_automatic, mut has_vectors) = (false, false, false);
        for container in known.all_containers() {
            let builder = Builder {
                background: &open,
                catalog: &known,
                container: &container,
                stopped: &stopped,
                vector_items,
            };
            match builder.bring_up_to_date(&mut looks).await {
                Err(error) if error.kind != ErrorKind::NotFound => {
                    tracing::warn!(%error, "an index was not built and will be tried again");
                    has_failed = true;
                }
                _ => {}
            }
            let state = container.state();
            has_automatic |= state.indexes.list.iter().any(|index| index.is_automatic);
            has_vectors |= !named_vectors(&state.properties).is_empty();
        }
        drop((open, known));
        // In this order and not in one by chance, so that a simulation can be repeated.
        tokio::select! {
            biased;
            _ = stopped.changed() => return,
            () = signal.notified() => {}
            () = clock.sleep(RETRY), if has_failed => {}
            () = clock.sleep(LOOK_FOR_UNUSED), if has_automatic => {}
            () = clock.sleep(LOOK_FOR_GROWTH), if has_vectors => {}
        }
    }
}

struct Builder<'a> {
    background: &'a Background,
    catalog: &'a Arc<Catalog>,
    container: &'a Arc<Container>,
    stopped: &'a watch::Receiver<bool>,
    vector_items: u64,
}

impl Builder<'_> {
    async fn bring_up_to_date(&self, looks: &mut LastLooks) -> Result<()> {
        self.follow_policy().await?;
        self.drop_unused().await?;
        let training = VectorTraining {
            background: self.background,
            catalog: self.catalog,
            container: self.container,
            stopped: self.stopped,
            min_items: self.vector_items,
        };
        training.add_wanted(looks).await?;
        let wanted = self.container.advisor().take_wanted();
        if !wanted.is_empty() {
            self.add(wanted).await?;
        }
        if !self.container.state().indexes.has_work() {
            return Ok(());
        }
        self.build().await?;
        self.drop_replaced().await?;
        self.remove_dropped().await
    }

    /// Adds the indexes that the policy names, or those of a collection: a container of an earlier version has none.
    async fn follow_policy(&self) -> Result<()> {
        let state = self.container.state();
        let of_state = state.clone();
        let follow = move |indexes: &mut PropertyIndexes| match &of_state.collection {
            Some(collection) => indexes.follow_collection(collection.document_indexes(), false),
            None => indexes.follow(&of_state.properties),
        };
        let mut followed = (*state.indexes).clone();
        follow(&mut followed);
        if followed == *state.indexes {
            return Ok(());
        }
        self.catalog
            .change_indexes(self.container, (Waits::All, None), follow)
            .await
            .map(drop)
    }

    /// Drops the vector indexes in whose place there is a newer one.
    async fn drop_replaced(&self) -> Result<()> {
        let state = self.container.state();
        let is_replaced = |index: &PropertyIndex| state.indexes.is_replaced(index);
        if !state.indexes.list.iter().any(is_replaced) {
            return Ok(());
        }
        let drop_them = |indexes: &mut PropertyIndexes| {
            let known = indexes.clone();
            indexes.retain(|index| !known.is_replaced(index));
        };
        self.catalog
            .change_indexes(self.container, (Waits::All, None), drop_them)
            .await
            .map(drop)
    }

    /// Drops the automatic indexes that queries no longer use.
    async fn drop_unused(&self) -> Result<()> {
        let now = self.background.clock.now();
        let unused = self.container.advisor().unused(&self.container.state().indexes, now);
        if unused.is_empty() {
            return Ok(());
        }
        tracing::info!(container = %self.container.rid(), indexes = ?unused, "indexes are dropped that no query used for a day");
        let drop_them = move |indexes: &mut PropertyIndexes| indexes.retain(|index| !unused.contains(&index.id));
        self.catalog
            .change_indexes(self.container, (Waits::All, None), drop_them)
            .await
            .map(drop)
    }

    /// Adds indexes of which queries would profit.
    async fn add(&self, wanted: Vec<WantedIndex>) -> Result<()> {
        let state = self.container.state();
        let properties = &state.properties;
        let kind = |wanted| match wanted {
            WantedIndex::Values(path) => {
                allows(&properties.indexing_policy, &path).then(|| IndexKind::Values(Arc::new(path)))
            }
            WantedIndex::Spatial(path) => {
                let index = allowed_shape(properties, &path)?;
                Some(IndexKind::Spatial(Arc::new(index)))
            }
        };
        let has_room = state.indexes.has_room_for_automatic();
        let kinds: Vec<IndexKind> = wanted.into_iter().filter(|_| has_room).filter_map(kind).collect();
        if kinds.is_empty() {
            return Ok(());
        }
        let add = move |indexes: &mut PropertyIndexes| {
            for kind in &kinds {
                indexes.add(kind.clone(), true);
            }
        };
        self.catalog
            .change_indexes(self.container, (Waits::Writers, None), add)
            .await
            .map(drop)
    }

    /// Builds the indexes that are not built.
    async fn build(&self) -> Result<()> {
        loop {
            let state = self.container.state();
            let unbuilt: Vec<PropertyIndex> = state
                .indexes
                .list
                .iter()
                .filter(|index| !index.is_ready && !is_built_by_command(&state, index))
                .cloned()
                .collect();
            if unbuilt.is_empty() || self.is_stopped() {
                return Ok(());
            }
            let layout = state.layout.version;
            self.wait_for_earlier_writes().await?;
            let ids: Vec<u32> = unbuilt.iter().map(|index| index.id).collect();
            if !self.run_steps(Task::Put(unbuilt.into())).await? {
                return Ok(());
            }
            let built = ids.clone();
            // A range that was split meanwhile may lack entries; all ranges are gone through again.
            let is_built = self
                .catalog
                .change_indexes(self.container, (Waits::Writers, Some(layout)), move |indexes| {
                    for index in indexes.list.iter_mut().filter(|index| built.contains(&index.id)) {
                        index.is_ready = true;
                    }
                })
                .await?;
            if is_built {
                tracing::info!(container = %self.container.rid(), indexes = ?ids, "indexes are built");
            }
            self.check_progress(&state)?;
        }
    }

    /// Removes the entries of indexes that were dropped.
    async fn remove_dropped(&self) -> Result<()> {
        loop {
            let state = self.container.state();
            let (dropped, layout) = (state.indexes.dropped.clone(), state.layout.version);
            if dropped.is_empty() || self.is_stopped() {
                return Ok(());
            }
            self.wait_for_earlier_writes().await?;
            for index in &dropped {
                if !self.run_steps(Task::Remove(*index)).await? {
                    return Ok(());
                }
            }
            self.catalog
                .change_indexes(self.container, (Waits::Writers, Some(layout)), move |indexes| {
                    indexes.dropped.retain(|index| !dropped.contains(index));
                })
                .await?;
            self.check_progress(&state)?;
        }
    }

    /// Refuses to go on at once if nothing has changed since `state`, though a change was asked for: other ranges are stored than are known here.
    fn check_progress(&self, state: &ContainerState) -> Result<()> {
        let now = self.container.state();
        match now.layout.version == state.layout.version && now.indexes == state.indexes {
            true => Err(Error::new(
                ErrorKind::Unavailable,
                "the ranges of a container have changed",
            )),
            false => Ok(()),
        }
    }

    /// Waits for the writes that were queued before the indexes changed: they decide by the indexes of before, also if their requests are gone.
    async fn wait_for_earlier_writes(&self) -> Result<()> {
        let guard = self.container.enter().await?;
        for partition in &guard.state.layout.partitions {
            partition.write(|_| Ok(())).await?;
            partition.write_batch(|_| Ok(())).await?;
        }
        Ok(())
    }

    /// Runs the steps of a task in each partition. Returns `false` if the account is closing.
    async fn run_steps(&self, task: Task) -> Result<bool> {
        let built = self.container.built_items();
        built.store(0, Ordering::Relaxed);
        let mut from = Bytes::new();
        let mut rests = Rests::new(self.background);
        loop {
            if self.is_stopped() {
                return Ok(false);
            }
            let guard = self.container.enter().await?;
            // In the order of their keys: a range that is split meanwhile is continued in its children.
            let partition = guard.state.layout.partition_of(&Epk::from_bytes(&from[..]))?.clone();
            let began = self.background.clock.now();
            let (rows, next) = run_step(&partition, &task, &from, rests.is_beside_users()).await?;
            drop(guard);
            built.fetch_add(rows as u64, Ordering::Relaxed);
            from = match next {
                Some(next) => next,
                None if partition.epk.max < Epk::end() => Bytes::copy_from_slice(partition.epk.max.as_bytes()),
                None => return Ok(true),
            };
            rests.after(began).await;
        }
    }

    fn is_stopped(&self) -> bool {
        // The account was closed, or dropped.
        *self.stopped.borrow() || self.stopped.has_changed().is_err()
    }
}

/// Runs one step of a task. See [`Task::run`].
async fn run_step(
    partition: &Partition,
    task: &Task,
    from: &Bytes,
    is_beside_users: bool,
) -> Result<(usize, Option<Bytes>)> {
    let rows = if is_beside_users { ROWS_BESIDE_USERS } else { STEP_ROWS };
    let scan = task.scan(from, rows);
    // Users' writes do not wait for the scan.
    let prepare = is_beside_users.then(|| partition.prepare(|batch, _| batch.scan_raw(std::slice::from_ref(&scan))));
    let prepared = OptionFuture::from(prepare).await.flatten();
    let (step, from) = (task.clone(), from.clone());
    let decide = move |batch: &mut WriteBatch<'_>, (): &()| step.run(batch, &scan, &from);
    partition
        .background_beside_users((None, prepared), |_| (), decide)
        .await
}

/// Whether the command that creates an index builds it.
fn is_built_by_command(state: &ContainerState, index: &PropertyIndex) -> bool {
    let IndexKind::Document(index) = &index.kind else {
        return false;
    };
    let mut of_collection = state.collection.iter().flat_map(|collection| &collection.indexes);
    of_collection.any(|known| known.id == index.id && known.is_building)
}

/// What steps do in each partition.
#[derive(Clone)]
enum Task {
    /// Put the entries of these indexes.
    Put(Arc<[PropertyIndex]>),
    /// Remove the entries of a dropped index.
    Remove(u32),
}

impl Task {
    /// Runs the step that begins at an item key. Returns the number of items that it has gone through, and where the next one in the same partition begins;
    /// `None`: nothing is left there.
    fn run(&self, batch: &mut WriteBatch<'_>, scan: &Scan, from: &Bytes) -> Decision<(usize, Option<Bytes>)> {
        match self {
            Task::Put(indexes) => put_entries(batch, indexes, scan),
            Task::Remove(index) => Ok((0, remove_entries(batch, *index, scan)?.then(|| from.clone()))),
        }
    }

    /// Returns what a step of so many rows reads.
    fn scan(&self, from: &Bytes, rows: usize) -> Scan {
        let (space, from, to) = match self {
            Task::Put(_) => (Space::Item, from.clone(), None),
            Task::Remove(index) => {
                let prefix = keys::property_prefix(*index);
                (
                    Space::Index,
                    Bytes::copy_from_slice(&prefix),
                    keys::after_prefix(&prefix),
                )
            }
        };
        Scan {
            space,
            from,
            to,
            reverse: false,
            max_rows: rows,
            max_bytes: STEP_BYTES,
            keys_only: matches!(self, Task::Remove(_)),
        }
    }
}

fn put_entries(batch: &mut WriteBatch<'_>, indexes: &[PropertyIndex], scan: &Scan) -> Decision<(usize, Option<Bytes>)> {
    let page = batch.scan_raw(std::slice::from_ref(scan))?.pop().unwrap_or_default();
    for (item_key, value) in &page.rows {
        let record = Record::decode(value.clone())?;
        for (key, value) in entries::property_entries(indexes, item_key, &record) {
            let words = text_entries::words_of_text(&key.bytes, &value);
            let uncounted = |(id, _): &(u32, u64)| {
                let index = indexes.iter().find(|index| index.id == *id);
                index.is_some_and(|index| !batch.state.texts.counts(index, item_key))
            };
            // A build that began again has counted it already.
            if let Some((index, words)) = words.filter(uncounted) {
                batch.state.texts.reach(index, Some(&Bytes::new()));
                batch.state.texts.add(index, words);
            }
            batch.put(key, value);
        }
    }
    let last = page.rows.last().filter(|_| page.more);
    let next = last.map(|(last, _)| keys::after(last));
    for index in indexes
        .iter()
        .filter(|index| matches!(index.kind, IndexKind::FullText(_)))
    {
        batch.state.texts.reach(index.id, next.as_ref());
    }
    Ok((page.rows.len(), next))
}

/// Removes some entries of an index. Returns whether there may be more.
fn remove_entries(batch: &mut WriteBatch<'_>, index: u32, scan: &Scan) -> Decision<bool> {
    let page = batch.scan_raw(std::slice::from_ref(scan))?.pop().unwrap_or_default();
    let more = page.more;
    for (key, _) in page.rows {
        batch.delete(Key::new(Space::Index, key));
    }
    batch.state.texts.forget(index);
    Ok(more)
}
