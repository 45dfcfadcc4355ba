//! Steps of the MongoDB API: a command, and the reply as JSON with the names that expectations use.

use bson::{Bson, Document};
use serde_json::{Map, Value, json};
use ureq::http::Method;

use crate::Result;
use crate::conformance::expect::{SavedValues, StepResult};
use crate::conformance::mongo;
use crate::conformance::scenario::MongoCommand;
use crate::conformance::session::Session;
use crate::conformance::wire::Request;

/// Not a command: the name under which scenarios turn expiry by document on or off for the account.
const DOCUMENT_TTL: &str = "configureDocumentTtl";

/// Sends a command to the scenario's database.
pub fn run(session: &mut Session, step: &MongoCommand) -> Result<StepResult> {
    if let Some(enabled) = step.cmd.get(DOCUMENT_TTL) {
        return configure_document_ttl(session, enabled);
    }
    let mut command = mongo::document(step.cmd.clone())?;
    if let Some(label) = &step.cursor {
        command.insert("getMore", session.cursor_of(label)?);
    }
    let database = session.database.clone();
    let reply = session.mongo_client()?.run(&database, command)?;
    Ok(result(reply))
}

fn configure_document_ttl(session: &Session, enabled: &Value) -> Result<StepResult> {
    let request = Request::admin(Method::PUT, "settings").json(&json!({ "mongoDocumentTtl": enabled }));
    let response = session.client.send(request)?;
    let result = StepResult {
        message: response.message(),
        ..StepResult::default()
    };
    Ok(result.with("ok", i32::from(response.succeeded())))
}

/// The fields of the reply, with `values` (the first batch, or the values of `distinct`) and `ids` (their `_id`s) beside them.
fn result(reply: Document) -> StepResult {
    let message = reply.get_str("errmsg").ok().map(str::to_owned);
    let cursor = reply
        .get_document("cursor")
        .ok()
        .and_then(|cursor| cursor.get_i64("id").ok());
    let mut fields = match Bson::Document(reply).into_relaxed_extjson() {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    if let Some(values) = values(&fields) {
        let ids: Vec<Value> = values.iter().filter_map(|value| value.get("_id").cloned()).collect();
        let pairs = [("ids", ids), ("values", values)];
        for (name, values) in pairs {
            fields.insert(format!("{name}AnyOrder"), Value::Array(values.clone()));
            fields.insert(name.to_owned(), Value::Array(values));
        }
    }
    StepResult {
        fields,
        kept: SavedValues {
            cursor,
            ..SavedValues::default()
        },
        message,
    }
}

fn values(fields: &Map<String, Value>) -> Option<Vec<Value>> {
    let cursor = fields.get("cursor");
    let batch = cursor.and_then(|cursor| cursor.get("firstBatch").or_else(|| cursor.get("nextBatch")));
    batch.or_else(|| fields.get("values"))?.as_array().cloned()
}

#[cfg(test)]
mod tests;
