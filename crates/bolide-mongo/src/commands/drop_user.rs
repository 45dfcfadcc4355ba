//! `dropUser`, `dropAllUsersFromDatabase`.

use bolide_mql::{Code, Error, Result};
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use super::user_arguments::user_name;

/// `{dropUser: name}` → `{}`.
pub async fn run(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    let name = user_name(context, &arguments)?;
    arguments.finish()?;
    let (users, account) = (&context.state.users, &context.state.account);
    match users.remove(account, context.database, name).await? {
        true => Ok(Reply::default()),
        false => {
            let text = format!("User '{name}@{}' not found", context.database);
            Err(Error::new(Code::USER_NOT_FOUND, text))
        }
    }
}

/// `{dropAllUsersFromDatabase: 1}` → `{n}`.
pub async fn all(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    let (users, account) = (&context.state.users, &context.state.account);
    let mut dropped = 0;
    for user in users.all(account).await? {
        if user.database == context.database && users.remove(account, &user.database, &user.name).await? {
            dropped += 1;
        }
    }
    Ok(rawdoc! { "n": dropped }.into())
}
