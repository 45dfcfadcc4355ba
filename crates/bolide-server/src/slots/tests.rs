use futures_util::FutureExt as _;

use super::*;

#[tokio::test]
async fn the_longest_idle_makes_room() {
    let slots = Arc::new(Slots::new(2));
    let (first, second) = (slots.take().await, slots.take().await);
    for slot in [&second, &first] {
        slot.pulse().admit();
        slot.pulse().rest();
    }
    let waiting = tokio::spawn({
        let slots = slots.clone();
        async move { slots.take().await }
    });
    second.is_taken_away().await;
    assert!(first.is_taken_away().now_or_never().is_none());
    drop(second);
    drop(waiting.await.expect("no panic"));
    assert_eq!(slots.count().load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn nobody_at_work_makes_room() {
    let slots = Arc::new(Slots::new(1));
    let only = slots.take().await;
    only.pulse().admit();
    only.pulse().begin();
    slots.shed();
    assert!(only.is_taken_away().now_or_never().is_none());
}
