//! `bolide doctor`: each cause of a failing setup is named.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::process::Command;

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use crate::client::Request;
use crate::server::{Server, command};

const OWN_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";

/// The findings of a run.
struct Findings {
    is_well: bool,
    lines: String,
}

impl Findings {
    /// Expects a line with a verdict on a topic that contains a text.
    #[track_caller]
    fn expect(&self, verdict: &str, topic: &str, part: &str) {
        let start = format!("{verdict:<4}  {topic:<12} ");
        let found = self
            .lines
            .lines()
            .any(|line| line.starts_with(&start) && line.contains(part));
        assert!(found, "expected `{start}…{part}` in:\n{}", self.lines);
    }

    /// Expects exactly one failure.
    #[track_caller]
    fn expect_only_failure(&self, topic: &str, part: &str) {
        self.expect("fail", topic, part);
        let failures = self.lines.lines().filter(|line| line.starts_with("fail"));
        assert_eq!(failures.count(), 1, "{}", self.lines);
        assert!(!self.is_well);
    }
}

/// The command in an environment without proxies, certificates and data.
fn doctor(arguments: &[&str]) -> Command {
    let mut doctor = command();
    for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
        doctor.env_remove(name).env_remove(name.to_ascii_uppercase());
    }
    doctor
        .env_remove("SSL_CERT_DIR")
        .env("SSL_CERT_FILE", "/dev/null")
        .current_dir("/");
    doctor.arg("doctor").args(arguments);
    doctor
}

fn findings(mut doctor: Command) -> Findings {
    let output = doctor.output().expect("it runs");
    Findings {
        is_well: output.status.success(),
        lines: String::from_utf8(output.stdout).expect("UTF-8"),
    }
}

/// The findings on a server, with its own ports.
fn examine(server: &Server, more: &[&str]) -> Findings {
    findings(doctor(
        &options(server, "http", more)
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>(),
    ))
}

fn options(server: &Server, scheme: &str, more: &[&str]) -> Vec<String> {
    let endpoint = format!("{scheme}://localhost:{}", server.port());
    let mongo = server.ready()["mongo"]
        .as_str()
        .map_or(0, |_| server.mongo_port())
        .to_string();
    let own = ["--endpoint", &endpoint, "--mongo-port", &mongo];
    own.iter().chain(more).map(|text| (*text).to_owned()).collect()
}

fn examine_https(server: &Server, trusted: &str) -> Findings {
    let options = options(server, "https", &[]);
    let mut doctor = doctor(&options.iter().map(String::as_str).collect::<Vec<_>>());
    doctor.env("SSL_CERT_FILE", trusted);
    findings(doctor)
}

#[test]
fn all_is_well() {
    let server = Server::in_memory(&[]);
    let found = examine(&server, &[]);
    assert!(found.is_well, "{}", found.lines);
    found.expect("ok", "server", "Bolide");
    found.expect("ok", "key", "well-known key");
    found.expect("ok", "clocks", "agree");
    found.expect("ok", "endpoint", "same");
    found.expect("ok", "mongodb", "globaldb");
    found.expect("ok", "direct mode", "served at");
    // For http:// an untrusted certificate does not matter yet.
    found.expect("warn", "certificate", "bolide trust");
    let own = Server::in_memory(&["--key", OWN_KEY]);
    assert!(examine(&own, &["--key", OWN_KEY]).is_well);
}

#[test]
fn direct_mode() {
    let without = Server::in_memory(&["--no-direct"]);
    let found = examine(&without, &[]);
    assert!(found.is_well, "{}", found.lines);
    found.expect("note", "direct mode", "gatewayMode()");
    // Clients are told a host that is not there.
    let elsewhere = Server::in_memory(&["--advertise-host", "no.such.host.invalid"]);
    examine(&elsewhere, &[]).expect("warn", "direct mode", "no.such.host.invalid");
}

#[test]
fn nobody_is_there() {
    let free = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address");
    let found = findings(doctor(&["--endpoint", &format!("http://{free}")]));
    found.expect_only_failure("server", "nobody answers");
    let found = findings(doctor(&["--endpoint", "http://no.such.host.invalid:8081"]));
    found.expect_only_failure("name", "no.such.host.invalid");
}

/// A program that answers every connection with the same bytes.
fn other_program(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("accepted");
            let _ = stream.write_all(answer);
            // The request is read, so that closing does not reset the connection.
            let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
        }
    });
    port
}

