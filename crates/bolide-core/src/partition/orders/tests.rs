use bolide_model::ErrorKind;

use super::*;
use crate::scripts::TRANSACTION_TIMEOUT;

/// By tokio's clock, which is paused.
fn now() -> Instant {
    Monotonic::system().now()
}

async fn next(orders: &Orders, timeout: Duration) -> Result<Order> {
    orders.next(&Monotonic::system(), now() + timeout).await
}

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn orders(others_wait: bool) -> Arc<Orders> {
    Arc::new(Orders::new(Arc::new(move || others_wait)))
}

/// Holds the partition for so long, then lets it go.
async fn hold(orders: &Orders, held: Duration) {
    let mut order = next(orders, TRANSACTION_TIMEOUT).await.expect("free");
    order.begin();
    tokio::time::sleep(held).await;
}

#[tokio::test(start_paused = true)]
async fn the_next_script_begins_when_others_had_the_partition_for_as_long() {
    for (held, others_wait, pause) in [
        (ms(300), true, ms(300)),
        (ms(300), false, ms(0)),
        (ms(4), true, ms(0)),
        (ms(5), true, ms(5)),
        (ms(6500), true, ms(5000)),
    ] {
        let orders = orders(others_wait);
        hold(&orders, held).await;
        let ended = now();
        next(&orders, TRANSACTION_TIMEOUT).await.expect("its turn");
        let waited = now() - ended;
        // Timers may be a millisecond late.
        assert!(
            (pause..=pause + ms(1)).contains(&waited),
            "{held:?} {others_wait}: {waited:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_in_line_that_was_never_used_makes_no_pause() {
    let orders = orders(true);
    let order = next(&orders, TRANSACTION_TIMEOUT).await.expect("free");
    tokio::time::sleep(ms(300)).await;
    drop(order);
    let ended = now();
    next(&orders, TRANSACTION_TIMEOUT).await.expect("its turn");
    assert_eq!((now() - ended), ms(0));
}

#[tokio::test(start_paused = true)]
async fn behind_one_script_that_takes_all_of_its_time_nobody_is_refused() {
    let orders = orders(true);
    let slow = tokio::spawn({
        let orders = orders.clone();
        // Its five seconds, and one to end it.
        async move { hold(&orders, ms(6000)).await }
    });
    tokio::task::yield_now().await;
    let came = now();
    next(&orders, TRANSACTION_TIMEOUT).await.expect("its turn");
    assert!((now() - came) >= ms(11_000), "after the pause: {:?}", (now() - came));
    slow.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_waited_for_as_long_as_anything_else_is() {
    let orders = orders(true);
    hold(&orders, ms(5000)).await;
    let waiting = tokio::spawn({
        let orders = orders.clone();
        async move { next(&orders, ms(1000)).await.map(|_| ()) }
    });
    tokio::task::yield_now().await;
    assert_eq!(orders.waiting(), 1, "one that waits for the end of a pause waits");
    let refused = waiting.await.expect("no panic").expect_err("it does not end in time");
    assert!(matches!(refused.kind, ErrorKind::Throttled { .. }), "{refused:?}");
    assert_eq!(orders.waiting(), 0);
    next(&orders, TRANSACTION_TIMEOUT).await.expect("the line goes on");
}
