use bolide_model::account_key::WELL_KNOWN_KEY;

use super::*;

fn settings(arguments: &[&str]) -> Result<Settings, String> {
    let cli = Cli::try_parse_from([&["bolide"], arguments].concat()).map_err(|error| error.to_string())?;
    let Command::Serve(options) = cli.into_command() else {
        return Err("another command".to_owned());
    };
    options
        .validate_with(Variables::new(&|_| None))
        .map_err(|failure| failure.to_string())
}

#[test]
fn serve_is_the_default_command() {
    for arguments in [&["--port", "0"][..], &["serve", "--port", "0"]] {
        assert_eq!(settings(arguments).expect("valid").options.port(), 0, "{arguments:?}");
    }
}

#[test]
fn a_directory_and_memory_are_one_too_many() {
    let refusal = settings(&["--memory", "--data-dir", "x"]).expect_err("both");
    assert!(
        refusal.contains("--memory") && refusal.contains("--data-dir"),
        "{refusal}"
    );
    assert!(settings(&["--memory"]).is_ok());
    let dir = settings(&[]).expect("valid").options.data_dir().to_owned();
    assert_eq!(dir, Path::new("./bolide-data"));
}

#[test]
fn authentication_of_mongodb_needs_the_well_known_key_and_loopback_to_be_off() {
    assert!(settings(&["--mongo-no-auth"]).is_ok());
    let own = ["--mongo-no-auth", "--key", "MDEyMzQ1Njc4OWFiY2RlZg=="];
    assert!(settings(&own).expect_err("an own key").contains("--mongo-no-auth"));
    let public = ["--mongo-no-auth", "--host", "0.0.0.0", "--emulator"];
    assert!(
        settings(&public)
            .expect_err("a public address")
            .contains("--mongo-no-auth")
    );
}

#[test]
fn the_well_known_key_guards_loopback_only() {
    for host in ["127.0.0.1", "localhost", "::1", "[::1]", "127.8.8.8"] {
        assert_eq!(
            settings(&["--host", host]).expect(host).keys.primary,
            WELL_KNOWN_KEY,
            "{host}"
        );
    }
    for host in ["0.0.0.0", "::", "10.0.0.1", "example.com"] {
        assert!(settings(&["--host", host]).expect_err(host).contains("--key"), "{host}");
        assert!(
            settings(&["--host", host, "--key", "MDEyMzQ1Njc4OWFiY2RlZg=="]).is_ok(),
            "{host}"
        );
    }
}

#[test]
fn the_well_known_key_is_refused_on_public_addresses_whichever_key_it_is_given_as() {
    const OWN: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";
    for option in ["--key", "--secondary-key", "--readonly-key", "--secondary-readonly-key"] {
        let own: &[&str] = if option == "--key" { &[] } else { &["--key", OWN] };
        let given = [own, &["--host", "0.0.0.0", option, WELL_KNOWN_KEY]].concat();
        assert!(settings(&given).expect_err(option).contains("--emulator"), "{option}");
        assert!(settings(&[&given[..], &["--emulator"]].concat()).is_ok(), "{option}");
        let on_loopback = [own, &[option, WELL_KNOWN_KEY]].concat();
        assert!(settings(&on_loopback).expect(option).keys.is_public, "{option}");
    }
}

#[test]
fn names_are_looked_at_only_with_the_well_known_key() {
    let names = |arguments: &[&str]| settings(arguments).expect("valid").names();
    assert!(matches!(names(&["--key", "MDEyMzQ1Njc4OWFiY2RlZg=="]), Names::All));
    assert!(matches!(names(&["--allow-host", "a", "--allow-host", "*"]), Names::All));
    let listed = names(&["--allow-host", "a.example", "--allow-host", "b"]);
    let Names::Listed { names, emulator } = listed else {
        panic!("{listed:?}")
    };
    assert!(
        names.contains(&"a.example".to_owned()) && names.contains(&"b".to_owned()),
        "{names:?}"
    );
    assert!(!emulator);
}

#[test]
fn origins_are_checked() {
    assert!(settings(&["--allow-origin", "http://localhost:3000"]).is_ok());
    for origin in ["*", "null", "localhost:3000", "http://a/b"] {
        let refusal = settings(&["--allow-origin", origin]).expect_err(origin);
        assert!(refusal.contains("--allow-origin"), "{refusal}");
    }
}

#[test]
fn memory_for_requests_is_what_was_asked_for_or_a_share_of_the_machine() {
    let bytes = |arguments: &[&str]| settings(arguments).expect("valid").memory_bytes();
    assert_eq!(bytes(&["--memory-limit", "100"]), 100 << 20);
    assert!((64 << 20..=2 << 30).contains(&bytes(&[])));
    assert!(settings(&["--memory-limit", "1"]).is_err());
}

#[test]
fn a_virtual_clock_starts_at_the_given_time() {
    let at = |arguments: &[&str]| settings(arguments).expect("valid").clock.now();
    assert_eq!(
        at(&["--virtual-clock=2023-11-14T22:13:20.5Z"]),
        UnixMillis(1_700_000_000_500)
    );
    assert!(settings(&["--virtual-clock"]).expect("valid").clock.is_virtual());
    assert!(!settings(&[]).expect("valid").clock.is_virtual());
    assert!(settings(&["--virtual-clock=soon"]).is_err());
}

#[test]
fn the_purge_hold_is_ten_minutes_by_default() {
    // TTL-204
    let hold = |arguments: &[&str]| settings(arguments).expect("valid").options.purge_hold;
    assert_eq!((hold(&[]), hold(&["--purge-hold", "0"])), (600, 0));
}

#[test]
fn keys_must_be_base64_and_long_enough() {
    for key in ["secret!", "c2hvcnQ="] {
        assert!(settings(&["--key", key]).expect_err(key).contains("--key"), "{key}");
        assert!(
            settings(&["--readonly-key", key])
                .expect_err(key)
                .contains("--readonly-key"),
            "{key}"
        );
    }
}
