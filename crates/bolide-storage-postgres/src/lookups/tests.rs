//! When statements begin, and which reads they take.

use std::time::Duration;

use bolide_model::time::Monotonic;
use bolide_storage::{Key, ReadRequest, Space};

use super::{Lookups, Queue, SLOW, STATEMENTS};

fn request(name: u8) -> ReadRequest {
    ReadRequest::of_keys(vec![Key::new(Space::Item, vec![name])])
}

/// The reads that the next statement takes, by their names.
fn taken(queue: &mut Queue) -> Vec<u8> {
    queue.next().iter().map(|read| read.request.gets[0].bytes[0]).collect()
}

#[test]
fn a_statement_that_takes_long_is_followed_by_one_for_all_that_wait() {
    let start = Monotonic::system().now();
    let mut queue = Queue::default();
    assert!(queue.may_begin(start));
    queue.begin(start);
    let _answers: Vec<_> = (1..=3).map(|name| queue.wait(&request(name))).collect();
    let almost = start + SLOW - Duration::from_micros(1);
    assert!(!queue.may_begin(almost), "the first is under way, and not slow yet");
    let slow = start + SLOW;
    assert!(queue.may_begin(slow));
    queue.begin(slow);
    assert_eq!(taken(&mut queue), [1, 2, 3]);
    assert!(!queue.may_begin(slow), "the second is not slow");
    for next in 2..STATEMENTS {
        let at = start + SLOW * u32::try_from(next).unwrap();
        assert!(queue.may_begin(at));
        queue.begin(at);
    }
    assert!(!queue.may_begin(start + SLOW * 100), "there are enough");
}

#[test]
fn reads_that_wait_go_with_a_statement_that_is_under_way_or_begin_one_when_it_ends() {
    let start = Monotonic::system().now();
    let lookups = Lookups::default();
    let mut queue = lookups.0.lock();
    queue.begin(start);
    queue.begin(start + SLOW);
    let _answer = queue.wait(&request(1));
    drop(queue);
    assert!(
        !lookups.end_and_begin(start + SLOW),
        "another is under way, and not slow"
    );
    assert!(lookups.end_and_begin(start + SLOW), "none is under way");
    assert_eq!(taken(&mut lookups.0.lock()), [1]);
    assert!(!lookups.end_and_begin(start + SLOW), "nobody waits");
    assert!(lookups.0.lock().may_begin(start + SLOW));
}
