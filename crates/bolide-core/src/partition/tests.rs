use std::sync::Arc;

use bolide_model::epk::EpkRange;
use bolide_model::time::Clock;
use bolide_model::{ErrorKind, Lsn, UnixMillis, UnixSeconds};
use bolide_storage::memory::MemoryEngine;
use bolide_storage::{Engine, Head, PartitionId};

use super::{Partition, Placement};
use crate::throughput::{Meter, PacingSettings};

async fn partition() -> Arc<Partition> {
    let clock = Arc::new(Clock::virtual_at(UnixMillis(0)));
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new(clock));
    let id = PartitionId(1);
    let head = Head {
        lsn: Lsn(0),
        stamp: UnixMillis(0),
    };
    engine.create(id, head).await.expect("memory is there");
    let placement = Placement {
        id,
        range: 0,
        epk: EpkRange::all(),
        parents: vec![],
    };
    let meter = Meter::shared(&PacingSettings::of(None), 1, UnixSeconds(0));
    Partition::open(engine, placement, meter, Arc::default())
        .await
        .expect("the partition was just created")
}

#[tokio::test]
async fn a_decision_that_panics_fails_alone() {
    let partition = partition().await;
    let broken = partition
        .write(|_| -> super::Step<()> { panic!("a bug in a decision") })
        .await;
    assert_eq!(broken.map_err(|error| error.kind), Err(ErrorKind::Internal));
    let next = partition.write(|round| Ok(round.next_lsn())).await;
    assert_eq!(next, Ok(Lsn(1)));
}
