//! Stored procedures, triggers and user-defined functions (cosmos-rest §§11.1, 11.2).

use std::sync::Arc;

use bolide_core::{
    Account, ChargedResult, Container, ExecuteProcedure, Script, ScriptDraft, ScriptKind, ScriptName, TriggerFires,
};
use bolide_model::document::parse_json_body;
use bolide_model::rid::{ChildKind, ChildRid};
use bolide_model::{Error, Result};
use bytes::Bytes;
use http::StatusCode;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::data_plane::{add_container_headers, add_quota_headers, map};
use super::if_match;
use super::metadata::{Feed, Ids};
use crate::addressing;
use crate::request::Call;
use crate::routes::Place;
use crate::status::Failure;
use crate::wire::{Reply, body, headers, scope};

/// What of a log is escaped in its header: everything but what needs it nowhere.
const LOG_ESCAPES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How a kind of script looks on the wire.
struct Wire {
    kind: ScriptKind,
    child: ChildKind,
    /// Keyword of its paths.
    keyword: &'static str,
    /// Name of the array of its feed.
    array: &'static str,
}

const PROCEDURES: Wire = Wire {
    kind: ScriptKind::StoredProcedure,
    child: ChildKind::StoredProcedure,
    keyword: "sprocs",
    array: "StoredProcedures",
};
const TRIGGERS: Wire = Wire {
    kind: ScriptKind::Trigger,
    child: ChildKind::Trigger,
    keyword: "triggers",
    array: "Triggers",
};
const FUNCTIONS: Wire = Wire {
    kind: ScriptKind::UserDefinedFunction,
    child: ChildKind::UserDefinedFunction,
    keyword: "udfs",
    array: "UserDefinedFunctions",
};

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, Failure> {
    let (container, wire) = place(call)?;
    let draft = draft(wire, call.decoded(|| body::object(call.body)).await?)?;
    let is_upsert = headers::flag(call.headers(), &headers::IS_UPSERT);
    let (script, is_new) = call
        .account()
        .create_script(&call.ctx, &container, wire.kind, draft, is_upsert)
        .await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(reply(call, &container, status, wire, &script))
}

pub(super) async fn list(call: &Call<'_>) -> Result<Reply, Failure> {
    let (container, wire) = place(call)?;
    let parent = container.rid().to_string();
    let ids = Ids {
        parse: ChildRid::parse,
        of: |script: &Arc<Script>| script.rid,
    };
    let shape = move |script: &Arc<Script>| to_json(wire, script);
    feed(wire, &parent)
        .list(call, ids, shape, move |account| {
            Ok(account.list_scripts(&container, wire.kind))
        })
        .await
}

pub(super) async fn query(call: &Call<'_>) -> Result<Reply, Failure> {
    let (container, wire) = place(call)?;
    let parent = container.rid().to_string();
    let gather = move |account: &Account, each: &mut dyn FnMut(&Value) -> Result<()>| {
        let scripts = account.list_scripts(&container, wire.kind);
        scripts.iter().try_for_each(|script| each(&to_json(wire, script)))
    };
    feed(wire, &parent).query(call, gather).await
}

pub(super) fn read(call: &Call<'_>) -> Result<Reply, Failure> {
    let (container, wire) = place(call)?;
    let script = call
        .account()
        .script(&container, wire.kind, &name(call, &container, wire))?;
    Ok(reply(call, &container, StatusCode::OK, wire, &script))
}

pub(super) async fn replace(call: &Call<'_>) -> Result<Reply, Failure> {
    let (container, wire) = place(call)?;
    let draft = draft(wire, call.decoded(|| body::object(call.body)).await?)?;
    let name = name(call, &container, wire);
    let if_match = if_match(call.headers())?;
    let script = call
        .account()
        .replace_script(&call.ctx, &container, wire.kind, &name, draft, if_match.as_deref())
        .await?;
    Ok(reply(call, &container, StatusCode::OK, wire, &script))
}

pub(super) async fn delete(call: &Call<'_>) -> Result<Reply, Failure> {
    let (container, wire) = place(call)?;
    let name = name(call, &container, wire);
    let if_match = if_match(call.headers())?;
    call.account()
        .delete_script(&call.ctx, &container, wire.kind, &name, if_match.as_deref())
        .await?;
    let mut reply = Reply::empty(StatusCode::NO_CONTENT);
    add_container_headers(&mut reply, call, &container);
    add_quota_headers(&mut reply);
    Ok(reply)
}