#[test]
fn another_program_has_the_port() {
    for (answer, part) in [
        (
            &b"HTTP/1.1 404 Not Found\r\nserver: nginx/1.22\r\ncontent-length: 0\r\n\r\n"[..],
            "nginx/1.22",
        ),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 17\r\n\r\n<h1>\x1b[31mIt is</h1>",
            "<h1>",
        ),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH-2.0-OpenSSH_9.2"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "only TLS"),
        (b"", "without an answer"),
    ] {
        let endpoint = format!("http://127.0.0.1:{}", other_program(answer));
        let found = findings(doctor(&["--endpoint", &endpoint]));
        found.expect_only_failure("server", part);
        assert!(
            !found.lines.contains('\x1b'),
            "no escape sequences of others: {}",
            found.lines
        );
    }
    let endpoint = format!(
        "https://127.0.0.1:{}",
        other_program(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    );
    findings(doctor(&["--endpoint", &endpoint])).expect_only_failure("server", "does not speak TLS");
}

#[test]
fn the_key_is_wrong() {
    let server = Server::in_memory(&["--key", OWN_KEY]);
    examine(&server, &[]).expect_only_failure("key", "well-known key");
    let found = examine(&server, &["--key", "AAAAAAAAAAAAAAAAAAAAAA=="]);
    found.expect_only_failure("key", "does not accept this key");
    assert!(!found.lines.contains("AAAAAAAA"), "no key is printed");
    let malformed = doctor(&["--key", "not base64"]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&malformed.stderr).contains("--key"));
}

#[test]
fn a_certificate_must_be_trusted_for_https_only() {
    let server = Server::in_memory(&[]);
    examine_https(&server, "/dev/null").expect_only_failure("certificate", "does not trust it");
    let files = TempDir::new().expect("a temporary directory");
    let pem = files.path().join("trusted.pem");
    let text = server
        .client()
        .send(&Request::get("/_explorer/emulator.pem").unsigned())
        .expect(200);
    fs::write(&pem, text.body).expect("written");
    let found = examine_https(&server, pem.to_str().expect("UTF-8"));
    assert!(found.is_well, "{}", found.lines);
    found.expect("ok", "certificate", "trusts it");
    found.expect("ok", "certificate", "covers localhost, 127.0.0.1, ::1");
}

#[test]
fn a_certificate_must_cover_the_name_and_be_valid() {
    for (names, year, part) in [
        (["db.example"], 2100, "does not cover `localhost`, only db.example"),
        (["localhost"], 2020, "2020-01-01"),
    ] {
        let files = TempDir::new().expect("a temporary directory");
        let [certificate, key_file] =
            ["c.pem", "k.pem"].map(|name| files.path().join(name).to_str().expect("UTF-8").to_owned());
        let mut params = CertificateParams::new(names.map(str::to_owned).to_vec()).expect("valid");
        params.not_after = rcgen::date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().expect("a key");
        fs::write(&certificate, params.self_signed(&key).expect("a certificate").pem()).expect("written");
        fs::write(&key_file, key.serialize_pem()).expect("written");
        let server = Server::in_memory(&["--tls-cert", &certificate, "--tls-key", &key_file]);
        examine_https(&server, &certificate).expect_only_failure("certificate", part);
        let http = examine(&server, &[]);
        http.expect("warn", "certificate", part);
        assert!(http.is_well, "{}", http.lines);
    }
}

#[test]
fn a_proxy_takes_requests_for_this_machine() {
    let server = Server::in_memory(&[]);
    let options = options(&server, "http", &[]);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut proxied = doctor(&options);
    proxied.env("HTTP_PROXY", "http://proxy.example:3128");
    findings(proxied).expect_only_failure("proxy", "HTTP_PROXY");
    let mut exempt = doctor(&options);
    exempt
        .env("HTTP_PROXY", "http://proxy.example:3128")
        .env("NO_PROXY", "localhost");
    assert!(findings(exempt).is_well);
}

#[test]
fn sdks_are_told_an_endpoint_that_nobody_answers() {
    let free = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address");
    let server = Server::in_memory(&["--public-endpoint", &format!("http://{free}")]);
    examine(&server, &[]).expect_only_failure("endpoint", "--public-endpoint");
}

#[test]
fn the_port_for_mongodb_is_missing_or_taken() {
    let server = Server::in_memory(&["--no-mongo"]);
    let endpoint = format!("http://localhost:{}", server.port());
    let look = |port: u16| findings(doctor(&["--endpoint", &endpoint, "--mongo-port", &port.to_string()]));
    let free = TcpListener::bind("127.0.0.1:0")
        .expect("a port")
        .local_addr()
        .expect("an address")
        .port();
    let missing = look(free);
    missing.expect("warn", "mongodb", "--no-mongo");
    assert!(missing.is_well);
    look(other_program(b"")).expect_only_failure("mongodb", "another program");
    look(other_program(b"SSH-2.0-OpenSSH_9.2 and more\r\n")).expect_only_failure("mongodb", "another program");
}

#[test]
fn the_data_directory_and_the_limits_of_this_machine() {
    let server = Server::in_memory(&[]);
    let files = TempDir::new().expect("a temporary directory");
    let file = files.path().join("file");
    fs::write(&file, "x").expect("written");
    let found = examine(&server, &["--data-dir", file.to_str().expect("UTF-8")]);
    found.expect_only_failure("data", "no directory");
    let mut limited = Command::new("sh");
    let own = doctor(&[]);
    limited
        .args(["-c", "ulimit -f 100; exec \"$0\" \"$@\""])
        .arg(own.get_program())
        .arg("doctor");
    limited
        .args(options(&server, "http", &[]))
        .current_dir("/")
        .env("SSL_CERT_FILE", "/dev/null");
    findings(limited).expect_only_failure("limits", "ulimit -f unlimited");
}
