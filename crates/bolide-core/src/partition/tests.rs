use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bolide_model::epk::EpkRange;
use bolide_model::time::{Clock, Monotonic};
use bolide_model::ttl::Settings;
use bolide_model::{Error, ErrorKind, Lsn, RequestUnits, UnixMillis, UnixSeconds};
use bolide_storage::memory::MemoryEngine;
use bolide_storage::{Engine, Head, Key, PartitionId, Scan, Space};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::after_commit::AfterCommit;
use super::exclusive::{ExclusiveEnd, ExclusiveJob, ExclusiveTransaction};
use super::state::PartitionState;
use super::write_batch::{Loaded, Stop, WriteBatch};
use super::{Decision, Partition, Placement, Signals};
use crate::partition::orders::Order;
use crate::throughput::{Meter, Pacing, PacingSettings};

async fn partition() -> Arc<Partition> {
    let clock = Arc::new(Clock::virtual_at(UnixMillis(0)));
    partition_in(Arc::new(MemoryEngine::new(clock))).await
}

async fn partition_in(engine: Arc<dyn Engine>) -> Arc<Partition> {
    let head = Head::first(UnixMillis(0));
    engine.create(PartitionId(1), head).await.expect("memory is there");
    open_in(engine).await
}

async fn open_in(engine: Arc<dyn Engine>) -> Arc<Partition> {
    let id = PartitionId(1);
    let placement = Placement {
        id,
        range: 0,
        epk: EpkRange::all(),
        parents: vec![],
    };
    let meter = Meter::shared(&PacingSettings::of(None), 1, UnixSeconds(0));
    Partition::open(engine, placement, meter, Signals::default())
        .await
        .expect("the partition was created")
}

#[tokio::test]
async fn a_decision_that_panics_fails_alone() {
    let partition = partition().await;
    let broken = partition
        .write(|_| -> Decision<()> { panic!("a bug in a decision") })
        .await;
    assert_eq!(broken.map_err(|error| error.kind), Err(ErrorKind::Internal));
    let next = partition.write(|batch| Ok(batch.next_lsn())).await;
    assert_eq!(next, Ok(Lsn(1)));
}

/// Background work that waits 20 ms for a user's write. Its output is its log sequence number.
fn patient(partition: &Arc<Partition>, clock: &Monotonic) -> JoinHandle<Result<Lsn, Error>> {
    let (partition, clock) = (partition.clone(), clock.clone());
    tokio::spawn(async move {
        let patience = async move { clock.sleep(Duration::from_millis(20)).await }.boxed();
        let decide = |batch: &mut WriteBatch<'_>, (): &()| {
            batch.put(Key::new(Space::Meta, Bytes::from_static(b"k")), Bytes::new());
            Ok(batch.next_lsn())
        };
        partition
            .background_beside_users((Some(patience), None), |_| (), decide)
            .await
    })
}

/// Lets all tasks of a test go on until they wait.
async fn let_go_on() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn background_work_that_waits_for_a_users_write_is_committed_with_it() {
    // TTL-265
    let (partition, clock) = (partition().await, Monotonic::manual());
    let background = patient(&partition, &clock);
    let_go_on().await;
    assert_eq!(partition.lsn(), Lsn(0), "it waits");
    let write = partition.write(|batch| Ok(batch.has_effects()));
    assert_eq!(
        write.await,
        Ok(true),
        "background work was decided before, in the same batch"
    );
    assert_eq!(background.await.expect("no panic"), Ok(Lsn(1)));
}

#[tokio::test(start_paused = true)]
async fn background_work_that_waits_lets_a_script_go_first() {
    let (partition, clock, log) = (partition().await, Monotonic::manual(), Log::default());
    let background = patient(&partition, &clock);
    let_go_on().await;
    let until = Monotonic::system().now() + Duration::from_secs(15);
    let order = partition
        .scripts
        .next(&Monotonic::system(), until)
        .await
        .expect("its turn");
    let script = Slow {
        order,
        log: log.clone(),
    };
    partition.run_exclusive(script).await.expect("a turn");
    assert_eq!(partition.lsn(), Lsn(0), "a script does not wait for it");
    let write = partition.write(|batch| Ok(batch.has_effects()));
    assert_eq!(write.await, Ok(true), "it still waited for a write to share");
    assert_eq!(background.await.expect("no panic"), Ok(Lsn(1)));
}

