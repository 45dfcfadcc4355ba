use std::collections::HashSet;

use super::*;

#[test]
fn names_are_sorted_and_unique() {
    let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
    let mut sorted = names.clone();
    sorted.sort_by_key(|name| name.to_lowercase());
    assert_eq!(names, sorted);
    let all: Vec<&str> = COMMANDS
        .iter()
        .flat_map(|command| command.aliases.iter().copied().chain([command.name]))
        .collect();
    let unique: HashSet<&str> = all.iter().copied().collect();
    assert_eq!(unique.len(), all.len());
}

#[test]
fn commands_are_found_by_every_spelling_and_by_case() {
    for (name, expected) in [
        ("ping", Some("ping")),
        ("ismaster", Some("isMaster")),
        ("isMaster", Some("isMaster")),
        ("buildinfo", Some("buildInfo")),
        ("Ping", None),
        ("", None),
    ] {
        assert_eq!(Command::named(name).map(|command| command.name), expected, "{name}");
    }
}

/// Source: mongo.md §4.
#[test]
fn before_authentication_only_harmless_commands_run() {
    let allowed: Vec<&str> = COMMANDS
        .iter()
        .filter(|command| command.is_before_authentication)
        .map(|command| command.name)
        .collect();
    let expected = [
        "buildInfo",
        "connectionStatus",
        "hello",
        "isMaster",
        "logout",
        "ping",
        "saslContinue",
        "saslStart",
        "whatsmyuri",
    ];
    assert_eq!(allowed, expected);
}

#[test]
fn a_read_only_key_reads() {
    assert!(Rights::Read.are_given_by(Access::ReadOnly) && Rights::None.are_given_by(Access::ReadOnly));
    assert!(!Rights::Write.are_given_by(Access::ReadOnly) && !Rights::Admin.are_given_by(Access::ReadOnly));
    for rights in [Rights::None, Rights::Read, Rights::Write, Rights::Admin] {
        assert!(rights.are_given_by(Access::Full));
    }
}
