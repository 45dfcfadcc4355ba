//! Rules for single files: their length and that of their functions, white space, ignored tests.

use super::{TextFile, functions};

/// Code longer than this contains more than one idea and must become a folder.
const CODE_LINES_LIMIT: usize = 500;

/// Checks every file.
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
    if is_production(path) {
        problems.extend(too_long(file));
    }
    problems
}

/// Problems of length.
fn too_long(file: &TextFile) -> Vec<String> {
    let path = &file.path;
    let lines = code_lines(file);
    let long =
        (lines > CODE_LINES_LIMIT).then(|| format!("{path}: {lines} lines of code, more than {CODE_LINES_LIMIT}"));
    let functions = functions::long_ones(file);
    long.into_iter()
        .chain(functions.iter().map(|function| function.problem(path)))
        .collect()
}

/// An `#[ignore]` says why, as in `#[ignore = "needs a second machine"]`.
fn is_unexplained_ignore(path: &str, line: &str) -> bool {
    path.ends_with(".rs") && line.trim() == "#[ignore]"
}

/// Whether it is Rust production code: test files may be as long as needed.
fn is_production(path: &str) -> bool {
    let is_test = path.ends_with("/tests.rs") || path.contains("/tests/") || path.contains("/suite/");
    !is_test && path.ends_with(".rs")
}

/// Number of lines before a file's own tests.
fn code_lines(file: &TextFile) -> usize {
    file.text.lines().take_while(|line| *line != "#[cfg(test)]").count()
}

#[cfg(test)]
mod tests;
