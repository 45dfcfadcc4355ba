use bolide_model::rid::{ChildKind, PermissionRid};

use super::*;
use crate::catalog::permissions::PermissionMode;

const DATABASE: DatabaseRid = DatabaseRid::from_bytes([1, 0, 0, 0]);

fn grant(resource: &str) -> PermissionProperties {
    PermissionProperties {
        id: "p".into(),
        mode: PermissionMode::Read,
        mode_text: "Read".into(),
        resource: resource.into(),
        partition_key: None,
    }
}

#[test]
fn names_have_the_keys_that_the_module_draws() {
    let user = UserRid::new(DATABASE, 2);
    let script = ChildRid::new(ContainerRid::new(DATABASE, 3), ChildKind::Trigger, 9);
    let drawn: [(Name<'_>, &[u8]); 6] = [
        (Name::Database("d"), b"Dd"),
        (Name::Container(DATABASE, "c"), b"C\x01\0\0\0c"),
        (Name::User(DATABASE, "u"), b"U\x01\0\0\0u"),
        (Name::EncryptionKey(DATABASE, "k"), b"K\x01\0\0\0k"),
        (Name::Permission(user, "p"), b"P\x01\0\0\0\0\0\0\x02p"),
        (Name::Script(script, "t"), b"R\x01\0\0\0\x80\0\0\x03Tt"),
    ];
    for (name, key) in drawn {
        assert_eq!(name.bytes(), key, "{name:?}");
    }
}

#[test]
fn one_resource_has_one_name_however_its_link_is_written() {
    let user = UserRid::new(DATABASE, 2);
    let name = |resource: &str| Name::Grant(user, &grant(resource)).bytes();
    assert_eq!(name("dbs/d/colls/c"), name("/dbs/d/colls/c/"));
    assert_ne!(name("dbs/d/colls/c"), name("dbs/d/colls/d"));
    let long = "x".repeat(100_000);
    assert_eq!(name(&long).len(), 1 + 8 + 16);
}

#[test]
fn an_entry_leads_to_its_row() {
    let rid = PermissionRid {
        user: UserRid::new(DATABASE, 2),
        number: 7,
    };
    let key = RowKey::Permission(rid);
    let value = format!(
        r#"{{"id":"p","mode":"Read","resource":"r","partitionKey":null,"etag":"{:032x}","ts":1}}"#,
        1
    );
    let row = Row::decode(key, value.as_bytes()).expect("a row");
    let entries = entries(key, &row);
    assert_eq!(entries.len(), 2);
    for (name, value) in entries {
        assert_eq!(target(&name, &value).unwrap(), key);
    }
    let key = RowKey::Script(ChildRid::new(ContainerRid::new(DATABASE, 3), ChildKind::Trigger, 9));
    let value = format!(
        r#"{{"id":"t","body":"12345","fires":["Pre","All"],"etag":"{:032x}","ts":1}}"#,
        1
    );
    let row = Row::decode(key, value.as_bytes()).expect("a row");
    let [(name, value)] = &super::entries(key, &row)[..] else {
        panic!("one name")
    };
    assert_eq!(target(name, value).unwrap(), key);
    assert_eq!(source_bytes(value), 5);
    assert!(target(name, b"").is_err());
}
