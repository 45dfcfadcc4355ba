//! What a script is given from outside.

use serde_json::{Value, json};

/// The time of a script. Asked from the script's thread, often.
pub trait Pace: Send + Sync {
    /// Whether the script must end at once.
    fn is_over(&self) -> bool;

    /// Server time, in milliseconds since 1970: what `Date` shows.
    fn now_ms(&self) -> i64;
}

/// Whoever has the documents that a stored procedure or trigger works on.
pub trait Host {
    /// Whether one more operation is accepted: `false` tells the script to return soon, with a continuation of its own.
    fn accepts(&mut self) -> bool;

    /// Carries out one operation.
    ///
    /// # Errors
    /// What the script's callback gets; nothing happened then.
    fn operate(&mut self, operation: Operation) -> Result<Reply, OperationError>;
}

/// A refused operation: what a callback sees as `err.number` and `err.message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationError {
    /// The status that a client would get.
    pub number: u32,
    /// Why.
    pub message: String,
}

/// Names a document, as the link that the script used does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// By a self link: what should be a resource id.
    Rid(String),
    /// By an alternative link: its id.
    Id(String),
}

/// What a script asks for. Documents are JSON texts of objects.
#[derive(Debug, Clone, PartialEq)]
pub enum Operation {
    /// Reads a document.
    Read {
        /// Which one.
        target: Document,
        /// Spare the document if it still is this version.
        if_none_match: Option<String>,
    },
    /// Runs a query over the documents of the script's logical partition.
    Query {
        /// The query.
        text: String,
        /// Names with `@`, and values.
        parameters: Vec<(String, Value)>,
        /// Most rows of the page; `None`: the host decides.
        page_size: Option<usize>,
        /// From an earlier page.
        continuation: Option<String>,
    },
    /// Creates a document.
    Create {
        /// The document.
        document: String,
        /// A document without `id` is refused instead of being given one.
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
        /// Which one.
        target: Document,
        /// The whole new document.
        document: String,
        /// Replace only this version.
        if_match: Option<String>,
    },
    /// Deletes a document.
    Delete {
        /// Which one.
        target: Document,
        /// Delete only this version.
        if_match: Option<String>,
    },
}

/// What an operation comes to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    /// JSON text: the document, or the array of a page; empty where there is none.
    pub resource: String,
    /// Where the next page goes on.
    pub continuation: Option<String>,
    /// The document still is the version that the script knows.
    pub not_modified: bool,
}

impl Operation {
    /// Reads an operation as the prelude writes it. `None` for what it never writes.
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

/// As [`Host`], with operations as the prelude writes them, and answers as it reads them.
pub(crate) trait TextHost {
    /// See [`Host::accepts`].
    fn accepts(&mut self) -> bool;

    /// See [`Host::operate`].
    fn operate(&mut self, operation: String) -> String;
}

/// A host that is told operations by their texts.
pub(crate) struct Parsing<H>(pub H);

impl<H: Host> TextHost for Parsing<H> {
    fn accepts(&mut self) -> bool {
        self.0.accepts()
    }

    fn operate(&mut self, operation: String) -> String {
        to_json(operate(&mut self.0, &operation))
    }
}

/// Carries out an operation that is given by its text.
pub(crate) fn operate(host: &mut (impl Host + ?Sized), text: &str) -> Result<Reply, OperationError> {
    match Operation::parse(text) {
        Some(operation) => host.operate(operation),
        None => Err(OperationError {
            number: 400,
            message: "The operation is malformed.".to_owned(),
        }),
    }
}

/// The answer as the prelude reads it.
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