#[tokio::test]
async fn background_work_is_committed_alone_when_its_patience_ends() {
    // TTL-250
    let (partition, clock) = (partition().await, Monotonic::manual());
    let background = patient(&partition, &clock);
    let_go_on().await;
    clock.advance(Duration::from_millis(19));
    let_go_on().await;
    assert_eq!(partition.lsn(), Lsn(0), "it still waits");
    clock.advance(Duration::from_millis(1));
    assert_eq!(background.await.expect("no panic"), Ok(Lsn(1)));
}

fn numbered(number: usize) -> Key {
    Key::new(Space::Meta, Bytes::from(format!("k{number}")))
}

async fn put(partition: &Partition, number: usize, value: &'static str) -> Result<(), Error> {
    let put = move |batch: &mut WriteBatch<'_>| {
        batch.put(numbered(number), Bytes::from_static(value.as_bytes()));
        Ok(())
    };
    partition.write(put).await
}

/// A decision that reads a row and scans two of four, and the number of times that something was missing.
fn reading(
    misses: &Arc<AtomicUsize>,
) -> impl FnMut(&mut WriteBatch<'_>) -> Decision<Vec<Option<Bytes>>> + Send + 'static {
    let misses = misses.clone();
    move |batch| {
        let row = batch.get_raw(&numbered(0));
        let scan = Scan {
            space: Space::Meta,
            from: numbered(1).bytes,
            to: Some(numbered(5).bytes),
            reverse: false,
            max_rows: 2,
            max_bytes: 1000,
            keys_only: false,
        };
        let pages = batch.scan_raw(&[scan]);
        misses.fetch_add(
            usize::from(row.is_err()) + usize::from(pages.is_err()),
            Ordering::Relaxed,
        );
        let row = row?;
        let rows = pages?.remove(0).rows.into_iter().map(|(_, value)| Some(value));
        Ok(std::iter::once(row).chain(rows).collect())
    }
}

fn texts(values: &[&'static str]) -> Vec<Option<Bytes>> {
    values
        .iter()
        .map(|value| Some(Bytes::from_static(value.as_bytes())))
        .collect()
}

#[tokio::test]
async fn rows_read_before_are_used_as_long_as_nothing_they_depend_on_is_written() {
    // TTL-265
    let cases: [(Option<usize>, usize, &[&str]); 6] = [
        (None, 0, &["old", "old", "old"]),
        (Some(0), 1, &["new", "old", "old"]),
        (Some(1), 1, &["old", "new", "old"]),
        (Some(2), 1, &["old", "old", "new"]),
        // In the range of the scan, but after its page.
        (Some(4), 0, &["old", "old", "old"]),
        (Some(9), 0, &["old", "old", "old"]),
    ];
    for (changed, misses_after, expected) in cases {
        let partition = partition().await;
        for number in 0..5 {
            put(&partition, number, "old").await.expect("nothing refuses it");
        }
        let misses = Arc::new(AtomicUsize::new(0));
        let mut decide = reading(&misses);
        let prepared = partition.prepare(|batch, _| decide(batch)).await;
        assert!(prepared.is_some());
        assert_eq!(misses.swap(0, Ordering::Relaxed), 2);
        if let Some(changed) = changed {
            put(&partition, changed, "new").await.expect("nothing refuses it");
        }
        let read = partition
            .background_beside_users((None, prepared), |_| (), move |batch, ()| decide(batch))
            .await;
        assert_eq!(read, Ok(texts(expected)), "{changed:?}");
        assert_eq!(misses.load(Ordering::Relaxed), misses_after, "{changed:?}");
    }
}

#[tokio::test]
async fn rows_that_are_written_while_others_are_read_are_read_again() {
    let partition = partition().await;
    let keys: Vec<Key> = (0..100).map(numbered).collect();
    let (prepared, written) = tokio::join!(
        partition.prepare(|batch, _| batch.get_all_raw(&keys)),
        // Some of the rows are read after it, some before.
        async {
            put(&partition, 0, "new").await?;
            put(&partition, 99, "new").await
        }
    );
    assert_eq!(written, Ok(()));
    assert!(prepared.is_some());
    let all = keys.clone();
    let read = move |batch: &mut WriteBatch<'_>, (): &()| {
        batch.get_all_raw(&all)?;
        Ok([
            batch.get_raw(&all[0])?,
            batch.get_raw(&all[50])?,
            batch.get_raw(&all[99])?,
        ])
    };
    let read = partition.background_beside_users((None, prepared), |_| (), read).await;
    let new = Some(Bytes::from_static(b"new"));
    assert_eq!(read, Ok([new.clone(), None, new]));
}

#[tokio::test]
async fn rows_read_before_are_not_used_after_others_wrote_the_partition() {
    let clock = Arc::new(Clock::virtual_at(UnixMillis(0)));
    let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new(clock));
    let (one, other) = (partition_in(engine.clone()).await, open_in(engine).await);
    let misses = Arc::new(AtomicUsize::new(0));
    for written_first in [true, false] {
        let decide = {
            let misses = misses.clone();
            move |batch: &mut WriteBatch<'_>| {
                let read = batch.get_raw(&numbered(0));
                misses.fetch_add(usize::from(read.is_err()), Ordering::Relaxed);
                read
            }
        };
        if written_first {
            put(&other, 0, "first").await.expect("nothing refuses it");
        }
        let prepared = one.prepare(|batch, _| decide(batch)).await;
        if !written_first {
            put(&other, 0, "second").await.expect("nothing refuses it");
        }
        misses.store(0, Ordering::Relaxed);
        // It writes, so that its commit finds out that somebody else has written.
        let read_and_put = move |batch: &mut WriteBatch<'_>, (): &()| {
            let read = decide(batch)?;
            batch.put(numbered(1), Bytes::new());
            Ok(read)
        };
        let read = one
            .background_beside_users((None, prepared), |_| (), read_and_put)
            .await;
        let expected = if written_first { "first" } else { "second" };
        assert_eq!(read, Ok(Some(Bytes::from_static(expected.as_bytes()))));
        assert!(misses.load(Ordering::Relaxed) > 0, "the worker has read it again");
    }
}

