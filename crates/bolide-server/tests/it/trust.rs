//! `bolide trust`: a certificate gets into stores, and out of them again. Only stores in temporary directories are used.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rcgen::{CertificateParams, IsCa, KeyPair};
use tempfile::TempDir;

use crate::client::Request;
use crate::server::{Server, command};

/// The outcome of a command.
struct Ran {
    is_done: bool,
    out: String,
    error: String,
}

fn trust(arguments: &[&str]) -> Ran {
    ran(command().arg("trust").args(arguments))
}

fn ran(command: &mut Command) -> Ran {
    let output = command.output().expect("it runs");
    Ran {
        is_done: output.status.success(),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        error: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

fn endpoint(server: &Server) -> String {
    format!("https://127.0.0.1:{}", server.port())
}

fn pem_of(server: &Server) -> String {
    let request = Request::get("/_explorer/emulator.pem").unsigned();
    server.client().send(&request).expect(200).text()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// A directory in which a store of Debian's kind is found, and the command that updates it, which notes its arguments.
struct Store {
    root: TempDir,
}

impl Store {
    fn new() -> Store {
        let store = Store {
            root: TempDir::new().expect("a temporary directory"),
        };
        fs::create_dir_all(store.directory()).expect("made");
        store
    }

    fn directory(&self) -> PathBuf {
        self.root.path().join("usr/local/share/ca-certificates")
    }

    fn with_command(self, status: u8) -> Store {
        let program = self.root.path().join("update-ca-certificates");
        let script = format!("#!/bin/sh\necho \"updated $*\" >> \"$0.log\"\necho broken >&2\nexit {status}\n");
        fs::write(&program, script).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
        self
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let path = format!("{}:/usr/bin:/bin", text(self.root.path()));
        ran(command()
            .env("PATH", path)
            .args(["trust", "--system-root", text(self.root.path())])
            .args(arguments))
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.directory()).expect("readable");
        entries
            .map(|entry| entry.expect("readable").file_name().into_string().expect("UTF-8"))
            .collect()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.root.path().join("update-ca-certificates.log")).unwrap_or_default()
    }
}

#[test]
fn the_system_store_gets_the_certificate_once_and_loses_only_that() {
    let server = Server::in_memory(&[]);
    let store = Store::new().with_command(0);
    fs::write(store.directory().join("company.crt"), "theirs").expect("written");
    // Not the fingerprint of what is in it, so it is somebody else's.
    fs::write(store.directory().join("bolide-0123456789abcdef.crt"), "theirs").expect("written");
    let added = store.run(&["--endpoint", &endpoint(&server)]);
    assert!(added.is_done, "{}", added.error);
    assert!(
        added.out.contains("NODE_EXTRA_CA_CERTS") && added.out.contains("REQUESTS_CA_BUNDLE"),
        "{}",
        added.out
    );
    assert_eq!(store.log(), "updated \n");
    let own = store.files().into_iter().find(|name| {
        let text = fs::read_to_string(store.directory().join(name)).expect("readable");
        text == pem_of(&server).replace("\r\n", "\n")
    });
    let own = own.expect("the certificate is there");
    let mode = fs::metadata(store.directory().join(&own))
        .expect("there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o644, "every user reads it");
    assert!(store.run(&["--endpoint", &endpoint(&server)]).out.contains("already"));
    assert_eq!(store.log(), "updated \n", "nothing to update");

    drop(server);
    let removed = store.run(&["--undo"]);
    assert!(removed.is_done, "{}", removed.error);
    assert_eq!(store.log(), "updated \nupdated --fresh\n");
    let mut left = store.files();
    left.sort();
    assert_eq!(left, ["bolide-0123456789abcdef.crt", "company.crt"]);
    assert!(store.run(&["--undo"]).is_done, "again, with nothing to do");
}

#[test]
fn where_the_system_store_cannot_be_used_each_sdk_gets_a_line() {
    let server = Server::in_memory(&[]);
    let empty = TempDir::new().expect("a temporary directory");
    let without_store = trust(&["--endpoint", &endpoint(&server), "--system-root", text(empty.path())]);
    let broken = Store::new().with_command(3);
    let failing = broken.run(&["--endpoint", &endpoint(&server)]);
    assert!(
        failing.error.contains("update-ca-certificates") && failing.error.contains("broken"),
        "{}",
        failing.error
    );
    assert_eq!(broken.files(), Vec::<String>::new(), "nothing stays behind");
    for ran in [without_store, failing] {
        assert!(!ran.is_done && ran.error.lines().count() == 1, "{}", ran.error);
        for word in [
            "SSL_CERT_FILE",
            "NODE_EXTRA_CA_CERTS",
            "REQUESTS_CA_BUNDLE",
            "-Djavax.net.ssl.trustStore",
        ] {
            assert!(ran.out.contains(word), "{word}: {}", ran.out);
        }
    }
}

#[test]
fn a_bundle_gets_the_certificate_once_and_loses_only_that() {
    let server = Server::in_memory(&[]);
    let files = TempDir::new().expect("a temporary directory");
    let bundle = files.path().join("bundle.pem");
    let add = || trust(&["--endpoint", &endpoint(&server), "--pem", text(&bundle)]);
    assert!(add().is_done);
    assert!(
        fs::read_to_string(&bundle)
            .expect("made")
            .ends_with(&pem_of(&server).replace("\r\n", "\n"))
    );
    assert!(add().out.contains("already"));
    assert!(trust(&["--undo", "--pem", text(&bundle)]).is_done);
    assert!(!bundle.exists(), "it had nothing else");

    let theirs = pem_of(&Server::in_memory(&[])).replace("\r\n", "\n");
    fs::write(&bundle, &theirs).expect("written");
    fs::set_permissions(&bundle, fs::Permissions::from_mode(0o640)).expect("set");
    assert!(add().is_done);
    let both = fs::read_to_string(&bundle).expect("readable");
    assert!(both.starts_with(&theirs) && both.len() > theirs.len());
    assert!(trust(&["--undo", "--pem", text(&bundle)]).is_done);
    assert_eq!(fs::read_to_string(&bundle).expect("readable"), theirs);
    let mode = fs::metadata(&bundle).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o640, "its permissions are as they were");

    fs::write(&bundle, "something else").expect("written");
    let refused = add();
    assert!(!refused.is_done && refused.error.contains("--pem"), "{}", refused.error);
    assert_eq!(fs::read_to_string(&bundle).expect("readable"), "something else");
}

#[test]
fn the_certificate_of_a_data_directory_needs_no_server() {
    let data = TempDir::new().expect("a temporary directory");
    let files = TempDir::new().expect("a temporary directory");
    let bundle = files.path().join("bundle.pem");
    let early = trust(&["--data-dir", text(data.path()), "--pem", text(&bundle)]);
    assert!(!early.is_done && early.error.contains("--data-dir"), "{}", early.error);
    let mut server = Server::on(data.path(), &[]);
    let pem = pem_of(&server).replace("\r\n", "\n");
    server.stop();
    let added = trust(&["--data-dir", text(data.path()), "--pem", text(&bundle)]);
    assert!(added.is_done, "{}", added.error);
    assert!(fs::read_to_string(&bundle).expect("made").ends_with(&pem));
}

#[test]
fn a_key_store_gets_the_certificate_once_and_loses_only_that() {
    let has_keytool = Command::new("keytool")
        .arg("-help")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if has_keytool.is_err() {
        println!("skipped: keytool is not installed");
        return;
    }
    let server = Server::in_memory(&[]);
    let files = TempDir::new().expect("a temporary directory");
    let store = files.path().join("trust.p12");
    let add = |more: &[&str]| trust(&[&["--endpoint", &endpoint(&server), "--keystore", text(&store)], more].concat());
    let list = || {
        let mut keytool = Command::new("keytool");
        ran(keytool.args(["-list", "-keystore", text(&store), "-storepass", "changeit"])).out
    };
    let added = add(&[]);
    assert!(added.is_done, "{}", added.error);
    assert_eq!(list().matches("bolide-").count(), 1, "{}", list());
    assert!(add(&[]).out.contains("already"));
    let refused = add(&["--storepass", "another"]);
    assert!(
        !refused.is_done && refused.error.contains("password"),
        "{}",
        refused.error
    );
    let undone = trust(&["--undo", "--keystore", text(&store)]);
    assert!(undone.is_done, "{}", undone.error);
    assert_eq!(list().matches("bolide-").count(), 0, "{}", list());
    let left = fs::read_dir(files.path()).expect("readable").count();
    assert_eq!(left, 1, "no other file stays");
}

/// A server whose certificate was made by somebody else.
fn server_with(change: impl FnOnce(&mut CertificateParams)) -> (Server, TempDir) {
    let files = TempDir::new().expect("a temporary directory");
    let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).expect("valid");
    change(&mut params);
    let key = KeyPair::generate().expect("a key");
    let (certificate, key_file) = (files.path().join("c.pem"), files.path().join("k.pem"));
    fs::write(&certificate, params.self_signed(&key).expect("a certificate").pem()).expect("written");
    fs::write(&key_file, key.serialize_pem()).expect("written");
    let server = Server::in_memory(&["--tls-cert", text(&certificate), "--tls-key", text(&key_file)]);
    (server, files)
}

