use super::*;

const PATIENCE: Duration = Duration::from_millis(20);

#[test]
fn what_is_taken_is_missing_until_it_is_dropped() {
    let budget = MemoryBudget::new(10 * UNIT_BYTES);
    let share = budget.try_take(7 * UNIT_BYTES).expect("there is enough");
    assert_eq!(budget.used_bytes(), 7 * UNIT_BYTES);
    let error = budget.try_take(4 * UNIT_BYTES).expect_err("only three units are left");
    assert!(matches!(error.kind, ErrorKind::Throttled { .. }), "{error:?}");
    drop(share);
    assert!(budget.try_take(10 * UNIT_BYTES).is_ok());
}

#[test]
fn what_can_never_be_had_is_refused_for_good() {
    let budget = MemoryBudget::new(10 * UNIT_BYTES);
    let error = budget.try_take(10 * UNIT_BYTES + 1).expect_err("more than all");
    assert_eq!(error.kind, ErrorKind::TooLarge);
}

#[test]
fn shares_grow_together_and_shrink() {
    let budget = MemoryBudget::new(10 * UNIT_BYTES);
    let mut share = budget.try_take(1).expect("there is enough");
    share.merge(budget.try_take(3 * UNIT_BYTES).expect("there is enough"));
    assert_eq!(share.bytes(), 4 * UNIT_BYTES);
    share.shrink_to(2 * UNIT_BYTES);
    assert_eq!((share.bytes(), budget.used_bytes()), (2 * UNIT_BYTES, 2 * UNIT_BYTES));
    share.shrink_to(5 * UNIT_BYTES);
    assert_eq!(share.bytes(), 2 * UNIT_BYTES, "shrinking takes nothing more");
}

#[tokio::test]
async fn those_who_wait_are_served_when_something_is_given_back() {
    let budget = MemoryBudget::new(10 * UNIT_BYTES);
    let held = budget.try_take(10 * UNIT_BYTES).expect("all");
    let error = budget.take(UNIT_BYTES, PATIENCE).await.expect_err("nothing is left");
    assert!(matches!(error.kind, ErrorKind::Throttled { .. }), "{error:?}");

    let waiting = tokio::spawn({
        let budget = budget.clone();
        async move { budget.take(UNIT_BYTES, Duration::from_secs(60)).await }
    });
    drop(held);
    assert_eq!(waiting.await.expect("no panic").expect("served").bytes(), UNIT_BYTES);
    assert_eq!(budget.used_bytes(), 0);
}
