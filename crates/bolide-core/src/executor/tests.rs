use std::sync::mpsc::channel;

use bolide_query::Interrupt;

use super::turns::SLICE;
use super::*;

const LONG: Duration = Duration::from_secs(600);

/// Work that goes on until it is told to end, and tells why.
async fn endless(watch: Arc<Watch>) -> Result<Interrupt> {
    loop {
        if let Some(interrupt) = watch.pending() {
            return Ok(interrupt);
        }
        std::thread::yield_now();
    }
}

fn signal() -> Arc<Signal> {
    Arc::new(Signal::new(
        Arc::default(),
        Ending::default(),
        Deadline::after(LONG, &Monotonic::system()),
    ))
}

async fn until_idle(executor: &Executor) {
    while executor.running() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn work_gives_its_result() {
    let executor = Executor::new(Monotonic::system());
    let done = executor.run(LONG, |_| async { Ok(7) }).await;
    assert_eq!(done, Ok(7));
    assert_eq!(executor.running(), 0);
}

#[tokio::test]
async fn dropping_the_future_ends_the_work() {
    let executor = Arc::new(Executor::new(Monotonic::system()));
    let (started, has_started) = tokio::sync::oneshot::channel();
    let (ended, end) = channel();
    let request = tokio::spawn({
        let executor = executor.clone();
        async move {
            let work = |watch| async move {
                let _ = started.send(());
                let _ = ended.send(endless(watch).await);
                Ok(())
            };
            executor.run(LONG, work).await
        }
    });
    has_started.await.expect("the work begins");
    request.abort();
    until_idle(&executor).await;
    assert_eq!(end.recv(), Ok(Ok(Interrupt::Cancelled)));
}

#[tokio::test]
async fn closing_ends_the_work_and_lets_no_more_in() {
    let executor = Arc::new(Executor::new(Monotonic::system()));
    let (started, has_started) = tokio::sync::oneshot::channel();
    let request = tokio::spawn({
        let executor = executor.clone();
        async move {
            let work = |watch| {
                let _ = started.send(());
                endless(watch)
            };
            executor.run(LONG, work).await
        }
    });
    has_started.await.expect("the work begins");
    executor.close().await;
    assert_eq!(request.await.expect("no panic"), Ok(Interrupt::Cancelled));
    let late = executor.run(LONG, |_| async { Ok(()) }).await;
    assert_eq!(late.map_err(|error| error.kind), Err(ErrorKind::Unavailable));
}

#[tokio::test]
async fn work_ends_when_its_time_is_over() {
    let executor = Executor::new(Monotonic::system());
    assert_eq!(
        executor.run(Duration::ZERO, endless).await,
        Ok(Interrupt::DeadlineExceeded)
    );
}

#[tokio::test]
async fn where_there_is_no_room_the_oldest_work_ends_for_the_new() {
    let executor = Arc::new(Executor::new(Monotonic::system()));
    let mut all: Vec<_> = (0..ADMITTED)
        .map(|_| {
            let executor = executor.clone();
            tokio::spawn(async move {
                let work = async |watch: Arc<Watch>| loop {
                    watch.check()?;
                    std::thread::yield_now();
                };
                executor.run::<(), _, _>(LONG, work).await
            })
        })
        .collect();
    while executor.running() < ADMITTED {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        executor.run(LONG, |_| async { Ok(7) }).await,
        Ok(7),
        "what is short gets through"
    );
    let ended = loop {
        if let Some(at) = all.iter().position(tokio::task::JoinHandle::is_finished) {
            break all.swap_remove(at).await.expect("no panic");
        }
        tokio::task::yield_now().await;
    };
    let kind = ended.expect_err("it was ended").kind;
    assert!(matches!(kind, ErrorKind::Throttled { .. }), "{kind:?}");
    for work in all {
        work.abort();
    }
    until_idle(&executor).await;
    assert_eq!(executor.run(LONG, |_| async { Ok(()) }).await, Ok(()));
}

#[tokio::test]
async fn work_that_waits_for_its_first_turn_does_not_end_for_the_new() {
    let executor = Arc::new(Executor::new(Monotonic::system()));
    let signal = || {
        Arc::new(Signal::new(
            executor.is_closing.clone(),
            Ending::default(),
            Deadline::after(LONG, &Monotonic::system()),
        ))
    };
    let (waits, runs) = (signal(), signal());
    let _listed = [executor.list(waits.clone()), executor.list(runs.clone())];
    executor.evict_oldest();
    assert!(!waits.is_evicted() && !runs.is_evicted());
    runs.runs();
    executor.evict_oldest();
    assert!(!waits.is_evicted(), "the older has had no turn");
    assert!(runs.is_evicted());
}

#[tokio::test]
async fn a_panic_is_an_error_and_gives_its_place_back() {
    let executor = Executor::new(Monotonic::system());
    let work = |_| async { panic!("a bug") };
    let failed: Result<()> = executor.run(LONG, work).await;
    assert_eq!(failed.map_err(|error| error.kind), Err(ErrorKind::Internal));
    until_idle(&executor).await;
}

/// Takes a turn on a thread of its own, and tells its name when it has it.
fn wait_for_turn(
    turns: &Arc<TimeSlices>,
    name: &'static str,
    is_fresh: bool,
    order: &std::sync::mpsc::Sender<&'static str>,
) {
    let before = turns.waiting();
    let (own, order) = (turns.clone(), order.clone());
    std::thread::spawn(move || {
        let turn = TimeSlice::begin_as(&own, signal(), is_fresh);
        let _ = order.send(name);
        drop(turn);
    });
    while turns.waiting() == before {
        std::thread::yield_now();
    }
}

#[test]
fn new_work_has_its_turn_before_work_that_had_one() {
    let turns = Arc::new(TimeSlices::new(1, Monotonic::system()));
    let running = TimeSlice::begin(&turns, signal());
    let (sender, order) = channel();
    wait_for_turn(&turns, "old", false, &sender);
    wait_for_turn(&turns, "new", true, &sender);
    drop(running);
    assert_eq!((order.recv(), order.recv()), (Ok("new"), Ok("old")));
}

#[test]
fn work_that_had_a_turn_is_not_kept_waiting_by_new_work_for_ever() {
    let turns = Arc::new(TimeSlices::new(1, Monotonic::system()));
    let running = TimeSlice::begin(&turns, signal());
    let (sender, order) = channel();
    wait_for_turn(&turns, "old", false, &sender);
    for _ in 0..8 {
        wait_for_turn(&turns, "new", true, &sender);
    }
    drop(running);
    let place = order.iter().take(9).position(|name| name == "old");
    assert_eq!(place, Some(3), "every fourth turn is for old work");
}

#[test]
fn work_lets_others_go_on_once_it_has_run_for_its_slice() {
    let clock = Monotonic::manual();
    let turns = Arc::new(TimeSlices::new(1, clock.clone()));
    let running = TimeSlice::begin(&turns, signal());
    let (sender, order) = channel();
    wait_for_turn(&turns, "other", true, &sender);
    clock.advance(SLICE / 2);
    running.share();
    assert_eq!(turns.waiting(), 1, "its slice is not over");
    clock.advance(SLICE / 2);
    running.share();
    assert_eq!(order.try_recv(), Ok("other"));
}

#[test]
fn all_who_wait_go_on_when_turns_are_opened() {
    let turns = Arc::new(TimeSlices::new(1, Monotonic::system()));
    let running = TimeSlice::begin(&turns, signal());
    let (sender, order) = channel();
    for _ in 0..3 {
        wait_for_turn(&turns, "waiting", true, &sender);
    }
    turns.open();
    assert_eq!(order.iter().take(3).count(), 3);
    drop(running);
}

#[test]
fn who_is_called_leaves_the_line_without_a_turn() {
    let turns = Arc::new(TimeSlices::new(1, Monotonic::system()));
    let running = TimeSlice::begin(&turns, signal());
    let called = signal();
    let waiting = std::thread::spawn({
        let (turns, called) = (turns.clone(), called.clone());
        move || drop(TimeSlice::begin(&turns, called))
    });
    while turns.waiting() == 0 {
        std::thread::yield_now();
    }
    called.cancel();
    waiting.join().expect("no panic");
    assert_eq!(turns.waiting(), 0);
    drop(running);
    drop(TimeSlice::begin(&turns, signal()));
}
