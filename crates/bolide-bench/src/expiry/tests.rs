use super::*;

#[test]
fn an_event_that_did_not_come_is_later_than_all_that_did() {
    let arrivals = Arrivals {
        lags: (1..=98).map(Duration::from_millis).collect(),
        expected: 100,
    };
    assert_eq!(arrivals.cells(), ["50", "> 15000", "98 of 100"]);
    let all = Arrivals {
        lags: (1..=100).map(Duration::from_millis).collect(),
        expected: 100,
    };
    assert_eq!(all.cells(), ["50", "99", "100 of 100"]);
}

#[test]
fn only_marked_deletes_are_ends() {
    let page = br#"{"Documents":[{"metadata":{"operationType":"create"}},{"metadata":{"operationType":"delete"}},
            {"metadata":{"operationType":"delete","timeToLiveExpired":true}}]}"#;
    assert_eq!(count_of_ends(page).expect("a page"), 1);
}
