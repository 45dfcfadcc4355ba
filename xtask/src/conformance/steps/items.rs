//! Item steps: one request each.

use serde_json::{Value, json};
use ureq::http::Method;

use super::resource;
use crate::Result;
use crate::conformance::expect::StepResult;
use crate::conformance::scenario::{ItemBody, ItemDelete, ItemPatch, ItemRead, ItemReplace};
use crate::conformance::session::Session;
use crate::conformance::wire::{Request, Target};

pub fn create(session: &Session, create: &ItemBody) -> Result<StepResult> {
    send(session, put_into(session, create)?)
}

pub fn upsert(session: &Session, upsert: &ItemBody) -> Result<StepResult> {
    send(
        session,
        put_into(session, upsert)?.header("x-ms-documentdb-is-upsert", "true"),
    )
}

pub fn replace(session: &Session, replace: &ItemReplace) -> Result<StepResult> {
    let request = on_item(session, Method::PUT, &replace.container, &replace.id, &replace.pk)
        .optional_header("if-match", session.etag_of(replace.if_match.as_ref())?.as_ref())
        .json(&Value::Object(replace.body.clone()));
    send(session, request)
}

pub fn patch(session: &Session, patch: &ItemPatch) -> Result<StepResult> {
    let operations = json!({ "operations": patch.ops });
    let request = on_item(session, Method::PATCH, &patch.container, &patch.id, &patch.pk)
        .optional_header("if-match", session.etag_of(patch.if_match.as_ref())?.as_ref())
        .text(operations.to_string(), "application/json_patch+json");
    send(session, request)
}

pub fn read(session: &Session, read: &ItemRead) -> Result<StepResult> {
    let request = on_item(session, Method::GET, &read.container, &read.id, &read.pk)
        .optional_header("if-none-match", session.etag_of(read.if_none_match.as_ref())?.as_ref());
    resource(&session.client_of(read.replica)?.send(request)?)
}

pub fn delete(session: &Session, delete: &ItemDelete) -> Result<StepResult> {
    let request = on_item(session, Method::DELETE, &delete.container, &delete.id, &delete.pk)
        .optional_header("if-match", session.etag_of(delete.if_match.as_ref())?.as_ref());
    send(session, request)
}

/// A request that creates or upserts; the partition key is taken from the body, and is undefined if the body has none.
fn put_into(session: &Session, item: &ItemBody) -> Result<Request> {
    let feed = Target::feed(&session.container(&item.container), "docs");
    let partition_key = item.body.get("pk").cloned().unwrap_or_else(|| json!({}));
    Ok(Request::signed(Method::POST, feed)
        .partition_key(&partition_key)
        .optional_header("if-match", session.etag_of(item.if_match.as_ref())?.as_ref())
        .json(&Value::Object(item.body.clone())))
}

fn on_item(session: &Session, method: Method, container: &str, id: &str, partition_key: &Value) -> Request {
    let [database, container] = session.container(container);
    Request::signed(method, Target::instance(&[database, container, ("docs", id)])).partition_key(partition_key)
}

fn send(session: &Session, request: Request) -> Result<StepResult> {
    resource(&session.client.send(request)?)
}
