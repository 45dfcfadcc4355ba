//! Batches from clients: operations as JSON, or as rows in .NET's binary format.

use bolide_core::BatchOperation;
use bolide_model::document::{Document, Patch, parse_json_body};
use bolide_model::partition_key::PartitionKey;
use bolide_model::{Error, Result};
use bytes::Bytes;
use serde_json::{Map, Value};

use crate::wire::binary_json::{self, TextBudget};
use crate::wire::{BATCH_OPERATIONS, hybrid_row};

/// One operation as sent. An error in it makes this operation fail, and the others according to the mode.
pub(super) struct Sent {
    pub operation: Result<BatchOperation>,
    /// Only in bulk requests.
    pub partition_key: Result<Option<PartitionKey>>,
    /// The client does not want the item back.
    pub is_minimal: bool,
}

impl Sent {
    /// Refuses the operation if it writes a document that fails the check.
    pub fn check(&mut self, check: impl Fn(&Document) -> Result<()>) {
        let written = match &self.operation {
            Ok(
                BatchOperation::Create { document }
                | BatchOperation::Upsert { document, .. }
                | BatchOperation::Replace { document, .. },
            ) => check(document),
            _ => Ok(()),
        };
        if let Err(error) = written {
            self.operation = Err(error);
        }
    }
}

/// The parts of an operation, in either format.
struct Parts {
    kind: String,
    id: Option<String>,
    body: Option<ResourceBody>,
    if_match: Option<String>,
    if_none_match: Option<String>,
}

/// An item or a patch.
enum ResourceBody {
    Value(Value),
    /// JSON text or binary JSON.
    Bytes(Bytes),
}

/// Reads the operations of a batch or bulk request.
///
/// # Errors
/// `BadRequest` for the request as a whole: not an array or malformed rows, no operations, too many.
pub(super) fn operations(body: &Bytes) -> Result<Vec<Sent>> {
    let sent: Vec<Sent> = if hybrid_row::is_rows(body) {
        let rows = hybrid_row::operations(body, BATCH_OPERATIONS)?;
        let mut text_budget = TextBudget::of_batch();
        rows.into_iter().map(|row| sent_row(row, &mut text_budget)).collect()
    } else {
        let operations = array(body)?;
        operations.into_iter().map(sent_value).collect()
    };
    if sent.is_empty() {
        return Err(Error::bad_request("Batch request has no operations."));
    }
    Ok(sent)
}

fn array(body: &Bytes) -> Result<Vec<Value>> {
    let Value::Array(operations) = parse_json_body(&binary_json::to_text(body)?)? else {
        return Err(Error::bad_request("the body of a batch must be an array of operations"));
    };
    if operations.len() > BATCH_OPERATIONS {
        return Err(Error::bad_request(format!(
            "Batch request has more operations than what is supported. operations={} limit={BATCH_OPERATIONS}",
            operations.len()
        )));
    }
    Ok(operations)
}

fn sent_value(operation: Value) -> Sent {
    let Value::Object(mut members) = operation else {
        let error = Error::bad_request("each operation of a batch must be an object");
        return Sent {
            operation: Err(error),
            partition_key: Ok(None),
            is_minimal: false,
        };
    };
    let is_minimal = members.get("minimalReturnPreference") == Some(&Value::Bool(true));
    let partition_key = partition_key(&members);
    Sent {
        operation: parts(&mut members).and_then(|parts| parts.read(&mut TextBudget::of_batch())),
        partition_key,
        is_minimal,
    }
}

fn sent_row(row: hybrid_row::Operation, text_budget: &mut TextBudget) -> Sent {
    let is_minimal = row.is_minimal;
    let partition_key = row.partition_key.as_deref().map(PartitionKey::from_header).transpose();
    let operation = row.check().and_then(|()| {
        let parts = Parts {
            kind: row.kind,
            id: row.id,
            body: row.body.map(ResourceBody::Bytes),
            if_match: row.if_match,
            if_none_match: row.if_none_match,
        };
        parts.read(text_budget)
    });
    Sent {
        operation,
        partition_key,
        is_minimal,
    }
}

fn parts(members: &mut Map<String, Value>) -> Result<Parts> {
    let missing = || Error::bad_request("`operationType` is missing");
    Ok(Parts {
        kind: text(members, "operationType")?.ok_or_else(missing)?,
        id: text(members, "id")?,
        body: members.remove("resourceBody").map(ResourceBody::Value),
        if_match: text(members, "ifMatch")?,
        if_none_match: text(members, "ifNoneMatch")?,
    })
}

impl Parts {
    fn read(self, text_budget: &mut TextBudget) -> Result<BatchOperation> {
        let Parts {
            kind,
            id,
            body,
            if_match,
            if_none_match,
        } = self;
        let id = || id.ok_or_else(|| Error::bad_request("`id` of a batch operation is missing"));
        let body = || body.ok_or_else(|| Error::bad_request("`resourceBody` of a batch operation is missing"));
        Ok(match kind.as_str() {
            "Create" => BatchOperation::Create {
                document: body()?.document(text_budget)?,
            },
            "Upsert" => BatchOperation::Upsert {
                document: body()?.document(text_budget)?,
                if_match,
            },
            "Replace" => BatchOperation::Replace {
                id: id()?,
                document: body()?.document(text_budget)?,
                if_match,
            },
            "Patch" => BatchOperation::Patch {
                id: id()?,
                patch: body()?.patch(text_budget)?,
                if_match,
            },
            "Delete" => BatchOperation::Delete { id: id()?, if_match },
            // In a batch, either condition on a read leaves out the body of a version that the client has. Source: .NET's suite.
            "Read" => BatchOperation::Read {
                id: id()?,
                if_none_match: if_none_match.or(if_match),
            },
            other => {
                return Err(Error::bad_request(format!(
                    "unknown `operationType` of a batch operation. value=`{other}`"
                )));
            }
        })
    }
}

impl ResourceBody {
    fn document(self, text_budget: &mut TextBudget) -> Result<Document> {
        match self {
            ResourceBody::Value(value) => Document::from_value(value),
            ResourceBody::Bytes(bytes) => Document::parse(&text_budget.text_of(&bytes)?),
        }
    }

    fn patch(self, text_budget: &mut TextBudget) -> Result<Patch> {
        match self {
            ResourceBody::Value(value) => Patch::from_value(&value),
            ResourceBody::Bytes(bytes) => Patch::parse(&text_budget.text_of(&bytes)?),
        }
    }
}

/// A partition key in an operation is JSON in a string; SDKs that have already parsed it send the array.
fn partition_key(members: &Map<String, Value>) -> Result<Option<PartitionKey>> {
    match members.get("partitionKey") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(json)) => PartitionKey::from_header(json).map(Some),
        Some(array) => PartitionKey::from_header(&array.to_string()).map(Some),
    }
}

fn text(members: &Map<String, Value>, name: &str) -> Result<Option<String>> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Error::bad_request(format!(
            "`{name}` of a batch operation must be a string"
        ))),
    }
}

#[cfg(test)]
mod tests;
