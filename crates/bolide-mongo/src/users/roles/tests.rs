use super::*;

/// What some roles allow in their own database, in another one, and where they exist; from MongoDB's manual.
#[test]
fn roles_allow_what_the_manual_says() {
    use Privilege::{Collections, Database, ListDatabases, Monitor, Read, ReadDefinitions, Server, Users, Write};
    // Role, its database, privilege, database: allowed?
    let table = [
        ("read", "shop", Read, "shop", true),
        ("read", "shop", ReadDefinitions, "shop", true),
        ("read", "shop", Read, "other", false),
        ("read", "shop", Write, "shop", false),
        ("read", "admin", Read, "shop", false),
        ("readWrite", "shop", Write, "shop", true),
        ("readWrite", "shop", Collections, "shop", true),
        ("readWrite", "shop", Database, "shop", false),
        ("readWrite", "shop", Users, "shop", false),
        ("readWrite", "shop", Write, "other", false),
        ("dbAdmin", "shop", Read, "shop", false),
        ("dbAdmin", "shop", Write, "shop", false),
        ("dbAdmin", "shop", Collections, "shop", true),
        ("dbAdmin", "shop", Database, "shop", true),
        ("userAdmin", "shop", Users, "shop", true),
        ("userAdmin", "shop", Users, "admin", false),
        ("userAdmin", "shop", Read, "shop", false),
        ("dbOwner", "shop", Write, "shop", true),
        ("dbOwner", "shop", Users, "shop", true),
        ("dbOwner", "shop", Server, "shop", false),
        ("dbOwner", "shop", Read, "other", false),
        ("readAnyDatabase", "admin", Read, "shop", true),
        ("readAnyDatabase", "admin", ListDatabases, "admin", true),
        ("readAnyDatabase", "admin", Write, "shop", false),
        ("readWriteAnyDatabase", "admin", Write, "shop", true),
        ("dbAdminAnyDatabase", "admin", Database, "shop", true),
        ("dbAdminAnyDatabase", "admin", Read, "shop", false),
        ("userAdminAnyDatabase", "admin", Users, "shop", true),
        ("clusterMonitor", "admin", Monitor, "admin", true),
        ("clusterMonitor", "admin", Server, "admin", false),
        ("clusterMonitor", "admin", Read, "shop", false),
        ("root", "admin", Server, "admin", true),
        ("root", "admin", Users, "shop", true),
    ];
    for (name, of, privilege, database, expected) in table {
        let role = Role::find(name, of).expect(name);
        assert_eq!(
            role.allows(privilege, database),
            expected,
            "{name}@{of} {privilege:?} {database}"
        );
    }
}

#[test]
fn roles_for_all_databases_exist_in_admin_only() {
    for name in ["root", "readAnyDatabase", "clusterMonitor", "custom", ""] {
        let error = Role::find(name, "shop").expect_err(name);
        assert_eq!(
            (error.code, error.message),
            (Code(31), format!("Could not find role: {name}@shop"))
        );
    }
    let names: Vec<&str> = Role::all_of("shop").map(|role| role.name()).collect();
    assert_eq!(names, ["dbAdmin", "dbOwner", "read", "readWrite", "userAdmin"]);
    assert_eq!(Role::all_of("admin").count(), 16);
}
