use std::sync::atomic::{AtomicU64, Ordering};

use bolide_model::time::Clock;
use bolide_storage::memory::MemoryEngine;
use futures_util::future::BoxFuture;

use super::super::fake_jobs::{FakeQueue, FakeSource, Log, NoContainers, STEP_ITEMS};
use super::super::fault::PurgeFault;
use super::JobKind::{CountGhosts, DeleteByKey, Expire, TrimLog};
use super::*;

const OPTIONS: PurgeOptions = PurgeOptions {
    items_per_second: None,
    hold: Duration::from_secs(600),
    is_purging: true,
    readers_pause: READERS_PAUSE,
};
const NOW: UnixMillis = UnixMillis(110_250);

/// An account whose server time stands still, and whose users may or may not send requests.
#[derive(Default)]
struct Users {
    requests: AtomicU64,
    are_there: bool,
}

impl Observed for Users {
    fn server_time(&self) -> UnixMillis {
        NOW
    }

    fn requests(&self) -> u64 {
        let new = u64::from(self.are_there);
        self.requests.fetch_add(new, Ordering::SeqCst) + new
    }
}

/// The parts that tests of ticks need.
struct Ticking {
    schedule: Schedule,
    clock: Monotonic,
    log: Log,
    users: Users,
    stop: watch::Sender<bool>,
}

impl Ticking {
    fn new() -> Ticking {
        Ticking::with(OPTIONS)
    }

    fn with(options: PurgeOptions) -> Ticking {
        let clock = Monotonic::manual();
        Ticking {
            schedule: Schedule::new(clock.clone(), Arc::default(), options),
            clock,
            log: Log::default(),
            users: Users::default(),
            stop: watch::Sender::new(false),
        }
    }

    fn queue(&self, range: u32, items: u64) -> FakeQueue {
        FakeQueue::new(range, Expire, items, &self.clock, &self.log)
    }

    async fn tick(&mut self, sources: &[Arc<FakeSource>]) -> Option<Duration> {
        let stopped = self.stop.subscribe();
        self.schedule.tick(sources.to_vec(), &self.users, &stopped).await
    }

    /// Returns the number of items that were removed from a partition.
    fn purged(&self, range: u32) -> u64 {
        let log = self.log.lock();
        log.iter()
            .filter(|(of, ..)| *of == range)
            .map(|(.., items)| items)
            .sum()
    }
}

impl JobSource for Arc<FakeSource> {
    fn settle(&self) -> BoxFuture<'_, bolide_model::Result<()>> {
        Box::pin(async { Ok(()) })
    }

    fn next_due(&self) -> i64 {
        FakeSource::next_due(self)
    }

    fn backlog(&self) -> u64 {
        FakeSource::backlog(self)
    }

    fn partitions(&self) -> Vec<super::super::job::PartitionJobs> {
        FakeSource::partitions(self)
    }
}

fn source(queues: impl IntoIterator<Item = FakeQueue>) -> Arc<FakeSource> {
    Arc::new(FakeSource::new(queues))
}

#[tokio::test]
async fn where_nothing_may_be_removed_ghosts_are_still_counted() {
    let mut ticking = Ticking::new();
    ticking.schedule.is_removing = false;
    let kind = |kind| FakeQueue {
        kind,
        ..ticking.queue(0, 5)
    };
    let sources = [source([CountGhosts, Expire, DeleteByKey, TrimLog].map(kind))];
    ticking.tick(&sources).await;
    assert_eq!(*ticking.log.lock(), [(0, CountGhosts, 5)]);
}

#[tokio::test]
async fn counting_that_fails_keeps_nothing_from_its_step() {
    let mut ticking = Ticking::new();
    let counting = FakeQueue {
        kind: CountGhosts,
        ..ticking.queue(0, 0)
    };
    let counting = counting.instead(Err(ErrorKind::Corrupt));
    let sources = [source([counting, ticking.queue(0, 5)])];
    assert_eq!(ticking.tick(&sources).await, Some(TICK));
    assert_eq!(*ticking.log.lock(), [(0, CountGhosts, 0), (0, Expire, 5)]);
}

