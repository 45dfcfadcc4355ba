//! `updateUser`.

use bolide_mql::{Code, Error, Result};

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::user_arguments::{
    check_may_grant, credentials, custom_data, mechanisms, refuse_unsupported, roles, user_name,
};
use crate::authentication::Mechanism;
use crate::users::User;

/// `{updateUser: name, pwd?, roles?, customData?, mechanisms?}` → `{}`; what is given replaces what the user has.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let name = user_name(context, &arguments)?;
    let password = arguments.string("pwd")?;
    let roles = match arguments.array("roles")? {
        Some(array) => Some(roles(array, context.database)?),
        None => None,
    };
    let custom_data = custom_data(&mut arguments)?;
    let mechanisms = mechanisms(&mut arguments)?;
    refuse_unsupported(&mut arguments)?;
    arguments.finish()?;
    if password.is_none() && roles.is_none() && custom_data.is_none() && mechanisms.is_none() {
        let text = "Must specify at least one field to update in updateUser";
        return Err(Error::bad_value(text));
    }
    check_may_grant(context, roles.as_deref().unwrap_or_default())?;
    let credentials = match password {
        Some(password) => {
            let all = mechanisms.clone().unwrap_or_else(|| Mechanism::ALL.to_vec());
            Some(credentials(all, name, password).await?)
        }
        None => None,
    };
    let change = move |user: &mut User| {
        if let Some(credentials) = &credentials {
            user.credentials = credentials.clone();
        } else if let Some(mechanisms) = &mechanisms {
            keep_mechanisms(user, mechanisms)?;
        }
        if let Some(roles) = &roles {
            user.roles.clone_from(roles);
        }
        if custom_data.is_some() {
            user.custom_data.clone_from(&custom_data);
        }
        Ok(())
    };
    let (users, account) = (&context.state.users, &context.state.account);
    match users.change(account, context.database, name, change).await? {
        true => Ok(Reply::default()),
        false => {
            let text = format!("User {name}@{} not found", context.database);
            Err(Error::new(Code::USER_NOT_FOUND, text))
        }
    }
}

/// Without the password no further mechanism can be prepared.
fn keep_mechanisms(user: &mut User, mechanisms: &[Mechanism]) -> Result<()> {
    if mechanisms
        .iter()
        .any(|mechanism| user.credentials.verifier(*mechanism).is_none())
    {
        let text = "mechanisms field must be a subset of previously set mechanisms";
        return Err(Error::bad_value(text));
    }
    let verifiers = &mut user.credentials.verifiers;
    verifiers.retain(|verifier| mechanisms.contains(&verifier.mechanism));
    Ok(())
}
