use std::time::Duration;

use super::*;

async fn rings(alarm: &Alarm) -> bool {
    tokio::time::timeout(Duration::ZERO, alarm.rung()).await.is_ok()
}

#[tokio::test]
async fn only_what_is_due_before_the_end_of_the_sleep_rings() {
    let alarm = Alarm::default();
    alarm.sleep_until(10);
    alarm.expect(10);
    assert!(!rings(&alarm).await);
    alarm.expect(9);
    assert!(rings(&alarm).await, "though it rang before anybody listened");
    assert!(!rings(&alarm).await, "once");
    alarm.stay_awake();
    alarm.expect(1_000_000);
    assert!(rings(&alarm).await);
}
