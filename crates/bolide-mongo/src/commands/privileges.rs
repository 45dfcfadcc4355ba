//! What the sender of a command may do: an account key has rights everywhere, a user has roles in databases.

use std::sync::Arc;

use bolide_model::account_key::Access;

use super::table::{Command, Rights};
use crate::users::{Privilege, User};

/// What a sender may do.
#[derive(Debug, Clone)]
pub enum Grants {
    /// What an account key allows.
    Key(Access),
    /// What the roles of a user allow.
    User(Arc<User>),
}

impl Grants {
    /// Whether the sender may run a command on a database.
    pub fn allow_command(&self, command: &Command, database: &str) -> bool {
        match self {
            Grants::Key(access) => command.rights.are_given_by(*access),
            Grants::User(user) => user.may(of_command(command), database),
        }
    }

    /// Whether the sender has rights on a database, for what depends on the arguments of a command.
    pub fn allow(&self, rights: Rights, database: &str) -> bool {
        match self {
            Grants::Key(access) => rights.are_given_by(*access),
            Grants::User(user) => user.may(of_rights(rights), database),
        }
    }

    /// Whether the sender has rights on every database, those that do not exist yet too.
    pub fn allow_everywhere(&self, rights: Rights) -> bool {
        match self {
            Grants::Key(access) => rights.are_given_by(*access),
            Grants::User(user) => user.may_everywhere(of_rights(rights)),
        }
    }

    /// Whether the sender may see that a database exists.
    pub fn allow_seeing(&self, database: &str) -> bool {
        match self {
            Grants::Key(_) => true,
            Grants::User(user) => {
                user.may(Privilege::ListDatabases, database) || user.may(Privilege::ReadDefinitions, database)
            }
        }
    }

    /// Whether the sender may begin a pipeline on a database with a stage that shows statistics; see [`of_source_stage`].
    pub fn allow_source_stage(&self, stage: &str, database: &str) -> bool {
        match self {
            Grants::Key(_) => true,
            Grants::User(user) => of_source_stage(stage).iter().any(|one| user.may(*one, database)),
        }
    }

    /// Whether the sender may see what other users do on the server.
    pub fn allow_monitoring(&self, database: &str) -> bool {
        match self {
            Grants::Key(access) => *access == Access::Full,
            Grants::User(user) => user.may(Privilege::Monitor, database),
        }
    }

    /// Whether the sender may see or change the users of a database.
    pub fn allow_users(&self, database: &str) -> bool {
        match self {
            Grants::Key(access) => *access == Access::Full,
            Grants::User(user) => user.may(Privilege::Users, database),
        }
    }
}

/// What a user needs for a command on its database. The rights of its row say it, except for those here.
pub fn of_command(command: &Command) -> Privilege {
    match command.name {
        // The session is the sender's own.
        "abortTransaction" | "commitTransaction" => Privilege::None,
        // It shows the sender itself, and others only to who may see them.
        "usersInfo" => Privilege::None,
        // It shows the databases that the sender may see.
        "listDatabases" => Privilege::None,
        "collStats" | "dataSize" | "dbHash" | "dbStats" | "listCollections" | "listIndexes" => {
            Privilege::ReadDefinitions
        }
        "convertToCapped" | "create" | "createIndexes" | "drop" | "dropIndexes" | "renameCollection" => {
            Privilege::Collections
        }
        "collMod" | "compact" | "customAction" | "dropDatabase" | "enableSharding" | "profile" | "reIndex"
        | "shardCollection" | "validate" => Privilege::Database,
        "createRole"
        | "createUser"
        | "dropAllRolesFromDatabase"
        | "dropAllUsersFromDatabase"
        | "dropRole"
        | "dropUser"
        | "grantPrivilegesToRole"
        | "grantRolesToRole"
        | "grantRolesToUser"
        | "revokePrivilegesFromRole"
        | "revokeRolesFromRole"
        | "revokeRolesFromUser"
        | "rolesInfo"
        | "updateRole"
        | "updateUser" => Privilege::Users,
        "currentOp" | "getCmdLineOpts" | "getLog" | "getParameter" | "hostInfo" | "replSetGetConfig"
        | "replSetGetStatus" | "serverStatus" | "top" => Privilege::Monitor,
        _ => of_rights(command.rights),
    }
}

/// Whether a stage at the start of a pipeline asks for other rights than reading.
pub fn is_source_stage(stage: &str) -> bool {
    of_source_stage(stage) != [Privilege::Read]
}

/// What a user needs for a stage at the start of a pipeline, instead of the right to read: one of these on the database.
pub fn of_source_stage(stage: &str) -> &'static [Privilege] {
    match stage {
        // They show the sender's own, and others' only to who may see them.
        "$currentOp" | "$listLocalSessions" | "$listSessions" => &[Privilege::None],
        "$collStats" => &[Privilege::ReadDefinitions],
        "$indexStats" | "$planCacheStats" => &[Privilege::Database, Privilege::Monitor],
        _ => &[Privilege::Read],
    }
}

fn of_rights(rights: Rights) -> Privilege {
    match rights {
        Rights::None => Privilege::None,
        Rights::Read => Privilege::Read,
        Rights::Write => Privilege::Write,
        Rights::Admin => Privilege::Server,
    }
}

#[cfg(test)]
mod tests;
