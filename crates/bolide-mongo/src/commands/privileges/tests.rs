use uuid::Uuid;

use super::super::table::COMMANDS;
use super::*;
use crate::authentication::UserCredentials;
use crate::users::Role;

/// Who may run a command: a letter for each kind of sender.
///
/// `-` without authentication, `k` the read-only key, and users with a role on the database: `r` read, `w` readWrite, `d` dbAdmin, `u` userAdmin, `m`
/// clusterMonitor. The full key and `root` may run everything. Written from MongoDB's manual; those of other rows than these are not known here.
const ALLOWED: &[(&str, &str)] = &[
    ("abortTransaction", "rwdum"),
    ("aggregate", "krw"),
    ("buildInfo", "-krwdum"),
    ("cloneCollectionAsCapped", "w"),
    ("collMod", "d"),
    ("collStats", "krwdm"),
    ("commitTransaction", "rwdum"),
    ("compact", "d"),
    ("configureFailPoint", ""),
    ("connPoolStats", "krwdum"),
    ("connectionStatus", "-krwdum"),
    ("convertToCapped", "wd"),
    ("count", "krw"),
    ("create", "wd"),
    ("createIndexes", "wd"),
    ("createRole", "u"),
    ("createUser", "u"),
    ("currentOp", "m"),
    ("customAction", "d"),
    ("dataSize", "krwdm"),
    ("dbHash", "krwdm"),
    ("dbStats", "krwdm"),
    ("delete", "w"),
    ("distinct", "krw"),
    ("drop", "wd"),
    ("dropAllRolesFromDatabase", "u"),
    ("dropAllUsersFromDatabase", "u"),
    ("dropDatabase", "d"),
    ("dropIndexes", "wd"),
    ("dropRole", "u"),
    ("dropUser", "u"),
    ("enableSharding", "d"),
    ("endSessions", "krwdum"),
    ("explain", "krw"),
    ("features", "krwdum"),
    ("find", "krw"),
    ("findAndModify", "w"),
    ("fsync", ""),
    ("getCmdLineOpts", "m"),
    ("getLastRequestStatistics", "krwdum"),
    ("getLog", "m"),
    ("getMore", "krw"),
    ("getParameter", "m"),
    ("grantPrivilegesToRole", "u"),
    ("grantRolesToRole", "u"),
    ("grantRolesToUser", "u"),
    ("hello", "-krwdum"),
    ("hostInfo", "m"),
    ("insert", "w"),
    ("isMaster", "-krwdum"),
    ("killAllSessions", ""),
    ("killAllSessionsByPattern", ""),
    ("killCursors", "krw"),
    ("killOp", ""),
    ("killSessions", "krwdum"),
    ("listCollections", "krwdm"),
    ("listCommands", "krwdum"),
    ("listDatabases", "krwdum"),
    ("listIndexes", "krwdm"),
    ("logRotate", ""),
    ("logout", "-krwdum"),
    ("ping", "-krwdum"),
    ("profile", "d"),
    ("reIndex", "d"),
    ("refreshSessions", "krwdum"),
    ("renameCollection", "wd"),
    ("replSetGetConfig", "m"),
    ("replSetGetStatus", "m"),
    ("revokePrivilegesFromRole", "u"),
    ("revokeRolesFromRole", "u"),
    ("revokeRolesFromUser", "u"),
    ("rolesInfo", "u"),
    ("saslContinue", "-krwdum"),
    ("saslStart", "-krwdum"),
    ("serverStatus", "m"),
    ("setParameter", ""),
    ("shardCollection", "d"),
    ("startSession", "krwdum"),
    ("top", "m"),
    ("update", "w"),
    ("updateRole", "u"),
    ("updateUser", "u"),
    // Of itself; the command checks the rest.
    ("usersInfo", "rwdum"),
    ("validate", "d"),
    ("whatsmyuri", "-krwdum"),
];

fn user(role: &str, of: &str) -> Grants {
    Grants::User(Arc::new(User {
        name: "ada".to_owned(),
        database: "shop".to_owned(),
        id: Uuid::from_bytes([1; 16]),
        roles: vec![Role::find(role, of).expect("a role")],
        credentials: UserCredentials::default(),
        custom_data: None,
    }))
}

#[test]
fn every_command_for_every_kind_of_sender() {
    let senders = [
        ('k', Grants::Key(Access::ReadOnly)),
        ('r', user("read", "shop")),
        ('w', user("readWrite", "shop")),
        ('d', user("dbAdmin", "shop")),
        ('u', user("userAdmin", "shop")),
        ('m', user("clusterMonitor", "admin")),
    ];
    for command in COMMANDS {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == command.name) else {
            panic!("{} is missing in the table of this test", command.name);
        };
        assert_eq!(
            command.is_before_authentication,
            allowed.contains('-'),
            "{}",
            command.name
        );
        for (letter, grants) in &senders {
            let expected = allowed.contains(*letter);
            assert_eq!(
                grants.allow_command(command, "shop"),
                expected,
                "{} {letter}",
                command.name
            );
            if !["k", "m"].contains(&letter.to_string().as_str()) {
                let is_for_all = of_command(command) == Privilege::None;
                assert_eq!(
                    grants.allow_command(command, "other"),
                    is_for_all,
                    "{} {letter}",
                    command.name
                );
            }
        }
        for grants in [Grants::Key(Access::Full), user("root", "admin")] {
            assert!(grants.allow_command(command, "shop"), "{}", command.name);
        }
    }
}
