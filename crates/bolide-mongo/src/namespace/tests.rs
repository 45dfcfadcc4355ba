use super::*;

#[test]
fn names_of_collections() {
    let long = "c".repeat(253);
    let cases = [
        ("db", "c", true),
        ("db", "a.b", true),
        ("db", "system.profile", true),
        ("db", "$cmd.aggregate", true),
        ("db", "", false),
        ("db", ".c", false),
        ("db", "a$b", false),
        ("db", "a\0b", false),
        ("", "c", false),
        ("a.b", "c", false),
        ("a b", "c", false),
        ("a$", "c", false),
        ("d", &long, true),
        ("db", &long, false),
    ];
    for (database, collection, is_valid) in cases {
        let namespace = Namespace::new(database, collection);
        assert_eq!(namespace.is_ok(), is_valid, "{database:?} {collection:?}");
        if let Err(error) = namespace {
            assert_eq!(error.code, Code::INVALID_NAMESPACE);
        }
    }
}

#[test]
fn databases_have_up_to_63_bytes() {
    assert!(check_database(&"d".repeat(63)).is_ok());
    assert!(check_database(&"d".repeat(64)).is_err());
}

#[test]
fn a_namespace_is_split_at_its_first_dot() {
    let namespace = Namespace::parse("db.a.b").expect("valid");
    assert_eq!(
        (namespace.database.as_str(), namespace.collection.as_str()),
        ("db", "a.b")
    );
    assert_eq!(namespace.to_string(), "db.a.b");
    assert!(Namespace::parse("db").is_err());
}
