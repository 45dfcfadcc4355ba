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
        if collection.contains('\0') {
            return invalid("namespaces cannot have embedded null characters".to_owned());
        }
        if collection.is_empty() {
            return invalid(format!("Invalid namespace specified '{namespace}'"));
        }
        if collection.starts_with('.') {
            return invalid(format!("Collection names cannot start with '.': {collection}"));
        }
        if collection.contains('$') && !COMMAND_COLLECTIONS.contains(&collection) {
            return invalid(format!("Invalid collection name: {collection}"));
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
    check_database_of(name, name)
}

/// As [`check_database`], with the namespace that a command names for its text.
///
/// # Errors
/// `InvalidNamespace`.
pub fn check_database_of(name: &str, namespace: &str) -> Result<()> {
    let text = if name.len() > DATABASE_BYTES {
        format!(
            "db name must be at most {DATABASE_BYTES} characters, found: {}",
            name.len()
        )
    } else if name.contains('\0') {
        "namespaces cannot have embedded null characters".to_owned()
    } else if name.contains('.') {
        format!("'.' is an invalid character in a db name: {name}")
    } else if name.contains('$') && name != "$external" {
        // The database of authentication by other systems has a `$`.
        format!("Invalid namespace: {namespace}")
    } else if name.is_empty() || name.contains(['/', '\\', ' ', '"']) {
        format!("Invalid namespace specified '{namespace}'")
    } else {
        return Ok(());
    };
    Err(Error::new(Code::INVALID_NAMESPACE, text))
}

#[cfg(test)]
mod tests;