#[test]
fn certificates_that_could_do_harm_are_refused() {
    let files = TempDir::new().expect("a temporary directory");
    let bundle = files.path().join("bundle.pem");
    let add = |server: &Server, more: &[&str]| {
        trust(&[&["--endpoint", &endpoint(server), "--pem", text(&bundle)], more].concat())
    };
    let refused = |server: &Server, word: &str| {
        let ran = add(server, &[]);
        assert!(!ran.is_done && ran.error.contains(word), "{word}: {}", ran.error);
        assert!(!bundle.exists(), "nothing was written");
        ran.error
    };
    let (authority, _files) = server_with(|params| params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained));
    refused(&authority, "sign");
    let (expired, _files) = server_with(|params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    refused(&expired, "2020-01-01");
    let (other, _files) = server_with(|params| {
        let name = "bank.example".to_owned().try_into().expect("a name");
        params.subject_alt_names.push(rcgen::SanType::DnsName(name));
    });
    let error = refused(&other, "bank.example");
    let words: Vec<&str> = error.split_whitespace().collect();
    let fingerprint = words
        .iter()
        .skip_while(|word| **word != "--fingerprint")
        .nth(1)
        .expect("it is told");
    let wrong = add(&other, &["--fingerprint", "00"]);
    assert!(
        !wrong.is_done && wrong.error.contains("--fingerprint"),
        "{}",
        wrong.error
    );
    assert!(add(&other, &["--fingerprint", fingerprint]).is_done);
}
