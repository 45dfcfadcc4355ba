//! Names of collections.

use std::fmt;

use crate::error::Result;
use crate::namespace::{check_collection, check_database};

/// A collection of a database.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Namespace {
    /// The database.
    pub database: String,
    /// The collection; `$cmd.aggregate` in a pipeline on a database.
    pub collection: String,
}

/// The collection that stands for a database as a whole.
const DATABASE: &str = "$cmd.aggregate";

impl Namespace {
    /// Returns a collection's name.
    pub fn new(database: impl Into<String>, collection: impl Into<String>) -> Namespace {
        Namespace {
            database: database.into(),
            collection: collection.into(),
        }
    }

    /// Returns the name of a database in `{aggregate: 1}`.
    pub fn of_database(database: impl Into<String>) -> Namespace {
        Namespace::new(database, DATABASE)
    }

    /// Returns true for a database as a whole.
    pub fn is_database(&self) -> bool {
        self.collection == DATABASE
    }

    /// Checks names that a stage gives.
    ///
    /// # Errors
    /// `InvalidNamespace` for names that no collection can have.
    pub(super) fn checked(self) -> Result<Namespace> {
        check_database(&self.database)?;
        check_collection(&self.database, &self.collection)?;
        Ok(self)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.database, self.collection)
    }
}