#[tokio::test]
async fn a_tick_gives_steps_to_what_is_due_until_nothing_is() {
    let mut ticking = Ticking::new();
    let second = NOW.seconds().0;
    let kind = |kind, due| FakeQueue {
        kind,
        ..ticking.queue(0, 15).due_at(due)
    };
    let sources = [
        source([
            kind(Expire, second),
            kind(DeleteByKey, i64::MIN),
            kind(TrimLog, second + 1),
        ]),
        source([ticking.queue(1, 5).due_at(second + 1)]),
    ];
    assert_eq!(ticking.tick(&sources).await, None);
    let expected = [
        (0, Expire, 10),
        (0, DeleteByKey, 10),
        (0, Expire, 5),
        (0, DeleteByKey, 5),
    ];
    assert_eq!(*ticking.log.lock(), expected);
}

#[tokio::test]
async fn containers_that_share_a_budget_have_equal_parts_of_it() {
    // TTL-264
    let mut ticking = Ticking::new();
    let budget = Arc::new(AtomicU64::new(100));
    let sources = [0, 1].map(|range| source([ticking.queue(range, 500).budget(&budget)]));
    let again_in = ticking.tick(&sources).await;
    assert_eq!((ticking.purged(0), ticking.purged(1)), (50, 50));
    assert_eq!(
        again_in,
        Some(Duration::from_millis(750)),
        "when the next second begins"
    );
}

#[tokio::test]
async fn no_container_is_always_the_first() {
    // TTL-264
    let mut ticking = Ticking::new();
    let mut firsts = Vec::new();
    for _ in 0..4 {
        let budget = Arc::new(AtomicU64::new(STEP_ITEMS));
        let sources = [0, 1].map(|range| source([ticking.queue(range, 500).budget(&budget)]));
        ticking.tick(&sources).await;
        let log = std::mem::take(&mut *ticking.log.lock());
        firsts.push(log[0].0);
    }
    assert_eq!(firsts, [1, 0, 1, 0]);
}

#[tokio::test]
async fn an_error_in_one_container_does_not_hold_up_the_others() {
    for kind in [ErrorKind::Unavailable, ErrorKind::RangeGone, ErrorKind::NotFound] {
        let mut ticking = Ticking::new();
        let fails = ticking.queue(0, 5).instead(Err(kind.clone()));
        let sources = [source([fails]), source([ticking.queue(1, 25)])];
        assert_eq!(ticking.tick(&sources).await, Some(TICK), "{kind:?} is tried again soon");
        assert_eq!(ticking.purged(1), 25);
        assert_eq!(ticking.tick(&sources).await, None);
        assert_eq!(ticking.purged(0), 5, "the next tick takes it up again: {kind:?}");
    }
}

#[tokio::test]
async fn what_readers_hold_is_taken_up_again_soon() {
    let mut ticking = Ticking::new();
    let sources = [source([ticking.queue(0, 5).instead(Ok(End::Read))])];
    assert_eq!(ticking.tick(&sources).await, Some(READERS_PAUSE));
    assert_eq!(ticking.tick(&sources).await, None);
    assert_eq!(ticking.purged(0), 5);
}

#[tokio::test]
async fn a_tick_is_over_after_its_time() {
    let mut ticking = Ticking::new();
    let slow = ticking.queue(0, 500).took(TICK / 4);
    assert_eq!(ticking.tick(&[source([slow])]).await, Some(Duration::ZERO));
    assert_eq!(ticking.purged(0), 40);
}

#[tokio::test]
async fn a_tick_ends_when_the_account_closes() {
    let mut ticking = Ticking::new();
    ticking.stop.send_replace(true);
    let sources = [source([ticking.queue(0, 500)])];
    assert_eq!(ticking.tick(&sources).await, Some(Duration::ZERO));
    assert_eq!(ticking.purged(0), 0);
}

#[tokio::test]
async fn the_highest_rate_is_one_for_all_containers_and_the_history_has_none() {
    let mut ticking = Ticking::with(PurgeOptions {
        items_per_second: Some(60),
        ..OPTIONS
    });
    let trim = FakeQueue {
        kind: TrimLog,
        ..ticking.queue(2, 30)
    };
    let sources = [
        source([ticking.queue(0, 500)]),
        source([ticking.queue(1, 500)]),
        source([trim]),
    ];
    assert_eq!(ticking.tick(&sources).await, Some(TICK), "nothing has gathered yet");
    assert_eq!(ticking.purged(2), 30);
    ticking.clock.advance(TICK);
    assert_eq!(ticking.tick(&sources).await, Some(TICK));
    assert_eq!(ticking.purged(0) + ticking.purged(1), 12);
}

