//! The names of databases and collections.
//!
//! Source: mongo.md §6 (namespace rules); the texts are MongoDB's.

use crate::error::{Code, Error, Result};

/// The largest name of a database, in bytes.
pub const DATABASE_BYTES: usize = 63;

/// The largest `database.collection`, in bytes.
pub const NAMESPACE_BYTES: usize = 255;

/// Collections with this prefix belong to the server; only the known ones exist.
const SYSTEM: &str = "system.";

/// The known names behind [`SYSTEM`].
const SYSTEM_COLLECTIONS: [&str; 6] = ["js", "profile", "roles", "users", "version", "views"];

/// System collections that clients cannot write.
const READ_ONLY_COLLECTIONS: [&str; 2] = ["system.profile", "system.views"];

/// Checks the name of a database.
///
/// # Errors
/// 73 `InvalidNamespace`: empty, longer than [`DATABASE_BYTES`], or with a character of `/\. "$` or NUL.
pub fn check_database(database: &str) -> Result<()> {
    if database.len() > DATABASE_BYTES {
        return Err(invalid(format!(
            "db name must be at most {DATABASE_BYTES} characters, found: {}",
            database.len()
        )));
    }
    if database.contains('\0') {
        return Err(invalid("namespaces cannot have embedded null characters"));
    }
    if database.is_empty() || database.contains(['/', '\\', '.', ' ', '"', '$']) {
        return Err(invalid(format!("Invalid database name: '{database}'")));
    }
    Ok(())
}

/// Checks the name of a collection of a database.
///
/// # Errors
/// 73 `InvalidNamespace`: empty, with NUL or `$`, with a `.` at its beginning, an unknown `system.` name, or the namespace is longer than
/// [`NAMESPACE_BYTES`].
pub fn check_collection(database: &str, collection: &str) -> Result<()> {
    if collection.is_empty() {
        return Err(invalid(format!("Invalid namespace specified '{database}.'")));
    }
    if collection.contains('\0') {
        return Err(invalid("namespaces cannot have embedded null characters"));
    }
    if collection.starts_with('.') {
        return Err(invalid(format!("Collection names cannot start with '.': {collection}")));
    }
    if collection.contains('$') {
        return Err(invalid(format!("Invalid collection name: {collection}")));
    }
    if let Some(name) = collection.strip_prefix(SYSTEM)
        && !SYSTEM_COLLECTIONS.contains(&name)
    {
        return Err(invalid(format!("Invalid system namespace: {database}.{collection}")));
    }
    let bytes = database.len() + 1 + collection.len();
    if bytes > NAMESPACE_BYTES {
        return Err(invalid(format!(
            "Fully qualified namespace is too long. Namespace: {database}.{collection} Max: {NAMESPACE_BYTES}"
        )));
    }
    Ok(())
}

/// Checks that clients may write to a collection: its name is valid, and it is not one that only the server writes.
///
/// # Errors
/// Those of [`check_collection`], and 73 `InvalidNamespace` for a read-only collection.
pub fn check_writable(database: &str, collection: &str) -> Result<()> {
    check_collection(database, collection)?;
    if READ_ONLY_COLLECTIONS.contains(&collection) {
        return Err(invalid(format!("cannot write to {database}.{collection}")));
    }
    Ok(())
}

/// Splits `database.collection` at its first dot and checks both names.
///
/// # Errors
/// Those of [`check_database`] and [`check_collection`]; 73 `InvalidNamespace` without a dot.
pub fn split(namespace: &str) -> Result<(&str, &str)> {
    let Some((database, collection)) = namespace.split_once('.') else {
        return Err(invalid(format!("Invalid namespace specified '{namespace}'")));
    };
    check_database(database)?;
    check_collection(database, collection)?;
    Ok((database, collection))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::INVALID_NAMESPACE, message)
}

#[cfg(test)]
mod tests;
