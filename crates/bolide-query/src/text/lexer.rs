//! Tokens of the query language (cosmos-sql §2).

use std::borrow::Cow;

use crate::error::{Result, Span};
use crate::memory::Memory;
use crate::number::Number;

/// A reserved word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keyword {
    And,
    Array,
    As,
    Asc,
    Between,
    By,
    Desc,
    Distinct,
    Escape,
    Exists,
    False,
    From,
    Group,
    In,
    Join,
    Left,
    Like,
    Limit,
    Not,
    Null,
    Offset,
    Or,
    Order,
    Rank,
    Right,
    Select,
    Top,
    True,
    Udf,
    Undefined,
    Value,
    Where,
}

/// The keywords in any case that begin with a letter.
fn keywords(first: u8) -> &'static [(&'static str, Keyword)] {
    match first.to_ascii_uppercase() {
        b'A' => &[
            ("AND", Keyword::And),
            ("ARRAY", Keyword::Array),
            ("AS", Keyword::As),
            ("ASC", Keyword::Asc),
        ],
        b'B' => &[("BETWEEN", Keyword::Between), ("BY", Keyword::By)],
        b'D' => &[("DESC", Keyword::Desc), ("DISTINCT", Keyword::Distinct)],
        b'E' => &[("ESCAPE", Keyword::Escape), ("EXISTS", Keyword::Exists)],
        b'F' => &[("FROM", Keyword::From)],
        b'G' => &[("GROUP", Keyword::Group)],
        b'I' => &[("IN", Keyword::In)],
        b'J' => &[("JOIN", Keyword::Join)],
        b'L' => &[
            ("LEFT", Keyword::Left),
            ("LIKE", Keyword::Like),
            ("LIMIT", Keyword::Limit),
        ],
        b'N' => &[("NOT", Keyword::Not)],
        b'O' => &[
            ("OFFSET", Keyword::Offset),
            ("OR", Keyword::Or),
            ("ORDER", Keyword::Order),
        ],
        b'R' => &[("RANK", Keyword::Rank), ("RIGHT", Keyword::Right)],
        b'S' => &[("SELECT", Keyword::Select)],
        b'T' => &[("TOP", Keyword::Top)],
        b'V' => &[("VALUE", Keyword::Value)],
        b'W' => &[("WHERE", Keyword::Where)],
        _ => &[],
    }
}

/// The keyword that must be in lower case, if the word is one.
fn lower_case_keyword(word: &str) -> Option<Keyword> {
    match word {
        "true" => Some(Keyword::True),
        "false" => Some(Keyword::False),
        "null" => Some(Keyword::Null),
        "undefined" => Some(Keyword::Undefined),
        "udf" => Some(Keyword::Udf),
        _ => None,
    }
}

