use super::*;

fn milliseconds(latencies: impl IntoIterator<Item = u64>) -> Latencies {
    latencies.into_iter().map(Duration::from_millis).collect()
}

#[test]
fn a_percentile_is_a_latency_that_occurred() {
    let latencies = milliseconds((1..=200).rev());
    assert_eq!(latencies.percentile(50.0), Duration::from_millis(100));
    assert_eq!(latencies.percentile(99.0), Duration::from_millis(198));
    assert_eq!(latencies.percentile(100.0), Duration::from_millis(200));
}

#[test]
fn the_high_percentile_of_a_few_is_the_slowest() {
    assert_eq!(milliseconds([3, 1, 2]).percentile(99.0), Duration::from_millis(3));
    assert_eq!(milliseconds([]).percentile(99.0), Duration::ZERO);
}

#[test]
fn a_median_is_not_moved_by_one_bad_round() {
    assert_eq!(median([10.0, 900.0, 11.0]), 11.0);
    assert_eq!(median([4.0, 1.0, 3.0, 2.0]), 2.5);
    assert_eq!(median([]), 0.0);
}

#[test]
fn ratios_are_taken_within_rounds() {
    // The machine was half as fast in the second round, for both sides.
    assert_eq!(median_ratio([(60.0, 100.0), (30.0, 50.0), (61.0, 100.0)]), 0.6);
}
