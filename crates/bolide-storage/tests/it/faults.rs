//! Claims about the fault wrapper itself: without faults, the other tests would prove nothing.

use std::sync::Arc;

use bolide_model::time::Clock;
use bolide_model::{Lsn, UnixMillis};
use bolide_storage::faults::{Faults, FaultyEngine};
use bolide_storage::memory::MemoryEngine;
use bolide_storage::{
    Batch, CommitToken, Edition, Engine, EngineError, Head, HoldError, HomeId, JointOutcome, Outcome, PartitionId,
    Resolved, Ticket,
};

const PARTITION: PartitionId = PartitionId(1);

fn engines(faults: Faults) -> (Arc<MemoryEngine>, FaultyEngine) {
    let inner = Arc::new(MemoryEngine::new(Arc::new(Clock::virtual_at(UnixMillis(1_000)))));
    (inner.clone(), FaultyEngine::new(inner, faults))
}

fn no_faults(seed: u64) -> Faults {
    Faults {
        seed,
        stale_percent: 0,
        unknown_percent: 0,
        down_percent: 0,
        span_ms: 0,
    }
}

fn batch(base: Lsn, token: u128) -> Batch {
    Batch {
        base,
        next: base.next(),
        stamp: UnixMillis(1_000),
        edition: Edition::FIRST,
        token: CommitToken(token),
        puts: vec![],
        deletes: vec![],
        new_keys: Vec::new(),
        may_block: false,
    }
}

async fn head(engine: &dyn Engine) -> Lsn {
    head_of(engine, PARTITION).await
}

async fn head_of(engine: &dyn Engine, partition: PartitionId) -> Lsn {
    engine.read(partition, Default::default()).await.unwrap().head.lsn
}

async fn create(engine: &MemoryEngine) {
    engine.create(PARTITION, Head::first(UnixMillis(0))).await.unwrap();
}

/// The outcomes of a series of commits, each on the current head.
async fn outcomes_of(seed: u64) -> Vec<Result<Outcome, EngineError>> {
    let (inner, faulty) = engines(Faults::frequent(seed));
    create(&inner).await;
    let mut outcomes = Vec::new();
    for token in 1..200 {
        outcomes.push(faulty.commit(PARTITION, batch(head(inner.as_ref()).await, token)).await);
    }
    outcomes
}

#[tokio::test]
async fn frequent_faults_are_of_every_kind_and_repeat_with_the_seed() {
    let first = outcomes_of(3).await;
    assert_eq!(first, outcomes_of(3).await);
    assert_ne!(first, outcomes_of(4).await);
    let count =
        |wanted: fn(&Result<Outcome, EngineError>) -> bool| first.iter().filter(|outcome| wanted(outcome)).count();
    assert!(count(|outcome| matches!(outcome, Ok(Outcome::Done(_)))) > 50);
    assert!(count(|outcome| matches!(outcome, Ok(Outcome::Stale))) > 5);
    assert!(count(|outcome| matches!(outcome, Ok(Outcome::Unknown(_)))) > 5);
    assert!(count(|outcome| matches!(outcome, Err(EngineError::Unavailable(_)))) > 5);
}

#[tokio::test]
async fn resolving_an_unknown_commit_tells_whether_it_was_done() {
    let (inner, faulty) = engines(Faults {
        unknown_percent: 100,
        ..no_faults(1)
    });
    create(&inner).await;
    let (mut done, mut not_done) = (0, 0);
    for token in 1..100 {
        let before = head(inner.as_ref()).await;
        let Ok(Outcome::Unknown(ticket)) = faulty.commit(PARTITION, batch(before, token)).await else {
            panic!("unknown")
        };
        match faulty.resolve(PARTITION, ticket).await.unwrap() {
            Resolved::Done(after) => {
                assert_eq!(head(inner.as_ref()).await, after.lsn);
                done += 1;
            }
            Resolved::NotDone => {
                assert_eq!(head(inner.as_ref()).await, before);
                not_done += 1;
            }
        }
    }
    assert!(done > 20 && not_done > 20, "done={done} not_done={not_done}");
}

