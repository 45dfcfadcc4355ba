//! Errors of queries, and the JSON in which the service reports them.

use std::fmt;

use serde_json::{Value as Json, json};

use crate::fuel::Interrupt;

/// A half-open range of offsets into the query text.
///
/// In bytes while a query is compiled. In UTF-16 code units, as the service counts, in errors returned by [`crate::Query::compile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// Offset of the first unit.
    pub start: usize,
    /// Offset after the last unit.
    pub end: usize,
}

impl Span {
    /// The smallest span that covers both.
    pub fn to(self, end: Span) -> Span {
        Span {
            start: self.start,
            end: end.end,
        }
    }
}

/// One error in the text of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// A code such as `SC1001` or `2206`; `None` if the service's code is not published.
    pub code: Option<&'static str>,
    /// The message of the service.
    pub message: String,
    /// The location in the text.
    pub location: Option<Span>,
}

/// Why a query does not compile or cannot continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryError {
    /// The text is wrong; the client must change it.
    Compile(Vec<Diagnostic>),
    /// The planner or the engine refuses the query, without a code or location.
    Refused(String),
    /// The query needs more memory than it may use.
    TooLarge {
        /// The limit, in bytes.
        limit_bytes: usize,
    },
    /// An expression makes a value larger than the limit.
    ValueTooLarge {
        /// The limit, in bytes.
        limit_bytes: usize,
    },
    /// FROM, JOIN and subqueries visit more rows for one item than allowed.
    TooManyRows {
        /// The limit, in rows.
        limit: u64,
    },
    /// The execution was ended: nobody waits for it, or it needs more time or work than allowed.
    Interrupted(Interrupt),
    /// No memory is free for the query now; a retry may succeed.
    OutOfMemory,
    /// The continuation does not belong to this query.
    BadContinuation(String),
    /// An item is not JSON text.
    BadItem(String),
}

/// A result with a [`QueryError`].
pub type Result<T, E = QueryError> = std::result::Result<T, E>;

impl QueryError {
    /// An error with the service's code and a location.
    pub(crate) fn at(code: &'static str, message: impl Into<String>, span: Span) -> QueryError {
        QueryError::Compile(vec![Diagnostic {
            code: Some(code),
            message: message.into(),
            location: Some(span),
        }])
    }

    /// An error whose code is not published.
    pub(crate) fn uncoded(message: impl Into<String>, span: Span) -> QueryError {
        QueryError::Compile(vec![Diagnostic {
            code: None,
            message: message.into(),
            location: Some(span),
        }])
    }

    /// A refusal, in the `{"Errors":[…]}` shape.
    pub(crate) fn refused(message: impl Into<String>) -> QueryError {
        QueryError::Refused(message.into())
    }

    /// The first code, as text.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            QueryError::Compile(list) => list.first().and_then(|d| d.code),
            _ => None,
        }
    }

    /// The first message.
    pub fn message(&self) -> String {
        match self {
            QueryError::Compile(list) => list.first().map(|d| d.message.clone()).unwrap_or_default(),
            QueryError::Refused(message) => message.clone(),
            QueryError::TooLarge { limit_bytes } => {
                format!(
                    "The query needs more memory for its text and constants, groups, distinct values, sorted or ranked rows than it may use. limit={limit_bytes} bytes"
                )
            }
            QueryError::ValueTooLarge { limit_bytes } => {
                format!("The query makes a value that is larger than a value may be. limit={limit_bytes} bytes")
            }
            QueryError::TooManyRows { limit } => {
                format!(
                    "The query goes through more rows of FROM, JOIN and subqueries for one item than it may. limit={limit} rows"
                )
            }
            QueryError::Interrupted(Interrupt::Cancelled) => "The query was ended before it was done.".to_owned(),
            QueryError::Interrupted(Interrupt::DeadlineExceeded) => {
                "The query takes longer than a query may; narrow its filter, or the part of the container it reads.".to_owned()
            }
            QueryError::Interrupted(Interrupt::TooMuchWork) => {
                "The query takes too much work for one item, or its text does: cross joins, long texts and patterns, large arrays and shapes \
                 multiply each other."
                    .to_owned()
            }
            QueryError::OutOfMemory => "The server's memory for queries is used up; try again later.".to_owned(),
            QueryError::BadContinuation(why) => format!("Invalid continuation token: {why}"),
            QueryError::BadItem(why) => format!("A stored item is not valid JSON: {why}"),
        }
    }

    /// The JSON document that the service embeds in its `message`.
    ///
    /// # Shape
    /// `{"errors":[{"severity","location":{"start","end"},"code","message"}]}` for errors in the text; `{"Errors":["…"]}` for refusals of the
    /// planner. A numeric code stays a number.
    ///
    /// Source: cosmos-sql §20.
    pub fn body(&self) -> String {
        match self {
            QueryError::Compile(list) => {
                let errors: Vec<Json> = list.iter().map(Diagnostic::to_json).collect();
                json!({ "errors": errors }).to_string()
            }
            other => json!({ "Errors": [other.message()] }).to_string(),
        }
    }

    /// Converts byte offsets into UTF-16 offsets of the same text.
    pub(crate) fn relocated(mut self, text: &str) -> QueryError {
        if let QueryError::Compile(list) = &mut self {
            for span in list.iter_mut().filter_map(|d| d.location.as_mut()) {
                *span = Span {
                    start: utf16_offset(text, span.start),
                    end: utf16_offset(text, span.end),
                };
            }
        }
        self
    }
}

impl Diagnostic {
    fn to_json(&self) -> Json {
        let mut out = json!({ "severity": "Error" });
        if let Some(span) = self.location {
            out["location"] = json!({ "start": span.start, "end": span.end });
        }
        if let Some(code) = self.code {
            out["code"] = code.parse::<u32>().map_or_else(|_| json!(code), |number| json!(number));
        }
        out["message"] = json!(self.message);
        out
    }
}

fn utf16_offset(text: &str, byte: usize) -> usize {
    text.char_indices()
        .take_while(|(at, _)| *at < byte)
        .map(|(_, c)| c.len_utf16())
        .sum()
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

impl std::error::Error for QueryError {}
