use std::task::Poll;

use bolide_model::time::Monotonic;

use super::*;

const TIMEOUT: Duration = Duration::from_millis(20);
/// More than a small share.
const LARGE: usize = 2 * SMALL_BYTES;

/// Kept for small shares: two of [`SMALL_BYTES`]; for all: three of [`LARGE`].
fn budget() -> MemoryBudget {
    MemoryBudget::new(8 * SMALL_BYTES)
}

fn throttled<T: std::fmt::Debug>(taken: Result<T>) {
    let error = taken.expect_err("there is nothing left");
    assert!(matches!(error.kind, ErrorKind::Throttled { .. }), "{error:?}");
}

#[test]
fn what_is_taken_is_missing_until_it_is_dropped() {
    let budget = budget();
    let share = budget.try_take(2 * LARGE).expect("there is enough");
    assert_eq!(budget.used_bytes(), 2 * LARGE);
    throttled(budget.try_take(LARGE + 1));
    drop(share);
    assert_eq!(budget.used_bytes(), 0);
    assert!(budget.try_take(3 * LARGE).is_ok());
}

#[test]
fn what_can_never_be_had_is_refused_for_good() {
    let budget = budget();
    assert_eq!(budget.longest_share(), 3 * LARGE);
    let error = budget.try_take(3 * LARGE + 1).expect_err("more than a share may have");
    assert_eq!(error.kind, ErrorKind::TooLarge);
}

#[test]
fn large_shares_leave_a_part_to_small_ones() {
    let budget = budget();
    let _large = budget.try_take(3 * LARGE).expect("all that large shares may have");
    throttled(budget.try_take(SMALL_BYTES + 1));
    let small = [(); 2].map(|()| budget.try_take(SMALL_BYTES).expect("kept for small ones"));
    throttled(budget.try_take(1));
    drop(small);
}

#[test]
fn a_share_that_grows_large_takes_no_more_of_what_is_kept() {
    let budget = budget();
    let mut growing = budget.try_take(SMALL_BYTES).expect("small at first");
    budget.try_grow(&mut growing, 3 * LARGE).expect("there is enough");
    assert_eq!(growing.bytes(), 3 * LARGE);
    assert!(budget.try_take(SMALL_BYTES).is_ok(), "one small share is left");
    let longer = budget
        .try_grow(&mut growing, 3 * LARGE + 1)
        .expect_err("longer than any");
    assert_eq!((longer.kind, growing.bytes()), (ErrorKind::TooLarge, 3 * LARGE));
}

#[test]
fn shares_grow_together_and_shrink() {
    let budget = budget();
    let mut share = budget.try_take(1).expect("there is enough");
    share.merge(budget.try_take(LARGE).expect("there is enough"));
    assert_eq!(share.bytes(), LARGE + UNIT_BYTES);
    share.shrink_to(2 * UNIT_BYTES);
    assert_eq!((share.bytes(), budget.used_bytes()), (2 * UNIT_BYTES, 2 * UNIT_BYTES));
    share.shrink_to(5 * UNIT_BYTES);
    assert_eq!(share.bytes(), 2 * UNIT_BYTES, "shrinking takes nothing more");
    share.shrink_to(0);
    assert_eq!(budget.used_bytes(), 0);
}

#[tokio::test]
async fn those_who_wait_are_served_when_something_is_given_back() {
    let budget = budget();
    let held = budget.try_take(3 * LARGE).expect("all");
    throttled(budget.take(LARGE, TIMEOUT).await);

    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move {
            let mut share = budget.take(LARGE, Duration::from_secs(60)).await?;
            budget.grow(&mut share, 2 * LARGE, Duration::from_secs(60)).await?;
            Ok::<_, Error>(share.bytes())
        }
    });
    drop(held);
    assert_eq!(waiting.await.expect("no panic"), Ok(2 * LARGE));
    assert_eq!(budget.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_there_already_waits_only_as_far_as_it_is_little() {
    const LIMIT: usize = 64 * 1024 * 1024;
    const ANSWER: usize = LIMIT / HELD_PART / 2;
    let budget = MemoryBudget::new(LIMIT);
    let all = budget.try_take(budget.longest_share()).expect("all but what is kept");
    let wait = || {
        let budget = budget.clone();
        tokio::spawn(async move {
            let mut share = MemoryShare::default();
            let timeout = Duration::from_secs(60);
            budget.grow_for_held(&mut share, ANSWER, timeout).await.map(|()| share)
        })
    };
    let began = Monotonic::system().now();
    let (one, other) = (wait(), wait());
    tokio::task::yield_now().await;
    throttled(wait().await.expect("no panic"));
    assert!(
        Monotonic::system().since(began) < Duration::from_secs(1),
        "refused at once"
    );
    drop(all);
    for waited in [one, other] {
        let share = waited.await.expect("no panic").expect("it was given back");
        assert_eq!(share.bytes(), ANSWER);
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_that_arrive_leave_memory_to_those_that_have_come() {
    let budget = MemoryBudget::new(64 * SMALL_BYTES);
    let part = budget.longest_share() / ARRIVING_PART;
    let mut come = budget
        .take_for_arriving(part, TIMEOUT)
        .await
        .expect("all for such bodies");
    throttled(budget.take_for_arriving(LARGE, TIMEOUT).await);
    budget
        .grow(&mut come, 2 * part, TIMEOUT)
        .await
        .expect("the rest is free");
    come.shrink_to(part / 2);
    let other = budget.take_for_arriving(part / 2, TIMEOUT).await.expect("given back");
    throttled(budget.take_for_arriving(LARGE, TIMEOUT).await);
    come.arrived();
    assert!(budget.take_for_arriving(LARGE, TIMEOUT).await.is_ok());
    assert_eq!((come.bytes(), other.bytes()), (part / 2, part / 2));

    drop((come, other));
    let longest = budget.take_for_arriving(2 * part, TIMEOUT).await;
    assert_eq!(longest.map(|share| share.bytes()), Ok(2 * part));
    assert_eq!(budget.used_bytes(), 0);
}

#[tokio::test(start_paused = true)]
async fn few_beginnings_of_bodies_wait_for_the_rest() {
    let budget = MemoryBudget::new(64 * SMALL_BYTES);
    let all = budget.try_take(budget.longest_share()).expect("all but what is kept");
    let waiting = async || {
        let mut share = budget.try_take(SMALL_BYTES)?;
        budget
            .grow_for_arriving(&mut share, LARGE, Duration::from_secs(60))
            .await?;
        Ok::<_, Error>(share.bytes())
    };
    let began = Monotonic::system().now();
    let others = async {
        throttled(waiting().await);
        assert!(Monotonic::system().since(began) < TIMEOUT, "refused at once");
        drop(all);
    };
    let (one, two, three, four, ()) = tokio::join!(waiting(), waiting(), waiting(), waiting(), others);
    assert_eq!([one, two, three, four], [(); 4].map(|()| Ok(LARGE)));
}

#[tokio::test]
async fn who_finds_what_is_asked_for_does_not_wait() {
    let budget = budget();
    let mut share = MemoryShare::default();
    let mut growing = std::pin::pin!(budget.grow(&mut share, LARGE, TIMEOUT));
    let grown = std::future::poll_fn(|cx| {
        // The runtime lets a task that has done much find nothing ready, to have others go on.
        while std::pin::pin!(tokio::task::consume_budget()).poll(cx).is_ready() {}
        Poll::Ready((growing.as_mut().poll(cx), budget.is_short()))
    });
    assert_eq!(grown.await, (Poll::Ready(Ok(())), false));
}
