//! Rust source for the checks: without comments and the content of literals, and as tokens.

/// A word or a symbol of Rust code; `::` is one symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token<'c> {
    /// Its text; a literal is only its quotes.
    pub text: &'c str,
    /// Counted from 1.
    pub line: usize,
}

/// The same text with spaces instead of comments and of the content of literals. Line numbers stay the same.
pub fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kept, length) = literal_or_comment(&code, rest).unwrap_or((first.len_utf8(), first.len_utf8()));
        code.push_str(&rest[..kept]);
        let blanked = rest[kept..length].chars();
        code.extend(blanked.map(|character| if character == '\n' { '\n' } else { ' ' }));
        rest = &rest[length..];
    }
    code
}

/// The number of bytes to keep of a literal or comment at the beginning of `rest`, and its length in bytes.
fn literal_or_comment(before: &str, rest: &str) -> Option<(usize, usize)> {
    if rest.starts_with("//") {
        return Some((0, rest.find('\n').unwrap_or(rest.len())));
    }
    if rest.starts_with("/*") {
        return Some((0, block_comment(rest)));
    }
    if rest.starts_with('"') {
        return Some((1, quoted(rest, '"')));
    }
    if rest.starts_with('\'') {
        return is_character(rest).then(|| (1, quoted(rest, '\'')));
    }
    let is_word = before.ends_with(|last: char| last.is_alphanumeric() || last == '_');
    let raw = ["r", "br", "cr"]
        .iter()
        .find_map(|prefix| rest.strip_prefix(prefix).filter(|_| !is_word));
    let raw = raw?;
    let hashes = raw.len() - raw.trim_start_matches('#').len();
    let inside = raw[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some((0, rest.len() - inside.len() + length))
}

/// Whether a quote begins a character, and not a lifetime.
fn is_character(rest: &str) -> bool {
    let mut inside = rest.chars().skip(1);
    inside.next().is_some_and(|first| first == '\\') || inside.next() == Some('\'')
}

/// Length of a literal up to its closing quote.
fn quoted(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if character == quote => return at + quote.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// Length of a block comment, which may contain others.
fn block_comment(rest: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The tokens of the output of [`code_of`].
pub fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (code, 1);
    while let Some(first) = rest.chars().next() {
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        let length = if is_word(first) {
            rest.find(|character| !is_word(character)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        if !first.is_whitespace() {
            let text = &rest[..length];
            tokens.push(Token { text, line });
        }
        line += usize::from(first == '\n');
        rest = &rest[length..];
    }
    tokens
}

/// The tokens without items under `#[cfg(test)]`.
pub fn without_tests<'c>(tokens: &[Token<'c>]) -> Vec<Token<'c>> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_test_mark(&tokens[at..]) {
            at = end_of_item(tokens, at + TEST_MARK.len());
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// The modules in separate files that are declared under `#[cfg(test)]`.
pub fn test_modules<'c>(tokens: &[Token<'c>]) -> Vec<&'c str> {
    let marks = (0..tokens.len()).filter(|at| is_test_mark(&tokens[*at..]));
    let items = marks.map(|at| &tokens[at + TEST_MARK.len()..end_of_item(tokens, at + TEST_MARK.len())]);
    items
        .filter_map(|item| match item {
            [.., module, name, end] if module.text == "mod" && end.text == ";" => Some(name.text),
            _ => None,
        })
        .collect()
}

const TEST_MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

fn is_test_mark(tokens: &[Token<'_>]) -> bool {
    tokens.len() >= TEST_MARK.len() && tokens.iter().zip(TEST_MARK).all(|(token, mark)| token.text == mark)
}

/// The index after the item that begins at `start`: after its `;` or its closing brace.
fn end_of_item(tokens: &[Token<'_>], start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.saturating_sub(1);
                // A use tree in braces continues to its semicolon.
                let goes_on = tokens.get(at + 1).is_some_and(|next| next.text == ";");
                if depth == 0 && token.text == "}" && !goes_on {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests;
