use std::time::{Duration, Instant};

use super::{Interval, Stolen, Ticks};

#[test]
fn the_kernels_counters_are_those_of_all_processors() {
    let text = "cpu  100 0 50 800 10 0 5 35 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
    let ticks = Ticks::parse(text).expect("a line as of the kernel");
    assert_eq!(ticks, Ticks { stolen: 35, all: 1000 });
    assert_eq!(Ticks::parse("cpu  1 2 3\n"), None);
    assert_eq!(Ticks::parse(""), None);
    let later = Ticks { stolen: 45, all: 1200 };
    assert_eq!(later.stolen_since(ticks), 0.05);
    assert_eq!(ticks.stolen_since(ticks), 0.0);
}

#[test]
fn an_instant_is_quiet_if_nothing_was_stolen_then_and_just_before() {
    let start = Instant::now();
    let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
    let interval = |number: u32, stolen| Interval {
        from: start + number * Duration::from_secs(1),
        to: start + (number + 1) * Duration::from_secs(1),
        stolen,
    };
    let stolen = Stolen {
        intervals: vec![
            interval(0, 0.0),
            interval(1, 0.3),
            interval(2, 0.0),
            interval(3, 0.02),
            interval(4, 0.0),
        ],
    };
    let quiet: Vec<bool> = [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
        .map(|seconds| stolen.is_quiet(at(seconds)))
        .into();
    assert_eq!(quiet, [true, false, false, true, true, true]);
    assert_eq!(stolen.quiet_between(at(0.0), at(5.0)), Duration::from_secs(3));
    assert_eq!(
        stolen.quiet_between(at(0.5), at(5.0)),
        Duration::from_secs(2),
        "whole intervals only"
    );
    assert!(Stolen::default().is_quiet(at(0.0)), "nothing is known of others");
}
