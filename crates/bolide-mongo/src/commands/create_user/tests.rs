use std::num::NonZeroU32;
use std::sync::Arc;

use bson::spec::BinarySubtype;
use bson::{Binary, RawDocument, RawDocumentBuf, rawdoc};
use data_encoding::BASE64;
use ring::{digest, hmac, pbkdf2};

use super::super::fixture::{self, KEY, READ_ONLY_KEY, code, code_of, run};
use crate::client::Client;
use crate::state::MongoState;

async fn server() -> (Arc<MongoState>, Client) {
    let state = fixture::state(fixture::options()).await;
    let administrator = fixture::authenticated(&state, KEY);
    (state, administrator)
}

fn payload(text: &str) -> Binary {
    Binary {
        subtype: BinarySubtype::Generic,
        bytes: text.as_bytes().to_vec(),
    }
}

fn answer(reply: &RawDocument) -> String {
    let bytes = reply.get_binary("payload").expect("a payload").bytes.to_vec();
    String::from_utf8(bytes).expect("text")
}

/// Authenticates as a driver does, with SCRAM-SHA-256 (RFC 7677); returns the code of the error, 0 if it succeeds.
async fn log_in(state: &Arc<MongoState>, client: &Client, database: &str, user: &str, password: &str) -> i32 {
    let bare = format!("n={user},r=abc");
    let start = rawdoc! {
        "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": payload(&format!("n,,{bare}")),
        "options": { "skipEmptyExchange": true }, "$db": database,
    };
    let reply = run(state, client, start).await;
    if code_of(&reply) != 0 {
        return code_of(&reply);
    }
    let first = answer(&reply);
    let fields: Vec<&str> = first.splitn(3, ',').map(|field| &field[2..]).collect();
    let salt = BASE64.decode(fields[1].as_bytes()).expect("base64");
    let iterations: NonZeroU32 = fields[2].parse().expect("a number");
    let mut salted = [0; 32];
    pbkdf2::derive(
        pbkdf2::PBKDF2_HMAC_SHA256,
        iterations,
        &salt,
        password.as_bytes(),
        &mut salted,
    );
    let sign = |key: &[u8], text: &[u8]| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text);
    let client_key = sign(&salted, b"Client Key");
    let stored_key = digest::digest(&digest::SHA256, client_key.as_ref());
    let without_proof = format!("c=biws,r={}", fields[0]);
    let signature = sign(
        stored_key.as_ref(),
        format!("{bare},{first},{without_proof}").as_bytes(),
    );
    let proof: Vec<u8> = client_key
        .as_ref()
        .iter()
        .zip(signature.as_ref())
        .map(|(a, b)| a ^ b)
        .collect();
    let last = format!("{without_proof},p={}", BASE64.encode(&proof));
    let id = reply.get_i32("conversationId").expect("a number");
    let proceed = rawdoc! { "saslContinue": 1, "conversationId": id, "payload": payload(&last), "$db": database };
    code_of(&run(state, client, proceed).await)
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
