//! `grantRolesToUser`, `revokeRolesFromUser`.

use bolide_mql::{Code, Error, Result};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::user_arguments::{check_may_grant, roles, user_name};
use crate::users::{Role, User};

/// `{grantRolesToUser: name, roles}` → `{}`.
pub async fn grant(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    change(context, arguments, |user, roles| {
        for role in roles {
            if !user.roles.contains(role) {
                user.roles.push(role.clone());
            }
        }
    })
    .await
}

/// `{revokeRolesFromUser: name, roles}` → `{}`.
pub async fn revoke(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    change(context, arguments, |user, roles| {
        user.roles.retain(|role| !roles.contains(role));
    })
    .await
}

async fn change(
    context: &CommandContext<'_>,
    mut arguments: Arguments<'_>,
    change: fn(&mut User, &[Role]),
) -> Result<Reply> {
    let name = user_name(context, &arguments)?;
    let array = arguments.array("roles")?;
    let array = arguments.required("roles", array)?;
    arguments.finish()?;
    if array.is_empty() {
        let text = format!(
            "\"{}\" command requires a non-empty \"roles\" array",
            context.command.name
        );
        return Err(Error::bad_value(text));
    }
    let roles = roles(array, context.database)?;
    check_may_grant(context, &roles)?;
    let change = move |user: &mut User| {
        change(user, &roles);
        Ok(())
    };
    let (users, account) = (&context.state.users, &context.state.account);
    match users.change(account, context.database, name, change).await? {
        true => Ok(Reply::default()),
        false => {
            let text = format!("Could not find user \"{name}\" for db \"{}\"", context.database);
            Err(Error::new(Code::USER_NOT_FOUND, text))
        }
    }
}
