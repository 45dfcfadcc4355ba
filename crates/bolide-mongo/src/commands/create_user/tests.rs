use std::sync::Arc;

use bson::{RawDocumentBuf, rawdoc};

use super::super::fixture::log_in::log_in;
use super::super::fixture::{self, KEY, READ_ONLY_KEY, code, run};
use crate::client::Client;
use crate::state::MongoState;

async fn server() -> (Arc<MongoState>, Client) {
    let state = fixture::state(fixture::options()).await;
    let administrator = fixture::authenticated(&state, KEY);
    (state, administrator)
}

fn create(name: &str, role: &str) -> RawDocumentBuf {
    rawdoc! { "createUser": name, "pwd": "secret", "roles": [role], "$db": "shop" }
}

#[tokio::test]
async fn a_user_authenticates_in_its_database_with_its_password() {
    let (state, administrator) = server().await;
    assert_eq!(code(&state, &administrator, create("ada", "readWrite")).await, 0);
    for (database, user, password, expected) in [
        ("shop", "ada", "secret", 0),
        ("shop", "ada", "wrong", 18),
        ("other", "ada", "secret", 18),
        ("shop", "bob", "secret", 18),
    ] {
        let code = log_in(&state, &fixture::client(), database, user, password).await;
        assert_eq!(code, expected, "{database} {user} {password}");
    }
}

#[tokio::test]
async fn a_user_has_the_rights_of_its_roles_at_each_command() {
    let (state, administrator) = server().await;
    assert_eq!(code(&state, &administrator, create("ada", "read")).await, 0);
    let ada = fixture::client();
    assert_eq!(log_in(&state, &ada, "shop", "ada", "secret").await, 0);
    let insert = || rawdoc! { "insert": "c", "documents": [{ "_id": 1 }], "ordered": false, "$db": "shop" };
    let find = |database: &str| rawdoc! { "find": "c", "$db": database };
    assert_eq!(code(&state, &ada, find("shop")).await, 0);
    assert_eq!(code(&state, &ada, find("other")).await, 13);
    assert_eq!(code(&state, &ada, insert()).await, 13);
    let grant = rawdoc! { "grantRolesToUser": "ada", "roles": ["readWrite"], "$db": "shop" };
    assert_eq!(code(&state, &ada, grant.clone()).await, 13);
    assert_eq!(code(&state, &administrator, grant).await, 0);
    assert_eq!(code(&state, &ada, insert()).await, 0);
    let revoke = rawdoc! { "revokeRolesFromUser": "ada", "roles": ["readWrite"], "$db": "shop" };
    assert_eq!(code(&state, &administrator, revoke).await, 0);
    assert_eq!(code(&state, &ada, insert()).await, 13);
    let out = rawdoc! { "aggregate": "c", "pipeline": [{ "$out": "d" }], "cursor": {}, "$db": "shop" };
    assert_eq!(code(&state, &ada, out).await, 13);
    // Dropped users have no rights any more.
    assert_eq!(
        code(&state, &administrator, rawdoc! { "dropUser": "ada", "$db": "shop" }).await,
        0
    );
    assert_eq!(code(&state, &ada, find("shop")).await, 13);
    assert_eq!(log_in(&state, &fixture::client(), "shop", "ada", "secret").await, 18);
}

#[tokio::test]
async fn roles_are_granted_only_by_who_administers_them() {
    let (state, administrator) = server().await;
    assert_eq!(code(&state, &administrator, create("ada", "userAdmin")).await, 0);
    let ada = fixture::client();
    assert_eq!(log_in(&state, &ada, "shop", "ada", "secret").await, 0);
    assert_eq!(code(&state, &ada, create("bob", "readWrite")).await, 0);
    let root = rawdoc! { "role": "root", "db": "admin" };
    let mine = rawdoc! { "grantRolesToUser": "ada", "roles": [root.clone()], "$db": "shop" };
    assert_eq!(code(&state, &ada, mine).await, 13);
    let update = rawdoc! { "updateUser": "ada", "roles": [root.clone()], "$db": "shop" };
    assert_eq!(code(&state, &ada, update).await, 13);
    let create = rawdoc! { "createUser": "eve", "pwd": "x", "roles": [root], "$db": "shop" };
    assert_eq!(code(&state, &ada, create).await, 13);
}

