use super::verdict;

const MB: u64 = 1_000_000;

#[test]
fn the_last_third_is_compared_with_the_second() {
    let of = |megabytes: [u64; 6]| verdict("Memory", &megabytes.map(|megabytes| megabytes * MB));
    assert_eq!(
        of([1, 900, 100, 90, 110, 80]),
        "Memory levelled off: at most 100 MB in the second third of the time, 110 MB in the last."
    );
    assert_eq!(
        of([500, 500, 90, 100, 111, 1]),
        "Memory **did not level off**: at most 100 MB in the second third of the time, 111 MB in the last."
    );
}
