//! What a command is about: its name, its database, its collection.

use bolide_mql::{Error, Result};
use bson::RawDocument;
use bson::raw::RawBsonRef;

use crate::commands::table::Command;

/// MongoDB's code for a message without database.
const NO_DATABASE: i32 = 40571;

/// The name of a command: its first field.
pub(super) fn name(document: &RawDocument) -> &str {
    document
        .iter()
        .next()
        .and_then(Result::ok)
        .map_or("", |(name, _)| name.as_str())
}

/// The database of a command.
pub(super) fn database<'a>(document: &'a RawDocument, outside: Option<&'a str>) -> Result<&'a str> {
    let database = match (outside, document.get("$db")) {
        (Some(database), _) => database,
        (None, Ok(Some(RawBsonRef::String(database)))) => database,
        _ => return Err(Error::new(NO_DATABASE, "OP_MSG requests require a $db argument")),
    };
    Ok(database)
}

/// `database.collection`, or the database if the command names no collection.
pub(super) fn namespace(command: &Command, document: &RawDocument, database: &str) -> String {
    let collection = match document.iter().next() {
        Some(Ok((_, RawBsonRef::String(collection)))) => Some(collection),
        // Its first value is the cursor.
        _ if command.name == "getMore" => document.get_str("collection").ok(),
        _ => None,
    };
    match collection {
        Some(collection) => format!("{database}.{collection}"),
        None => database.to_owned(),
    }
}
