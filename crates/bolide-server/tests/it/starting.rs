//! Errors at the start are reported in one line.

use std::net::TcpListener;

use tempfile::TempDir;

use crate::client::{Request, create_container, create_item};
use crate::server::{Server, run};

/// Expects a failure in one line that contains a word.
#[track_caller]
fn fails(arguments: &[&str], word: &str) {
    let ended = run(arguments);
    assert!(!ended.status.success(), "{arguments:?}");
    assert_ne!(ended.status.code(), Some(101), "a panic: {}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains(word), "expected `{word}` in: {}", ended.stderr);
}

#[test]
fn a_taken_port() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    fails(&["--memory", "--port", &port], "--port");
}

#[test]
fn an_address_that_is_not_ours() {
    fails(
        &[
            "--memory",
            "--host",
            "192.0.2.1",
            "--port",
            "0",
            "--key",
            "MDEyMzQ1Njc4OWFiY2RlZg==",
        ],
        "192.0.2.1",
    );
    fails(
        &[
            "--memory",
            "--host",
            "no.such.host.invalid",
            "--port",
            "0",
            "--key",
            "MDEyMzQ1Njc4OWFiY2RlZg==",
        ],
        "--host",
    );
}

#[test]
fn the_well_known_key_on_a_public_address() {
    fails(&["--memory", "--host", "0.0.0.0", "--port", "0"], "--key");
}

#[test]
fn invalid_keys_and_instants_are_refused() {
    fails(&["--memory", "--port", "0", "--key", "not base64!"], "--key");
    fails(
        &["--memory", "--port", "0", "--virtual-clock=yesterday"],
        "--virtual-clock",
    );
    fails(&["--memory", "--port", "0", "--log", "bolide=loud"], "--log");
}

#[test]
fn a_data_directory_that_is_a_file() {
    let files = TempDir::new().expect("a temporary directory");
    let file = files.path().join("file");
    std::fs::write(&file, "x").expect("it can be written");
    fails(
        &["--port", "0", "--data-dir", file.to_str().expect("UTF-8")],
        "--data-dir",
    );
}

#[test]
fn a_data_directory_of_somebody_else() {
    let files = TempDir::new().expect("a temporary directory");
    std::fs::write(files.path().join("thesis.txt"), "x").expect("it can be written");
    fails(
        &["--port", "0", "--data-dir", files.path().to_str().expect("UTF-8")],
        "thesis.txt",
    );
    let left: Vec<_> = std::fs::read_dir(files.path()).expect("it can be listed").collect();
    assert_eq!(left.len(), 1, "nothing was added: {left:?}");
}

#[test]
fn a_second_process_on_the_same_directory() {
    let data = TempDir::new().expect("a temporary directory");
    let server = Server::on(data.path(), &[]);
    fails(
        &["--port", "0", "--data-dir", data.path().to_str().expect("UTF-8")],
        "in use",
    );
    server.client().send(&Request::get("/")).expect(200);
}

#[test]
fn invalid_certificates_are_refused() {
    let files = TempDir::new().expect("a temporary directory");
    let file = files.path().join("no.pem");
    let path = file.to_str().expect("UTF-8");
    fails(
        &["--memory", "--port", "0", "--tls-cert", path, "--tls-key", path],
        "no.pem",
    );
    std::fs::write(&file, "no certificate").expect("it can be written");
    fails(
        &["--memory", "--port", "0", "--tls-cert", path, "--tls-key", path],
        "no.pem",
    );
    let data = TempDir::new().expect("a temporary directory");
    Server::on(data.path(), &[]).stop();
    let made = |name: &str| data.path().join(name).to_str().expect("UTF-8").to_owned();
    let (certificate, key) = (made("tls-certificate.pem"), made("tls-key.pem"));
    let with = |certificate: &str, key: &str, at_fault: &str| {
        let pair = ["--tls-cert", certificate, "--tls-key", key];
        fails(&[&["--memory", "--port", "0"][..], &pair].concat(), at_fault);
    };
    with(path, &key, "--tls-cert");
    with(&certificate, path, "--tls-key");
    // Certificate and key exchanged.
    with(&key, &certificate, "tls-key.pem");
    let other = TempDir::new().expect("a temporary directory");
    Server::on(other.path(), &[]).stop();
    let others = other.path().join("tls-key.pem");
    with(&certificate, others.to_str().expect("UTF-8"), "belong together");
}

#[test]
fn the_environment_says_yes_as_it_is_used_to() {
    for yes in ["1", "true", "yes", "on"] {
        let server = Server::with_environment(&[("BOLIDE_MEMORY", yes)], &[]);
        let health = server
            .client()
            .send(&Request::get("/_bolide/health"))
            .expect(200)
            .json();
        assert_eq!(health["engine"], "memory", "{yes}");
    }
    fails(&["--memory", "--port", "0", "--data-dir", "somewhere"], "--data-dir");
}

#[test]
fn options_that_do_not_exist_are_a_usage_error() {
    let ended = run(&["--no-such-option"]);
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.stderr.contains("--no-such-option"));
}

#[test]
fn writes_survive_a_restart() {
    let data = TempDir::new().expect("a temporary directory");
    let mut first = Server::on(data.path(), &[]);
    let mut client = first.client();
    create_container(&mut client);
    let created = create_item(&mut client, "a").body;
    assert!(first.stop().success());
    let second = Server::on(data.path(), &[]);
    assert_eq!(
        second
            .client()
            .send(&Request::get("/dbs/d/colls/c/docs/a").pk())
            .expect(200)
            .body,
        created
    );
}

#[test]
fn the_well_known_key_on_a_public_address_whichever_key_it_is_given_as() {
    const OWN: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";
    let public = bolide_model::account_key::WELL_KNOWN_KEY;
    let begin = ["--memory", "--host", "0.0.0.0", "--port", "0"];
    fails(&[&begin[..], &["--key", public]].concat(), "--emulator");
    for option in ["--secondary-key", "--readonly-key", "--secondary-readonly-key"] {
        fails(&[&begin[..], &["--key", OWN, option, public]].concat(), "--emulator");
    }
}
