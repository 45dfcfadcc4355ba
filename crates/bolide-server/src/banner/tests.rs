use clap::Parser as _;

use super::*;
use crate::options::{Cli, Command};

const OWN_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";

fn banner(arguments: &[&str]) -> String {
    let cli = Cli::try_parse_from([&["bolide"], arguments].concat()).expect("valid");
    let Command::Serve(options) = cli.into_command() else {
        panic!("another command")
    };
    let ports = Ports {
        http: 8081,
        mongo: Some(10255),
        health: Some(8080),
        explorer: Some(1234),
    };
    text(&options.validate().expect("valid"), ports, "memory")
}

#[test]
fn only_the_well_known_key_is_printed() {
    assert!(banner(&[]).contains(WELL_KNOWN_KEY));
    let own = banner(&["--key", OWN_KEY]);
    assert!(!own.contains(OWN_KEY) && own.contains("<your key>"), "{own}");
}

#[test]
fn the_url_for_mongodb_can_be_pasted() {
    let key = "C2y6yDjf5%2FR%2Bob0N8A7Cgv30VRDJIWEHLM%2B4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw%2FJw%3D%3D";
    let url = format!("mongodb://localhost:{key}@127.0.0.1:10255/?replicaSet=globaldb");
    assert!(banner(&[]).contains(&url), "{}", banner(&[]));
    let own = banner(&["--key", OWN_KEY]);
    assert!(own.contains("mongodb://localhost:<your key>@127.0.0.1:10255/"), "{own}");
    let open = banner(&["--mongo-no-auth", "--mongo-set-name", "rs0"]);
    assert!(open.contains("mongodb://127.0.0.1:10255/?replicaSet=rs0"), "{open}");
}

#[test]
fn an_emulator_on_a_public_address_explains_the_risk() {
    for (arguments, addresses) in [
        (&["--emulator", "--memory"][..], "all addresses"),
        (&["--host", "0.0.0.0", "--emulator", "--memory"], "listens on 0.0.0.0"),
    ] {
        let public = banner(arguments);
        for text in ["full access", WELL_KNOWN_KEY, addresses] {
            assert!(public.contains(text), "{text}: {public}");
        }
    }
    for others in [
        &["--emulator", "--memory", "--host", "127.0.0.1"][..],
        &["--host", "0.0.0.0", "--key", OWN_KEY],
    ] {
        assert!(!banner(others).contains("full access"), "{others:?}");
    }
}

#[test]
fn an_emulator_ends_with_the_lines_that_tools_wait_for() {
    let plain = banner(&["--emulator", "--memory"]);
    assert!(
        plain.ends_with("\nNow listening on: http://0.0.0.0:8081\nStarted\r\n"),
        "{plain}"
    );
    assert_eq!(plain.matches("Started").count(), 1, "{plain}");
    for url in ["http://127.0.0.1:1234\n", "http://127.0.0.1:8080/ready\n"] {
        assert!(plain.contains(url), "{plain}");
    }
    let tls = banner(&["--emulator", "--memory", "--protocol=https", "--host", "::1"]);
    assert!(tls.contains("\nNow listening on: https://[::1]:8081\n"), "{tls}");
    assert!(tls.contains("https://[::1]:1234\n"), "{tls}");
    let other = banner(&["--memory"]);
    assert!(
        !other.contains("Now listening") && !other.contains("Started"),
        "{other}"
    );
}
