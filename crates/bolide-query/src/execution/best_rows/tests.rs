use proptest::prelude::*;

use super::*;

#[test]
fn rows_in_order_need_no_heap() {
    let mut rows = BestRows::default();
    [1, 2, 2, 5].into_iter().for_each(|row| rows.add(row));
    assert_eq!(rows.take_worst(), Some(5));
    rows.add(3);
    assert!(matches!(rows, BestRows::InOrder(_)), "{rows:?}");
    rows.add(2);
    assert!(matches!(rows, BestRows::Heap(_)), "{rows:?}");
    assert_eq!(rows.into_sorted(), [1, 2, 2, 2, 3]);
}

proptest! {
    /// `None` takes the worst row, anything else adds a row.
    #[test]
    fn the_worst_row_is_that_of_a_sorted_list(steps in proptest::collection::vec(proptest::option::weighted(0.7, 0..20u8), 0..60)) {
        let (mut rows, mut model) = (BestRows::default(), Vec::new());
        for step in steps {
            match step {
                Some(row) => {
                    rows.add(row);
                    model.push(row);
                    model.sort_unstable();
                }
                None => prop_assert_eq!(rows.take_worst(), model.pop()),
            }
            prop_assert_eq!(rows.worst(), model.last());
            prop_assert_eq!((rows.len(), rows.is_empty()), (model.len(), model.is_empty()));
        }
        prop_assert_eq!(rows.into_sorted(), model);
    }
}
