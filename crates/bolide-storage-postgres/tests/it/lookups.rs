//! Reads of single keys that are asked for at the same time.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bolide_model::UnixMillis;
use bolide_storage::{Engine, EngineError, Head, Key, Outcome, PartitionId, ReadRequest, ReadResponse, Space};
use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::runtime::Runtime;

use super::Store;
use super::claims::{PARTITION, batch, client, put, through_a_relay, two};

const KEYS: u64 = 50;

fn one(name: u64) -> ReadRequest {
    ReadRequest::of_keys(vec![Key::new(Space::Item, format!("k{name}").into_bytes())])
}

/// The value that was read, as a number.
fn number(answer: &Result<ReadResponse, EngineError>) -> Option<u64> {
    let value = answer.as_ref().unwrap().gets[0].as_ref()?;
    Some(std::str::from_utf8(value).unwrap().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_reader_gets_its_own_key_at_a_head_that_fits_and_sees_what_was_committed_before() {
    let store = Store::new();
    let [engine, other] = two(&store).await;
    for round in 1..=20 {
        // Every key has the number of the commit that wrote it last.
        let puts = (0..KEYS).map(|name| put(&format!("k{name}"), &round.to_string()));
        let done = other.commit(PARTITION, batch(round - 1, round, puts.collect())).await;
        assert!(matches!(done, Ok(Outcome::Done(_))), "{done:?}");
        let asked = (0..4 * KEYS).map(|at| {
            let name = at % (KEYS + 1);
            engine.read(PARTITION, one(name)).map(move |answer| (name, answer))
        });
        for (name, answer) in join_all(asked).await {
            assert_eq!(
                number(&answer),
                (name < KEYS).then_some(round),
                "round {round}, key {name}"
            );
            assert_eq!(answer.unwrap().head.lsn.0, round);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_that_give_up_and_partitions_that_are_missing_do_not_stop_the_others() {
    let store = Store::new();
    let [engine, _other] = two(&store).await;
    let first = engine.commit(PARTITION, batch(0, 1, vec![put("k0", "7")])).await;
    assert!(first.is_ok());
    for _ in 0..20 {
        let mut given_up: Vec<_> = (0..40).map(|_| engine.read(PARTITION, one(0))).collect();
        let kept = (0..40).map(|_| engine.read(PARTITION, one(0)));
        // Each has begun, and is dropped before its answer has come.
        poll_fn(|context| {
            for read in &mut given_up {
                let _ = read.poll_unpin(context);
            }
            Poll::Ready(())
        })
        .await;
        let answers = join_all(kept.map(|read| async {
            tokio::task::yield_now().await;
            read.await
        }));
        drop(given_up);
        for answer in answers.await {
            assert_eq!(number(&answer), Some(7));
        }
    }
    let missing = PartitionId(99);
    let asked = join_all((0..40).map(|_| engine.read(missing, one(0)))).await;
    for answer in asked {
        assert!(
            matches!(answer, Err(EngineError::NoPartition(id)) if id == missing),
            "{answer:?}"
        );
    }
    engine
        .create(missing, Head::first(UnixMillis(1_700_000_000_000)))
        .await
        .unwrap();
    assert_eq!(number(&engine.read(missing, one(0)).await), None);
}

/// Rows that a server has read stay in its memory. It uses them only as long as nobody has changed them.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_that_are_cached_follow_the_commits_of_all_servers() {
    let store = Store::new();
    let engines = two(&store).await;
    let mut random = fastrand::Rng::with_seed(5);
    let mut rows: BTreeMap<u64, u64> = BTreeMap::new();
    for round in 1..=150 {
        let mut batch = batch(round - 1, round, vec![]);
        for name in 0..5 {
            match random.u8(..4) {
                0 => {
                    rows.insert(name, round);
                    batch.puts.push(put(&format!("k{name}"), &round.to_string()));
                }
                1 => {
                    rows.remove(&name);
                    batch.deletes.push(one(name).gets.remove(0));
                }
                _ => {}
            }
        }
        // Each commits several times in a row, so that rows are cached in between.
        let writer = &engines[usize::from(round % 14 < 7)];
        let done = writer.commit(PARTITION, batch).await;
        assert!(matches!(done, Ok(Outcome::Done(_))), "{done:?}");
        for engine in &engines {
            let asked = (0..5).map(|name| engine.read(PARTITION, one(name)).map(move |answer| (name, answer)));
            for (name, answer) in join_all(asked).await {
                assert_eq!(number(&answer), rows.get(&name).copied(), "round {round}, key {name}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rows_that_nobody_has_changed_are_not_sent_again() {
    let store = Store::new();
    let [engine, other] = two(&store).await;
    let first = engine.commit(PARTITION, batch(0, 1, vec![put("k0", "7")])).await;
    assert!(first.is_ok());
    assert_eq!(number(&engine.read(PARTITION, one(0)).await), Some(7));
    // Without a commit, which nobody but this test does.
    let changed = client(&store).await;
    changed
        .batch_execute("update bolide_kv set v = '8' where v = '7'")
        .await
        .unwrap();
    assert_eq!(number(&engine.read(PARTITION, one(0)).await), Some(7));
    let second = other.commit(PARTITION, batch(1, 2, vec![put("k1", "1")])).await;
    assert!(second.is_ok());
    assert_eq!(number(&engine.read(PARTITION, one(0)).await), Some(8));
}

/// The statement that they wait for ends with its runtime, and so do they.
#[test]
fn reads_that_wait_when_the_runtime_ends_end_with_it() {
    const READS: usize = 200;
    let store = Store::new();
    let runtime = Runtime::new().unwrap();
    let engine = runtime.block_on(async {
        let (engine, relay) = through_a_relay(&store, Duration::from_secs(60)).await;
        relay.hold_up(true);
        let (engine, begun) = (Arc::new(engine), Arc::new(AtomicUsize::new(0)));
        for _ in 0..READS {
            let (engine, begun) = (engine.clone(), begun.clone());
            tokio::spawn(async move {
                begun.fetch_add(1, Ordering::Relaxed);
                engine.read(PARTITION, one(0)).await
            });
        }
        while begun.load(Ordering::Relaxed) < READS {
            tokio::task::yield_now().await;
        }
        engine
    });
    drop(runtime);
    assert_eq!(Arc::strong_count(&engine), 1);
}
