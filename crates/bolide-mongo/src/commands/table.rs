//! The table of commands: names, rights, handlers, help. A new command is a file beside this one, and a row here.

use std::collections::HashMap;
use std::sync::OnceLock;

use bolide_model::account_key::Access;
use bolide_mql::Result;
use futures_util::future::BoxFuture;

use super::arguments::Arguments;
use super::context::{CommandContext, Reply};
use crate::state::MongoState;

/// Runs a command.
pub type Handler = for<'a> fn(&'a CommandContext<'a>, Arguments<'a>) -> BoxFuture<'a, Result<Reply>>;

/// The rights that a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// None: it shows and changes nothing of the data.
    None,
    /// To read data.
    Read,
    /// To change data, and everything else that changes the server. Such a command always runs to its end.
    Write,
    /// To administer the server. Such a command may end early.
    Admin,
}

impl Rights {
    /// Whether a key with this access gives them.
    pub fn are_given_by(self, access: Access) -> bool {
        match self {
            Rights::None | Rights::Read => true,
            Rights::Write | Rights::Admin => access == Access::Full,
        }
    }
}

/// A row of the table.
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// Other spellings.
    pub aliases: &'static [&'static str],
    /// The rights that its sender needs.
    pub rights: Rights,
    /// Whether it may be sent before authentication.
    pub is_before_authentication: bool,
    /// Whether it may be in a transaction.
    pub is_in_transactions: bool,
    /// Whether it may read a snapshot outside of transactions.
    pub reads_snapshots: bool,
    /// Whether it must be sent to the database `admin`.
    pub is_admin_only: bool,
    /// Whether it is in version 1 of the stable API.
    pub is_in_stable_api: bool,
    /// Whether it is about the connection itself, so that it is for clients with one.
    pub is_of_a_connection: bool,
    /// Whether it exists only with `--enable-faults`.
    needs_faults: bool,
    /// Runs it.
    pub handler: Handler,
    /// What it does, for `listCommands`.
    pub help: &'static str,
}

const fn command(name: &'static str, rights: Rights, handler: Handler, help: &'static str) -> Command {
    Command {
        name,
        aliases: &[],
        rights,
        is_before_authentication: false,
        is_in_transactions: false,
        reads_snapshots: false,
        is_admin_only: false,
        is_in_stable_api: false,
        is_of_a_connection: false,
        needs_faults: false,
        handler,
        help,
    }
}

impl Command {
    /// Finds a command by its name or another spelling.
    pub fn named(name: &str) -> Option<&'static Command> {
        static BY_NAME: OnceLock<HashMap<&'static str, &'static Command>> = OnceLock::new();
        let by_name = BY_NAME.get_or_init(|| {
            let names = |command: &'static Command| {
                let all = command.aliases.iter().copied().chain([command.name]);
                all.map(move |name| (name, command))
            };
            COMMANDS.iter().flat_map(names).collect()
        });
        by_name.get(name).copied()
    }

    /// Whether the server has it, with its options.
    pub fn exists_in(&self, state: &MongoState) -> bool {
        !self.needs_faults || state.options.faults_enabled
    }

    /// Whether `maxTimeMS` limits its time. That of `getMore` is the time to wait for documents.
    pub fn has_time_limit(&self) -> bool {
        self.name != "getMore"
    }

    const fn or(mut self, aliases: &'static [&'static str]) -> Command {
        self.aliases = aliases;
        self
    }

    const fn before_authentication(mut self) -> Command {
        self.is_before_authentication = true;
        self
    }

    const fn in_transactions(mut self) -> Command {
        self.is_in_transactions = true;
        self
    }

    const fn on_snapshots(mut self) -> Command {
        self.reads_snapshots = true;
        self
    }

    const fn on_admin(mut self) -> Command {
        self.is_admin_only = true;
        self
    }

    const fn in_stable_api(mut self) -> Command {
        self.is_in_stable_api = true;
        self
    }

    const fn of_a_connection(mut self) -> Command {
        self.is_of_a_connection = true;
        self
    }

    const fn with_faults(mut self) -> Command {
        self.needs_faults = true;
        self
    }
}

/// The handler `run` of a command's module, or another function of it.
macro_rules! run {
    ($module:ident) => {
        run!($module::run)
    };
    ($module:ident :: $function:ident) => {
        |context, arguments| Box::pin(super::$module::$function(context, arguments))
    };
}

