//! Deleting the rows of a removed partition, a few at a time.
//!
//! The removal row marks a partition whose rows are being deleted. It is written together with the deletion of the head, and deleted after the last
//! row. So a removal continues after a restart.

use std::time::Duration;

use bolide_storage::{PartitionId, Space};
use bytes::Bytes;
use fjall::{OwnedWriteBatch, PersistMode, Readable};

use crate::layout::{Kind, row_key, rows_end};
use crate::store::Store;

/// Rows deleted per step: about a millisecond of the committer's time.
const STEP_ROWS: usize = 250;
/// Pause between two steps, so that commits come first.
pub(super) const PAUSE: Duration = Duration::from_millis(5);

/// Progress of a removal.
#[derive(Debug)]
pub(super) struct Removal {
    partition: PartitionId,
    /// Spaces not yet empty, the next one last.
    spaces: Vec<Space>,
    /// Where to continue in the next space. Starting from the beginning each time would read the tombstones of all earlier steps.
    from: Bytes,
}

impl Removal {
    /// The removal of `partition`, from the beginning.
    pub(super) fn of(partition: PartitionId) -> Removal {
        Removal {
            partition,
            spaces: Space::ALL.to_vec(),
            from: row_key(partition, &[]),
        }
    }

    pub(super) fn partition(&self) -> PartitionId {
        self.partition
    }

    /// DeleteStats the next rows. Returns their space and number; `None` if nothing is left of the partition.
    pub(super) fn advance(&mut self, store: &Store) -> fjall::Result<Option<(Space, usize)>> {
        let mut batch =
            OwnedWriteBatch::with_capacity(store.db.clone(), STEP_ROWS).durability(Some(PersistMode::Buffer));
        let Some(space) = self.spaces.last().copied() else {
            batch.remove(store.space(Space::Meta), Kind::Removal.key(self.partition));
            return batch.commit().map(|()| None);
        };
        let keys = self.next_keys(store, space)?;
        match keys.last() {
            Some(last) if keys.len() == STEP_ROWS => self.from = last.clone(),
            _ => {
                self.spaces.pop();
                self.from = row_key(self.partition, &[]);
            }
        }
        let deletes = keys.len();
        keys.into_iter().for_each(|key| batch.remove(store.space(space), key));
        batch.commit().map(|()| Some((space, deletes)))
    }

    fn next_keys(&self, store: &Store, space: Space) -> fjall::Result<Vec<Bytes>> {
        let range = self.from.clone()..rows_end(self.partition);
        let rows = store.db.snapshot().range(store.space(space), range);
        rows.take(STEP_ROWS).map(|row| row.key().map(Bytes::from)).collect()
    }
}
