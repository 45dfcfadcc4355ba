use super::*;

fn user() -> User {
    User {
        name: "ada".to_owned(),
        database: "shop".to_owned(),
        id: Uuid::from_bytes([7; 16]),
        roles: vec![
            Role::find("readWrite", "shop").expect("a role"),
            Role::find("clusterMonitor", "admin").expect("a role"),
        ],
        credentials: UserCredentials::create(&[Mechanism::Sha256], "ada", "secret").expect("a password"),
        custom_data: Some(rawdoc! { "team": 1 }),
    }
}

#[test]
fn what_is_stored_is_read_again() {
    let user = user();
    let document = user.to_document();
    assert_eq!(User::from_document(&document).expect("well formed"), user);
    assert_eq!(document.get_str("_id").ok(), Some("shop.ada"));
    let keys = document
        .get_document("credentials")
        .and_then(|all| all.get_document("SCRAM-SHA-256"));
    assert_eq!(keys.expect("there").get_i32("iterationCount").ok(), Some(15_000));
    assert!(!document.as_bytes().windows(6).any(|bytes| bytes == b"secret"));
}

#[test]
fn other_documents_are_errors() {
    for document in [
        rawdoc! {},
        rawdoc! { "roles": [1] },
        rawdoc! { "roles": [{ "role": "x", "db": "y" }] },
    ] {
        assert_eq!(
            User::from_document(&document).expect_err("no user").code,
            Code::INTERNAL_ERROR
        );
    }
}
