//! `usersInfo`.

use bolide_mql::filter::Filter;
use bolide_mql::value::number;
use bolide_mql::{Code, Error, Result};
use bson::raw::{RawBsonRef, cstr};
use bson::{RawArrayBuf, RawDocument, RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::privileges::Grants;
use super::user_arguments::user_reference;
use crate::users::User;

/// The users that are asked for.
enum Asked {
    /// Those of the database.
    Database,
    /// All.
    All,
    /// These, by database and name.
    Named(Vec<(String, String)>),
}

/// `{usersInfo: 1 | name | {user, db} | [..] | {forAllDBs: true}, showCredentials?, showCustomData?, filter?}` → `{users}`.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let asked = asked(arguments.first(), context.database)?;
    let shows_credentials = arguments.boolean("showCredentials")? == Some(true);
    let shows_custom_data = arguments.boolean("showCustomData")? != Some(false);
    let filter = match arguments.document("filter")? {
        Some(filter) => Filter::parse(filter)?,
        None => Filter::all(),
    };
    if arguments.boolean("showPrivileges")? == Some(true) {
        return Err(Error::new(
            Code::NOT_IMPLEMENTED,
            "the option 'showPrivileges' of usersInfo is not supported",
        ));
    }
    arguments.ignore(&["showAuthenticationRestrictions"]);
    arguments.finish()?;
    check(context, &asked, shows_credentials)?;
    let request = context.begin().await?;
    let language = context.language(&request);
    let mut users = RawArrayBuf::new();
    for user in context.state.users.all(&context.state.account).await? {
        let is_asked = match &asked {
            Asked::All => true,
            Asked::Database => user.database == context.database,
            Asked::Named(names) => names.iter().any(|(database, name)| {
                (database.as_str(), name.as_str()) == (user.database.as_str(), user.name.as_str())
            }),
        };
        if !is_asked {
            continue;
        }
        let document = shown(&user, shows_credentials, shows_custom_data);
        if filter.matches(&document, &language)? {
            users.push(document);
        }
    }
    Ok(rawdoc! { "users": users }.into())
}

fn asked(value: Option<RawBsonRef<'_>>, database: &str) -> Result<Asked> {
    match value {
        Some(RawBsonRef::Document(document)) if is_for_all(document) => Ok(Asked::All),
        Some(value @ (RawBsonRef::Document(_) | RawBsonRef::String(_))) => {
            Ok(Asked::Named(vec![user_reference(value, database)?]))
        }
        Some(RawBsonRef::Array(array)) => {
            let mut names = Vec::new();
            for value in array {
                names.push(user_reference(value?, database)?);
            }
            Ok(Asked::Named(names))
        }
        Some(value) if number::whole(value) == Some(1) => Ok(Asked::Database),
        _ => Err(Error::bad_value(
            "User and role names must be either strings or objects",
        )),
    }
}

fn is_for_all(document: &RawDocument) -> bool {
    let all = document.get("forAllDBs").ok().flatten();
    all.is_some_and(bolide_mql::value::is_truthy)
}

/// A user may see itself; others are seen by who administers the users of their database.
fn check(context: &CommandContext<'_>, asked: &Asked, shows_credentials: bool) -> Result<()> {
    let is_own = |database: &str, name: &str| {
        let own = matches!(&context.grants, Grants::User(user) if user.database == database && user.name == name);
        own && !shows_credentials
    };
    let is_allowed = match asked {
        Asked::All => context.grants.allow_users(crate::namespace::USERS_DATABASE),
        Asked::Database => context.grants.allow_users(context.database),
        Asked::Named(names) => names
            .iter()
            .all(|(database, name)| is_own(database, name) || context.grants.allow_users(database)),
    };
    match is_allowed {
        true => Ok(()),
        false => Err(context.unauthorized(context.database)),
    }
}

fn shown(user: &User, shows_credentials: bool, shows_custom_data: bool) -> RawDocumentBuf {
    let mut document = rawdoc! {
        "_id": user.key(),
        "userId": user.user_id(),
        "user": user.name.as_str(),
        "db": user.database.as_str(),
    };
    if shows_credentials {
        document.append(cstr!("credentials"), user.credential_documents());
    }
    if let Some(data) = user.custom_data.as_ref().filter(|_| shows_custom_data) {
        document.append(cstr!("customData"), data.clone());
    }
    document.append(cstr!("roles"), user.role_documents());
    let mut mechanisms = RawArrayBuf::new();
    for verifier in &user.credentials.verifiers {
        mechanisms.push(verifier.mechanism.name());
    }
    document.append(cstr!("mechanisms"), mechanisms);
    document
}
