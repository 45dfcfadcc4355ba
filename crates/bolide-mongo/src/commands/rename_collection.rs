//! `renameCollection`.

use bolide_model::ErrorKind;
use bolide_mql::value::is_truthy;
use bolide_mql::{Code, Error, Result};
use bson::raw::RawBsonRef;

use super::arguments::{Arguments, wrong_type};
use super::context::{CommandContext, Reply};
use super::data::{collections, views};
use crate::codes;
use crate::namespace::Namespace;

/// `{renameCollection: "db.from", to: "db.to", dropTarget?}`, on `admin`. Indexes, documents and their deadlines stay as they are.
pub async fn run(context: &CommandContext<'_>, mut arguments: Arguments<'_>) -> Result<Reply> {
    let from = match arguments.first() {
        Some(RawBsonRef::String(from)) => from,
        other => {
            let value = other.unwrap_or(RawBsonRef::Null);
            return Err(wrong_type("renameCollection.renameCollection", value, "type 'string'"));
        }
    };
    let to = arguments.string("to")?;
    let to = arguments.required("to", to)?;
    let replaces = arguments.value("dropTarget").is_some_and(is_truthy);
    // There are no temporary collections.
    arguments.ignore(&["stayTemp"]);
    arguments.finish()?;
    let from = checked(from)?;
    let to = checked(to)?;
    if from == to {
        return Err(Error::new(
            Code::ILLEGAL_OPERATION,
            "Can't rename a collection to itself",
        ));
    }
    let Some(container) = collections::find(context, &from) else {
        let text = format!("Source collection {from} does not exist");
        return Err(Error::new(Code::NAMESPACE_NOT_FOUND, text));
    };
    views::refuse(context.state, &from.database, &from.collection)?;
    if from.database != to.database {
        let text = format!("{from} cannot be renamed to {to}: a collection cannot move to another database");
        return Err(Error::new(Code::ILLEGAL_OPERATION, text));
    }
    let account = &context.state.account;
    match account.rename_collection(&container, &to.collection, replaces).await {
        Err(error) if error.kind == ErrorKind::Conflict => {
            return Err(Error::new(Code::NAMESPACE_EXISTS, "target namespace exists"));
        }
        renamed => renamed.map_err(|error| codes::error(&error))?,
    }
    for name in [&from, &to] {
        let cursors = &context.state.cursors;
        cursors.close_all_of(&name.database, Some(&name.collection));
    }
    Ok(Reply::default())
}

/// Reads the name of a collection that a client may make.
fn checked(name: &str) -> Result<Namespace> {
    let (database, collection) = bolide_mql::namespace::split(name)?;
    Namespace::new(database, collection)
}

#[cfg(test)]
mod tests;
