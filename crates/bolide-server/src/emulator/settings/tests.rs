use std::collections::HashMap;
use std::ffi::OsString;
use std::path::Path;

use clap::Parser as _;

use super::*;
use crate::options::{Cli, Command};

/// The options after completion, and what only an emulator has.
fn completed(arguments: &[&str], variables: &[(&str, &str)]) -> Result<(ServeOptions, Option<Emulator>), String> {
    let cli = Cli::try_parse_from([&["bolide"], arguments].concat()).map_err(|error| error.to_string())?;
    let Command::Serve(mut options) = cli.into_command() else {
        return Err("another command".to_owned());
    };
    let variables: HashMap<_, _> = variables.iter().copied().collect();
    let read = |name: &str| variables.get(name).map(OsString::from);
    let emulator = Emulator::complete(&mut options, Variables::new(&read)).map_err(|failure| failure.to_string())?;
    Ok((*options, emulator))
}

/// The same with the switch.
fn emulated(arguments: &[&str], variables: &[(&str, &str)]) -> (ServeOptions, Emulator) {
    let (options, emulator) = completed(&[&["--emulator"], arguments].concat(), variables).expect("valid");
    (options, emulator.expect("the switch"))
}

fn refusal(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    completed(&[&["--emulator"], arguments].concat(), variables).expect_err("invalid")
}

#[test]
fn without_the_switch_variables_are_not_looked_at_and_arguments_are_unknown() {
    let variables = [
        ("PORT", "nonsense"),
        ("ENABLE_EXPLORER", "nonsense"),
        ("KEY_FILE", "x"),
        ("DATA_PATH", "x"),
    ];
    let (options, emulator) = completed(&[], &variables).expect("valid");
    assert!(emulator.is_none() && options.data_dir.is_none() && options.keys.key_file.is_none());
    assert_eq!(
        (options.port(), options.host(), options.log()),
        (8081, "127.0.0.1", "warn")
    );
    for argument in [
        "--protocol=http",
        "--enable-explorer=false",
        "--explorer-port=0",
        "--explorer-protocol=http",
        "--gateway-endpoint=x",
        "--data-path=x",
        "--cert-path=x",
        "--log-level=info",
        "--enable-telemetry=true",
        "--enable-otlp",
        "--enable-console=x",
        "--query-buffer-size=x",
        "--enable-init-data=x",
        "--init-path=x",
        "--verbose",
        "--health-port=0",
        "--explorer-port=0",
    ] {
        let refused = completed(&[argument], &[]).expect_err(argument);
        let name = argument.split('=').next().expect("a name");
        assert!(refused.contains(name) && refused.contains("--emulator"), "{refused}");
    }
    assert!(completed(&["--emulator", "--nonsense"], &[]).is_err());
    // Without the switch there is an explorer, too, on the database's port.
    assert!(completed(&["--no-explorer"], &[]).is_ok());
}

#[test]
fn the_switch_listens_on_all_addresses_unless_a_host_is_given() {
    assert_eq!(emulated(&[], &[]).0.host(), "*");
    assert_eq!(emulated(&["--host", "127.0.0.1"], &[]).0.host(), "127.0.0.1");
}

#[test]
fn an_argument_goes_before_a_variable_in_both_spellings() {
    let port = |arguments: &[&str]| emulated(arguments, &[("PORT", "7001")]).0.port();
    assert_eq!(
        (port(&[]), port(&["--port", "7002"]), port(&["--port=7003"])),
        (7001, 7002, 7003)
    );
    let scheme = |arguments: &[&str]| emulated(arguments, &[("PROTOCOL", "https")]).1.protocol.scheme();
    assert_eq!((scheme(&[]), scheme(&["--protocol", "http"])), ("https", "http"));
    let insecure = emulated(&[], &[("PROTOCOL", "https-insecure")]).1;
    assert_eq!(insecure.protocol.scheme(), "https");
    let log = |arguments: &[&str]| emulated(arguments, &[("LOG_LEVEL", "quiet")]).0.log().to_owned();
    assert_eq!(
        (
            log(&[]),
            log(&["--log-level", "debug"]),
            log(&["--log-level=debug", "--log", "info"])
        ),
        ("off".to_owned(), "debug".to_owned(), "info".to_owned())
    );
}

#[test]
fn the_explorer_can_be_moved_and_switched_off() {
    let explorer = |arguments: &[&str], variables: &[(&str, &str)]| {
        let explorer = emulated(arguments, variables).1.explorer;
        explorer.map(|explorer| (explorer.port, explorer.protocol.scheme()))
    };
    assert_eq!(explorer(&[], &[]), Some((1234, "http")));
    assert_eq!(
        explorer(&["--protocol", "https"], &[]),
        Some((1234, "https")),
        "by default that of the database"
    );
    let moved = [("EXPLORER_PORT", "1"), ("EXPLORER_PROTOCOL", "https")];
    assert_eq!(explorer(&[], &moved), Some((1, "https")));
    assert_eq!(
        explorer(&["--explorer-port=2", "--explorer-protocol=http"], &moved),
        Some((2, "http"))
    );
    let off = [("ENABLE_EXPLORER", "false")];
    assert_eq!(explorer(&[], &off), None);
    assert_eq!(explorer(&["--enable-explorer", "false"], &[]), None);
    assert_eq!(explorer(&["--no-explorer"], &[("ENABLE_EXPLORER", "true")]), None);
    assert!(explorer(&["--enable-explorer", "true"], &off).is_some());
    assert!(explorer(&[], &[("ENABLE_EXPLORER", "false"), ("BOLIDE_NO_EXPLORER", "false")]).is_some());
}

