//! The documents and commands of the benchmark.

use super::{INSERTED, document, insert};

#[test]
fn documents_have_one_kilobyte() {
    assert_eq!(document(7).as_bytes().len(), 1_024);
    assert_eq!(document(1 << 40).as_bytes().len(), 1_024);
}

#[test]
fn an_insert_has_all_documents_of_its_range() {
    let command = insert(INSERTED, 5..8);
    let ids: Vec<i64> = command
        .get_array("documents")
        .unwrap()
        .into_iter()
        .map(|document| document.unwrap().as_document().unwrap().get_i64("_id").unwrap())
        .collect();
    assert_eq!(ids, [5, 6, 7]);
}
