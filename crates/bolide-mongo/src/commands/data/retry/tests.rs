use super::*;

fn result_of(results: &StoredResults, statement: i32) -> Option<RawDocumentBuf> {
    results.of(statement).map(ToOwned::to_owned)
}

#[test]
fn equal_results_one_after_another_are_stored_once() {
    let one = rawdoc! { "n": 1, "nModified": 1 };
    let none = rawdoc! { "n": 1, "nModified": 0 };
    let mut results = StoredResults::default();
    for statement in [0, 1, 2, 3, 7, 8, 5] {
        results.note(statement, one.clone());
    }
    results.note(9, none.clone());
    assert_eq!(results.results.keys().copied().collect::<Vec<_>>(), [0, 5, 7, 9]);
    let read = StoredResults::decode(results.encode().as_bytes()).expect("what was written");
    for stored in [&results, &read] {
        for (statement, expected) in [
            (-1, None),
            (0, Some(&one)),
            (3, Some(&one)),
            (4, None),
            (5, Some(&one)),
            (6, None),
            (8, Some(&one)),
            (9, Some(&none)),
            (10, None),
        ] {
            assert_eq!(result_of(stored, statement).as_ref(), expected, "{statement}");
        }
    }
}

#[test]
fn results_with_more_than_counts_are_stored_apart() {
    let upserted = |id: i32| rawdoc! { "n": 1, "nModified": 0, "upserted": id };
    let mut results = StoredResults::default();
    for statement in 0..3 {
        results.note(statement, upserted(statement));
    }
    results.note(3, rawdoc! { "n": 1, "nModified": 1 });
    assert_eq!(results.apart, [(0, upserted(0)), (1, upserted(1)), (2, upserted(2))]);
    assert_eq!(results.results.keys().copied().collect::<Vec<_>>(), [0, 3]);
    let read = StoredResults::decode(results.encode().as_bytes()).expect("what was written");
    assert_eq!(result_of(&read, 1), Some(RawDocumentBuf::new()));
    assert_eq!(result_of(&read, 3), Some(rawdoc! { "n": 1, "nModified": 1 }));
    assert_eq!(result_of(&read, 4), None);
}

#[test]
fn the_largest_number_of_a_statement_is_no_overflow() {
    let mut results = StoredResults::default();
    results.note(i32::MAX, rawdoc! { "n": 1 });
    results.note(i32::MAX - 1, rawdoc! { "n": 1 });
    results.note(i32::MAX, rawdoc! { "n": 1 });
    assert_eq!(result_of(&results, i32::MAX), Some(rawdoc! { "n": 1 }));
}