#[tokio::test]
async fn errors_have_the_codes_of_mongodb() {
    let (state, administrator) = server().await;
    assert_eq!(code(&state, &administrator, create("ada", "read")).await, 0);
    let table = [
        (create("ada", "read"), 51003),
        (create("localhost", "read"), 51003),
        (create("bob", "root"), 31),
        (create("", "read"), 2),
        (rawdoc! { "createUser": "bob", "roles": [], "$db": "shop" }, 2),
        (rawdoc! { "createUser": "bob", "pwd": "x", "$db": "shop" }, 40414),
        (
            rawdoc! { "createUser": "bob", "pwd": "x", "roles": [], "mechanisms": ["X"], "$db": "shop" },
            2,
        ),
        (
            rawdoc! { "createUser": "bob", "pwd": "x", "roles": [], "unknown": 1, "$db": "shop" },
            40415,
        ),
        (rawdoc! { "createUser": 1, "pwd": "x", "roles": [], "$db": "shop" }, 14),
        (rawdoc! { "updateUser": "ada", "$db": "shop" }, 2),
        (rawdoc! { "updateUser": "bob", "pwd": "x", "$db": "shop" }, 11),
        (rawdoc! { "dropUser": "bob", "$db": "shop" }, 11),
        (
            rawdoc! { "grantRolesToUser": "bob", "roles": ["read"], "$db": "shop" },
            11,
        ),
        (rawdoc! { "grantRolesToUser": "ada", "roles": [], "$db": "shop" }, 2),
        (
            rawdoc! { "createRole": "r", "privileges": [], "roles": [], "$db": "shop" },
            238,
        ),
    ];
    for (command, expected) in table {
        assert_eq!(
            code(&state, &administrator, command.clone()).await,
            expected,
            "{command:?}"
        );
    }
}

#[tokio::test]
async fn users_are_listed_without_what_verifies_their_passwords() {
    let (state, administrator) = server().await;
    for (name, role) in [("bob", "read"), ("ada", "readWrite")] {
        assert_eq!(code(&state, &administrator, create(name, role)).await, 0);
    }
    let reply = run(&state, &administrator, rawdoc! { "usersInfo": 1, "$db": "shop" }).await;
    let users: Vec<RawDocumentBuf> = reply
        .get_array("users")
        .expect("users")
        .into_iter()
        .map(|user| user.expect("valid").as_document().expect("a document").to_owned())
        .collect();
    let ids: Vec<&str> = users.iter().map(|user| user.get_str("_id").expect("an id")).collect();
    assert_eq!(ids, ["shop.ada", "shop.bob"]);
    assert!(
        users
            .iter()
            .all(|user| user.get("credentials").expect("valid").is_none())
    );
    let roles = users[0].get_array("roles").expect("roles");
    let role = roles.get_document(0).expect("one role");
    assert_eq!(
        (role.get_str("role").ok(), role.get_str("db").ok()),
        (Some("readWrite"), Some("shop"))
    );
    let reader = fixture::authenticated(&state, READ_ONLY_KEY);
    assert_eq!(
        code(&state, &reader, rawdoc! { "usersInfo": 1, "$db": "shop" }).await,
        13
    );
    // A user sees itself.
    let ada = fixture::client();
    assert_eq!(log_in(&state, &ada, "shop", "ada", "secret").await, 0);
    assert_eq!(
        code(&state, &ada, rawdoc! { "usersInfo": "ada", "$db": "shop" }).await,
        0
    );
    assert_eq!(
        code(&state, &ada, rawdoc! { "usersInfo": "bob", "$db": "shop" }).await,
        13
    );
    let dropped = run(
        &state,
        &administrator,
        rawdoc! { "dropAllUsersFromDatabase": 1, "$db": "shop" },
    )
    .await;
    assert_eq!(dropped.get_i32("n").ok(), Some(2));
}

