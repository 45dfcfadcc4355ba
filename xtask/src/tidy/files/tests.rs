use super::*;

fn problems(path: &str, text: &str) -> Vec<String> {
    problems_of(&TextFile {
        path: path.to_owned(),
        text: text.to_owned(),
    })
}

#[test]
fn white_space_at_a_line_end_is_reported_with_its_line() {
    assert_eq!(
        problems("a.md", "one\ntwo \n"),
        ["a.md:2: white space at the end of the line"]
    );
}

#[test]
fn an_ignored_test_needs_a_reason() {
    assert_eq!(problems("a.rs", "#[ignore]\n").len(), 1);
    assert_eq!(problems("a.rs", "#[ignore = \"needs an hour\"]\n").len(), 0);
}

#[test]
fn code_is_limited_in_length_and_tests_are_not() {
    let long = "fn f() {}\n".repeat(CODE_LINES_LIMIT + 1);
    assert_eq!(problems("src/a.rs", &long).len(), 1);
    assert_eq!(problems("src/a/tests.rs", &long).len(), 0);
    assert_eq!(problems("src/b.rs", &format!("#[cfg(test)]\n{long}")).len(), 0);
    let function = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(60));
    assert_eq!(problems("src/a.rs", &function).len(), 1);
    assert_eq!(problems("src/a/tests.rs", &function).len(), 0);
}
