//! The built-in roles: what each allows, and where.
//!
//! A role of the database `admin` may allow something in every database. Custom roles do not exist.

use bolide_mql::{Code, Error, Result};
use bson::{RawDocumentBuf, rawdoc};

/// The database whose roles may be for all databases.
pub const ADMIN: &str = "admin";

/// What a role may allow in a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Privilege {
    /// What everybody may do who has authenticated.
    None,
    /// Reading documents.
    Read,
    /// Changing documents.
    Write,
    /// Reading the definitions and statistics of collections.
    ReadDefinitions,
    /// Creating and removing collections and indexes.
    Collections,
    /// Changing the options of collections, and everything else of a database but its documents and users.
    Database,
    /// Its users and their roles.
    Users,
    /// The names of all databases.
    ListDatabases,
    /// Reading the state of the server.
    Monitor,
    /// Changing the server.
    Server,
}

/// A built-in role.
#[derive(Debug, PartialEq, Eq)]
struct BuiltIn {
    name: &'static str,
    scope: Scope,
    allows: &'static [Privilege],
}

/// Where a role exists, and for which databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// In every database, for that one.
    Own,
    /// In `admin`, for every database and the server.
    All,
}

/// In the order of their names.
static BUILT_IN: [BuiltIn; 16] = {
    use Privilege::{Collections, Database, ListDatabases, Monitor, Read, ReadDefinitions, Server, Users, Write};
    const fn own(name: &'static str, allows: &'static [Privilege]) -> BuiltIn {
        BuiltIn {
            name,
            scope: Scope::Own,
            allows,
        }
    }
    const fn all(name: &'static str, allows: &'static [Privilege]) -> BuiltIn {
        BuiltIn {
            name,
            scope: Scope::All,
            allows,
        }
    }
    [
        all("backup", &[Read, ReadDefinitions, ListDatabases, Monitor]),
        all(
            "clusterAdmin",
            &[ReadDefinitions, ListDatabases, Monitor, Server, Database],
        ),
        all("clusterManager", &[ListDatabases, Server]),
        all("clusterMonitor", &[ReadDefinitions, ListDatabases, Monitor]),
        own("dbAdmin", &[ReadDefinitions, Collections, Database]),
        all(
            "dbAdminAnyDatabase",
            &[ReadDefinitions, Collections, Database, ListDatabases],
        ),
        own("dbOwner", &[Read, Write, ReadDefinitions, Collections, Database, Users]),
        all("hostManager", &[Monitor, Server]),
        own("read", &[Read, ReadDefinitions]),
        all("readAnyDatabase", &[Read, ReadDefinitions, ListDatabases]),
        own("readWrite", &[Read, Write, ReadDefinitions, Collections]),
        all(
            "readWriteAnyDatabase",
            &[Read, Write, ReadDefinitions, Collections, ListDatabases],
        ),
        all(
            "restore",
            &[Write, ReadDefinitions, Collections, Database, Users, ListDatabases],
        ),
        all(
            "root",
            &[
                Read,
                Write,
                ReadDefinitions,
                Collections,
                Database,
                Users,
                ListDatabases,
                Monitor,
                Server,
            ],
        ),
        own("userAdmin", &[Users]),
        all("userAdminAnyDatabase", &[Users, ListDatabases]),
    ]
};

/// A role in a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    built_in: &'static BuiltIn,
    database: String,
}

impl Role {
    /// Finds a role of a database.
    ///
    /// # Errors
    /// `RoleNotFound`.
    pub fn find(name: &str, database: &str) -> Result<Role> {
        let found = Role::all_of(database).find(|role| role.name() == name);
        found.ok_or_else(|| Error::new(Code::ROLE_NOT_FOUND, format!("Could not find role: {name}@{database}")))
    }

    /// The roles of a database, in the order of their names.
    pub fn all_of(database: &str) -> impl Iterator<Item = Role> {
        let is_here = move |role: &&'static BuiltIn| role.scope == Scope::Own || database == ADMIN;
        BUILT_IN.iter().filter(is_here).map(|built_in| Role {
            built_in,
            database: database.to_owned(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.built_in.name
    }

    /// The database that it is a role of.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// Whether who has it may do something in a database.
    pub fn allows(&self, privilege: Privilege, database: &str) -> bool {
        let reaches = self.built_in.scope == Scope::All || self.database == database;
        reaches && self.built_in.allows.contains(&privilege)
    }

    /// Whether who has it may do something in every database.
    pub fn allows_everywhere(&self, privilege: Privilege) -> bool {
        self.built_in.scope == Scope::All && self.built_in.allows.contains(&privilege)
    }

    /// As replies and stored users have it: `{role, db}`.
    pub fn to_document(&self) -> RawDocumentBuf {
        rawdoc! { "role": self.name(), "db": self.database() }
    }
}

#[cfg(test)]
mod tests;
