//! `rolesInfo`, and the commands on custom roles, which do not exist.

use bolide_mql::value::number;
use bolide_mql::{Code, Error, Result};
use bson::raw::{RawBsonRef, cstr};
use bson::{RawArrayBuf, RawDocumentBuf, rawdoc};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use crate::users::Role;

/// `{rolesInfo: 1 | name | {role, db} | [..], showBuiltinRoles?}` → `{roles}`.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let asked = arguments.first();
    let shows_built_in = arguments.boolean("showBuiltinRoles")? == Some(true);
    if arguments.boolean("showPrivileges")? == Some(true) {
        return Err(Error::new(
            Code::NOT_IMPLEMENTED,
            "the option 'showPrivileges' of rolesInfo is not supported",
        ));
    }
    arguments.ignore(&["showAuthenticationRestrictions"]);
    arguments.finish()?;
    let mut roles = RawArrayBuf::new();
    match asked {
        Some(RawBsonRef::Array(array)) => {
            for value in array {
                push(&mut roles, value?, context.database)?;
            }
        }
        Some(value) if number::whole(value) == Some(1) => {
            for role in Role::all_of(context.database).filter(|_| shows_built_in) {
                roles.push(shown(&role));
            }
        }
        value => push(&mut roles, value.unwrap_or(RawBsonRef::Null), context.database)?,
    }
    Ok(rawdoc! { "roles": roles }.into())
}

/// Adds a role, if it exists.
fn push(roles: &mut RawArrayBuf, value: RawBsonRef<'_>, database: &str) -> Result<()> {
    let (name, database) = match value {
        RawBsonRef::String(name) => (name, database),
        RawBsonRef::Document(role) => {
            let mut fields = Arguments::of_document("rolesInfo", role)?;
            let name = fields.string("role")?;
            let name = fields.required("role", name)?;
            let of = fields.string("db")?;
            let of = fields.required("db", of)?;
            fields.finish()?;
            (name, of)
        }
        _ => {
            let text = "User and role names must be either strings or objects";
            return Err(Error::bad_value(text));
        }
    };
    if let Ok(role) = Role::find(name, database) {
        roles.push(shown(&role));
    }
    Ok(())
}

fn shown(role: &Role) -> RawDocumentBuf {
    let mut document = role.to_document();
    document.append(cstr!("isBuiltin"), true);
    document.append(cstr!("roles"), RawArrayBuf::new());
    document.append(cstr!("inheritedRoles"), RawArrayBuf::new());
    document
}

/// The commands on custom roles.
pub async fn custom(context: &CommandContext<'_>, _: Arguments<'_>) -> Result<Reply> {
    let text = format!("{}: custom roles are not supported", context.command.name);
    Err(Error::new(Code::NOT_IMPLEMENTED, text))
}
