use clap::Parser as _;

use super::*;
use crate::options::{Cli, Command};

const OWN_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";

fn facts(arguments: &[&str]) -> Facts {
    let cli = Cli::try_parse_from([&["bolide"], arguments].concat()).expect("valid");
    let options = match cli.into_command() {
        Command::Serve(options) => options,
        Command::Demo(options) => options.into_serve(),
        _ => panic!("another command"),
    };
    let ports = Ports {
        http: 8081,
        mongo: (!options.mongo.no_mongo).then_some(10255),
        health: Some(8080),
        explorer: Some(1234),
    };
    Facts::of(&options.validate().expect("valid"), ports, "memory")
}

fn banner(arguments: &[&str]) -> String {
    plain(&facts(arguments))
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

#[test]
fn a_terminal_gets_a_line_to_paste_for_each_sdk() {
    let text = terminal::text(&facts(&[]), Colours::default());
    let connection = format!("AccountEndpoint=http://127.0.0.1:8081/;AccountKey={WELL_KNOWN_KEY};");
    for line in [
        format!("  Python      CosmosClient.from_connection_string(\"{connection}\")"),
        format!("  JavaScript  new CosmosClient(\"{connection}\")"),
        format!(
            "  .NET        new CosmosClient(\"{connection}\", new() {{ ConnectionMode = ConnectionMode.Gateway }})"
        ),
        format!("  Go          azcosmos.NewClientFromConnectionString(\"{connection}\", nil)"),
    ] {
        assert!(text.lines().any(|found| found == line), "expected {line} in:\n{text}");
    }
    for name in ["Java", "Rust", "MongoDB"] {
        let lines = text.lines().filter(|line| line.starts_with(&format!("  {name} ")));
        assert_eq!(lines.count(), 1, "{name}: {text}");
    }
    assert!(text.lines().count() < 20, "it is short:\n{text}");
    let without_mongo = terminal::text(&facts(&["--no-mongo"]), Colours::default());
    assert!(!without_mongo.contains("MongoDB"), "{without_mongo}");
}

#[test]
fn a_terminal_gets_no_secret_and_every_warning() {
    let own = terminal::text(&facts(&["--key", OWN_KEY]), Colours::ANSI);
    assert!(!own.contains(OWN_KEY) && own.contains("<your key>"), "{own}");
    let public = terminal::text(&facts(&["--host", "0.0.0.0", "--emulator"]), Colours::ANSI);
    assert!(public.contains("full access"), "{public}");
}

#[test]
fn colours_can_be_switched_off() {
    let is_coloured =
        |no_color, term| terminal::text(&facts(&[]), Colours::of_terminal(no_color, term)).contains('\x1b');
    assert!(is_coloured(None, Some("xterm-256color")) && is_coloured(Some(""), None));
    assert!(!is_coloured(Some("1"), Some("xterm-256color")) && !is_coloured(None, Some("dumb")));
    assert!(!banner(&[]).contains('\x1b'), "never without a terminal");
}

#[test]
fn a_demo_shows_three_commands() {
    for arguments in [&["demo"][..], &["demo", "--no-mongo"]] {
        let commands = facts(arguments).to_try;
        assert_eq!(commands.len(), 3);
        let mentions_mongo = commands.iter().any(|(_, command)| command.contains("mongosh"));
        assert_eq!(mentions_mongo, arguments.len() == 1, "{commands:?}");
        for text in [banner(arguments), terminal::text(&facts(arguments), Colours::default())] {
            assert!(
                commands.iter().all(|(_, command)| text.contains(command.as_str())),
                "{text}"
            );
        }
    }
    assert!(facts(&[]).to_try.is_empty());
}

#[test]
fn no_line_contains_the_word_that_ends_the_start_of_an_emulator() {
    for text in [banner(&["demo"]), terminal::text(&facts(&["demo"]), Colours::ANSI)] {
        assert!(!text.contains("Started"), "{text}");
    }
}
