//! The stages `$listLocalSessions` and `$listSessions`: the sessions of this server, which is the only member.

use bolide_model::UnixMillis;
use bolide_mql::{Code, Error, Result};
use bson::raw::{RawBsonRef, cstr};
use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, RawArray, RawDocument, RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::CommandContext;
use crate::sessions::SessionId;

/// Maximum number of users in the option `users`.
const USERS: usize = 1_000;

/// `{allUsers?: bool, users?: [{user, db}]}` → `{_id: {id, uid}, lastUse, user?}` of each session: of the sender, of some users, or of everybody.
///
/// # Errors
/// Of the options; `Unauthorized` for the sessions of others.
pub fn documents(
    context: &CommandContext<'_>,
    stage: &str,
    options: &RawDocument,
    now: UnixMillis,
) -> Result<Vec<RawDocumentBuf>> {
    let mut fields = Arguments::of_document(stage, options)?;
    let is_of_all = fields.strict_boolean("allUsers")?.unwrap_or(false);
    let users = fields.array("users")?.map(read_users).transpose()?;
    fields.finish()?;
    if is_of_all && users.is_some() {
        let text = format!("{stage} may not specify {{allUsers:true}} and {{users:[...]}} at the same time");
        return Err(Error::new(Code::UNSUPPORTED_FORMAT, text));
    }
    let is_of_sender = |session: &SessionId| session.user == context.user;
    let is_asked = |session: &SessionId| match &users {
        _ if is_of_all => true,
        Some(users) => users.iter().any(|(database, user)| session.is_of(database, user)),
        None => is_of_sender(session),
    };
    if is_of_all || users.is_some() {
        context.require_monitoring()?;
    }
    let sessions = context.state.sessions.all().into_iter();
    let sessions = sessions.filter(|(session, _)| is_asked(session));
    let documents = sessions.map(|(session, last_use)| {
        let idle = context.state.monotonic().since(last_use);
        let millis = i64::try_from(idle.as_millis()).unwrap_or(i64::MAX);
        let mut document = rawdoc! {
            "_id": { "id": uuid_of(&session), "uid": digest_of(&session) },
            "lastUse": DateTime::from_millis(now.0.saturating_sub(millis)),
        };
        if let Some(user) = &session.user {
            document.append(cstr!("user"), &**user);
        }
        document
    });
    Ok(documents.collect())
}

fn read_users(array: &RawArray) -> Result<Vec<(String, String)>> {
    let mut users = Vec::new();
    for user in array {
        let RawBsonRef::Document(user) = user? else {
            return Err(Error::bad_value("users must be an array of {user, db}"));
        };
        let mut fields = Arguments::of_document("users", user)?;
        let (name, database) = (fields.string("user")?, fields.string("db")?);
        let (name, database) = (fields.required("user", name)?, fields.required("db", database)?);
        fields.finish()?;
        if users.len() == USERS {
            return Err(Error::bad_value(format!("too many users. limit={USERS}")));
        }
        users.push((database.to_owned(), name.to_owned()));
    }
    Ok(users)
}

fn uuid_of(session: &SessionId) -> Binary {
    Binary {
        subtype: BinarySubtype::Uuid,
        bytes: session.id.as_bytes().to_vec(),
    }
}

fn digest_of(session: &SessionId) -> Binary {
    Binary {
        subtype: BinarySubtype::Generic,
        bytes: session.digest(),
    }
}