/// Executes a stored procedure. Its answer is whatever body it leaves; the log comes as a header, percent-encoded.
pub(super) async fn execute(call: &Call<'_>, container: &Arc<Container>) -> ChargedResult<Reply> {
    let execute = ExecuteProcedure {
        name: name(call, container, &PROCEDURES),
        partition_key: scope::one_key(call.headers(), container)?,
        arguments: call.decoded(|| arguments(call.body)).await?,
        is_logging: headers::flag(call.headers(), &headers::SCRIPT_LOGGING),
    };
    let is_logging = execute.is_logging;
    let answer = call.account().execute_procedure(&call.ctx, container, execute).await?;
    Ok(map(answer, |executed| {
        let mut reply = match executed.body {
            Some(body) => Reply::json(StatusCode::OK, body),
            None => Reply::empty(StatusCode::OK),
        };
        if is_logging {
            let log = utf8_percent_encode(&executed.log, LOG_ESCAPES).to_string();
            reply.text(&headers::SCRIPT_LOG, log);
        }
        reply
    }))
}

/// The arguments of a stored procedure: a JSON array, what `Function.apply` takes for one (an object with a `length`, null), or nothing.
fn arguments(body: &Bytes) -> Result<String> {
    if body.is_empty() {
        return Ok("[]".to_owned());
    }
    match parse_json_body(body)? {
        arguments @ (Value::Array(_) | Value::Object(_) | Value::Null) => Ok(arguments.to_string()),
        _ => Err(Error::bad_request(
            "the body of an execution must be a JSON array of the stored procedure's arguments",
        )),
    }
}

/// The container of a path, and the kind of script it leads to.
fn place(call: &Call<'_>) -> Result<(Arc<Container>, &'static Wire)> {
    let wire = match call.route.place {
        Place::Scripts(ScriptKind::Trigger) | Place::Script(ScriptKind::Trigger) => &TRIGGERS,
        Place::Scripts(ScriptKind::UserDefinedFunction) | Place::Script(ScriptKind::UserDefinedFunction) => &FUNCTIONS,
        _ => &PROCEDURES,
    };
    Ok((addressing::parent_container(call.account(), &call.route)?, wire))
}

fn name(call: &Call<'_>, container: &Container, wire: &Wire) -> ScriptName {
    addressing::script(container, wire.child, &call.route.leaf)
}

fn feed<'f>(wire: &Wire, parent: &'f str) -> Feed<'f> {
    Feed {
        array: wire.array,
        parent,
    }
}

/// Reads a script as clients send it.
fn draft(wire: &Wire, members: Map<String, Value>) -> Result<ScriptDraft> {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let mut needed = vec!["id", "body"];
    if wire.kind == ScriptKind::Trigger {
        needed.extend(["triggerType", "triggerOperation"]);
    }
    let missing: String = needed
        .iter()
        .filter(|name| text(name).is_none())
        .map(|name| format!("{name}; "))
        .collect();
    let (Some(id), Some(source), true) = (text("id"), text("body"), missing.is_empty()) else {
        return Err(Error::bad_request(format!(
            "The input content is invalid because the required properties - '{missing}' - are missing or no strings"
        )));
    };
    let fires = match (text("triggerType"), text("triggerOperation")) {
        (Some(time), Some(operation)) if wire.kind == ScriptKind::Trigger => Some(fires(time, operation)?),
        _ => None,
    };
    Ok(ScriptDraft {
        id: id.to_owned(),
        body: source.into(),
        fires,
    })
}

fn fires(time: &str, operation: &str) -> Result<TriggerFires> {
    TriggerFires::parse(time, operation).map_err(|unknown_one| match unknown_one {
        0 => unknown("triggerType", time, "Pre, Post"),
        _ => unknown(
            "triggerOperation",
            operation,
            "All, Create, Update, Delete, Replace, Upsert",
        ),
    })
}

fn unknown(name: &str, value: &str, known: &str) -> Error {
    Error::bad_request(format!(
        "One of the specified inputs is invalid: `{name}` must be one of {known}. value=`{}`",
        bolide_model::error::excerpt(value)
    ))
}

fn reply(call: &Call<'_>, container: &Container, status: StatusCode, wire: &Wire, script: &Script) -> Reply {
    let mut reply = Reply::value(status, &to_json(wire, script)).etag(script.etag);
    add_container_headers(&mut reply, call, container);
    add_quota_headers(&mut reply);
    reply
}

fn to_json(wire: &Wire, script: &Script) -> Value {
    let container = script.rid.container;
    let mut members = json!({
        "id": script.id,
        "body": &*script.body,
    });
    if let Some(fires) = &script.fires {
        let [time, operation] = fires.spelled();
        members["triggerType"] = time.into();
        members["triggerOperation"] = operation.into();
    }
    members["_rid"] = script.rid.to_string().into();
    members["_self"] = format!("{}{}/{}/", container.self_link(), wire.keyword, script.rid).into();
    members["_etag"] = script.etag.to_string().into();
    members["_ts"] = script.last_modified.0.into();
    members
}
