use super::*;

fn options(arguments: &[&str]) -> MongoListenerOptions {
    #[derive(clap::Parser)]
    struct Only {
        #[command(flatten)]
        options: MongoListenerOptions,
    }
    let only = <Only as clap::Parser>::try_parse_from([&["bolide"], arguments].concat());
    only.unwrap_or_else(|error| panic!("{error}")).options
}

#[test]
fn the_defaults_are_those_of_cosmos_db() {
    let options = options(&[]);
    assert_eq!(
        (options.mongo_port, options.mongo_set_name.as_str()),
        (10255, "globaldb")
    );
    assert!(!options.mongo_no_auth && !options.no_mongo);
    assert_eq!(options.users().collect::<Vec<_>>(), ["localhost"]);
}

#[test]
fn an_account_name_is_another_user() {
    let named = options(&["--mongo-user", "shop"]);
    assert_eq!(named.users().collect::<Vec<_>>(), ["localhost", "shop"]);
    assert!(options(&["--mongo-user", ""]).validate("127.0.0.1", true).is_err());
}

#[test]
fn authentication_can_be_switched_off_only_where_the_key_is_public_and_nobody_else_comes() {
    let open = options(&["--mongo-no-auth"]);
    for (host, is_key_public, is_allowed) in [
        ("127.0.0.1", true, true),
        ("localhost", true, true),
        ("::1", true, true),
        ("127.0.0.1", false, false),
        ("0.0.0.0", true, false),
        ("0.0.0.0", false, false),
    ] {
        assert_eq!(
            open.validate(host, is_key_public).is_ok(),
            is_allowed,
            "{host} {is_key_public}"
        );
        assert!(
            options(&[]).validate(host, is_key_public).is_ok(),
            "{host} {is_key_public}"
        );
    }
}

#[test]
fn addresses_for_clients_have_a_host_and_a_port() {
    for (address, is_valid) in [
        ("db.example:10255", true),
        ("[::1]:10255", true),
        ("db.example", false),
        (":10255", false),
        ("db.example:0", false),
        ("db.example:70000", false),
        ("mongodb://db.example:1", false),
        ("user@db.example:1", false),
    ] {
        let advertised = options(&["--mongo-advertise", address]);
        assert_eq!(advertised.validate("127.0.0.1", true).is_ok(), is_valid, "{address}");
    }
}

#[test]
fn names_of_replica_sets() {
    for (name, is_valid) in [("rs0", true), ("", false), ("a/b", false), ("a,b", false)] {
        assert_eq!(
            options(&["--mongo-set-name", name]).validate("127.0.0.1", true).is_ok(),
            is_valid,
            "{name}"
        );
    }
}

#[test]
fn tls_is_told_from_messages_whose_length_begins_like_it() {
    for (head, expected) in [
        (&[0x16, 0x03, 0x01][..], Some(true)),
        (&[0x16, 0x03, 0x03], Some(true)),
        (&[0x16], None),
        (&[0x16, 0x03], None),
        // Messages of 22 + 256, 22 + 3 · 256 and 1 byte more.
        (&[0x16, 0x01, 0x00], Some(false)),
        (&[0x16, 0x03, 0x00], Some(false)),
        (&[0x17], Some(false)),
        (&[], None),
    ] {
        assert_eq!(begins_with_tls(head), expected, "{head:?}");
    }
}

#[test]
fn the_mode_of_ttl_indexes_is_mongodbs_unless_another_is_chosen() {
    for (arguments, expected) in [
        (&[][..], TtlMode::Mongodb),
        (&["--mongo-ttl-mode", "mongodb"], TtlMode::Mongodb),
        (&["--mongo-ttl-mode=cosmos-custom-path"], TtlMode::CosmosCustomPath),
        (&["--mongo-ttl-mode", "cosmos-ts-only"], TtlMode::CosmosTsOnly),
    ] {
        assert_eq!(TtlMode::from(options(arguments).mongo_ttl_mode), expected);
    }
}
