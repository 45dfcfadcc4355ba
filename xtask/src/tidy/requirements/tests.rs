use super::*;

fn file(path: &str, text: &str) -> TextFile {
    TextFile {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

#[test]
fn a_requirement_is_cited_by_a_test_or_covered_by_a_scenario_but_not_by_code() {
    let list = "# List\n- **TTL-001** a\n- **TTL-002** b\n- **TTL-003** c\n";
    let files = [
        file("crates/x/src/a.rs", "// TTL-003\n#[cfg(test)]\n// TTL-001\n"),
        file("conformance/ttl/s.json", r#"{"covers": ["TTL-002"]}"#),
    ];
    assert_eq!(check(list, &files), ["TTL-003 is cited by no test and no scenario"]);
}

#[test]
fn an_open_point_may_be_uncited_and_must_not_stay_open_once_it_is_cited() {
    let list = "- **TTL-001** a *(untested: needs two machines)*\n";
    assert_eq!(check(list, &[]), Vec::<String>::new());
    let cited = check(list, &[file("crates/x/src/tests.rs", "// TTL-001")]);
    assert_eq!(cited, ["TTL-001 is cited by a test and still marked untested"]);
}

#[test]
fn a_number_that_is_not_in_the_list_is_reported() {
    let problems = check("", &[file("crates/x/tests/a.rs", "/// TTL-999 and TTL-99.")]);
    assert_eq!(problems, ["TTL-999 is cited and not in the list of requirements"]);
}
