use super::*;

fn at(offset: u64) -> Position {
    Position {
        offset,
        line: 1,
        column: 1,
    }
}

#[test]
fn the_place_is_before_the_first_item_that_is_not_done() {
    let ledger = Ledger::new(Acknowledged {
        count: 10,
        position: at(100),
    });
    for offset in [110, 120, 130, 140] {
        ledger.begin(at(offset));
    }
    ledger.sent(4, 40);
    ledger.done([(11, 10, Done::Created), (12, 10, Done::Skipped)]);
    assert_eq!(ledger.acknowledged().count, 10);
    ledger.done([(10, 10, Done::Own)]);
    let expected = Acknowledged {
        count: 13,
        position: at(130),
    };
    assert_eq!(ledger.acknowledged(), expected);
    assert!(ledger.wait_until_done(13));
    ledger.fail(Failure::new("first"));
    ledger.fail(Failure::new("second"));
    assert!(!ledger.wait_until_done(14), "a wait ends with a failure");
    let (done, counts, failure) = ledger.close();
    assert_eq!((done, failure), (expected, Some(Failure::new("first"))));
    assert_eq!((counts.created, counts.skipped, counts.own), (1, 1, 1));
}
