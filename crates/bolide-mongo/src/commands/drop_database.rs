//! `dropDatabase`.

use bolide_mql::{Code, Error, Result};
use bson::rawdoc;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use crate::codes;
use crate::namespace::USERS_DATABASE;

/// `{dropDatabase: 1}` → `{dropped: name}`; containers of the NoSQL API stay.
pub async fn run(context: &CommandContext<'_>, arguments: Arguments<'_>) -> Result<Reply> {
    arguments.finish()?;
    if context.database == USERS_DATABASE {
        let text = format!("Dropping the '{USERS_DATABASE}' database is prohibited.");
        return Err(Error::new(Code::ILLEGAL_OPERATION, text));
    }
    let account = &context.state.account;
    let is_there = !account.list_collections(context.database).is_empty();
    let dropped = account.drop_collections_of(context.database).await;
    dropped.map_err(|error| codes::error(&error))?;
    match is_there {
        true => Ok(rawdoc! {"dropped": context.database}.into()),
        false => Ok(Reply::default()),
    }
}
