//! The length of functions.

use super::TextFile;
use super::source;

/// A longer function does more than one thing, or states a reason.
const LINES_LIMIT: usize = 60;

/// Begins the comment with the reason for a longer function.
const REASON: &str = "// Long: ";

/// A function that is too long.
#[derive(Debug, PartialEq, Eq)]
pub struct LongFunction {
    /// Its name.
    pub name: String,
    /// Its first line, counted from 1.
    pub line: usize,
    /// Number of lines from its name to its closing brace.
    pub lines: usize,
}

impl LongFunction {
    /// The text of the problem.
    pub fn problem(&self, path: &str) -> String {
        let LongFunction { name, line, lines } = self;
        format!("{path}:{line}: `{name}` has {lines} lines, more than {LINES_LIMIT}, and no `{REASON}…` above it")
    }
}

/// The functions of a file that are too long without a reason; tests are ignored.
pub fn long_ones(file: &TextFile) -> Vec<LongFunction> {
    let code = source::code_of(&file.text);
    let tokens = source::without_tests(&source::tokens(&code));
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let name = tokens.get(at + 1).filter(|name| token.text == "fn" && name.text != "(");
        if let Some(name) = name
            && let Some(last) = last_line(&tokens[at..])
        {
            let (line, lines) = (token.line, last + 1 - token.line);
            if lines > LINES_LIMIT && !has_reason(&file.text, &code, line) {
                let name = name.text.to_owned();
                found.push(LongFunction { name, line, lines });
            }
        }
    }
    found
}

/// The line of the closing brace of a function; `None` for one without a body.
fn last_line(tokens: &[source::Token<'_>]) -> Option<usize> {
    let (mut braces, mut others) = (0_usize, 0_usize);
    for token in tokens {
        match token.text {
            "(" | "[" => others += 1,
            ")" | "]" => others = others.saturating_sub(1),
            ";" if braces == 0 && others == 0 => return None,
            "{" => braces += 1,
            "}" => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    return Some(token.line);
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether a reason is among the comments and attributes directly above a line.
fn has_reason(text: &str, code: &str, line: usize) -> bool {
    let above = text.lines().zip(code.lines()).take(line - 1);
    let above: Vec<_> = above.collect();
    let is_end = |(text, code): &&(&str, &str)| text.trim().is_empty() || code.trim_end().ends_with(['{', '}', ';']);
    let mut own = above.iter().rev().take_while(|pair| !is_end(pair));
    own.any(|(text, _)| {
        text.trim()
            .strip_prefix(REASON)
            .is_some_and(|reason| !reason.trim().is_empty())
    })
}

#[cfg(test)]
mod tests;