#[tokio::test]
async fn the_collection_of_the_users_is_not_for_clients() {
    let (state, administrator) = server().await;
    assert_eq!(code(&state, &administrator, create("ada", "read")).await, 0);
    for command in [
        rawdoc! { "find": "system.users" },
        rawdoc! { "insert": "system.users", "documents": [{ "_id": 1 }] },
        rawdoc! { "drop": "system.users" },
        rawdoc! { "aggregate": "system.users", "pipeline": [], "cursor": {} },
        rawdoc! { "aggregate": "c", "pipeline": [{ "$out": "system.users" }], "cursor": {} },
    ] {
        let found = code(&state, &administrator, command.clone()).await;
        assert_eq!(found, 13, "{command:?}");
    }
    let union = rawdoc! { "aggregate": "c", "pipeline": [{ "$unionWith": "system.users" }], "cursor": {} };
    let reply = run(&state, &administrator, union).await;
    let batch = reply
        .get_document("cursor")
        .and_then(|cursor| cursor.get_array("firstBatch"));
    assert!(batch.expect("a batch").is_empty());
    assert_eq!(code(&state, &administrator, rawdoc! { "dropDatabase": 1 }).await, 20);
    let listed = run(&state, &administrator, rawdoc! { "listCollections": 1 }).await;
    let listed = format!("{:?}", listed.get_document("cursor").expect("a cursor"));
    assert!(!listed.contains("system.users"), "{listed}");
    assert_eq!(log_in(&state, &fixture::client(), "shop", "ada", "secret").await, 0);
}

#[tokio::test]
async fn a_changed_password_and_mechanisms_count_at_once() {
    let (state, administrator) = server().await;
    assert_eq!(code(&state, &administrator, create("ada", "read")).await, 0);
    assert_eq!(log_in(&state, &fixture::client(), "shop", "ada", "secret").await, 0);
    let change = rawdoc! { "updateUser": "ada", "pwd": "new", "$db": "shop" };
    assert_eq!(code(&state, &administrator, change).await, 0);
    assert_eq!(log_in(&state, &fixture::client(), "shop", "ada", "secret").await, 18);
    assert_eq!(log_in(&state, &fixture::client(), "shop", "ada", "new").await, 0);
    let only = rawdoc! { "updateUser": "ada", "mechanisms": ["SCRAM-SHA-1"], "$db": "shop" };
    assert_eq!(code(&state, &administrator, only).await, 0);
    assert_eq!(log_in(&state, &fixture::client(), "shop", "ada", "new").await, 18);
    let more = rawdoc! { "updateUser": "ada", "mechanisms": ["SCRAM-SHA-256"], "$db": "shop" };
    assert_eq!(code(&state, &administrator, more).await, 2);
    let hello = rawdoc! { "hello": 1, "saslSupportedMechs": "shop.ada" };
    let reply = run(&state, &fixture::client(), hello).await;
    let names = reply.get_array("saslSupportedMechs").expect("mechanisms");
    assert_eq!(
        (names.get_str(0).ok(), names.get_str(1).is_ok()),
        (Some("SCRAM-SHA-1"), false)
    );
}

