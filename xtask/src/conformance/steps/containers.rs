//! Container steps, and the short form of definitions in scenarios.

use serde_json::{Map, Value, json};
use ureq::http::Method;

use super::{answer, resource};
use crate::Result;
use crate::conformance::expect::StepResult;
use crate::conformance::scenario::{ContainerDefinition, ContainerId, OfContainer};
use crate::conformance::session::Session;
use crate::conformance::wire::{Request, Target};

/// Retention of all versions in scenarios that use it, in minutes: longer than the time of any scenario.
const RETENTION_MINUTES: u32 = 60 * 24 * 7;

/// The request that creates a scenario's database.
pub fn create_database(id: &str) -> Request {
    Request::signed(Method::POST, Target::feed(&[], "dbs")).json(&json!({ "id": id }))
}

/// Creates a container and then sets its pacing, which is not part of the definition.
pub fn create(session: &Session, container: &ContainerDefinition) -> Result<StepResult> {
    let feed = Target::feed(&[("dbs", &session.database)], "colls");
    let answer = send(
        session,
        Request::signed(Method::POST, feed).json(&definition(container)),
    )?;
    if answer.succeeded() {
        set_pacing(session, container)?;
    }
    Ok(answer)
}

pub fn replace(session: &Session, container: &ContainerDefinition) -> Result<StepResult> {
    send(
        session,
        on_container(session, Method::PUT, &container.id).json(&definition(container)),
    )
}

pub fn read(session: &Session, container: &ContainerId) -> Result<StepResult> {
    send(session, on_container(session, Method::GET, &container.id))
}

pub fn delete(session: &Session, container: &ContainerId) -> Result<StepResult> {
    send(session, on_container(session, Method::DELETE, &container.id))
}

fn on_container(session: &Session, method: Method, id: &str) -> Request {
    Request::signed(method, Target::instance(&session.container(id)))
}

/// Scenarios name the indexing mode as a property of the container, in what they expect as well as in what they send.
fn send(session: &Session, request: Request) -> Result<StepResult> {
    let mut answer = resource(&session.client.send(request)?)?;
    if let Some(Value::Object(body)) = answer.fields.get_mut("body") {
        let mode = body
            .get("indexingPolicy")
            .and_then(|policy| policy.get("indexingMode"))
            .cloned();
        body.extend(mode.map(|mode| ("indexingMode".to_owned(), mode)));
    }
    Ok(answer)
}

/// Reads the number of items from the resource usage header.
pub fn usage(session: &Session, of: &OfContainer) -> Result<StepResult> {
    let request = on_container(session, Method::GET, &of.container).header("x-ms-documentdb-populatequotainfo", "True");
    let response = session.client.send(request)?;
    let count = response.header("x-ms-resource-usage").and_then(documents_count);
    Ok(answer(&response).with("documentsCount", count))
}

/// The figure in `documentSize=0;documentsSize=1;documentsCount=2;…`.
fn documents_count(usage: &str) -> Option<u64> {
    usage
        .split(';')
        .find_map(|figure| figure.strip_prefix("documentsCount=")?.parse().ok())
}

fn set_pacing(session: &Session, container: &ContainerDefinition) -> Result<()> {
    let Some(pacing) = &container.pacing else { return Ok(()) };
    let path = format!("dbs/{}/colls/{}/throughput", session.database, container.id);
    let response = session
        .client
        .send(Request::admin(Method::PUT, &path).json(&Value::Object(pacing.clone())))?;
    response.require("the throughput is not set")
}

/// The body on the wire. Properties that the scenario does not name are not sent; so a replace without `defaultTtl` removes it.
fn definition(container: &ContainerDefinition) -> Value {
    let mut body = Map::new();
    body.insert("id".to_owned(), json!(container.id));
    body.insert(
        "partitionKey".to_owned(),
        json!({"paths": ["/pk"], "kind": "Hash", "version": 2}),
    );
    let sent_as_given = [
        ("defaultTtl", &container.default_ttl),
        ("analyticalStorageTtl", &container.analytical_storage_ttl),
        ("ttlPropertyPath", &container.ttl_property_path),
    ];
    for (name, value) in sent_as_given {
        body.extend(value.clone().map(|value| (name.to_owned(), value)));
    }
    body.extend(indexing_policy(container).map(|policy| ("indexingPolicy".to_owned(), policy)));
    if !container.unique_keys.is_empty() {
        let keys: Vec<Value> = container
            .unique_keys
            .iter()
            .map(|path| json!({"paths": [path]}))
            .collect();
        body.insert("uniqueKeyPolicy".to_owned(), json!({ "uniqueKeys": keys }));
    }
    if container.avad {
        body.insert(
            "changeFeedPolicy".to_owned(),
            json!({ "retentionDuration": RETENTION_MINUTES }),
        );
    }
    body.extend(container.raw.clone());
    Value::Object(body)
}

fn indexing_policy(container: &ContainerDefinition) -> Option<Value> {
    let mut policy = Map::new();
    if let Some(mode) = &container.indexing_mode {
        policy.insert("indexingMode".to_owned(), json!(mode));
        // The mode none is accepted only together with this.
        if mode.eq_ignore_ascii_case("none") {
            policy.insert("automatic".to_owned(), json!(false));
        }
    }
    if container.exclude_all {
        policy.insert("includedPaths".to_owned(), json!([]));
        policy.insert("excludedPaths".to_owned(), json!([{"path": "/*"}]));
    } else if !container.excluded_paths.is_empty() {
        let paths: Vec<Value> = container
            .excluded_paths
            .iter()
            .map(|path| json!({"path": path}))
            .collect();
        policy.insert("includedPaths".to_owned(), json!([{"path": "/*"}]));
        policy.insert("excludedPaths".to_owned(), Value::Array(paths));
    }
    (!policy.is_empty()).then_some(Value::Object(policy))
}

#[cfg(test)]
mod tests;
