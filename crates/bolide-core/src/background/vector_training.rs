//! Trains the lists of vector indexes: when a container has enough items, and again when it has grown.
//!
//! ```text
//!   few items ──▶ no index: queries compare all vectors
//!   enough    ──▶ sample ──▶ k-means ──▶ a new index in the container's row, its centroids in a row of their own ──▶ built as every index
//!   8 × as many ──▶ the same; the old index is dropped when the new one can be used
//! ```
//!
//! The sample may contain vectors of ghosts: only means of many vectors come of it, and a query returns no item that is not visible.

use std::collections::HashMap;
use std::sync::Arc;

use bolide_index::vector::{Centroids, Quantized, Sample, Training};
use bolide_model::epk::Epk;
use bolide_model::rid::ContainerRid;
use bolide_model::{Error, Result};
use bolide_query::index::IndexPath;
use bolide_storage::{ReadRequest, Scan, Space};
use bytes::Bytes;
use tokio::sync::watch;

use super::Background;
use super::rest::Rests;
use crate::catalog::{Catalog, Waits};
use crate::container::{Container, ContainerState};
use crate::format::entries;
use crate::format::keys;
use crate::format::record::Record;
use crate::index::{IndexKind, NamedVector, PropertyIndexes, VectorIndex, named_vectors};

/// Growth after which the lists are trained again: they have become long, and the vectors may have become others.
const GROWTH: u64 = 8;
/// Growth after which items are looked at again if too few had vectors.
const GROWTH_WITHOUT: u64 = 2;
/// At least one of so many items must have a vector of the dimensions.
const ITEMS_OF_VECTOR: u64 = 4;
/// Maximum number of items and bytes of one read.
const READ_ROWS: usize = 500;
const READ_BYTES: usize = 1024 * 1024;
/// Number of pairs of components that are multiplied in one step: some milliseconds.
const STEP_PRODUCTS: usize = 20_000_000;

/// How many items were stored when vectors were last looked for.
pub(super) type LastLooks = HashMap<(ContainerRid, IndexPath), u64>;

/// Trains the lists of one container.
pub(super) struct VectorTraining<'a> {
    pub background: &'a Background,
    pub catalog: &'a Arc<Catalog>,
    pub container: &'a Arc<Container>,
    pub stopped: &'a watch::Receiver<bool>,
    /// Minimum number of stored items.
    pub min_items: u64,
}

