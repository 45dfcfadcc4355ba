use std::sync::Arc;

use bolide_model::UnixMillis;
use bolide_model::time::{Clock, Monotonic};
use bolide_storage::memory::MemoryEngine;

use super::*;
use crate::background::PurgeFault;
use crate::background::fake_jobs::NoContainers;

#[tokio::test]
async fn it_sleeps_until_shortly_before_the_next_second() {
    // TTL-203
    let wall_clock = Arc::new(Clock::virtual_at(UnixMillis(110_100)));
    let background = Background::new(
        Arc::new(MemoryEngine::new(wall_clock.clone())),
        Monotonic::manual(),
        (Arc::new(NoContainers), None),
        PurgeFault::new(None),
    );
    let mut job = DurableSecond::default();
    assert_eq!(job.step(&background).await, Duration::from_millis(850));
    wall_clock.set(UnixMillis(110_960));
    assert_eq!(job.step(&background).await, clock::AHEAD);
    assert_eq!(job.requests, 0, "nobody was there");
    background.count_request();
    assert_eq!(job.step(&background).await, clock::AHEAD);
    assert_eq!(job.requests, 1, "the second was made durable for those who come");
}