/// What happened, in this order.
type Log = Arc<Mutex<Vec<&'static str>>>;

/// A script that holds the partition for one second.
struct Slow {
    order: Order,
    log: Log,
}

impl ExclusiveJob for Slow {
    type Output = ();

    fn run<'t>(&'t mut self, _: &'t mut ExclusiveTransaction) -> BoxFuture<'t, Result<(), ExclusiveEnd>> {
        Box::pin(async move {
            self.order.begin();
            self.log.lock().push("begins");
            sleep(Duration::from_secs(1)).await;
            self.log.lock().push("ends");
            Ok(())
        })
    }
}

/// Runs two scripts at the same time. Returns when both are done.
async fn two_scripts(partition: &Arc<Partition>, log: &Log) {
    let script = || async {
        let clock = Monotonic::system();
        let until = clock.now() + Duration::from_secs(15);
        let order = partition.scripts.next(&clock, until).await.expect("its turn comes");
        let log = log.clone();
        partition.run_exclusive(Slow { order, log }).await.expect("a turn");
    };
    tokio::join!(script(), script());
}

#[tokio::test(start_paused = true)]
async fn between_two_scripts_others_write_for_as_long_as_the_first_took() {
    let (partition, log) = (partition().await, Log::default());
    let writer = tokio::spawn({
        let (partition, log) = (partition.clone(), log.clone());
        async move {
            while log.lock().is_empty() {
                tokio::task::yield_now().await;
            }
            loop {
                partition.write(|_| Ok(())).await.expect("a write");
                log.lock().push("write");
                sleep(Duration::from_millis(100)).await;
            }
        }
    });
    two_scripts(&partition, &log).await;
    writer.abort();
    let log = log.lock().clone();
    assert_eq!(log[..2], ["begins", "ends"], "writes wait for a script");
    let between = log[2..].iter().take_while(|what| **what == "write").count();
    assert!(between >= 10, "one each tenth of a second: {log:?}");
    assert_eq!(log[2 + between..][..2], ["begins", "ends"]);
}

#[tokio::test(start_paused = true)]
async fn scripts_follow_each_other_at_once_where_nobody_else_writes() {
    let (partition, log) = (partition().await, Log::default());
    let clock = Monotonic::system();
    let began = clock.now();
    two_scripts(&partition, &log).await;
    let took = clock.since(began);
    assert!(
        took < Duration::from_millis(2100),
        "two seconds by the paused clock: {took:?}"
    );
    assert_eq!(*log.lock(), ["begins", "ends", "begins", "ends"]);
}

