use super::{Sort, Sorter};
use crate::context::memory::StageMemory;
use crate::value::testing::{document, documents};

/// Sorts documents, and returns their `_id`s.
fn sorted(order: &str, input: &str) -> Vec<i32> {
    let sort = Sort::parse(&document(order)).unwrap();
    let mut sorter = Sorter::new(None, StageMemory::new("$sort"));
    for document in documents(input) {
        let key = sort.key(&document, None).unwrap();
        sorter.push(key, document, 0).unwrap();
    }
    sorter
        .finish()
        .map(|document| document.get_i32("_id").unwrap())
        .collect()
}

#[test]
fn types_are_in_their_order_and_ties_in_that_of_the_input() {
    let input = r#"[
        {"_id": 1, "a": "x"}, {"_id": 2, "a": 2}, {"_id": 3}, {"_id": 4, "a": null}, {"_id": 5, "a": 1.5}, {"_id": 6, "a": true},
        {"_id": 7, "a": {"b": 1}}, {"_id": 8, "a": {"$date": 0}}, {"_id": 9, "a": {"$numberDecimal": "2.0"}}]"#;
    assert_eq!(sorted(r#"{"a": 1}"#, input), [3, 4, 5, 2, 9, 1, 7, 6, 8]);
    assert_eq!(sorted(r#"{"a": -1}"#, input), [8, 6, 7, 1, 2, 9, 5, 3, 4]);
}

#[test]
fn an_array_counts_by_its_smallest_or_largest_element() {
    let input = r#"[
        {"_id": 1, "a": [5, 1]}, {"_id": 2, "a": 3}, {"_id": 3, "a": []}, {"_id": 4, "a": null}, {"_id": 5, "a": [4, 2]},
        {"_id": 6, "a": [[0]]}]"#;
    assert_eq!(sorted(r#"{"a": 1}"#, input), [3, 4, 1, 5, 2, 6]);
    assert_eq!(sorted(r#"{"a": -1}"#, input), [6, 1, 5, 2, 4, 3]);
}

#[test]
fn paths_go_through_arrays_of_documents_and_by_number() {
    let input = r#"[
        {"_id": 1, "a": [{"b": 3}, {"b": 9}]}, {"_id": 2, "a": {"b": 5}}, {"_id": 3, "a": [{"c": 1}, {"b": 7}]}, {"_id": 4, "a": []}]"#;
    assert_eq!(sorted(r#"{"a.b": 1}"#, input), [3, 4, 1, 2]);
    assert_eq!(sorted(r#"{"a.b": -1}"#, input), [1, 3, 2, 4]);
    assert_eq!(sorted(r#"{"a.1.b": 1}"#, input), [2, 4, 3, 1]);
}

#[test]
fn keys_in_one_array_are_taken_together() {
    // The smallest pair of the first document is (1, 5), not (1, 1).
    let input = r#"[{"_id": 1, "a": [{"x": 1, "y": 5}, {"x": 2, "y": 1}]}, {"_id": 2, "a": {"x": 1, "y": 3}}]"#;
    assert_eq!(sorted(r#"{"a.x": 1, "a.y": 1}"#, input), [2, 1]);
}

#[test]
fn parallel_arrays_are_refused() {
    let sort = Sort::parse(&document(r#"{"a": 1, "b": 1}"#)).unwrap();
    let error = sort.key(&document(r#"{"a": [1], "b": [2]}"#), None).unwrap_err();
    assert_eq!(error.code.0, 2);
    assert!(sort.key(&document(r#"{"a": [1], "b": 2}"#), None).is_ok());
}

#[test]
fn the_second_key_decides_ties() {
    let input = r#"[{"_id": 1, "a": 1, "b": 1}, {"_id": 2, "a": 0, "b": 1}, {"_id": 3, "a": 1, "b": 2}, {"_id": 4, "a": 0, "b": 2}]"#;
    assert_eq!(sorted(r#"{"a": 1, "b": -1}"#, input), [4, 2, 3, 1]);
}

#[test]
fn bad_orders_have_the_codes_of_mongodb() {
    let many = (0..33)
        .map(|index| format!(r#""k{index}": 1"#))
        .collect::<Vec<_>>()
        .join(",");
    let cases = [
        (r#"{"a": "x"}"#, 15974),
        (r#"{"a": {"b": 1}}"#, 15974),
        (r#"{"a": null}"#, 15974),
        (r#"{"a": 2}"#, 15975),
        (r#"{"a": 0.5}"#, 15975),
        (r#"{"a": {"$meta": "x"}}"#, 31138),
        (r#"{"": 1}"#, 40352),
        (r#"{"a.": 1}"#, 40353),
        (r#"{"a..b": 1}"#, 15998),
        (r#"{"$a": 1}"#, 16410),
        (&format!("{{{many}}}"), 13103),
    ];
    for (order, code) in cases {
        assert_eq!(Sort::parse(&document(order)).unwrap_err().code.0, code, "{order}");
    }
    assert_eq!(
        Sort::parse(&document(r#"{"a": 1.0, "b": {"$numberLong": "-1"}}"#))
            .unwrap()
            .keys()
            .len(),
        2
    );
}

#[test]
fn natural_order_stands_alone() {
    assert_eq!(Sort::natural(&document(r#"{"$natural": -1}"#)).unwrap(), Some(true));
    assert_eq!(Sort::natural(&document(r#"{"a": 1}"#)).unwrap(), None);
    assert_eq!(
        Sort::natural(&document(r#"{"$natural": 1, "a": 1}"#))
            .unwrap_err()
            .code
            .0,
        2
    );
    assert_eq!(Sort::natural(&document(r#"{"$natural": 2}"#)).unwrap_err().code.0, 2);
}

#[test]
fn a_limit_keeps_the_first_and_bounds_the_memory() {
    let mut sorter = Sorter::new(Some(3), StageMemory::with_limit("$sort", 2000));
    for number in [5u8, 3, 9, 1, 3, 7, 0, 3] {
        sorter.push(vec![number], number, 100).unwrap();
    }
    assert_eq!(sorter.finish().collect::<Vec<_>>(), [0, 1, 3]);
    let mut sorter = Sorter::new(None, StageMemory::with_limit("$sort", 2000));
    let pushed: Result<Vec<()>, _> = (0..100u8)
        .map(|number| sorter.push(vec![number], number, 100))
        .collect();
    let error = pushed.unwrap_err();
    assert_eq!(error.code.0, 292);
    assert!(error.message.starts_with("Sort exceeded memory limit of 2000 bytes"));
}
