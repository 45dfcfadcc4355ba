use clap::Parser as _;
use rcgen::{CertificateParams, KeyPair};

use super::*;
use crate::options::{Cli, Command};

fn options(arguments: &[&str]) -> TrustOptions {
    let cli = Cli::try_parse_from([&["bolide", "trust"], arguments].concat()).expect("valid");
    match cli.into_command() {
        Command::Trust(options) => options,
        _ => panic!("another command"),
    }
}

#[test]
fn a_certificate_that_came_over_a_network_needs_its_fingerprint() {
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("valid");
    let made = params
        .self_signed(&KeyPair::generate().expect("a key"))
        .expect("a certificate");
    let candidate = |is_local| Candidate {
        der: made.der().clone(),
        facts: CertificateFacts::of(made.der()).expect("a certificate"),
        source: "https://db.example".to_owned(),
        option: String::new(),
        is_local,
        file: None,
    };
    assert!(candidate(true).check_fitness(&options(&[])).is_ok());
    let refused = candidate(false)
        .check_fitness(&options(&[]))
        .expect_err("somebody in between");
    let fingerprint = candidate(false).facts.fingerprint;
    assert!(refused.to_string().contains(&fingerprint), "{refused}");
    let with = |fingerprint: &str| candidate(false).check_fitness(&options(&["--fingerprint", fingerprint]));
    assert!(with(&fingerprint).is_ok() && with(&fingerprint.to_ascii_uppercase()).is_ok());
    assert!(with(&fingerprint.replace(&fingerprint[..1], "g")).is_err());
}

#[test]
fn only_names_of_this_machine_need_no_fingerprint() {
    let own = ["build-7.example".to_owned()];
    for name in [
        "localhost",
        "127.0.0.1",
        "::1",
        "cosmos",
        "db.localhost",
        "build-7.example",
        "192.168.1.7",
        "host.docker.internal",
    ] {
        assert!(is_of_this_machine(name, &own), "{name}");
    }
    for name in [
        "bank.example",
        "*.example",
        "*",
        "203.0.113.7",
        "2001:db8::1",
        "build-7.example.com",
    ] {
        assert!(!is_of_this_machine(name, &own), "{name}");
    }
}

#[test]
fn fingerprints_may_be_written_as_openssl_prints_them() {
    assert_eq!(normal("AB:cd:09"), "abcd09");
}