/// The kind of a token. Names and punctuation are slices of the text.
#[derive(Debug, Clone, PartialEq)]
pub enum TokenKind<'t> {
    Keyword(Keyword),
    Identifier(&'t str),
    /// With its `@`.
    Parameter(&'t str),
    Number(Number),
    String(Cow<'t, str>),
    Symbol(&'static str),
    /// Text that is not the beginning of a token; always a syntax error.
    Bad,
    End,
}

/// A token and its location, in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Token<'t> {
    pub kind: TokenKind<'t>,
    pub span: Span,
}

/// The symbol at the beginning of a text.
fn symbol(text: &[u8]) -> Option<&'static str> {
    Some(match text {
        [b'>', b'>', b'>', ..] => ">>>",
        [b'?', b'?', ..] => "??",
        [b'|', b'|', ..] => "||",
        [b'!', b'=', ..] => "!=",
        [b'<', b'>', ..] => "<>",
        [b'<', b'=', ..] => "<=",
        [b'>', b'=', ..] => ">=",
        [b'<', b'<', ..] => "<<",
        [b'>', b'>', ..] => ">>",
        [first, ..] => match first {
            b'+' => "+",
            b'-' => "-",
            b'*' => "*",
            b'/' => "/",
            b'%' => "%",
            b'&' => "&",
            b'|' => "|",
            b'^' => "^",
            b'~' => "~",
            b'=' => "=",
            b'<' => "<",
            b'>' => ">",
            b'?' => "?",
            b':' => ":",
            b'.' => ".",
            b',' => ",",
            b'(' => "(",
            b')' => ")",
            b'[' => "[",
            b']' => "]",
            b'{' => "{",
            b'}' => "}",
            _ => return None,
        },
        [] => return None,
    })
}

/// Memory of a token in a list that has grown by doubling.
pub const TOKEN_BYTES: usize = 2 * size_of::<Token<'static>>();

/// The list of so many tokens is not moved while it grows.
const FEW_TOKENS: usize = 32;

/// Splits a text into tokens; the last one is always [`TokenKind::End`]. Each takes [`TOKEN_BYTES`].
///
/// # Errors
/// As [`Memory::take`].
pub fn tokens<'t>(text: &'t str, memory: &Memory) -> Result<Vec<Token<'t>>> {
    let mut lexer = Lexer { text, at: 0 };
    let mut out = Vec::with_capacity(FEW_TOKENS.min(text.len() + 1));
    loop {
        memory.take(TOKEN_BYTES)?;
        let token = lexer.next();
        let end = token.kind == TokenKind::End;
        out.push(token);
        if end {
            return Ok(out);
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Token<'t> {
        self.skip_blank();
        let start = self.at;
        let kind = match self.rest().bytes().next() {
            None => TokenKind::End,
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => self.word(),
            Some(b'0'..=b'9') => self.number(),
            Some(b'.') if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) && !self.follows_value(start) => {
                self.number()
            }
            Some(b'@') => self.parameter(),
            Some(quote @ (b'"' | b'\'')) => self.string(quote),
            Some(_) => self.symbol(),
        };
        Token {
            kind,
            span: Span { start, end: self.at },
        }
    }

    /// `c.1` is a wrong member access, not the number `.1` after a name.
    fn follows_value(&self, start: usize) -> bool {
        self.text[..start].ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ')' | ']' | '}'))
    }

    fn skip_blank(&mut self) {
        loop {
            let blank = self
                .rest()
                .bytes()
                .take_while(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n'))
                .count();
            self.at += blank;
            if !self.rest().starts_with("--") {
                return;
            }
            self.at += memchr::memchr(b'\n', self.rest().as_bytes()).unwrap_or(self.rest().len());
        }
    }

    fn word_len(&self) -> usize {
        self.rest()
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || *b == b'_')
            .count()
    }

    fn word(&mut self) -> TokenKind<'t> {
        let word = &self.rest()[..self.word_len()];
        self.at += word.len();
        if let Some(keyword) = lower_case_keyword(word) {
            return TokenKind::Keyword(keyword);
        }
        let mut keywords = keywords(word.as_bytes()[0]).iter();
        match (keywords.find(|(name, _)| name.eq_ignore_ascii_case(word)), word) {
            (Some((_, keyword)), _) => TokenKind::Keyword(*keyword),
            (None, "NaN") => TokenKind::Number(Number::Float(f64::NAN)),
            (None, "Infinity") => TokenKind::Number(Number::Float(f64::INFINITY)),
            (None, _) => TokenKind::Identifier(word),
        }
    }

    fn parameter(&mut self) -> TokenKind<'t> {
        let start = self.at;
        self.at += 1;
        let len = self.word_len();
        self.at += len;
        let name = &self.text[start..self.at];
        match name.as_bytes().get(1) {
            Some(first) if !first.is_ascii_digit() => TokenKind::Parameter(name),
            _ => TokenKind::Bad,
        }
    }

    fn digits(&mut self) -> usize {
        let count = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        self.at += count;
        count
    }

    fn number(&mut self) -> TokenKind<'t> {
        let start = self.at;
        let number = if self.rest().starts_with("0x") || self.rest().starts_with("0X") {
            self.hexadecimal()
        } else {
            self.decimal()
        };
        let trailing = self.word_len();
        self.at += trailing;
        match number {
            Some(number) if trailing == 0 => TokenKind::Number(number),
            _ => {
                self.at = self.at.max(start + 1);
                TokenKind::Bad
            }
        }
    }

    fn hexadecimal(&mut self) -> Option<Number> {
        self.at += 2;
        let count = self.rest().bytes().take_while(u8::is_ascii_hexdigit).count();
        let digits = &self.rest()[..count];
        self.at += count;
        if let Ok(value) = i64::from_str_radix(digits, 16) {
            return Some(Number::Int(value));
        }
        let value = digits
            .bytes()
            .try_fold(0.0, |sum, b| Some(sum * 16.0 + f64::from((b as char).to_digit(16)?)));
        value.filter(|_| count > 0).map(Number::Float)
    }

    fn decimal(&mut self) -> Option<Number> {
        let start = self.at;
        self.digits();
        let mut integral = true;
        if self.rest().starts_with('.') {
            integral = false;
            self.at += 1;
            self.digits();
        }
        if self.rest().starts_with(['e', 'E']) {
            integral = false;
            self.at += 1;
            if self.rest().starts_with(['+', '-']) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return None;
            }
        }
        let text = &self.text[start..self.at];
        let exact = if integral {
            text.parse().ok().map(Number::Int)
        } else {
            None
        };
        exact.or_else(|| text.parse().ok().map(Number::Float))
    }

    /// Tabs, line ends and other control characters are allowed in a literal: the JavaScript SDK writes them unescaped into the queries with which it resumes.
    fn string(&mut self, quote: u8) -> TokenKind<'t> {
        let start = self.at + 1;
        self.at = start;
        let mut decoded: Option<String> = None;
        loop {
            let run = self.rest().bytes().take_while(|b| *b != quote && *b != b'\\').count();
            if let Some(text) = &mut decoded {
                text.push_str(&self.text[self.at..self.at + run]);
            }
            self.at += run;
            match self.rest().bytes().next() {
                Some(b) if b == quote => {
                    let plain = &self.text[start..self.at];
                    self.at += 1;
                    return TokenKind::String(decoded.map_or(Cow::Borrowed(plain), Cow::Owned));
                }
                Some(b'\\') => {
                    let prefix = &self.text[start..self.at];
                    let text = decoded.get_or_insert_with(|| prefix.to_owned());
                    match escape(self.rest()) {
                        Some((c, len)) => {
                            text.push(c);
                            self.at += len;
                        }
                        None => return self.broken_string(),
                    }
                }
                _ => return self.broken_string(),
            }
        }
    }

    /// The rest of the line becomes part of the bad literal, so that one mistake is reported once.
    fn broken_string(&mut self) -> TokenKind<'t> {
        self.at += memchr::memchr(b'\n', self.rest().as_bytes()).unwrap_or(self.rest().len());
        TokenKind::Bad
    }

    fn symbol(&mut self) -> TokenKind<'t> {
        if let Some(symbol) = symbol(self.rest().as_bytes()) {
            self.at += symbol.len();
            return TokenKind::Symbol(symbol);
        }
        self.at += self.rest().chars().next().map_or(0, char::len_utf8);
        TokenKind::Bad
    }
}

/// The character of an escape sequence, and the length of the sequence in bytes.
fn escape(text: &str) -> Option<(char, usize)> {
    let simple = match text.as_bytes().get(1)? {
        b'"' => '"',
        b'\'' => '\'',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode_escape(text),
        _ => return None,
    };
    Some((simple, 2))
}

fn unicode_escape(text: &str) -> Option<(char, usize)> {
    let high = hex4(text.get(2..6)?)?;
    if let Some(c) = char::from_u32(high) {
        return Some((c, 6));
    }
    let low = text
        .get(6..12)
        .filter(|t| t.starts_with("\\u"))
        .and_then(|t| hex4(&t[2..]));
    match low {
        Some(low) if (0xD800..0xDC00).contains(&high) && (0xDC00..0xE000).contains(&low) => {
            char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)).map(|c| (c, 12))
        }
        // A lone surrogate cannot be represented in UTF-8.
        _ => Some((char::REPLACEMENT_CHARACTER, 6)),
    }
}

fn hex4(text: &str) -> Option<u32> {
    text.bytes()
        .all(|b| b.is_ascii_hexdigit())
        .then(|| u32::from_str_radix(text, 16).ok())
        .flatten()
}
