use std::sync::Arc;

use bolide_model::epk::EpkRange;
use bolide_model::time::Clock;
use bolide_model::{Error, ErrorKind, Lsn, Reason, Result, UnixMillis, UnixSeconds};
use bolide_storage::memory::MemoryEngine;
use bolide_storage::{Engine, Head, PartitionId};

use super::{CopyId, LEASE, SealChange, WriteSeal};
use crate::partition::{Partition, Placement, Signals};
use crate::throughput::{Meter, PacingSettings};

const COPY: CopyId = CopyId(7);
const OTHER: CopyId = CopyId(8);

async fn open(engine: Arc<dyn Engine>) -> Arc<Partition> {
    let head = Head::first(UnixMillis(0));
    engine.create(PartitionId(1), head).await.expect("memory is there");
    let placement = Placement {
        id: PartitionId(1),
        range: 0,
        epk: EpkRange::all(),
        parents: vec![],
    };
    let meter = Meter::shared(&PacingSettings::of(None), 1, UnixSeconds(0));
    let partition = Partition::open(engine, placement, meter, Signals::default());
    partition.await.expect("the partition was created")
}

fn engine() -> (Arc<Clock>, Arc<MemoryEngine>) {
    let clock = Arc::new(Clock::virtual_at(UnixMillis(0)));
    (clock.clone(), Arc::new(MemoryEngine::new(clock)))
}

async fn write(partition: &Partition) -> Result<Lsn> {
    partition.write(|batch| Ok(batch.next_lsn())).await
}

fn refused(result: Result<Lsn>) -> Option<Reason> {
    result.err().and_then(|error| error.reason().cloned())
}

#[test]
fn a_row_says_whose_the_seal_is_and_when_it_ends() {
    for until in [Some(UnixMillis(5)), None] {
        let seal = WriteSeal { copy: COPY, until };
        assert_eq!(WriteSeal::decode(&seal.encode()), Ok(seal));
    }
    assert!(WriteSeal::decode(b"short").is_err());
}

#[tokio::test]
async fn a_seal_refuses_writes_until_its_lease_ends() -> Result<()> {
    let (clock, engine) = engine();
    let partition = open(engine).await;
    write(&partition).await?;
    let sealed = partition.change_seal(SealChange::Set(COPY)).await?;
    assert_eq!(refused(write(&partition).await), Some(Reason::WritesSealed));
    // What writes nothing is not refused.
    partition.write(|_| Ok(())).await?;
    clock.set(UnixMillis(LEASE.as_millis() as i64 - 1));
    assert_eq!(refused(write(&partition).await), Some(Reason::WritesSealed));
    clock.set(UnixMillis(LEASE.as_millis() as i64));
    assert_eq!(write(&partition).await?, sealed.head.lsn.next());
    // Something was written since, so the copy is not complete.
    let kept = partition.change_seal(SealChange::Keep(COPY)).await;
    assert_eq!(kept.map_err(|error| error.kind), Err(ErrorKind::Conflict));
    Ok(())
}

#[tokio::test]
async fn a_seal_whose_lease_is_over_still_stands_if_nothing_was_written() -> Result<()> {
    let (clock, engine) = engine();
    let partition = open(engine).await;
    partition.change_seal(SealChange::Set(COPY)).await?;
    clock.set(UnixMillis(2 * LEASE.as_millis() as i64));
    partition.change_seal(SealChange::Renew(COPY)).await?;
    assert_eq!(refused(write(&partition).await), Some(Reason::WritesSealed));
    partition.change_seal(SealChange::Keep(COPY)).await?;
    clock.set(UnixMillis(1_000_000_000));
    assert_eq!(refused(write(&partition).await), Some(Reason::StoreMoved));
    let lifted = partition.change_seal(SealChange::LiftAny).await?;
    assert_eq!(write(&partition).await?, lifted.head.lsn.next());
    Ok(())
}

#[tokio::test]
async fn a_seal_belongs_to_one_copy() -> Result<()> {
    let (clock, engine) = engine();
    let partition = open(engine).await;
    partition.change_seal(SealChange::Set(COPY)).await?;
    for change in [
        SealChange::Set(OTHER),
        SealChange::Renew(OTHER),
        SealChange::Keep(OTHER),
        SealChange::Lift(OTHER),
    ] {
        let changed = partition.change_seal(change).await;
        assert_eq!(
            changed.map_err(|error| error.kind),
            Err(ErrorKind::Conflict),
            "{change:?}"
        );
    }
    clock.set(UnixMillis(LEASE.as_millis() as i64));
    partition.change_seal(SealChange::Set(OTHER)).await?;
    let renewed = partition.change_seal(SealChange::Renew(COPY)).await;
    assert_eq!(renewed.map_err(|error| error.kind), Err(ErrorKind::Conflict));
    Ok(())
}

#[tokio::test]
async fn a_seal_without_end_is_taken_away_only_where_that_is_meant() -> Result<()> {
    let (_, engine) = engine();
    let partition = open(engine).await;
    partition.change_seal(SealChange::Set(COPY)).await?;
    partition.change_seal(SealChange::Keep(COPY)).await?;
    for change in [SealChange::Lift(COPY), SealChange::Undo(OTHER)] {
        let changed = partition.change_seal(change).await;
        assert_eq!(changed.map_err(|error| error.kind), Err(ErrorKind::Conflict));
    }
    assert_eq!(refused(write(&partition).await), Some(Reason::StoreMoved));
    partition.change_seal(SealChange::Undo(COPY)).await?;
    write(&partition).await?;
    Ok(())
}

#[tokio::test]
async fn servers_that_share_a_store_meet_the_seal_of_another() -> Result<()> {
    let clock = Arc::new(Clock::virtual_at(UnixMillis(0)));
    let shared: Arc<dyn Engine> = Arc::new(MemoryEngine::shared(clock));
    let (one, two) = (open(shared.clone()).await, open(shared).await);
    write(&two).await?;
    one.change_seal(SealChange::Set(COPY)).await?;
    assert_eq!(refused(write(&two).await), Some(Reason::WritesSealed));
    two.change_seal(SealChange::Lift(COPY)).await?;
    write(&one).await?;
    Ok(())
}

#[tokio::test]
async fn a_seal_survives_that_the_partition_is_opened_again() -> Result<()> {
    let (_, engine) = engine();
    let partition = open(engine.clone()).await;
    partition.change_seal(SealChange::Set(COPY)).await?;
    partition.change_seal(SealChange::Keep(COPY)).await?;
    drop(partition);
    let again = open(engine).await;
    assert_eq!(refused(write(&again).await), Some(Reason::StoreMoved));
    let look = again.change_seal(SealChange::Look).await?;
    assert_eq!(
        look.seal,
        Some(WriteSeal {
            copy: COPY,
            until: None
        })
    );
    let settings = again.raise_settings(crate::partition::SettingsNumber(1)).await;
    assert_eq!(settings.map_err(|error: Error| error.kind), Err(ErrorKind::Forbidden));
    Ok(())
}
