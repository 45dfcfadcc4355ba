use super::*;

fn refusal(result: Result<()>) -> Option<(i32, String)> {
    result.err().map(|error| (error.code.0, error.message))
}

#[test]
fn databases_are_named_without_path_characters() {
    for name in ["a", "admin", "ä", "my-db_1", &"x".repeat(63)] {
        assert_eq!(refusal(check_database(name)), None, "{name}");
    }
    for name in ["", "a b", "a.b", "a/b", "a\\b", "a\"b", "a$b"] {
        let text = format!("Invalid database name: '{name}'");
        assert_eq!(refusal(check_database(name)), Some((73, text)), "{name}");
    }
    let text = "namespaces cannot have embedded null characters".to_owned();
    assert_eq!(refusal(check_database("a\0b")), Some((73, text)));
    let text = "db name must be at most 63 characters, found: 64".to_owned();
    assert_eq!(refusal(check_database(&"x".repeat(64))), Some((73, text)));
}

#[test]
fn collections_are_named_by_mongodbs_rules() {
    for name in [
        "c",
        "a.b",
        "a b",
        "system",
        "system.users",
        "systems.x",
        &"x".repeat(252),
    ] {
        assert_eq!(refusal(check_collection("db", name)), None, "{name}");
    }
    let long = "x".repeat(253);
    let too_long = format!("Fully qualified namespace is too long. Namespace: db.{long} Max: 255");
    for (name, text) in [
        ("", "Invalid namespace specified 'db.'"),
        ("a\0b", "namespaces cannot have embedded null characters"),
        (".a", "Collection names cannot start with '.': .a"),
        ("a$b", "Invalid collection name: a$b"),
        ("system.foo", "Invalid system namespace: db.system.foo"),
        (&long, &too_long),
    ] {
        assert_eq!(
            refusal(check_collection("db", name)),
            Some((73, text.to_owned())),
            "{name}"
        );
    }
}

#[test]
fn the_servers_own_collections_are_not_written() {
    assert_eq!(refusal(check_writable("db", "system.users")), None);
    for name in ["system.views", "system.profile"] {
        let text = format!("cannot write to db.{name}");
        assert_eq!(refusal(check_writable("db", name)), Some((73, text)));
    }
}

#[test]
fn a_namespace_is_split_at_its_first_dot() {
    assert_eq!(split("db.a.b").ok(), Some(("db", "a.b")));
    for namespace in ["db", "", ".c", "db.", "a b.c"] {
        assert_eq!(split(namespace).map_err(|error| error.code.0), Err(73), "{namespace}");
    }
}
