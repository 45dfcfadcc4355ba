//! `createUser`.

use bolide_mql::{Error, Result};
use uuid::Uuid;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::user_arguments::{
    check_may_grant, credentials, custom_data, mechanisms, refuse_unsupported, roles, user_name,
};
use crate::authentication::Mechanism;
use crate::users::User;

/// MongoDB's code for a user who exists.
const USER_EXISTS: i32 = 51003;

/// `{createUser: name, pwd, roles, customData?, mechanisms?}` → `{}`.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let name = user_name(context, &arguments)?;
    let password = arguments.string("pwd")?;
    let roles_array = arguments.array("roles")?;
    let roles_array = arguments.required("roles", roles_array)?;
    let custom_data = custom_data(&mut arguments)?;
    let mechanisms = mechanisms(&mut arguments)?.unwrap_or_else(|| Mechanism::ALL.to_vec());
    refuse_unsupported(&mut arguments)?;
    arguments.finish()?;
    let password = password.ok_or_else(|| {
        let text =
            "Must provide a 'pwd' field for all user documents, except those with '$external' as the user's source db";
        Error::bad_value(text)
    })?;
    let roles = roles(roles_array, context.database)?;
    check_may_grant(context, &roles)?;
    let exists = || {
        Error::new(
            USER_EXISTS,
            format!("User \"{name}@{}\" already exists", context.database),
        )
    };
    if context.state.options.credentials.knows(name) {
        // The account is a user of every database.
        return Err(exists());
    }
    let user = User {
        name: name.to_owned(),
        database: context.database.to_owned(),
        id: Uuid::new_v4(),
        roles,
        credentials: credentials(mechanisms, name, password).await?,
        custom_data,
    };
    match context.state.users.insert(&context.state.account, &user).await? {
        true => Ok(Reply::default()),
        false => Err(exists()),
    }
}

#[cfg(test)]
mod tests;
