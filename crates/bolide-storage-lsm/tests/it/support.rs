//! Helpers shared by the tests of this engine.

use std::path::Path;
use std::sync::Arc;

use bolide_model::time::{Clock, Monotonic};
use bolide_model::{Lsn, UnixMillis};
use bolide_storage::{
    Batch, CommitToken, Edition, Engine, Head, Key, Outcome, PartitionId, Put, ReadRequest, ReadResponse, Scan, Space,
};
use bolide_storage_lsm::{LsmEngine, LsmOptions, OpenError};
use bytes::Bytes;

pub const PARTITION: PartitionId = PartitionId(1);
const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

pub fn try_open(dir: &Path, options: LsmOptions) -> Result<LsmEngine, OpenError> {
    LsmEngine::open(dir, Arc::new(Clock::virtual_at(NOW)), options)
}

pub fn open(dir: &Path) -> LsmEngine {
    try_open(dir, LsmOptions::default()).unwrap()
}

/// An engine whose maintenance follows a clock that is moved by hand.
pub fn open_with_manual_clock(dir: &Path) -> (LsmEngine, Monotonic) {
    let monotonic = Monotonic::manual();
    let options = LsmOptions {
        monotonic: monotonic.clone(),
        ..LsmOptions::default()
    };
    (try_open(dir, options).unwrap(), monotonic)
}

pub async fn create(engine: &LsmEngine, partition: PartitionId) {
    engine.create(partition, Head::first(NOW)).await.unwrap();
}

/// A batch from `base` to the next number, with a token made from both. Every other batch allows the engine to block the calling thread.
pub fn batch(base: u64, puts: Vec<Put>, deletes: Vec<Key>) -> Batch {
    Batch {
        base: Lsn(base),
        next: Lsn(base + 1),
        stamp: NOW,
        edition: Edition(base + 1),
        token: CommitToken(u128::from(base) + 1),
        puts,
        deletes,
        new_keys: Vec::new(),
        may_block: base.is_multiple_of(2),
    }
}

pub fn key(space: Space, bytes: &[u8]) -> Key {
    Key::new(space, Bytes::copy_from_slice(bytes))
}

pub fn put(space: Space, bytes: &[u8], value: &[u8]) -> Put {
    Put {
        key: key(space, bytes),
        value: Bytes::copy_from_slice(value),
    }
}

/// Commits `n` items of one row each in every space, one commit per item, from head `base`.
pub async fn commit_items(engine: &LsmEngine, base: u64, n: u64) {
    for base in base..base + n {
        let puts = Space::ALL.map(|space| put(space, &base.to_be_bytes(), &[7; 200]));
        let outcome = engine.commit(PARTITION, batch(base, puts.to_vec(), vec![])).await;
        assert!(matches!(outcome, Ok(Outcome::Done(_))), "{outcome:?}");
    }
}

/// All rows of a partition.
pub async fn read_all(engine: &LsmEngine, partition: PartitionId) -> Result<ReadResponse, bolide_storage::EngineError> {
    engine
        .read(
            partition,
            ReadRequest {
                scans: Space::ALL.map(Scan::whole).to_vec(),
                ..ReadRequest::default()
            },
        )
        .await
}
