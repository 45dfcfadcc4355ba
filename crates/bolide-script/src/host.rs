//! Traits through which a script reaches its host.

use serde_json::{Value, json};

/// The time of a script. Called often, from the script's thread.
pub trait Pace: Send + Sync {
    /// Whether the script must end at once.
    fn is_over(&self) -> bool;

    /// Server time, in milliseconds since 1970: what `Date` shows.
    fn now_ms(&self) -> i64;
}

/// Access to the documents that a stored procedure or trigger works on.
pub trait Host {
    /// Whether one more operation is accepted: `false` tells the script to return soon, with its own continuation.
    fn accepts(&mut self) -> bool;

    /// Carries out one operation.
    ///
    /// # Errors
    /// The error for the script's callback; nothing was changed.
    fn operate(&mut self, operation: Operation) -> Result<Reply, OperationError>;
}

/// A refused operation: a callback sees `err.number` and `err.message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationError {
    /// The status that a client would get.
    pub number: u32,
    /// The reason.
    pub message: String,
}

/// A document, named by the link that the script used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// By a self link: the last segment should be a resource id.
    Rid(String),
    /// By an alternative link: its id.
    Id(String),
}

/// An operation of a script. Documents are JSON texts of objects.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Reads a document.
    Read {
        /// The document.
        target: Document,
        /// Do not return the document if it is still this version.
        if_none_match: Option<String>,
    },
    /// Runs a query over the documents of the script's logical partition.
    Query {
        /// The query.
        text: String,
        /// Names, including `@`, and values.
        parameters: Vec<(String, Value)>,
        /// Maximum rows of the page; `None`: the host decides.
        page_size: Option<usize>,
        /// From an earlier page.
        continuation: Option<String>,
    },
    /// Creates a document.
    Create {
        /// The document.
        document: String,
        /// A document without `id` is refused; otherwise an id is generated.
        is_id_needed: bool,
    },
    /// Creates a document or replaces the one with its id.
    Upsert {
        /// The document.
        document: String,
        /// As in `Create`.
        is_id_needed: bool,
        /// Replace only this version.
        if_match: Option<String>,
    },
    /// Replaces a document.
    Replace {
        /// The document.
        target: Document,
        /// The whole new document.
        document: String,
        /// Replace only this version.
        if_match: Option<String>,
    },
    /// Deletes a document.
    Delete {
        /// The document.
        target: Document,
        /// Delete only this version.
        if_match: Option<String>,
    },
}

/// The result of an operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// JSON text: the document, or the array of a page; may be empty.
    pub resource: String,
    /// The continuation of the next page.
    pub continuation: Option<String>,
    /// The document is still the version that the script knows.
    pub not_modified: bool,
}

impl Operation {
    /// Reads an operation as the prelude writes it. `None` if the prelude cannot have written it.
    pub(crate) fn parse(text: &str) -> Option<Operation> {
        let mut value: Value = serde_json::from_str(text).ok()?;
        let mut take = |name: &str| value.get_mut(name).map(Value::take);
        let kind = take("kind")?;
        let mut string = |name: &str| match take(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        };
        Some(match kind.as_str()? {
            "query" => Operation::Query {
                text: string("query")?,
                continuation: string("continuation"),
                page_size: take("pageSize").and_then(|size| usize::try_from(size.as_i64()?).ok()),
                parameters: take("parameters").map(parameters).unwrap_or_default(),
            },
            "read" => Operation::Read {
                if_none_match: string("ifNoneMatch"),
                target: target(&take("target")?)?,
            },
            "create" => Operation::Create {
                document: string("document")?,
                is_id_needed: take("isIdNeeded") == Some(Value::Bool(true)),
            },
            "upsert" => Operation::Upsert {
                document: string("document")?,
                if_match: string("ifMatch"),
                is_id_needed: take("isIdNeeded") == Some(Value::Bool(true)),
            },
            "replace" => Operation::Replace {
                document: string("document")?,
                if_match: string("ifMatch"),
                target: target(&take("target")?)?,
            },
            "delete" => Operation::Delete {
                if_match: string("ifMatch"),
                target: target(&take("target")?)?,
            },
            _ => return None,
        })
    }
}

fn target(value: &Value) -> Option<Document> {
    let name = value.get("name")?.as_str()?.to_owned();
    match value.get("by")?.as_str()? {
        "rid" => Some(Document::Rid(name)),
        _ => Some(Document::Id(name)),
    }
}

fn parameters(list: Value) -> Vec<(String, Value)> {
    let Value::Array(list) = list else { return Vec::new() };
    list.into_iter()
        .filter_map(|mut parameter| {
            let name = parameter.get("name")?.as_str()?.to_owned();
            Some((name, parameter.get_mut("value").map(Value::take).unwrap_or_default()))
        })
        .collect()
}

/// As [`Host`], with operations and results in the prelude's text format.
pub(crate) trait TextHost {
    /// See [`Host::accepts`].
    fn accepts(&mut self) -> bool;

    /// See [`Host::operate`].
    fn operate(&mut self, operation: String) -> String;
}

/// A host that parses operations from the prelude's text format.
pub(crate) struct Parsing<H>(pub H);

impl<H: Host> TextHost for Parsing<H> {
    fn accepts(&mut self) -> bool {
        self.0.accepts()
    }

    fn operate(&mut self, operation: String) -> String {
        to_json(operate(&mut self.0, &operation))
    }
}

/// Carries out an operation from its text.
pub(crate) fn operate(host: &mut (impl Host + ?Sized), text: &str) -> Result<Reply, OperationError> {
    match Operation::parse(text) {
        Some(operation) => host.operate(operation),
        None => Err(OperationError {
            number: 400,
            message: "The operation is malformed.".to_owned(),
        }),
    }
}

/// The result in the prelude's format.
pub(crate) fn to_json(answer: Result<Reply, OperationError>) -> String {
    let value = match answer {
        Ok(reply) => {
            let mut value = json!({ "resource": reply.resource });
            if let Some(continuation) = reply.continuation {
                value["continuation"] = continuation.into();
            }
            if reply.not_modified {
                value["notModified"] = true.into();
            }
            value
        }
        Err(error) => json!({ "error": { "number": error.number, "message": error.message } }),
    };
    value.to_string()
}
