//! The syntax of PCRE2 in which it differs from that of the crate for regular expressions.
//!
//! Without `(*UCP)`, `\d`, `\w` and `\s` are classes of ASCII. Inside of brackets `[`, `&&`, `--` and `~~` are only characters, and so is white space with
//! the option `x`, which is applied here.

use std::iter::Peekable;
use std::str::Chars;

/// Returns a pattern as the crate for regular expressions reads it.
pub(super) fn translate(pattern: &str, is_ascii: bool, is_extended: bool) -> String {
    let mut translation = Translation {
        rest: pattern.chars().peekable(),
        output: String::with_capacity(pattern.len()),
        is_ascii,
        is_extended,
    };
    translation.run();
    translation.output
}

struct Translation<'p> {
    rest: Peekable<Chars<'p>>,
    output: String,
    is_ascii: bool,
    is_extended: bool,
}

impl Translation<'_> {
    fn run(&mut self) {
        while let Some(next) = self.rest.next() {
            match next {
                '\\' => self.escape(false),
                '[' => self.brackets(),
                '#' if self.is_extended => self.comment(),
                '\t'..='\r' | ' ' if self.is_extended => {}
                other => self.output.push(other),
            }
        }
    }

    /// A comment goes on to the end of the line.
    fn comment(&mut self) {
        self.rest.by_ref().find(|next| *next == '\n');
    }

    /// What follows a backslash.
    fn escape(&mut self, is_in_brackets: bool) {
        let Some(next) = self.rest.next() else {
            self.output.push('\\');
            return;
        };
        let class = match next {
            'd' | 'D' if self.is_ascii => "0-9",
            'w' | 'W' if self.is_ascii => "0-9A-Za-z_",
            's' | 'S' if self.is_ascii => r"\t\n\x0B\f\r\x20",
            ' ' => return self.output.push_str(r"\x20"),
            'b' if is_in_brackets => return self.output.push_str(r"\x08"),
            other => {
                self.output.push('\\');
                self.output.push(other);
                return;
            }
        };
        match (next.is_uppercase(), is_in_brackets) {
            (false, true) => self.output.push_str(class),
            (is_negated, _) => {
                self.output.push_str(if is_negated { "[^" } else { "[" });
                self.output.push_str(class);
                self.output.push(']');
            }
        }
        // A class does not begin a range.
        if is_in_brackets && self.rest.next_if_eq(&'-').is_some() {
            self.output.push_str(r"\-");
        }
    }

    /// The characters between brackets, of which the first is one even if it is `]`.
    fn brackets(&mut self) {
        self.output.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.output.push('^');
        }
        if self.rest.next_if_eq(&']').is_some() {
            self.output.push_str(r"\]");
        }
        while let Some(next) = self.rest.next() {
            match next {
                ']' => {
                    self.output.push(']');
                    return;
                }
                '\\' => self.escape(true),
                '[' if self.rest.peek() == Some(&':') => self.posix(),
                '[' | '#' => {
                    self.output.push('\\');
                    self.output.push(next);
                }
                '&' | '~' => {
                    self.output.push('\\');
                    self.output.push(next);
                }
                '-' if self.rest.peek() == Some(&'-') => self.output.push_str(r"\-"),
                ' ' => self.output.push_str(r"\x20"),
                other => self.output.push(other),
            }
        }
    }

    /// A class such as `[:alpha:]`.
    fn posix(&mut self) {
        self.output.push('[');
        for next in self.rest.by_ref() {
            self.output.push(next);
            if next == ']' {
                return;
            }
        }
    }
}