impl VectorTraining<'_> {
    /// Adds the vector indexes that the definition wants and the number of items allows, or one with new lists.
    pub async fn add_wanted(&self, looks: &mut LastLooks) -> Result<()> {
        let state = self.container.state();
        if state.collection.is_some() || state.is_deleted {
            return Ok(());
        }
        for vector in named_vectors(&state.properties) {
            // One of them is not built yet.
            if state.indexes.has_work() {
                return Ok(());
            }
            let stored = stored_items(&state).await?;
            let known = state.indexes.list.iter().filter_map(|index| index.vector());
            let trained = known
                .filter(|index| index.path == vector.path)
                .map(|index| index.trained_items)
                .max();
            let due = trained.map_or(self.min_items, |trained| trained.saturating_mul(GROWTH));
            let look = (self.container.rid(), vector.path.clone());
            let looked = looks
                .get(&look)
                .map_or(0, |stored| stored.saturating_mul(GROWTH_WITHOUT));
            if stored < due.max(looked) {
                continue;
            }
            looks.insert(look, stored);
            if let Some(centroids) = self.train(&vector, stored).await? {
                self.add(vector, centroids, stored).await?;
                return Ok(());
            }
        }
        Ok(())
    }

    async fn add(&self, vector: NamedVector, centroids: Centroids, stored: u64) -> Result<()> {
        tracing::info!(container = %self.container.rid(), path = %vector.path, lists = centroids.lists(), items = stored,
            "the lists of a vector index are trained");
        let path = vector.path.clone();
        let index = VectorIndex::stored(vector.path, vector.dimensions, vector.similarity, stored).with(centroids);
        let kind = IndexKind::Vector(Arc::new(index));
        let add = move |indexes: &mut PropertyIndexes| {
            let known = indexes.list.iter().filter_map(|index| index.vector());
            // Another process may have done the same meanwhile.
            let mut same = known.filter(|known| known.path == path);
            if !same.any(|known| known.trained_items.saturating_mul(GROWTH) > stored) {
                indexes.add(kind.clone(), false);
            }
        };
        self.catalog
            .change_indexes(self.container, (Waits::Writers, None), add)
            .await
            .map(drop)
    }

    /// Returns the centroids of the stored vectors; `None` if too few items have one, or if the account is closing.
    async fn train(&self, vector: &NamedVector, stored: u64) -> Result<Option<Centroids>> {
        let Some(sample) = self.sample(vector, stored).await? else {
            return Ok(None);
        };
        let Some(mut training) = Training::new(sample, stored) else {
            return Ok(None);
        };
        let mut rests = Rests::new(self.background);
        loop {
            if self.is_stopped() {
                return Ok(None);
            }
            let began = self.background.clock.now();
            let step = tokio::task::spawn_blocking(move || {
                let centroids = training.step(STEP_PRODUCTS);
                (training, centroids)
            });
            let (rest, centroids) = step
                .await
                .map_err(|_| Error::internal("a step of a training has panicked"))?;
            training = rest;
            if centroids.is_some() {
                return Ok(centroids);
            }
            rests.after(began).await;
        }
    }

    /// Reads all items, and returns some of their vectors.
    async fn sample(&self, vector: &NamedVector, stored: u64) -> Result<Option<Sample>> {
        let mut sample = Sample::new(stored, vector.dimensions);
        let (mut from, mut taken, mut looked) = (Bytes::new(), 0, 0);
        let mut rests = Rests::new(self.background);
        loop {
            if self.is_stopped() {
                return Ok(None);
            }
            let began = self.background.clock.now();
            let guard = self.container.enter().await?;
            let partition = guard.state.layout.partition_of(&Epk::from_bytes(&from[..]))?.clone();
            let mut reply = partition.read_raw(items_from(&from)).await?;
            drop(guard);
            let page = reply.pages.pop().unwrap_or_default();
            for (_, value) in &page.rows {
                let Some(place) = sample.takes_next() else { continue };
                looked += 1;
                let found = entries::vector_at(&Record::decode(value.clone())?, &vector.path);
                let found = found.filter(|found| found.len() == vector.dimensions);
                if let Some(found) = found.and_then(|found| Quantized::of(&found, vector.similarity)) {
                    sample.take(place, found);
                    taken += 1;
                }
            }
            from = match page.rows.last().filter(|_| page.more) {
                Some((last, _)) => keys::after(last),
                None if partition.epk.max < Epk::end() => Bytes::copy_from_slice(partition.epk.max.as_bytes()),
                None => break,
            };
            rests.after(began).await;
        }
        Ok((taken > 0 && taken * ITEMS_OF_VECTOR >= looked).then_some(sample))
    }

    fn is_stopped(&self) -> bool {
        *self.stopped.borrow() || self.stopped.has_changed().is_err()
    }
}

async fn stored_items(state: &ContainerState) -> Result<u64> {
    let mut stored = 0;
    for partition in &state.layout.partitions {
        stored += partition.stored_items();
    }
    Ok(stored)
}

fn items_from(from: &Bytes) -> ReadRequest {
    ReadRequest {
        scans: vec![Scan {
            space: Space::Item,
            from: from.clone(),
            to: None,
            reverse: false,
            max_rows: READ_ROWS,
            max_bytes: READ_BYTES,
            keys_only: false,
        }],
        ..ReadRequest::default()
    }
}
