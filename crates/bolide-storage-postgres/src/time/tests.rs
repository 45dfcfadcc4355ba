use super::*;

const START: i64 = 1_700_000_000_000;

fn asked(monotonic: &Monotonic, micros: i64, error_ms: u64) -> ServerTime {
    let time = ServerTime::new(Arc::new(Clock::System), monotonic.clone(), UnixMillis(0));
    time.learn(Sample {
        micros,
        at: monotonic.now(),
        error: Duration::from_millis(error_ms),
    });
    time
}

fn span(lo: i64, hi: i64) -> Span {
    Span {
        lo: UnixMillis(START + lo),
        hi: UnixMillis(START + hi),
    }
}

#[test]
fn the_interval_has_the_error_of_the_answer_and_grows_with_age() {
    let monotonic = Monotonic::manual();
    let time = asked(&monotonic, START * 1_000, 2);
    assert_eq!(time.now(), span(-2, 2));
    monotonic.advance(Duration::from_secs(10));
    assert_eq!(time.now(), span(9_996, 10_004));
}

#[test]
fn parts_of_a_millisecond_widen_the_interval() {
    let monotonic = Monotonic::manual();
    let time = asked(&monotonic, START * 1_000 + 300, 0);
    assert_eq!(time.now(), span(0, 1));
}

#[test]
fn the_more_exact_answer_counts_until_it_is_old() {
    let monotonic = Monotonic::manual();
    let time = asked(&monotonic, START * 1_000, 1);
    let less_exact = |seconds: i64| Sample {
        micros: START * 1_000 + seconds * 1_000_000,
        at: monotonic.now(),
        error: Duration::from_millis(50),
    };
    monotonic.advance(Duration::from_secs(1));
    time.learn(less_exact(1));
    assert_eq!(time.now(), span(998, 1_002));
    monotonic.advance(Duration::from_secs(600));
    // By now the first may be wrong by 121 ms.
    time.learn(less_exact(601));
    assert_eq!(time.now(), span(600_950, 601_050));
}

#[test]
fn time_never_goes_back() {
    let monotonic = Monotonic::manual();
    let time = asked(&monotonic, START * 1_000, 0);
    monotonic.advance(Duration::from_secs(60));
    let before = time.now();
    time.learn(Sample {
        micros: START * 1_000,
        at: monotonic.now(),
        error: Duration::ZERO,
    });
    assert!(time.now().lo >= before.lo && time.now().hi >= before.hi);
}

#[test]
fn a_stamp_that_was_seen_raises_the_latest_possible_time_only() {
    let monotonic = Monotonic::manual();
    let time = asked(&monotonic, START * 1_000, 0);
    time.observe(UnixMillis(START + 5_000));
    assert_eq!(time.now(), span(0, 5_000));
}

#[test]
fn an_exact_clock_stays_exact() {
    let clock = Arc::new(Clock::virtual_at(UnixMillis(START)));
    let time = ServerTime::new(clock.clone(), Monotonic::manual(), UnixMillis(START + 3));
    assert_eq!(time.now(), span(3, 3));
    time.observe(UnixMillis(START + 5_000));
    assert_eq!(time.now(), span(5_000, 5_000));
    clock.advance(9_000);
    assert_eq!(time.now(), span(9_000, 9_000));
}
