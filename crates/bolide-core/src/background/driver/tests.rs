use super::super::fake_jobs::{FakeQueue, FakeSource, Log};
use super::JobKind::{DeleteByKey, Expire, TrimLog};
use super::*;

fn driver(clock: &Monotonic, max: Option<u64>) -> Driver<OnDemand> {
    Driver::new(clock.clone(), OnDemand::new(PurgeMode::Force, max))
}

#[tokio::test]
async fn every_queue_of_every_partition_has_its_step_in_turn() {
    // TTL-266
    let (clock, log) = (Monotonic::manual(), Log::default());
    let queue = |range, kind, items| FakeQueue::new(range, kind, items, &clock, &log);
    let source = FakeSource::new([
        queue(0, Expire, 15),
        queue(0, DeleteByKey, 5),
        queue(0, TrimLog, 12),
        queue(1, Expire, 5),
    ]);
    let purged = driver(&clock, None).run_to_end(&source).await;
    assert_eq!(purged, Ok(20), "ghosts only");
    let expected = [
        (0, Expire, 10),
        (0, DeleteByKey, 5),
        (0, TrimLog, 10),
        (1, Expire, 5),
        (0, Expire, 5),
        (0, TrimLog, 2),
    ];
    assert_eq!(*log.lock(), expected, "and none again that is through");
}

#[tokio::test]
async fn a_purge_ends_when_it_has_removed_as_many_as_it_may() {
    let (clock, log) = (Monotonic::manual(), Log::default());
    let queue = |range, kind, items| FakeQueue::new(range, kind, items, &clock, &log);
    let source = FakeSource::new([queue(0, Expire, 50), queue(0, TrimLog, 5), queue(1, Expire, 50)]);
    let purged = driver(&clock, Some(25)).run_to_end(&source).await;
    assert_eq!(purged, Ok(25));
    let expected = [(0, Expire, 10), (0, TrimLog, 5), (1, Expire, 10), (0, Expire, 5)];
    assert_eq!(*log.lock(), expected);
    assert_eq!(driver(&clock, Some(0)).run_to_end(&source).await, Ok(0));
    assert_eq!(log.lock().len(), 4, "nothing more");
}

#[tokio::test]
async fn after_a_split_the_children_come_next() {
    let (clock, log) = (Monotonic::manual(), Log::default());
    let queue = |range, items| FakeQueue::new(range, Expire, items, &clock, &log);
    let parents = [queue(0, 10), queue(1, 20).instead(Err(ErrorKind::RangeGone))];
    let source = FakeSource::new(parents).then([queue(0, 0), queue(2, 12), queue(3, 8)]);
    assert_eq!(driver(&clock, None).run_to_end(&source).await, Ok(30));
    let expected = [(0, 10), (1, 0), (2, 10), (3, 8), (2, 2)].map(|(range, items)| (range, Expire, items));
    assert_eq!(
        *log.lock(),
        expected,
        "what was through before the split has no step again"
    );
}

#[tokio::test]
async fn a_purge_by_call_tells_what_failed() {
    let (clock, log) = (Monotonic::manual(), Log::default());
    let queue = |range, items| FakeQueue::new(range, Expire, items, &clock, &log);
    let source = FakeSource::new([
        queue(0, 5),
        queue(1, 5).instead(Err(ErrorKind::Unavailable)),
        queue(2, 5),
    ]);
    let failed = driver(&clock, None).run_to_end(&source).await;
    assert_eq!(failed.map_err(|error| error.kind), Err(ErrorKind::Unavailable));
    assert_eq!(*log.lock(), [(0, Expire, 5), (1, Expire, 0)]);
}

#[tokio::test]
async fn what_readers_hold_or_no_budget_is_left_for_is_not_waited_for() {
    let (clock, log) = (Monotonic::manual(), Log::default());
    for end in [End::Read, End::Exhausted] {
        let queue = FakeQueue::new(0, Expire, 5, &clock, &log).instead(Ok(end));
        let purged = driver(&clock, None).run_to_end(&FakeSource::new([queue])).await;
        assert_eq!(purged, Ok(0), "{end:?}");
    }
    assert_eq!(log.lock().len(), 2);
    assert_eq!(clock.next_wake(), None);
}
