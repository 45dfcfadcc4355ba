//! The temporary partition of an import's lines.

use std::sync::Arc;

use bolide_model::{Error, ErrorKind, Result};
use bolide_storage::{Key, PartitionId, ReadRequest, Space};
use bytes::Bytes;

use super::{COMMIT_BYTES, COMMIT_ITEMS};
use crate::catalog::Catalog;
use crate::partition::Partition;

/// Lines that are stored in the temporary partition with one commit.
#[derive(Default)]
pub(super) struct Rows {
    rows: Vec<(Key, Bytes)>,
    bytes: usize,
}

impl Rows {
    /// Adds a line. Returns whether the commit is full.
    pub fn add(&mut self, line: u32, text: Bytes) -> bool {
        self.bytes += text.len();
        self.rows.push((Aside::key(line), text));
        self.rows.len() >= COMMIT_ITEMS || self.bytes >= COMMIT_BYTES
    }
}

/// The temporary partition of an import's lines, by their numbers. It is listed for removal from the beginning, so a crash leaves nothing behind.
pub(super) struct Aside {
    catalog: Arc<Catalog>,
    partition: Arc<Partition>,
    is_removed: bool,
}

impl Aside {
    pub async fn open(catalog: Arc<Catalog>) -> Result<Aside> {
        let take = |catalog: Arc<Catalog>| async move { catalog.take_partition_ids(1).await };
        let id = PartitionId(catalog.carry_out(take).await?);
        let now = catalog.now().await?;
        let engine = catalog.engine().clone();
        let partition = Partition::open_whole(engine, id, now, catalog.signals().clone()).await?;
        Ok(Aside {
            catalog,
            partition,
            is_removed: false,
        })
    }

    fn key(line: u32) -> Key {
        Key::new(Space::Item, Bytes::copy_from_slice(&line.to_be_bytes()))
    }

    pub async fn write(&self, rows: Rows) -> Result<()> {
        if rows.rows.is_empty() {
            return Ok(());
        }
        self.partition
            .write_batch(move |batch| {
                for (key, text) in &rows.rows {
                    batch.put(key.clone(), text.clone());
                }
                Ok(())
            })
            .await
    }

    /// Returns the texts of some lines, or of the first ones of them if they are more than one commit takes.
    pub async fn read(&self, lines: impl IntoIterator<Item = u32>) -> Result<Vec<Bytes>> {
        let request = ReadRequest {
            gets: lines.into_iter().map(Aside::key).collect(),
            max_bytes: COMMIT_BYTES,
            ..ReadRequest::default()
        };
        let texts = self.partition.read_raw(request).await?.gets;
        let missing = || Error::new(ErrorKind::Corrupt, "a line that was put aside is missing");
        texts.into_iter().map(|text| text.ok_or_else(missing)).collect()
    }

    pub async fn remove(mut self) {
        self.is_removed = true;
        remove(self.catalog.clone(), self.partition.id).await;
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // The import was cancelled with its request.
        if !self.is_removed {
            tokio::spawn(remove(self.catalog.clone(), self.partition.id));
        }
    }
}

async fn remove(catalog: Arc<Catalog>, partition: PartitionId) {
    let remove = |catalog: Arc<Catalog>| async move { catalog.remove_dropped(vec![partition]).await };
    if let Err(error) = catalog.carry_out(remove).await {
        tracing::warn!(%error, "what an import had put aside is removed at the next start");
    }
}
