//! Rules for single files: length, white space, ignored tests.

use super::TextFile;

/// Code longer than this has more than one idea in it and becomes a folder.
const CODE_LINES_LIMIT: usize = 800;

/// Checks every file by itself.
pub fn check(files: &[TextFile]) -> Vec<String> {
    files.iter().flat_map(problems_of).collect()
}

fn problems_of(file: &TextFile) -> Vec<String> {
    let path = &file.path;
    let mut problems = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if line.ends_with([' ', '\t', '\r']) {
            problems.push(format!("{path}:{}: white space at the end of the line", index + 1));
        }
        if is_unexplained_ignore(path, line) {
            problems.push(format!("{path}:{}: an ignored test without a reason", index + 1));
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        problems.push(format!("{path}: no line break at the end"));
    }
    let lines = code_lines(file);
    if lines > CODE_LINES_LIMIT {
        problems.push(format!("{path}: {lines} lines of code, more than {CODE_LINES_LIMIT}"));
    }
    problems
}

/// An `#[ignore]` says why, as in `#[ignore = "needs a second machine"]`.
fn is_unexplained_ignore(path: &str, line: &str) -> bool {
    path.ends_with(".rs") && line.trim() == "#[ignore]"
}

/// Lines of Rust before a file's own tests; files of tests may be as long as they need.
fn code_lines(file: &TextFile) -> usize {
    let is_test = file.path.ends_with("/tests.rs") || file.path.contains("/tests/") || file.path.contains("/suite/");
    if is_test || !file.path.ends_with(".rs") {
        return 0;
    }
    file.text.lines().take_while(|line| *line != "#[cfg(test)]").count()
}

#[cfg(test)]
mod tests {
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
    }
}
