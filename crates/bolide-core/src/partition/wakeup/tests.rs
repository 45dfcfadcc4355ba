use std::time::Duration;

use super::*;

async fn rings(wakeup: &Wakeup) -> bool {
    tokio::time::timeout(Duration::ZERO, wakeup.rung()).await.is_ok()
}

#[tokio::test]
async fn only_what_is_due_before_the_end_of_the_sleep_rings() {
    let wakeup = Wakeup::default();
    wakeup.sleep_until(10);
    wakeup.expect(10);
    assert!(!rings(&wakeup).await);
    wakeup.expect(9);
    assert!(rings(&wakeup).await, "though it rang before anybody listened");
    assert!(!rings(&wakeup).await, "once");
    wakeup.stay_awake();
    wakeup.expect(1_000_000);
    assert!(rings(&wakeup).await);
}
