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
        sessions = context.state.sessions.end_all(|session| session.user == context.user);
    }
    end_all(context, sessions);
    Ok(Reply::default())
}

/// `{killAllSessions: [{user, db}]}` → `{}`; without users, the sessions of all.
pub async fn kill_all(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    let users = documents("killAllSessions", array("killAllSessions", &arguments)?)?;
    arguments.finish()?;
    let users = users.into_iter().map(|user| user_of("killAllSessions", user));
    let users: Vec<(&str, &str)> = users.collect::<Result<_>>()?;
    let is_chosen = |session: &SessionId| {
        let is_of = |(database, user): &(&str, &str)| session.is_of(database, user);
        users.is_empty() || users.iter().any(is_of)
    };
    end_all(context, context.state.sessions.end_all(is_chosen));
    Ok(Reply::default())
}

/// Which sessions a pattern chooses: those for which all of its fields hold.
struct Pattern<'a> {
    id: Option<Uuid>,
    /// What stands for the user in the ids of sessions.
    digest: Option<&'a [u8]>,
    users: Option<Vec<(&'a str, &'a str)>>,
}

impl<'a> Pattern<'a> {
    fn read(document: &'a RawDocument) -> Result<Pattern<'a>> {
        let command = "killAllSessionsByPattern";
        let mut fields = Arguments::of_document(command, document)?;
        let lsid = fields.document("lsid")?;
        let (mut id, mut digest) = (None, fields.binary("uid")?);
        if let Some(lsid) = lsid {
            let mut fields = Arguments::of_document("lsid", lsid)?;
            let found = fields.value("id");
            id = Some(session_uuid("lsid.id", fields.required("id", found)?)?);
            digest = fields.binary("uid")?.or(digest);
            fields.finish()?;
        }
        let users = fields.array("users")?.map(|users| -> Result<Vec<_>> {
            let users = documents(command, users)?.into_iter();
            users.map(|user| user_of(command, user)).collect()
        });
        if fields.array("roles")?.is_some() {
            let text = "a pattern with roles is not supported";
            return Err(Error::new(Code::NOT_IMPLEMENTED, text));
        }
        fields.finish()?;
        Ok(Pattern {
            id,
            digest,
            users: users.transpose()?,
        })
    }

    fn chooses(&self, session: &SessionId) -> bool {
        let is_of = |(database, user): &(&str, &str)| session.is_of(database, user);
        self.id.is_none_or(|id| id == session.id)
            && self.digest.is_none_or(|digest| session.digest() == digest)
            && self.users.as_ref().is_none_or(|users| users.iter().any(is_of))
    }
}

/// `{killAllSessionsByPattern: [{lsid?, uid?, users?}]}` → `{}`; without patterns, the sessions of all.
pub async fn kill_all_by_pattern(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    let command = "killAllSessionsByPattern";
    let patterns = documents(command, array(command, &arguments)?)?;
    arguments.finish()?;
    let patterns: Vec<Pattern<'_>> = patterns.into_iter().map(Pattern::read).collect::<Result<_>>()?;
    let is_chosen =
        |session: &SessionId| patterns.is_empty() || patterns.iter().any(|pattern| pattern.chooses(session));
    end_all(context, context.state.sessions.end_all(is_chosen));
    Ok(Reply::default())
}

/// Reads `{user, db}`; returns the database and the name.
fn user_of<'a>(command: &str, user: &'a RawDocument) -> Result<(&'a str, &'a str)> {
    let mut fields = Arguments::of_document(command, user)?;
    let (name, database) = (fields.string("user")?, fields.string("db")?);
    let (name, database) = (fields.required("user", name)?, fields.required("db", database)?);
    fields.finish()?;
    Ok((database, name))
}

/// Ends sessions and what belongs to them: their cursors, their transactions, and their commands that run.
fn end_all(context: &CommandContext<'_>, sessions: Vec<SessionId>) {
    let state = context.state;
    for session in sessions {
        state.sessions.end(&session);
        state.operations.kill_session(&session, context.running.id());
        state.cursors.end_session(&session);
        state.transactions.end_session(&session);
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

#[cfg(test)]
mod tests;