/// Resolving one ticket resolves all: the result holds in every partition, then and later.
#[tokio::test]
async fn any_ticket_resolves_an_unknown_joint_commit_for_all_partitions() {
    let (inner, faulty) = engines(Faults {
        unknown_percent: 100,
        ..no_faults(3)
    });
    let partitions = [4, 5].map(|number| PartitionId::in_home(HomeId(4), number).unwrap());
    for partition in partitions {
        inner.create(partition, Head::first(UnixMillis(0))).await.unwrap();
    }
    let (mut done, mut not_done) = (0, 0);
    for token in 1..100u64 {
        let before = head_of(inner.as_ref(), partitions[0]).await;
        assert_eq!(head_of(inner.as_ref(), partitions[1]).await, before);
        let batches = partitions
            .map(|partition| (partition, batch(before, u128::from(token))))
            .to_vec();
        let Ok(JointOutcome::Unknown(tickets)) = faulty.commit_together(batches).await else {
            panic!("unknown")
        };
        let asked = token as usize % 2;
        let expected = match faulty.resolve(partitions[asked], tickets[asked].clone()).await.unwrap() {
            Resolved::Done(after) => {
                done += 1;
                after.lsn
            }
            Resolved::NotDone => {
                not_done += 1;
                before
            }
        };
        // Any delayed commit would be carried out by these calls.
        for _ in 0..5 {
            let _ = faulty.resolve(partitions[1 - asked], tickets[1 - asked].clone()).await;
        }
        for partition in partitions {
            assert_eq!(head_of(inner.as_ref(), partition).await, expected);
        }
    }
    assert!(done > 20 && not_done > 20, "done={done} not_done={not_done}");
}

#[tokio::test]
async fn held_snapshots_are_lost_now_and_then_and_stay_lost() {
    let (inner, faulty) = engines(Faults {
        down_percent: 10,
        ..no_faults(1)
    });
    create(&inner).await;
    let mut lost = 0;
    for _ in 0..50 {
        let Ok(held) = faulty.hold(PARTITION.home(), UnixMillis(i64::MAX)).await else {
            continue;
        };
        let mut is_lost = false;
        for _ in 0..10 {
            let read = held.read(PARTITION, Default::default()).await.map(drop);
            assert!(!is_lost || read == Err(HoldError::Expired));
            is_lost = read == Err(HoldError::Expired);
        }
        lost += u32::from(is_lost);
    }
    assert!((10..50).contains(&lost), "lost={lost}");
}

#[tokio::test]
async fn commit_that_was_resolved_as_not_done_never_arrives() {
    let (inner, faulty) = engines(Faults {
        unknown_percent: 100,
        ..no_faults(2)
    });
    create(&inner).await;
    for token in 1..100 {
        let before = head(inner.as_ref()).await;
        let Ok(Outcome::Unknown(ticket)) = faulty.commit(PARTITION, batch(before, token)).await else {
            panic!("unknown")
        };
        if faulty.resolve(PARTITION, ticket).await == Ok(Resolved::NotDone) {
            for _ in 0..5 {
                let other = Ticket {
                    base: Lsn(0),
                    next: Lsn(1),
                    token: CommitToken(u128::MAX),
                };
                let _ = faulty.resolve(PARTITION, other).await;
            }
            assert_eq!(head(inner.as_ref()).await, before);
        }
    }
}

#[tokio::test]
async fn a_commit_that_is_not_resolved_may_still_arrive() {
    let (inner, faulty) = engines(Faults {
        unknown_percent: 100,
        ..no_faults(5)
    });
    create(&inner).await;
    let mut met = 0;
    for token in 1..200 {
        let base = head(inner.as_ref()).await;
        let _ = faulty.commit(PARTITION, batch(base, 2 * token)).await;
        let after_first = head(inner.as_ref()).await;
        // The second commit is stale only if the first was carried out in between.
        if faulty.commit(PARTITION, batch(base, 2 * token + 1)).await == Ok(Outcome::Stale) && after_first == base {
            met += 1;
        }
    }
    assert!(met > 0);
}

#[tokio::test]
async fn server_time_is_as_uncertain_as_configured() {
    let (_, faulty) = engines(Faults {
        span_ms: 250,
        ..no_faults(1)
    });
    let time = faulty.time();
    assert_eq!((time.lo, time.hi), (UnixMillis(750), UnixMillis(1_250)));
}
