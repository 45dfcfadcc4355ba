use clap::Parser as _;

use super::*;
use crate::options::{Cli, Command};

const OWN_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";

fn banner(arguments: &[&str]) -> String {
    let cli = Cli::try_parse_from([&["bolide"], arguments].concat()).expect("valid");
    let Command::Serve(options) = cli.into_command() else {
        panic!("another command")
    };
    text(&options.validate().expect("valid"), 8081, "memory")
}

#[test]
fn only_the_well_known_key_is_printed() {
    assert!(banner(&[]).contains(WELL_KNOWN_KEY));
    let own = banner(&["--key", OWN_KEY]);
    assert!(!own.contains(OWN_KEY) && own.contains("<your key>"), "{own}");
}

#[test]
fn an_emulator_on_a_public_address_explains_the_risk() {
    let public = banner(&["--host", "0.0.0.0", "--emulator"]);
    assert!(
        public.contains("full access") && public.contains(WELL_KNOWN_KEY),
        "{public}"
    );
    for others in [&["--emulator"][..], &["--host", "0.0.0.0", "--key", OWN_KEY]] {
        assert!(!banner(others).contains("full access"), "{others:?}");
    }
}
