use std::collections::BTreeMap;

use super::*;

#[test]
fn checks_stand_in_the_table_of_their_prefix_with_a_cell_per_client() {
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
    let checks = BTreeMap::from([
        ("pymongo".to_owned(), names(&["find: $eq", "clients connect directly"])),
        (
            "mongodb-go".to_owned(),
            names(&["find: $eq", "update refused: $inc of text"]),
        ),
    ]);
    let results = Results {
        checks,
        files: BTreeMap::new(),
    };
    let clients = [("pymongo", "PyMongo"), ("mongodb-go", "Go")];
    let table = |title: &str, prefixes: &[&str]| {
        let mut page = String::new();
        write_table(&mut page, title, prefixes, &clients, &results).expect("strings can be written to");
        page
    };
    let rule = "| --- | --- | --- |\n";
    assert_eq!(
        table("Q", &["find: "]),
        format!("## Q\n\n| check | PyMongo | Go |\n{rule}| $eq | yes | yes |\n\n")
    );
    assert_eq!(
        table("Rest", &[]),
        format!("## Rest\n\n| check | PyMongo | Go |\n{rule}| clients connect directly | yes | |\n\n")
    );
    assert!(table("U", &["update: ", "update refused: "]).ends_with("| refused: $inc of text | | yes |\n\n"));
    assert_eq!(table("E", &["expression: "]), "");
}

#[test]
fn reasons_are_those_of_the_suite_where_several_share_a_list() {
    let reasons = |list: &[(&str, &str)]| {
        let pairs = list
            .iter()
            .map(|(test, reason)| ((*test).to_owned(), (*reason).to_owned()));
        pairs.collect()
    };
    let known = crate::compatibility::Known {
        expected_failures: reasons(&[("crud::find: one", "no views"), ("array::valid 1: two", "no arrays")]),
        not_run: reasons(&[("crud::find: three", "too slow")]),
    };
    let files = BTreeMap::from([("crud".to_owned(), BTreeMap::from([("passed".to_owned(), 5)]))]);
    let mut page = String::new();
    write_files(&mut page, "Tests", &files, &known).expect("strings can be written to");
    assert!(page.contains("| `crud` | 5 | 0 |"));
    assert!(page.ends_with("| no views | 1 |\n| too slow | 1 |\n"), "{page}");
}