#[tokio::test]
async fn a_user_sees_the_databases_of_its_roles() {
    let (state, administrator) = server().await;
    for database in ["shop", "other"] {
        let insert = rawdoc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": database };
        assert_eq!(code(&state, &administrator, insert).await, 0);
    }
    assert_eq!(code(&state, &administrator, create("ada", "read")).await, 0);
    let ada = fixture::client();
    assert_eq!(log_in(&state, &ada, "shop", "ada", "secret").await, 0);
    let reply = run(&state, &ada, rawdoc! { "listDatabases": 1, "nameOnly": true }).await;
    let databases = reply.get_array("databases").expect("databases");
    let names: Vec<String> = databases
        .into_iter()
        .map(|database| {
            format!(
                "{:?}",
                database
                    .expect("valid")
                    .as_document()
                    .expect("one")
                    .get_str("name")
                    .ok()
            )
        })
        .collect();
    assert_eq!(names, ["Some(\"shop\")"]);
}

/// With the NoSQL API every container can be read with a read-only key.
#[tokio::test]
async fn the_collection_of_the_users_is_no_container() {
    let (state, administrator) = server().await;
    assert_eq!(code(&state, &administrator, create("ada", "read")).await, 0);
    let insert = rawdoc! { "insert": "c", "documents": [{ "_id": 1 }] };
    assert_eq!(code(&state, &administrator, insert).await, 0);
    let account = &state.account;
    let database = account.database_by_name("admin").expect("it exists").rid;
    let named = |name: &str| account.container_by_name(database, name).ok();
    assert!(named("c").is_some());
    assert!(named("system.users").is_none());
    let hidden = account
        .private_collection("admin", "system.users")
        .expect("it is there");
    assert!(account.container_by_rid(hidden.rid()).is_err());
    let listed = account.list_containers(database).expect("a list");
    let names: Vec<_> = listed
        .iter()
        .map(|container| container.properties().id.clone())
        .collect();
    assert_eq!(names, ["c"]);
    let figures = account.container_figures().await.expect("figures");
    let names: Vec<_> = figures.iter().map(|container| container.id.as_str()).collect();
    assert_eq!(names, ["c"]);
    let resources: Vec<_> = account.list_offers().into_iter().map(|offer| offer.resource).collect();
    assert!(!resources.contains(&bolide_core::OfferResource::Container(hidden.rid())));
    // It is a collection for nobody, in statistics neither.
    let hashes = run(&state, &administrator, rawdoc! { "dbHash": 1 }).await;
    let hashed = hashes.get_document("collections").expect("hashes");
    assert_eq!(hashed.iter().count(), 1);
    let statistics = run(&state, &administrator, rawdoc! { "dbStats": 1 }).await;
    assert_eq!(statistics.get_i64("collections").expect("a number"), 1);
    for name in ["createRole", "create"] {
        let mut command = RawDocumentBuf::new();
        command.append(bson::raw::CString::try_from(name).expect("a name"), "system.users");
        assert_ne!(code(&state, &administrator, command).await, 0, "{name}");
    }
}

#[tokio::test]
async fn users_of_a_database_that_was_removed_are_gone() {
    let (state, administrator) = server().await;
    assert_eq!(code(&state, &administrator, create("ada", "read")).await, 0);
    let ada = fixture::client();
    assert_eq!(log_in(&state, &ada, "shop", "ada", "secret").await, 0);
    let find = || rawdoc! { "find": "c", "$db": "shop" };
    assert_eq!(code(&state, &ada, find()).await, 0);
    // As the NoSQL API does it.
    let account = &state.account;
    let request = account.begin().await.expect("a request");
    let database = account.database_by_name("admin").expect("it exists").rid;
    account
        .delete_database(&request, database, None)
        .await
        .expect("deleted");
    assert_eq!(code(&state, &ada, find()).await, 13);
    assert_eq!(code(&state, &administrator, create("bob", "read")).await, 0);
    assert_eq!(code(&state, &ada, find()).await, 13);
}

#[tokio::test]
async fn what_is_stored_with_a_user_is_limited() {
    let (state, administrator) = server().await;
    let text = "x".repeat(crate::limits::CUSTOM_DATA_BYTES);
    let mut large = create("ada", "read");
    large.append(bson::raw::cstr!("customData"), rawdoc! { "text": text });
    assert_eq!(code(&state, &administrator, large).await, 2);
}