#[test]
fn keys_of_the_emulators_are_used_after_bolides_own() {
    const OWN: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";
    const OTHER: &str = "ZmVkY2JhOTg3NjU0MzIxMA==";
    let key = [("AZURE_COSMOS_EMULATOR_KEY", OTHER)];
    assert_eq!(emulated(&[], &key).0.keys.key.as_deref(), Some(OTHER));
    assert_eq!(emulated(&["--key", OWN], &key).0.keys.key.as_deref(), Some(OWN));
    let (options, _) = emulated(&["--key-file", "f"], &[("KEY_FILE", "g"), key[0]]);
    assert_eq!(
        (options.keys.key, options.keys.key_file.as_deref()),
        (None, Some(Path::new("f")))
    );
    let both = refusal(&[], &[("KEY_FILE", "g"), key[0]]);
    assert!(both.contains("KEY_FILE") && both.contains(key[0].0), "{both}");
    let short = refusal(&[], &[("AZURE_COSMOS_EMULATOR_KEY", "secret!")]);
    assert!(short.contains(key[0].0) && !short.contains("secret!"), "{short}");
}

#[test]
fn data_is_where_it_was_asked_for_or_in_memory() {
    let place = |arguments: &[&str], variables: &[(&str, &str)]| {
        let (options, _) = emulated(arguments, variables);
        if options.memory {
            "memory".to_owned()
        } else {
            options.data_dir().display().to_string()
        }
    };
    const PERSISTENCE: &str = "AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE";
    let path = [("DATA_PATH", "v")];
    assert_eq!(place(&[], &path), "v");
    assert_eq!(place(&["--data-path", "a"], &path), "a");
    assert_eq!(place(&["--data-path=a", "--data-dir", "b"], &path), "b");
    assert_eq!(place(&["--memory"], &path), "memory");
    for refused in ["false", "False", "0"] {
        assert_eq!(place(&[], &[(PERSISTENCE, refused), path[0]]), "memory");
        assert_eq!(place(&["--data-dir=b"], &[(PERSISTENCE, refused)]), "b");
        assert_eq!(
            place(&[], &[(PERSISTENCE, refused), path[0], ("BOLIDE_MEMORY", "false")]),
            "v"
        );
    }
    for other in ["true", "None", "", "1"] {
        assert_eq!(place(&[], &[(PERSISTENCE, other), path[0]]), "v");
    }
}

#[test]
fn a_certificate_of_bolides_own_options_goes_first() {
    let address = ("AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE", "10.1.2.3");
    assert_eq!(
        emulated(&["--tls-name", "cosmos"], &[address]).0.tls.tls_names,
        ["cosmos", "10.1.2.3"]
    );
    let file = [("CERT_PATH", "v.pfx"), ("CERT_SECRET", "s"), address];
    let pfx = |arguments: &[&str]| {
        let tls = emulated(arguments, &file).0.tls;
        assert!(tls.validate().is_ok());
        tls.pfx.map(|pfx| (pfx.path.display().to_string(), pfx.secret))
    };
    assert_eq!(pfx(&[]), Some(("v.pfx".to_owned(), "s".to_owned())));
    assert_eq!(
        pfx(&["--cert-path", "a.pfx"]),
        Some(("a.pfx".to_owned(), "s".to_owned()))
    );
    assert_eq!(pfx(&["--tls-cert=c", "--tls-key=k"]), None);
    let debug = format!(
        "{:?}",
        emulated(&[], &[("CERT_PATH", "v.pfx"), ("CERT_SECRET", "hidden")]).0
    );
    assert!(!debug.contains("hidden"), "{debug}");
}

#[test]
fn the_advertised_host_is_a_name() {
    let host = |arguments: &[&str]| {
        let (options, _) = emulated(arguments, &[("GATEWAY_PUBLIC_ENDPOINT", "v")]);
        options.advertise_host
    };
    assert_eq!(host(&[]).as_deref(), Some("v"));
    assert_eq!(host(&["--gateway-endpoint", "a"]).as_deref(), Some("a"));
    assert_eq!(
        host(&["--gateway-endpoint", "a", "--advertise-host", "b"]).as_deref(),
        Some("b")
    );
    assert_eq!(host(&["--public-endpoint", "https://db.example"]), None);
}

#[test]
fn what_means_nothing_is_named_and_never_stops_the_start() {
    let (_, emulator) = emulated(
        &["--enable-telemetry", "false", "--query-buffer-size=-1", "--verbose"],
        &[
            ("AZURE_COSMOS_EMULATOR_PARTITION_COUNT", "None"),
            ("ENABLE_OTLP_EXPORTER", "\u{1}"),
            ("INIT_PATH", ""),
            ("SOMETHING_ELSE", "x"),
        ],
    );
    assert_eq!(
        emulator.meaningless,
        [
            "--enable-telemetry",
            "--query-buffer-size",
            "--verbose",
            "AZURE_COSMOS_EMULATOR_PARTITION_COUNT",
            "ENABLE_OTLP_EXPORTER",
        ]
    );
}

#[test]
fn a_malformed_value_is_named_by_its_variable() {
    for (name, value) in [
        ("PORT", "70000"),
        ("PROTOCOL", "ftp"),
        ("ENABLE_EXPLORER", "perhaps"),
        ("EXPLORER_PORT", "x"),
        ("EXPLORER_PROTOCOL", "x"),
        ("GATEWAY_PUBLIC_ENDPOINT", "http://cosmos:8081"),
        ("AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE", "cosmos"),
        ("LOG_LEVEL", "a=b=c"),
    ] {
        let refused = refusal(&[], &[(name, value)]);
        assert!(refused.contains(name) && refused.contains(value), "{name}: {refused}");
    }
}
