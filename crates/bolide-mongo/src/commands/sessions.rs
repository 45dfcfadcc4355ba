//! `startSession`, `refreshSessions`, `endSessions`, `killSessions`, `killAllSessions`, `killAllSessionsByPattern`.
//!
//! Source: mongo.md §6, §7.

use std::sync::Arc;

use bolide_mql::{Code, Error, Result};
use bson::raw::RawBsonRef;
use bson::spec::BinarySubtype;
use bson::{Binary, RawArray, RawDocument, rawdoc};
use uuid::Uuid;

use super::arguments::{Arguments, wrong_type};
use super::context::{CommandContext, Reply};
use super::global::session_uuid;
use crate::limits;
use crate::sessions::SessionId;

/// `{startSession: 1}` → `{id: {id}, timeoutMinutes}`.
pub async fn start(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    let id = Uuid::new_v4();
    let user = context.user.clone();
    context.state.sessions.touch(&SessionId { id, user })?;
    let id = Binary {
        subtype: BinarySubtype::Uuid,
        bytes: id.as_bytes().to_vec(),
    };
    let minutes = i32::try_from(limits::SESSION_IDLE.as_secs() / 60).unwrap_or(i32::MAX);
    Ok(rawdoc! { "id": { "id": id }, "timeoutMinutes": minutes }.into())
}

/// `{refreshSessions: [{id}]}` → `{}`.
pub async fn refresh(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    for session in named(context, &arguments)? {
        context.state.sessions.touch(&session)?;
    }
    arguments.finish()?;
    Ok(Reply::default())
}

/// `{endSessions: [{id}]}` → `{}`.
pub async fn end(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    let sessions = named(context, &arguments)?;
    arguments.finish()?;
    end_all(context, sessions);
    Ok(Reply::default())
}

/// `{killSessions: [{id}]}` → `{}`; without ids, all sessions of the sender.
pub async fn kill(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    let mut sessions = named(context, &arguments)?;
    arguments.finish()?;
    if sessions.is_empty() {
        sessions = context.state.sessions.end_all(context.user.as_deref());
    }
    end_all(context, sessions);
    Ok(Reply::default())
}

/// `{killAllSessions: [{user, db}]}` → `{}`; without users, the sessions of all.
pub async fn kill_all(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    let users = documents("killAllSessions", array("killAllSessions", &arguments)?)?;
    arguments.finish()?;
    let mut sessions = Vec::new();
    if users.is_empty() {
        sessions = context.state.sessions.end_all(None);
    }
    for user in users {
        let mut fields = Arguments::of_document("killAllSessions", user)?;
        let name = fields.string("user")?;
        let name = fields.required("user", name)?;
        fields.string("db")?;
        fields.finish()?;
        sessions.extend(context.state.sessions.end_all(Some(name)));
    }
    end_all(context, sessions);
    Ok(Reply::default())
}

/// `{killAllSessionsByPattern: [{lsid?, users?}]}` → `{}`; without patterns, the sessions of all.
pub async fn kill_all_by_pattern(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    let command = "killAllSessionsByPattern";
    let patterns = documents(command, array(command, &arguments)?)?;
    arguments.finish()?;
    let mut sessions = Vec::new();
    if patterns.is_empty() {
        sessions = context.state.sessions.end_all(None);
    }
    for pattern in patterns {
        let mut fields = Arguments::of_document(command, pattern)?;
        match (fields.document("lsid")?, fields.array("users")?) {
            (Some(lsid), None) => sessions.push(session(context, lsid)?),
            (None, None) => sessions.extend(context.state.sessions.end_all(None)),
            _ => {
                return Err(Error::new(
                    Code::NOT_IMPLEMENTED,
                    "a pattern with users is not supported",
                ));
            }
        }
        fields.finish()?;
    }
    end_all(context, sessions);
    Ok(Reply::default())
}

/// Ends sessions and what belongs to them.
fn end_all(context: &CommandContext<'_>, sessions: Vec<SessionId>) {
    for session in sessions {
        context.state.sessions.end(&session);
        context.state.cursors.end_session(&session);
    }
}

/// The sessions in the array that is the value of the command.
fn named(context: &CommandContext<'_>, arguments: &Arguments<'_>) -> Result<Vec<SessionId>> {
    let name = context.command.name;
    let documents = documents(name, array(name, arguments)?)?;
    documents.into_iter().map(|lsid| session(context, lsid)).collect()
}

fn session(context: &CommandContext<'_>, lsid: &RawDocument) -> Result<SessionId> {
    let id = match lsid.get("id") {
        Ok(Some(id)) => session_uuid("lsid.id", id)?,
        _ => {
            return Err(Error::new(
                40414,
                "BSON field 'lsid.id' is missing but a required field",
            ));
        }
    };
    let user: Option<Arc<str>> = context.user.clone();
    Ok(SessionId { id, user })
}

fn array<'a>(name: &str, arguments: &Arguments<'a>) -> Result<&'a RawArray> {
    match arguments.first() {
        Some(RawBsonRef::Array(array)) => Ok(array),
        other => Err(wrong_type(
            &format!("{name}.{name}"),
            other.unwrap_or(RawBsonRef::Null),
            "type 'array'",
        )),
    }
}

fn documents<'a>(name: &str, array: &'a RawArray) -> Result<Vec<&'a RawDocument>> {
    let mut documents = Vec::new();
    for element in array {
        match element {
            Ok(RawBsonRef::Document(document)) if documents.len() < limits::SESSIONS_PER_COMMAND => {
                documents.push(document);
            }
            Ok(RawBsonRef::Document(_)) => {
                let text = format!("Too many ids found. Limit is {}", limits::SESSIONS_PER_COMMAND);
                return Err(Error::new(Code::FAILED_TO_PARSE, text));
            }
            Ok(other) => return Err(wrong_type(&format!("{name}.{name}"), other, "type 'object'")),
            Err(error) => return Err(Error::new(Code::INVALID_BSON, error.to_string())),
        }
    }
    Ok(documents)
}
