use super::*;
use bolide_model::account_key::{AccountKey, WELL_KNOWN_KEY};

const OTHER_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

fn keys(key: &str) -> Keys {
    Keys::new(AccountKey::parse(key).expect("a key"))
}

fn grant() -> Grant {
    Grant {
        mode: PermissionMode::Read,
        resource: "dbs/d/colls/ü b/docs/50%".to_owned(),
        container: ContainerRid::parse("SnxPAOM2VfM="),
        partition_key: Some(PartitionKey::from_header(r#"["é",1,{}]"#).expect("a key")),
        expires: 1_700_000_000,
    }
}

fn sealed(token: &str) -> &str {
    token
        .strip_prefix("type=resource&ver=1.0&sig=")
        .expect("the service's form")
}

#[test]
fn a_token_reads_back_as_the_grant_it_was_made_of() {
    let keys = keys(WELL_KNOWN_KEY);
    let token = grant().seal(&keys);
    assert_eq!(Grant::open(&keys, sealed(&token)), Ok(grant()));
}

#[test]
fn a_token_survives_every_way_to_escape_it() {
    let token = grant().seal(&keys(WELL_KNOWN_KEY));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.=&;".contains(&byte);
    assert!(token.bytes().all(is_plain), "{token}");
}

#[test]
fn a_token_of_another_account_is_refused() {
    let token = grant().seal(&keys(OTHER_KEY));
    let refused = Grant::open(&keys(WELL_KNOWN_KEY), sealed(&token)).expect_err("another key");
    assert_eq!(refused.status.http, 401);
}

#[test]
fn no_byte_of_a_token_can_be_changed() {
    let keys = keys(WELL_KNOWN_KEY);
    let token = grant().seal(&keys);
    let sealed = sealed(&token);
    for at in 0..sealed.len() - 1 {
        let mut bytes = sealed.as_bytes().to_vec();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).expect("ASCII");
        let refused = Grant::open(&keys, &changed).expect_err("changed");
        assert_eq!(refused.status.http, 401, "byte {at}");
    }
    for malformed in ["", ";", "a", "a;b", ";;;", "ä;ö;"] {
        assert!(Grant::open(&keys, malformed).is_err(), "{malformed}");
    }
}

#[test]
fn a_read_only_key_issues_nothing() {
    let issued = grant().seal(&keys(OTHER_KEY));
    let account = keys(WELL_KNOWN_KEY).with(Access::ReadOnly, AccountKey::parse(OTHER_KEY).expect("a key"));
    assert!(Grant::open(&account, sealed(&issued)).is_err());
}

#[test]
fn links_name_containers_and_what_is_in_them() {
    let link = ResourceLink::parse("/dbs/d/colls/c/docs/i/").expect("an item");
    assert_eq!(link.below, ["docs", "i"]);
    assert_eq!(
        ResourceLink::parse("dbs/d/colls/c").expect("a container").below,
        [""; 0]
    );
    for link in ["", "dbs/d", "dbs/d/colls", "dbs/d/colls/c/docs", "dbs/d/users/u", "c"] {
        assert!(ResourceLink::parse(link).is_err(), "{link}");
    }
}

#[test]
fn a_token_covers_its_key_and_the_keys_below_it() {
    let key = |json: &str| PartitionKey::from_header(json).expect("a key");
    for (asked, granted, expected) in [
        (r#"["a"]"#, r#"["a"]"#, true),
        (r#"["a","b"]"#, r#"["a"]"#, true),
        (r#"["a"]"#, r#"["a","b"]"#, false),
        (r#"["ab"]"#, r#"["a"]"#, false),
        (r#"["1"]"#, "[1]", false),
        ("[1.0]", "[1]", true),
        ("[-0.0]", "[0]", true),
        ("[null]", "[{}]", false),
        ("[false]", "[0]", false),
        ("[]", r#"["a"]"#, false),
    ] {
        let grant = Grant {
            partition_key: Some(key(granted)),
            ..grant()
        };
        assert_eq!(
            grant.check_key(Some(&key(asked))).is_ok(),
            expected,
            "{asked} under {granted}"
        );
        assert!(grant.check_key(None).is_err());
    }
}
