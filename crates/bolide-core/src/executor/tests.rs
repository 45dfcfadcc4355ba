use std::sync::mpsc::channel;

use bolide_query::Interrupt;

use super::time_slices::SLICE;
use super::*;

const LONG: Duration = Duration::from_secs(600);

/// A task that runs until it is told to end, and returns why.
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
async fn without_threads_work_runs_on_that_of_its_caller_also_while_it_waits() {
    let executor = Executor::new(Monotonic::system()).with_threads(false);
    let caller = std::thread::current().id();
    let work = |_| async {
        tokio::task::yield_now().await;
        Ok(std::thread::current().id())
    };
    assert_eq!(executor.run(LONG, work).await, Ok(caller));
    assert_eq!(executor.running(), 0);
    assert!(!executor.has_free_processor(), "nothing helps it");
    executor.close().await;
    let refused = executor.run(LONG, |_| async { Ok(()) }).await;
    assert_eq!(refused.map_err(|error| error.kind), Err(ErrorKind::Unavailable));
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
async fn short_work_runs_on_the_thread_of_its_caller() {
    let executor = Executor::new(Monotonic::system());
    let caller = std::thread::current().id();
    let here = executor.run_here(&Ending::default(), |watch| async move {
        assert!(watch.is_brief());
        watch.check()?;
        Ok(std::thread::current().id())
    });
    assert_eq!(here, Some(Ok(caller)));
    let refused = || Error::new(ErrorKind::NotFound, "not there");
    let failed = executor.run_here::<(), _, _>(&Ending::default(), |_| async { Err(refused()) });
    assert_eq!(failed, Some(Err(refused())), "the work's own error is its result");
    let panicked = executor.run_here::<(), _, _>(&Ending::default(), |_| async { panic!("on purpose") });
    assert_eq!(
        panicked.map(|done| done.map_err(|error| error.kind)),
        Some(Err(ErrorKind::Internal))
    );
}

#[tokio::test]
async fn work_that_is_not_short_has_to_run_again() {
    let clock = Monotonic::manual();
    let executor = Executor::new(clock.clone());
    let none = Ending::default();
    let slow = executor.run_here(&none, |watch| {
        clock.advance(BRIEF);
        async move { watch.check() }
    });
    assert_eq!(slow, None, "its time is over");
    let large = executor.run_here(&none, |watch| async move { watch.give_up_if_brief() });
    assert_eq!(large, None, "it says that it needs longer");
    let waiting = executor.run_here(&none, |_| async {
        tokio::task::yield_now().await;
        Ok(())
    });
    assert_eq!(waiting, None, "it waits");
    assert_eq!(
        executor
            .run(LONG, async |watch: Arc<Watch>| watch.give_up_if_brief())
            .await,
        Ok(())
    );
}

#[tokio::test]
async fn short_work_does_not_run_before_that_of_other_threads() {
    let executor = Arc::new(Executor::new(Monotonic::system()));
    let (started, has_started) = tokio::sync::oneshot::channel();
    let other = tokio::spawn({
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
    let here = async |_| -> Result<()> { panic!("it must not run") };
    assert_eq!(executor.run_here(&Ending::default(), here), None);
    executor.close().await;
    assert_eq!(other.await.expect("no panic"), Ok(Interrupt::Cancelled));
    assert_eq!(executor.run_here(&Ending::default(), here), None, "it is closed");
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
    // On a busy machine the evicted task may need longer to end than the new one waits for it. The new one is refused then, and tries again.
    let short = loop {
        match executor.run(LONG, |_| async { Ok(7) }).await {
            Err(error) if error.is_throttled() => {}
            outcome => break outcome,
        }
    };
    assert_eq!(short, Ok(7), "the short one is served");
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
    assert!(!waits.is_evicted(), "the older has had no time slice");
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

/// Waits for a time slice on a thread of its own, and sends its name when it gets one.
fn wait_for_slice(
    time_slices: &Arc<TimeSlices>,
    name: &'static str,
    is_fresh: bool,
    order: &std::sync::mpsc::Sender<&'static str>,
) {
    let before = time_slices.waiting();
    let (own, order) = (time_slices.clone(), order.clone());
    std::thread::spawn(move || {
        let slice = TimeSlice::begin_as(&own, signal(), is_fresh);
        let _ = order.send(name);
        drop(slice);
    });
    while time_slices.waiting() == before {
        std::thread::yield_now();
    }
}

#[test]
fn new_work_has_its_turn_before_work_that_had_one() {
    let time_slices = Arc::new(TimeSlices::new(1, Monotonic::system()));
    let running = TimeSlice::begin(&time_slices, signal());
    let (sender, order) = channel();
    wait_for_slice(&time_slices, "old", false, &sender);
    wait_for_slice(&time_slices, "new", true, &sender);
    drop(running);
    assert_eq!((order.recv(), order.recv()), (Ok("new"), Ok("old")));
}

#[test]
fn work_that_had_a_turn_is_not_kept_waiting_by_new_work_for_ever() {
    let time_slices = Arc::new(TimeSlices::new(1, Monotonic::system()));
    let running = TimeSlice::begin(&time_slices, signal());
    let (sender, order) = channel();
    wait_for_slice(&time_slices, "old", false, &sender);
    for _ in 0..8 {
        wait_for_slice(&time_slices, "new", true, &sender);
    }
    drop(running);
    let place = order.iter().take(9).position(|name| name == "old");
    assert_eq!(place, Some(3), "every fourth slice is for old work");
}

#[test]
fn work_lets_others_go_on_once_it_has_run_for_its_slice() {
    let clock = Monotonic::manual();
    let time_slices = Arc::new(TimeSlices::new(1, clock.clone()));
    let running = TimeSlice::begin(&time_slices, signal());
    let (sender, order) = channel();
    wait_for_slice(&time_slices, "other", true, &sender);
    clock.advance(SLICE / 2);
    running.share();
    assert_eq!(time_slices.waiting(), 1, "its slice is not over");
    clock.advance(SLICE / 2);
    running.share();
    assert_eq!(order.try_recv(), Ok("other"));
}

#[test]
fn all_who_wait_go_on_when_turns_are_opened() {
    let time_slices = Arc::new(TimeSlices::new(1, Monotonic::system()));
    let running = TimeSlice::begin(&time_slices, signal());
    let (sender, order) = channel();
    for _ in 0..3 {
        wait_for_slice(&time_slices, "waiting", true, &sender);
    }
    time_slices.open();
    assert_eq!(order.iter().take(3).count(), 3);
    drop(running);
}

#[test]
fn who_is_called_leaves_the_line_without_a_turn() {
    let time_slices = Arc::new(TimeSlices::new(1, Monotonic::system()));
    let running = TimeSlice::begin(&time_slices, signal());
    let called = signal();
    let waiting = std::thread::spawn({
        let (time_slices, called) = (time_slices.clone(), called.clone());
        move || drop(TimeSlice::begin(&time_slices, called))
    });
    while time_slices.waiting() == 0 {
        std::thread::yield_now();
    }
    called.cancel();
    waiting.join().expect("no panic");
    assert_eq!(time_slices.waiting(), 0);
    drop(running);
    drop(TimeSlice::begin(&time_slices, signal()));
}
