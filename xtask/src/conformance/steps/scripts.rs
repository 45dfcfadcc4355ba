//! Steps that do several things in one transaction: batches and stored procedures.

use serde_json::{Map, Value, json};
use ureq::http::Method;

use super::answer;
use crate::Result;
use crate::conformance::expect::StepResult;
use crate::conformance::scenario::{Batch, BatchOperation, StoredProcedure};
use crate::conformance::session::Session;
use crate::conformance::wire::{Request, Target};

/// The id of a scenario's script; it is deleted after each call.
const PROCEDURE: &str = "procedure";

/// Runs a transactional batch; `results` are the statuses of its operations.
pub fn batch(session: &Session, batch: &Batch) -> Result<StepResult> {
    let operations = batch.ops.iter().map(operation).collect::<Result<Vec<Value>>>()?;
    let feed = Target::feed(&session.container(&batch.container), "docs");
    let request = Request::signed(Method::POST, feed)
        .header("x-ms-cosmos-is-batch-request", "True")
        .header("x-ms-cosmos-batch-atomic", "True")
        .header("x-ms-cosmos-batch-ordered", "True")
        .partition_key(&batch.pk)
        .json(&Value::Array(operations));
    let response = session.client.send(request)?;
    let body = response.json()?;
    let statuses: Vec<Value> = body
        .as_array()
        .into_iter()
        .flatten()
        .map(|result| result["statusCode"].clone())
        .collect();
    Ok(answer(&response).with("results", statuses))
}

/// An operation in the format of the wire.
fn operation(operation: &BatchOperation) -> Result<Value> {
    let kind = match operation.op.as_str() {
        "create" => "Create",
        "upsert" => "Upsert",
        "replace" => "Replace",
        "patch" => "Patch",
        "read" => "Read",
        "delete" => "Delete",
        other => return Err(format!("unknown operation in a batch. op=`{other}`").into()),
    };
    let mut wire = Map::from_iter([("operationType".to_owned(), json!(kind))]);
    wire.extend(operation.id.as_ref().map(|id| ("id".to_owned(), json!(id))));
    wire.extend(
        operation
            .body
            .as_ref()
            .map(|body| ("resourceBody".to_owned(), json!(body))),
    );
    wire.extend(
        operation
            .ops
            .as_ref()
            .map(|ops| ("resourceBody".to_owned(), json!({ "operations": ops }))),
    );
    Ok(Value::Object(wire))
}

/// Registers a script, executes it and deletes it.
pub fn stored_procedure(session: &Session, procedure: &StoredProcedure) -> Result<StepResult> {
    let [database, container] = session.container(&procedure.container);
    let name = [database, container, ("sprocs", PROCEDURE)];
    let script = json!({"id": PROCEDURE, "body": procedure.js});
    let registered = session
        .client
        .send(Request::signed(Method::POST, Target::feed(&[database, container], "sprocs")).json(&script))?;
    if !registered.succeeded() {
        return Ok(answer(&registered));
    }
    let execute = Request::signed(Method::POST, Target::instance(&name))
        .partition_key(&procedure.pk)
        .json(&json!([]));
    let executed = session.client.send(execute)?;
    session
        .client
        .send(Request::signed(Method::DELETE, Target::instance(&name)))?;
    Ok(answer(&executed).with("value", executed.json()?))
}

#[cfg(test)]
mod tests;
