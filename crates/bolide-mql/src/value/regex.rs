//! Regular expressions with MongoDB's options, for filters and expressions.
//!
//! MongoDB has PCRE2. Here a pattern without look-around, back-references and the like runs in time linear in the text; the others go back and try again,
//! with a limit on the steps back. Neither kind of search can be interrupted, so its greatest cost is estimated first and kept within some seconds.
//!
//! Two differences from PCRE2 remain: `\b` knows the letters of all languages, and `$` is only the end of the text (or line, with `m`), not also before a
//! last line break.

mod classes;
mod work;

use std::sync::OnceLock;

use fancy_regex::{Captures, Expr, RegexBuilder};

use work::{STEPS, Work};

/// Bytes that the compiled form of a pattern, or of a part of one, may take.
const COMPILED_BYTES: usize = 1024 * 1024;

/// The longest pattern in bytes: that of MongoDB.
const PATTERN_BYTES: usize = 32_764;

/// The options of a regular expression.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// `i`: large and small letters are equal.
    pub case_insensitive: bool,
    /// `m`: `^` and `$` match at each line.
    pub multi_line: bool,
    /// `s`: `.` matches line breaks.
    pub dot_all: bool,
    /// `x`: white space and comments in the pattern are ignored.
    pub extended: bool,
}

impl Options {
    /// Reads letters; `u` is allowed and means nothing, as patterns are always Unicode.
    ///
    /// # Errors
    /// The first letter that is no option.
    pub fn parse(letters: &str) -> Result<Options, char> {
        let mut options = Options::default();
        for letter in letters.chars() {
            match letter {
                'i' => options.case_insensitive = true,
                'm' => options.multi_line = true,
                's' => options.dot_all = true,
                'x' => options.extended = true,
                'u' => {}
                other => return Err(other),
            }
        }
        Ok(options)
    }

    /// Returns the group that sets these options inside a pattern, all but `x`.
    fn as_group(self) -> String {
        let letters = [
            (self.case_insensitive, 'i'),
            (self.multi_line, 'm'),
            (self.dot_all, 's'),
        ];
        let letters: String = letters
            .into_iter()
            .filter(|(on, _)| *on)
            .map(|(_, letter)| letter)
            .collect();
        if letters.is_empty() {
            letters
        } else {
            format!("(?{letters})")
        }
    }
}

/// Why a search has no result.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The pattern could take too long on a text of this length.
    #[error("the pattern is too costly for a text of {0} bytes")]
    TooCostly(usize),
    /// Too many steps back.
    #[error("{0}")]
    Failed(Box<fancy_regex::Error>),
}

impl From<fancy_regex::Error> for SearchError {
    fn from(error: fancy_regex::Error) -> SearchError {
        SearchError::Failed(Box::new(error))
    }
}

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub struct Regex {
    text: String,
    options: Options,
    work: Work,
    /// Compiled for each of [`STEPS`] when first needed; only the first one, if the pattern needs no steps back.
    compiled: [OnceLock<fancy_regex::Regex>; STEPS.len()],
}

impl Regex {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// What is wrong with the pattern, as a text.
    pub fn new(pattern: &str, options: Options) -> Result<Regex, String> {
        if pattern.len() > PATTERN_BYTES {
            return Err("pattern is too long".to_owned());
        }
        let (text, is_unicode) = without_verbs(pattern);
        let text = classes::translate(text, !is_unicode, options.extended);
        let options = Options {
            extended: false,
            ..options
        };
        let tree = Expr::parse_tree(&format!("{}{text}", options.as_group())).map_err(|error| error.to_string())?;
        let regex = Regex {
            work: Work::of(&tree.expr)?,
            text,
            options,
            compiled: Default::default(),
        };
        let first = regex.compile(STEPS[0]).map_err(|error| error.to_string())?;
        let _ = regex.compiled[0].set(first);
        Ok(regex)
    }

    /// Tells whether the pattern occurs in the text.
    ///
    /// # Errors
    /// [`SearchError`]
    pub fn is_match(&self, text: &str) -> Result<bool, SearchError> {
        Ok(self.for_text(text)?.is_match(text)?)
    }

    /// Finds the first match with its groups.
    ///
    /// # Errors
    /// [`SearchError`]
    pub fn captures<'t>(&self, text: &'t str) -> Result<Option<Captures<'t>>, SearchError> {
        self.captures_from_pos(text, 0)
    }

    /// Finds the first match that begins at or after a byte position, with its groups.
    ///
    /// # Errors
    /// [`SearchError`]
    pub fn captures_from_pos<'t>(&self, text: &'t str, position: usize) -> Result<Option<Captures<'t>>, SearchError> {
        Ok(self.for_text(text)?.captures_from_pos(text, position)?)
    }

    /// Returns the compiled form whose search in a text of this length takes a bounded time.
    fn for_text(&self, text: &str) -> Result<&fancy_regex::Regex, SearchError> {
        let index = self
            .work
            .steps_index(text.len())
            .ok_or(SearchError::TooCostly(text.len()))?;
        if let Some(compiled) = self.compiled[index].get() {
            return Ok(compiled);
        }
        let compiled = self.compile(STEPS[index])?;
        Ok(self.compiled[index].get_or_init(|| compiled))
    }

    fn compile(&self, steps: usize) -> Result<fancy_regex::Regex, SearchError> {
        let compiled = RegexBuilder::new(&self.text)
            .case_insensitive(self.options.case_insensitive)
            .multi_line(self.options.multi_line)
            .dot_matches_new_line(self.options.dot_all)
            .backtrack_limit(steps)
            .delegate_size_limit(COMPILED_BYTES)
            .delegate_dfa_size_limit(COMPILED_BYTES)
            .build();
        Ok(compiled?)
    }
}

/// Cuts off the verbs with which a PCRE pattern asks for Unicode, and tells whether it does for classes of characters.
fn without_verbs(pattern: &str) -> (&str, bool) {
    let (mut rest, mut is_unicode) = (pattern, false);
    while let Some((verb, next)) = ["(*UTF8)", "(*UTF)", "(*UCP)"]
        .iter()
        .find_map(|verb| Some((*verb, rest.strip_prefix(verb)?)))
    {
        is_unicode |= verb == "(*UCP)";
        rest = next;
    }
    (rest, is_unicode)
}

#[cfg(test)]
mod tests;
