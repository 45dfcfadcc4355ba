use super::*;

#[test]
fn timestamps_are_the_times_of_commits() {
    let of = |time: CommitTime| {
        let Timestamp { time, increment } = timestamp(time);
        (time, increment)
    };
    let time = CommitTime::first_of(UnixMillis(1_700_000_000_250));
    assert_eq!(of(time), (1_700_000_000, 250 << 20));
    assert_eq!(of(time.next()), (1_700_000_000, (250 << 20) + 1));
    assert_eq!(of(CommitTime::default()), (0, 1));
}

#[test]
fn a_timestamp_tells_its_millisecond() {
    for now in [0, 999, 1_700_000_000_999, 1_700_000_001_000] {
        let time = CommitTime::first_of(UnixMillis(now));
        assert_eq!(millis(timestamp(time)), UnixMillis(now));
        assert_eq!(millis(timestamp(time.next())), UnixMillis(now));
    }
}
