//! Names of databases and collections.
//!
//! Source: mongo.md §6.

use std::fmt;

use bolide_mql::{Code, Error, Result};

/// Maximum length of the name of a database, in bytes.
const DATABASE_BYTES: usize = 63;
/// Maximum length of `database.collection`, in bytes.
const NAMESPACE_BYTES: usize = 255;
/// Names with `$` that commands use for cursors without a collection.
const COMMAND_COLLECTIONS: [&str; 2] = ["$cmd.aggregate", "$cmd.listCollections"];

/// The collection of the users, which only the commands on users read and write.
pub const USERS_DATABASE: &str = "admin";
/// See [`USERS_DATABASE`].
pub const USERS_COLLECTION: &str = "system.users";

/// A collection: its database and its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Namespace {
    /// The database.
    pub database: String,
    /// The collection.
    pub collection: String,
}

impl Namespace {
    /// Checks the names of a collection.
    ///
    /// # Errors
    /// `InvalidNamespace`.
    pub fn new(database: &str, collection: &str) -> Result<Namespace> {
        check_database(database)?;
        let namespace = Namespace {
            database: database.to_owned(),
            collection: collection.to_owned(),
        };
        let invalid = |text: String| Err(Error::new(Code::INVALID_NAMESPACE, text));
        let is_bad = collection.is_empty() || collection.starts_with('.') || collection.contains('\0');
        if is_bad || (collection.contains('$') && !COMMAND_COLLECTIONS.contains(&collection)) {
            return invalid(format!("Invalid namespace specified '{namespace}'"));
        }
        let bytes = database.len() + 1 + collection.len();
        if bytes > NAMESPACE_BYTES {
            return invalid(format!(
                "Fully qualified namespace is too long. Namespace: {namespace} Max: {NAMESPACE_BYTES}"
            ));
        }
        Ok(namespace)
    }

    /// Whether it is the collection of the users.
    pub fn is_of_users(&self) -> bool {
        self.database == USERS_DATABASE && self.collection == USERS_COLLECTION
    }

    /// Reads `database.collection`.
    ///
    /// # Errors
    /// `InvalidNamespace`.
    pub fn parse(text: &str) -> Result<Namespace> {
        let (database, collection) = text.split_once('.').unwrap_or((text, ""));
        Namespace::new(database, collection)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.collection)
    }
}

/// Checks the name of a database.
///
/// # Errors
/// `InvalidNamespace`.
pub fn check_database(name: &str) -> Result<()> {
    // The database of authentication by other systems has a `$`.
    let is_bad = name.contains(['/', '\\', '.', ' ', '"', '\0']) || (name.contains('$') && name != "$external");
    if name.is_empty() || name.len() > DATABASE_BYTES || is_bad {
        let text = format!("Invalid database name: '{name}'");
        return Err(Error::new(Code::INVALID_NAMESPACE, text));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