#[test]
fn a_batch_that_is_refused_leaves_what_was_written_before_it() {
    let key = |name: &'static str| Key::new(Space::Meta, Bytes::from_static(name.as_bytes()));
    let loaded = Loaded::default();
    let mut batch = WriteBatch::new(UnixMillis(0), Lsn(7), PartitionState::default(), &loaded);
    batch.put(key("changed"), Bytes::from_static(b"before"));
    batch.put(key("removed"), Bytes::from_static(b"before"));
    batch.delete(key("written"));
    let refused = batch.batch(|batch| -> Decision<()> {
        for value in ["first", "second"] {
            batch.put(key("changed"), Bytes::from_static(value.as_bytes()));
            batch.put(key("new"), Bytes::from_static(value.as_bytes()));
        }
        batch.delete(key("removed"));
        batch.put(key("written"), Bytes::from_static(b"x"));
        batch.next_lsn();
        Err(Error::bad_request("no").into())
    });
    assert!(matches!(refused, Err(Stop::Refused(_))));
    let mut value = |name| batch.entry(&key(name)).map_err(|_| "missing");
    let before = || Ok(Some(Bytes::from_static(b"before")));
    assert_eq!([value("changed"), value("removed")], [before(), before()]);
    assert_eq!(value("written"), Ok(None));
    assert_eq!(value("new"), Err("missing"), "it was never written");
    assert_eq!(batch.head(), Lsn(7));
}

#[tokio::test]
async fn a_single_write_waits_for_a_few_batches_however_many_there_are() {
    const BATCHES: usize = 50;
    let partition = partition().await;
    let write = |batch: &mut WriteBatch<'_>| Ok(batch.next_lsn());
    // The worker starts when the first of them waits for its reply; by then all are queued.
    let batches = futures_util::future::join_all((0..BATCHES).map(|_| partition.write_batch(write)));
    let (batches, single) = tokio::join!(batches, partition.write(write));
    let single = single.expect("a write");
    let batches: Vec<Lsn> = batches.into_iter().map(|batch| batch.expect("a batch")).collect();
    let before = batches.iter().filter(|lsn| **lsn < single).count();
    assert!(before <= 5, "after {before} of {BATCHES} batches");
    assert_eq!(batches.iter().max(), Some(&Lsn(BATCHES as u64 + 1)));
}

/// An effect outside of the write batch would be repeated each time the decision is made.
#[cfg(debug_assertions)]
#[tokio::test]
async fn a_decision_that_is_no_function_of_what_was_read_is_found_out() {
    let partition = partition().await;
    let mut times = 0u8;
    let counting = partition
        .write(move |batch| {
            times += 1;
            batch.put(
                Key::new(Space::Meta, Bytes::from_static(b"k")),
                Bytes::from(vec![times]),
            );
            Ok(())
        })
        .await;
    assert_eq!(counting.map_err(|error| error.kind), Err(ErrorKind::Internal));
    let (mut second, mut due) = (0, 100);
    let restless = partition
        .background(move |batch| {
            second += 1;
            due -= second;
            batch.after.expect_expiry(due);
            Ok(())
        })
        .await;
    assert_eq!(restless.map_err(|error| error.kind), Err(ErrorKind::Internal));
}

#[tokio::test]
async fn what_is_to_be_done_after_a_commit_is_done_once_and_only_then() {
    let partition = partition().await;
    let spent = RequestUnits(7.0);
    let refused = partition
        .write(move |batch| -> Decision<()> {
            batch.batch(|batch| {
                batch.next_lsn();
                batch.after.spend_on_purge(spent);
                batch.after.expect_expiry(5);
                Err(Error::bad_request("no").into())
            })
        })
        .await;
    assert!(refused.is_err());
    partition.shared.schedule.committed(&AfterCommit {
        expiry_rests_until: Some(50),
        ..AfterCommit::default()
    });
    let counted = partition.count_ghosts(Settings::default(), 1).await;
    assert!(counted.is_ok_and(|counted| counted.is_some()));
    let credit = || partition.meter().lock().credit(UnixSeconds(0));
    partition.set_meter(Meter::shared(
        &PacingSettings {
            pacing: Pacing::Provisioned { ru: 400.0 },
            ..PacingSettings::of(None)
        },
        1,
        UnixSeconds(0),
    ));
    assert_eq!(
        (partition.next_background_work(), credit()),
        (i64::MIN, Some(0.0)),
        "the history is not known yet"
    );
    let key = |name: &'static str| Key::new(Space::Meta, Bytes::from_static(name.as_bytes()));
    // It needs rows that are not read yet, so it is decided several times.
    let decided = partition
        .write(move |batch| {
            batch.entry(&key("one"))?;
            batch.entry(&key("two"))?;
            batch.next_lsn();
            batch.after.spend_on_purge(spent);
            batch.after.expect_expiry(20);
            batch.after.rest_trim_until(30);
            batch.after.rest_forget_until(i64::MAX);
            Ok(())
        })
        .await;
    assert!(decided.is_ok());
    assert_eq!((partition.next_background_work(), credit()), (20, Some(-7.0)));
}
