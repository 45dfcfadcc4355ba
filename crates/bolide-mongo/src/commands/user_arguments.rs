//! What the commands on users have in common: names, roles and passwords in their arguments.

use bolide_mql::{Code, Error, Result};
use bson::raw::RawBsonRef;
use bson::{RawArray, RawDocument, RawDocumentBuf};

use super::arguments::{Arguments, wrong_type};
use super::context::CommandContext;
use crate::authentication::{Mechanism, UserCredentials};
use crate::limits;
use crate::users::Role;

/// Databases that have no users.
const EXTERNAL_DATABASES: [&str; 2] = ["$external", "local"];
/// Maximum length of a user's name and of a password, in bytes.
const TEXT_BYTES: usize = 1024;
/// Maximum number of roles of one user.
const ROLES: usize = 1_000;

/// Reads the name that is the value of the command's first field.
///
/// # Errors
/// `TypeMismatch`; `BadValue` for an empty or very long one, or a database that has no users.
pub fn user_name<'a>(context: &CommandContext<'_>, arguments: &Arguments<'a>) -> Result<&'a str> {
    let name = match arguments.first() {
        Some(RawBsonRef::String(name)) => name,
        other => {
            let path = format!("{0}.{0}", context.command.name);
            return Err(wrong_type(&path, other.unwrap_or(RawBsonRef::Null), "type 'string'"));
        }
    };
    if name.is_empty() || name.len() > TEXT_BYTES || name.contains('\0') {
        return Err(Error::bad_value("User document needs 'user' field to be non-empty"));
    }
    if EXTERNAL_DATABASES.contains(&context.database) {
        let text = format!("Cannot create users in the {} database", context.database);
        return Err(Error::bad_value(text));
    }
    Ok(name)
}

/// Reads roles: names of roles of the command's database, or `{role, db}`. Each is returned once.
///
/// # Errors
/// `RoleNotFound`; `BadValue` for another form.
pub fn roles(array: &RawArray, database: &str) -> Result<Vec<Role>> {
    let mut roles = Vec::new();
    for role in array {
        let role = match role? {
            RawBsonRef::String(name) => Role::find(name, database)?,
            RawBsonRef::Document(role) => role_in(role)?,
            _ => return Err(Error::bad_value("Role names must be either strings or objects")),
        };
        if !roles.contains(&role) {
            roles.push(role);
        }
        if roles.len() > ROLES {
            return Err(Error::bad_value(format!("A user has at most {ROLES} roles")));
        }
    }
    Ok(roles)
}

fn role_in(role: &RawDocument) -> Result<Role> {
    let mut fields = Arguments::of_document("roles", role)?;
    let name = fields.string("role")?;
    let name = fields.required("role", name)?;
    let database = fields.string("db")?;
    let database = fields.required("db", database)?;
    fields.finish()?;
    Role::find(name, database)
}

/// Reads `customData`.
///
/// # Errors
/// `BadValue` if it is too large.
pub fn custom_data(arguments: &mut Arguments<'_>) -> Result<Option<RawDocumentBuf>> {
    let data = arguments.document("customData")?;
    if data.is_some_and(|data| data.as_bytes().len() > limits::CUSTOM_DATA_BYTES) {
        let text = format!("customData is too large. limit={} bytes", limits::CUSTOM_DATA_BYTES);
        return Err(Error::bad_value(text));
    }
    Ok(data.map(ToOwned::to_owned))
}

/// Checks that the sender may give and take roles: it must administer the users of their databases.
///
/// # Errors
/// `Unauthorized`.
pub fn check_may_grant(context: &CommandContext<'_>, roles: &[Role]) -> Result<()> {
    for role in roles {
        if !context.grants.allow_users(role.database()) {
            let text = format!("Not authorized to grant role: {}@{}", role.name(), role.database());
            return Err(Error::new(Code::UNAUTHORIZED, text));
        }
    }
    Ok(())
}

/// Reads `mechanisms`.
///
/// # Errors
/// `BadValue` for an unknown one, or for none.
pub fn mechanisms(arguments: &mut Arguments<'_>) -> Result<Option<Vec<Mechanism>>> {
    let Some(names) = arguments.array("mechanisms")? else {
        return Ok(None);
    };
    let mut mechanisms = Vec::new();
    for name in names {
        let RawBsonRef::String(name) = name? else {
            return Err(Error::bad_value("mechanisms field must be an array of strings"));
        };
        let mechanism = Mechanism::named(name);
        let mechanism = mechanism.ok_or_else(|| Error::bad_value(format!("Unknown auth mechanism '{name}'")))?;
        if !mechanisms.contains(&mechanism) {
            mechanisms.push(mechanism);
        }
    }
    match mechanisms.is_empty() {
        true => Err(Error::bad_value("mechanisms field must not be empty")),
        false => Ok(Some(mechanisms)),
    }
}

/// Reads what is not supported: passwords that are digests already, and restrictions of addresses.
///
/// # Errors
/// `BadValue`, `NotImplemented`.
pub fn refuse_unsupported(arguments: &mut Arguments<'_>) -> Result<()> {
    let is_digested_by_client = arguments.boolean("digestPassword")? == Some(false);
    let digestor = arguments.string("passwordDigestor")?;
    if is_digested_by_client || digestor == Some("client") {
        return Err(Error::bad_value("Use of SCRAM-SHA-256 requires undigested passwords"));
    }
    let restrictions = arguments.array("authenticationRestrictions")?;
    if restrictions.is_some_and(|restrictions| !restrictions.is_empty()) {
        let text = "authenticationRestrictions of users are not supported";
        return Err(Error::new(Code::NOT_IMPLEMENTED, text));
    }
    Ok(())
}

/// Derives what is stored of a password, on a thread where that may take its time.
///
/// # Errors
/// `BadValue` for an empty password, or one that cannot be used.
pub async fn credentials(mechanisms: Vec<Mechanism>, user: &str, password: &str) -> Result<UserCredentials> {
    if password.is_empty() || password.len() > TEXT_BYTES {
        return Err(Error::bad_value("User passwords must not be empty"));
    }
    let (user, password) = (user.to_owned(), password.to_owned());
    let derive = move || UserCredentials::create(&mechanisms, &user, &password);
    let derived = tokio::task::spawn_blocking(derive).await;
    let derived = derived.map_err(|_| Error::new(Code::INTERNAL_ERROR, "the password could not be prepared"))?;
    derived.map_err(|error| match error.code {
        Code::AUTHENTICATION_FAILED => {
            Error::bad_value("Error preflighting normalization: the password cannot be used")
        }
        _ => error,
    })
}

/// Reads a user: `"name"` of the database, or `{user, db}`. Returns its database and its name.
///
/// # Errors
/// `BadValue` for another form.
pub fn user_reference(value: RawBsonRef<'_>, database: &str) -> Result<(String, String)> {
    match value {
        RawBsonRef::String(name) => Ok((database.to_owned(), name.to_owned())),
        RawBsonRef::Document(user) => {
            let mut fields = Arguments::of_document("usersInfo", user)?;
            let name = fields.string("user")?;
            let name = fields.required("user", name)?;
            let of = fields.string("db")?;
            let of = fields.required("db", of)?;
            fields.finish()?;
            Ok((of.to_owned(), name.to_owned()))
        }
        _ => Err(Error::bad_value(
            "User and role names must be either strings or objects",
        )),
    }
}