#[tokio::test]
async fn beside_users_the_purge_rests_after_each_step() {
    // TTL-265
    let mut ticking = Ticking::new();
    ticking.users.are_there = true;
    let took = Duration::from_micros(100);
    let sources = [source([ticking.queue(0, 1_030).took(took)])];
    let clock = ticking.clock.clone();
    let rests = tokio::spawn({
        let clock = clock.clone();
        async move {
            let mut rests = Vec::new();
            loop {
                tokio::task::yield_now().await;
                if let Some(until) = clock.next_wake() {
                    rests.push(until - clock.now());
                    clock.advance(until - clock.now());
                }
                if rests.len() == 4 {
                    return rests;
                }
            }
        }
    });
    let began = clock.now();
    assert_eq!(ticking.tick(&sources).await, None);
    // The step that removes the last of the first thousand items is the first that is followed by a rest.
    assert_eq!(rests.await.expect("no panic"), [30 * took; 4]);
    assert_eq!(clock.since(began), 103 * took + 4 * 30 * took);
}

#[tokio::test]
async fn it_sleeps_until_the_first_is_due_and_no_longer_than_a_heartbeat() {
    // TTL-250
    let mut ticking = Ticking::new();
    let due = |second| {
        [
            source([ticking.queue(0, 1).due_at(second)]),
            source([ticking.queue(1, 1).due_at(900)]),
        ]
    };
    let pause = |schedule: &Schedule, second| schedule.pause_between(&due(second), NOW);
    assert_eq!(pause(&ticking.schedule, 111), Duration::from_millis(750));
    assert_eq!(pause(&ticking.schedule, 112), HEARTBEAT);
    assert_eq!(pause(&ticking.schedule, i64::MAX), HEARTBEAT);
    assert_eq!(pause(&ticking.schedule, 110), Duration::ZERO);
    assert_eq!(pause(&ticking.schedule, i64::MIN), Duration::ZERO);
    ticking.schedule.again_in = Some(TICK);
    assert_eq!(ticking.schedule.pause_between(&[source([])], NOW), HEARTBEAT);
    let late = [source([FakeQueue::new(0, Expire, 1, &ticking.clock, &ticking.log)])];
    assert_eq!(ticking.schedule.pause_between(&late, NOW), TICK, "it could not be done");
}

#[tokio::test]
async fn what_will_be_due_earlier_than_it_sleeps_wakes_it() {
    let ticking = Ticking::new();
    let wakeup = ticking.schedule.wakeup.clone();
    let sources = [source([ticking.queue(0, 1).due_at(120)])];
    ticking.schedule.pause_between(&sources, NOW);
    wakeup.expect(120);
    wakeup.expect(121);
    assert!(futures_util::poll!(std::pin::pin!(wakeup.rung())).is_pending());
    wakeup.expect(119);
    wakeup.rung().await;
}

/// Starts a scheduler over an account without containers, whose server time is also moved by hand.
fn running(wall_clock: &Arc<Clock>, clock: &Monotonic) -> (Arc<Background>, PurgeScheduler) {
    let background = Arc::new(Background::new(
        Arc::new(MemoryEngine::new(wall_clock.clone())),
        clock.clone(),
        (Arc::new(NoContainers), None),
        PurgeFault::new(None),
    ));
    let scheduler = PurgeScheduler::start(&background, Arc::default(), OPTIONS);
    (background, scheduler)
}

/// Lets the tasks run until they sleep again.
async fn let_go_on() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_large_step_of_the_wall_clock_holds_the_purge_for_its_time() {
    // TTL-204
    let (wall_clock, clock) = (Arc::new(Clock::virtual_at(NOW)), Monotonic::manual());
    let (background, scheduler) = running(&wall_clock, &clock);
    let is_held_after = async |time| {
        let_go_on().await;
        clock.advance(time);
        let_go_on().await;
        background.is_held()
    };
    assert!(!is_held_after(HEARTBEAT).await);
    wall_clock.advance(25 * 3_600_000);
    assert!(is_held_after(HEARTBEAT).await);
    assert!(is_held_after(OPTIONS.hold - HEARTBEAT).await);
    assert!(!is_held_after(HEARTBEAT).await);
    scheduler.stop().await;
}

#[tokio::test]
async fn a_sleeping_scheduler_ends_at_once_with_its_account() {
    let (wall_clock, clock) = (Arc::new(Clock::virtual_at(NOW)), Monotonic::manual());
    let (background, scheduler) = running(&wall_clock, &clock);
    let_go_on().await;
    assert!(clock.next_wake().is_some(), "it sleeps");
    drop(scheduler);
    let_go_on().await;
    assert_eq!(clock.next_wake(), None, "its tasks have ended");
    assert_eq!(Arc::weak_count(&background), 0);
}
