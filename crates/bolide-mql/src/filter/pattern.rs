//! Regular expressions in filters, with MongoDB's errors.

use crate::error::{Error, Result};
use crate::value::regex::{Options, Regex};

/// A compiled regular expression and the texts that it was made from.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    regex: Regex,
    pattern: String,
    options: String,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// 51108 for an unknown option, 51091 for a bad or too large pattern, `BadValue` for a NUL.
    pub(super) fn compile(pattern: &str, options: &str) -> Result<Pattern> {
        if pattern.contains('\0') {
            return Err(Error::bad_value(
                "Regular expression cannot contain an embedded null byte",
            ));
        }
        let parsed = Options::parse(options);
        let parsed = parsed.map_err(|option| Error::new(51108, format!("invalid flag in regex options: {option}")))?;
        let regex = Regex::new(pattern, parsed);
        Ok(Pattern {
            regex: regex.map_err(|reason| Error::new(51091, format!("Regular expression is invalid: {reason}")))?,
            pattern: pattern.to_owned(),
            options: options.to_owned(),
        })
    }

    /// Tells whether the pattern occurs in a text.
    ///
    /// # Errors
    /// 51156 if the search takes too long.
    pub(super) fn is_match(&self, text: &str) -> Result<bool> {
        let found = self.regex.is_match(text);
        found.map_err(|error| {
            let text = format!("Error occurred while executing regular expression: {error}");
            Error::new(51156, text)
        })
    }

    /// Returns the pattern and the options that it was made from.
    pub(super) fn texts(&self) -> (&str, &str) {
        (&self.pattern, &self.options)
    }

    /// Tells whether the texts that it was made from are these.
    pub(super) fn is_made_from(&self, pattern: &str, options: &str) -> bool {
        self.pattern == pattern && self.options == options
    }
}