/// All commands, in the order of their names.
#[rustfmt::skip]
pub static COMMANDS: &[Command] = &[
    command("abortTransaction", Rights::Write, run!(transaction::abort), "ends a transaction without writing anything")
        .on_admin().in_stable_api().in_transactions(),
    command("aggregate", Rights::Read, run!(aggregate), "the results of a pipeline")
        .in_stable_api().in_transactions().on_snapshots(),
    command("buildInfo", Rights::None, run!(build_info), "the version of the server")
        .or(&["buildinfo"]).before_authentication(),
    command("cloneCollectionAsCapped", Rights::Write, run!(capped::refuse), "nothing: there are no capped collections"),
    command("collMod", Rights::Write, run!(coll_mod), "changes a collection")
        .in_stable_api(),
    command("collStats", Rights::Read, run!(coll_stats), "the number and size of a collection's documents")
        .or(&["collstats"]),
    command("commitTransaction", Rights::Write, run!(transaction::commit), "writes what a transaction has written")
        .on_admin().in_stable_api().in_transactions(),
    command("compact", Rights::Write, run!(compact), "nothing: the storage engine compacts by itself"),
    command("configureFailPoint", Rights::Admin, run!(configure_fail_point), "injects errors, for tests")
        .on_admin().with_faults(),
    command("connectionStatus", Rights::None, run!(connection_status), "who is authenticated on this connection")
        .before_authentication().of_a_connection(),
    command("connPoolStats", Rights::None, run!(conn_pool_stats), "connections to other members, of which there are none"),
    command("convertToCapped", Rights::Write, run!(capped::refuse), "nothing: there are no capped collections"),
    command("count", Rights::Read, run!(count), "the number of documents that match a filter")
        .in_stable_api(),
    command("create", Rights::Write, run!(create), "creates a collection")
        .in_stable_api().in_transactions(),
    command("createIndexes", Rights::Write, run!(create_indexes), "creates indexes")
        .in_stable_api().in_transactions(),
    command("createRole", Rights::Write, run!(roles_info::custom), "creates a custom role, which is not supported"),
    command("createUser", Rights::Write, run!(create_user), "creates a user"),
    command("currentOp", Rights::Admin, run!(current_op), "the commands that run")
        .on_admin(),
    command("customAction", Rights::Write, run!(custom_action), "Cosmos DB's commands for databases and collections with throughput"),
    command("dataSize", Rights::Read, run!(data_size), "the number and size of a collection's documents")
        .or(&["datasize"]),
    command("dbHash", Rights::Read, run!(db_hash), "hashes of the documents of a database")
        .or(&["dbhash"]),
    command("dbStats", Rights::Read, run!(db_stats), "the number and size of a database's documents")
        .or(&["dbstats"]),
    command("delete", Rights::Write, run!(delete), "deletes documents")
        .in_stable_api().in_transactions(),
    command("distinct", Rights::Read, run!(distinct), "the values of a field")
        .in_transactions().on_snapshots(),
    command("drop", Rights::Write, run!(drop), "removes a collection")
        .in_stable_api(),
    command("dropAllRolesFromDatabase", Rights::Write, run!(roles_info::custom), "removes custom roles, which are not supported"),
    command("dropAllUsersFromDatabase", Rights::Write, run!(drop_user::all), "removes the users of a database"),
    command("dropDatabase", Rights::Write, run!(drop_database), "removes the collections of a database")
        .in_stable_api(),
    command("dropIndexes", Rights::Write, run!(drop_indexes), "removes indexes")
        .or(&["deleteIndexes"]).in_stable_api(),
    command("dropRole", Rights::Write, run!(roles_info::custom), "removes a custom role, which is not supported"),
    command("dropUser", Rights::Write, run!(drop_user), "removes a user"),
    command("enableSharding", Rights::Write, run!(shard_collection::enable), "nothing: every database may have sharded collections")
        .on_admin(),
    command("endSessions", Rights::None, run!(sessions::end), "ends sessions")
        .in_stable_api(),
    command("explain", Rights::Read, run!(explain), "how a command would be carried out")
        .in_stable_api(),
    command("features", Rights::None, run!(features), "features of the server"),
    command("find", Rights::Read, run!(find), "the documents that match a filter")
        .in_stable_api().in_transactions().on_snapshots(),
    command("findAndModify", Rights::Write, run!(find_and_modify), "changes one document, and returns it")
        .or(&["findandmodify"]).in_stable_api().in_transactions(),
    command("fsync", Rights::Admin, run!(fsync), "makes everything durable, which it always is")
        .on_admin(),
    command("getCmdLineOpts", Rights::Admin, run!(get_cmd_line_opts), "the options of the server")
        .on_admin(),
    command("getLastRequestStatistics", Rights::None, run!(get_last_request_statistics), "the request units of the previous command")
        .of_a_connection(),
    command("getLog", Rights::Admin, run!(get_log), "lines of the log, of which none are kept")
        .on_admin(),
    command("getMore", Rights::Read, run!(get_more), "the next documents of a cursor")
        .in_stable_api().in_transactions().on_snapshots(),
    command("getParameter", Rights::Admin, run!(parameters::get), "parameters of the server")
        .on_admin(),
    command("grantPrivilegesToRole", Rights::Write, run!(roles_info::custom), "changes a custom role, which is not supported"),
    command("grantRolesToRole", Rights::Write, run!(roles_info::custom), "changes a custom role, which is not supported"),
    command("grantRolesToUser", Rights::Write, run!(user_roles::grant), "gives roles to a user"),
    command("hello", Rights::None, run!(hello::hello), "the server's place in the replica set, and its limits")
        .before_authentication().in_stable_api().of_a_connection(),
    command("hostInfo", Rights::Admin, run!(host_info), "the machine"),
    command("insert", Rights::Write, run!(insert), "inserts documents")
        .in_stable_api().in_transactions(),
    command("isMaster", Rights::None, run!(hello::is_master), "as hello, for old clients")
        .or(&["ismaster"]).before_authentication().of_a_connection(),
    command("killAllSessions", Rights::Admin, run!(sessions::kill_all), "ends all sessions of users"),
    command("killAllSessionsByPattern", Rights::Admin, run!(sessions::kill_all_by_pattern), "ends sessions that match"),
    command("killCursors", Rights::Read, run!(kill_cursors), "closes cursors")
        .in_stable_api().in_transactions(),
    command("killOp", Rights::Admin, run!(kill_op), "ends a running command")
        .on_admin(),
    command("killSessions", Rights::None, run!(sessions::kill), "ends sessions"),
    command("listCollections", Rights::Read, run!(list_collections), "the collections of a database")
        .in_stable_api(),
    command("listCommands", Rights::None, run!(list_commands), "this list"),
    command("listDatabases", Rights::Read, run!(list_databases), "the databases")
        .on_admin().in_stable_api(),
    command("listIndexes", Rights::Read, run!(list_indexes), "the indexes of a collection")
        .in_stable_api(),
    command("logout", Rights::None, run!(logout), "ends the authentication of this connection")
        .before_authentication().of_a_connection(),
    command("logRotate", Rights::Admin, run!(log_rotate), "begins a new log file, of which there is none")
        .on_admin(),
    command("ping", Rights::None, run!(ping), "nothing")
        .before_authentication().in_stable_api(),
    command("profile", Rights::Admin, run!(profile), "the level of profiling, which is always off"),
    command("refreshSessions", Rights::None, run!(sessions::refresh), "keeps sessions from ending")
        .in_stable_api(),
    command("reIndex", Rights::Write, run!(re_index), "builds the indexes of a collection again"),
    command("renameCollection", Rights::Write, run!(rename_collection), "gives a collection another name")
        .on_admin(),
    command("replSetGetConfig", Rights::Admin, run!(replica_set::config), "the configuration of the replica set")
        .on_admin(),
    command("replSetGetStatus", Rights::Admin, run!(replica_set::status), "the state of the replica set")
        .on_admin(),
    command("revokePrivilegesFromRole", Rights::Write, run!(roles_info::custom), "changes a custom role, which is not supported"),
    command("revokeRolesFromRole", Rights::Write, run!(roles_info::custom), "changes a custom role, which is not supported"),
    command("revokeRolesFromUser", Rights::Write, run!(user_roles::revoke), "takes roles from a user"),
    command("rolesInfo", Rights::Admin, run!(roles_info), "the built-in roles"),
    command("saslContinue", Rights::None, run!(sasl::proceed), "goes on with an authentication")
        .before_authentication().in_stable_api().of_a_connection(),
    command("saslStart", Rights::None, run!(sasl::start), "begins an authentication")
        .before_authentication().in_stable_api().of_a_connection(),
    command("serverStatus", Rights::Admin, run!(server_status), "counters of the server"),
    command("setParameter", Rights::Admin, run!(parameters::set), "changes parameters of the server")
        .on_admin(),
    command("shardCollection", Rights::Write, run!(shard_collection), "creates a sharded collection"),
    command("startSession", Rights::None, run!(sessions::start), "begins a session"),
    command("top", Rights::Admin, run!(top), "the use of collections")
        .on_admin(),
    command("update", Rights::Write, run!(update), "updates documents")
        .in_stable_api().in_transactions(),
    command("updateRole", Rights::Write, run!(roles_info::custom), "changes a custom role, which is not supported"),
    command("updateUser", Rights::Write, run!(update_user), "changes a user"),
    command("usersInfo", Rights::Admin, run!(users_info), "users and their roles"),
    command("validate", Rights::Admin, run!(validate), "checks the storage of a collection"),
    command("whatsmyuri", Rights::None, run!(whatsmyuri), "the client's address")
        .before_authentication().of_a_connection(),
];

#[cfg(test)]
mod tests;
