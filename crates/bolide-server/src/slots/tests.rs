use futures_util::FutureExt as _;

use bolide_model::time::Monotonic;

use super::*;

fn clock() -> ServerClock {
    ServerClock::new(Monotonic::manual())
}

#[tokio::test]
async fn the_longest_idle_makes_room() {
    let clock = clock();
    let slots = Arc::new(Slots::new(2, clock.clone()));
    let (first, second) = (slots.take().await, slots.take().await);
    for slot in [&second, &first] {
        slot.activity().admit();
        slot.activity().idle();
        clock.monotonic().advance(Duration::from_nanos(1));
    }
    let waiting = tokio::spawn({
        let slots = slots.clone();
        async move { slots.take().await }
    });
    second.must_end().await;
    assert!(first.must_end().now_or_never().is_none());
    drop(second);
    drop(waiting.await.expect("no panic"));
    assert_eq!(slots.count().load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn busy_connections_are_not_ended() {
    let slots = Arc::new(Slots::new(1, clock()));
    let only = slots.take().await;
    only.activity().admit();
    only.activity().begin();
    slots.end_one();
    assert!(only.must_end().now_or_never().is_none());
}
