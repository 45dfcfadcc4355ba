//! `--emulator`: ports, names, log lines, variables and arguments of the official emulator.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use bolide_model::account_key::WELL_KNOWN_KEY;
use serde_json::Value;
use tempfile::TempDir;

use crate::client::{Client, Request};
use crate::listening::tls_stream;
use crate::server::{command, run};

/// The classic emulator's path of the certificate.
const CLASSIC_PEM: &str = "/tmp/cosmos/appdata/.system/profiles/Client/AppData/Local/CosmosDBEmulator/emulator.pem";
const OWN_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";
/// Ports that do not get in the way of other tests.
const FREE_PORTS: [(&str, &str); 3] = [
    ("BOLIDE_PORT", "0"),
    ("BOLIDE_HEALTH_PORT", "0"),
    ("BOLIDE_EXPLORER_PORT", "0"),
];

/// A running emulator, killed when dropped.
struct Emulator {
    child: Child,
    /// All of standard output up to the last line.
    printed: String,
    ready: Value,
    _stdout: BufReader<ChildStdout>,
}

impl Emulator {
    /// Starts in memory.
    fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Emulator {
        Emulator::start_with(&[&["--memory"], arguments].concat(), variables, &FREE_PORTS)
    }

    fn start_with(arguments: &[&str], variables: &[(&str, &str)], ports: &[(&str, &str)]) -> Emulator {
        let files = TempDir::new().expect("a temporary directory");
        let ready = files.path().join("ready.json");
        let mut child = emulator(arguments, variables, ports)
            .arg("--ready-file")
            .arg(&ready)
            .spawn()
            .expect("the binary starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut printed = String::new();
        while !printed.ends_with("Started\r\n") {
            let read = stdout.read_line(&mut printed).expect("standard output is UTF-8");
            if read == 0 {
                panic!("the emulator ended: {}", rest(child.stderr.take()));
            }
        }
        let ready = std::fs::read_to_string(&ready).expect("it is ready before it says so");
        Emulator {
            child,
            printed,
            ready: serde_json::from_str(&ready).expect("JSON"),
            _stdout: stdout,
        }
    }

    fn port(&self, name: &str) -> u16 {
        let url = self.ready[name].as_str().expect("an endpoint");
        url.rsplit(':').next().expect("a port").parse().expect("a port number")
    }

    fn client(&self, name: &str) -> Client {
        Client::connect(self.port(name))
    }

    /// Ends it, and returns what it has logged.
    fn log(mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        rest(self.child.stderr.take())
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rest(stderr: Option<ChildStderr>) -> String {
    let mut text = String::new();
    let read = stderr.expect("it is piped").read_to_string(&mut text);
    read.expect("standard error is UTF-8");
    text
}

/// The binary with the switch, and without variables of the caller.
fn emulator(arguments: &[&str], variables: &[(&str, &str)], ports: &[(&str, &str)]) -> Command {
    let mut command = command();
    command
        .env_clear()
        .args(["--emulator", "--mongo-port", "0"])
        .args(arguments)
        .envs(ports.iter().copied())
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Expects the emulator not to start; returns its error.
fn refusal(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let output = emulator(&[&["--memory"], arguments].concat(), variables, &FREE_PORTS)
        .output()
        .expect("the binary starts");
    assert!(!output.status.success(), "{arguments:?} {variables:?}");
    String::from_utf8(output.stderr).expect("standard error is UTF-8")
}

fn unsigned(path: &str) -> Request {
    Request::get(path).unsigned()
}

#[test]
fn the_log_ends_with_the_lines_that_tools_wait_for() {
    let emulator = Emulator::start(&[], &[]);
    let port = emulator.port("cosmos");
    let last = format!("\nNow listening on: http://0.0.0.0:{port}\nStarted\r\n");
    assert!(emulator.printed.ends_with(&last), "{}", emulator.printed);
    assert_eq!(emulator.printed.matches("Started").count(), 1, "{}", emulator.printed);
    for text in [WELL_KNOWN_KEY, "all addresses", "full access"] {
        assert!(emulator.printed.contains(text), "{text}: {}", emulator.printed);
    }
    assert!(!emulator.log().contains("Started"));
}

#[test]
fn it_listens_on_all_addresses_of_both_families() {
    let emulator = Emulator::start(&[], &[]);
    for name in ["cosmos", "health", "explorer"] {
        let port = emulator.port(name);
        // Another address than the default's, which every Linux machine has; and, where there is one, the machine's own.
        for address in ["127.0.0.1", "127.0.0.2"] {
            assert!(
                std::net::TcpStream::connect((address, port)).is_ok(),
                "{name} {address}"
            );
        }
        if TcpListener::bind("[::1]:0").is_ok() {
            assert!(std::net::TcpStream::connect(("::1", port)).is_ok(), "{name} ::1");
        }
    }
}

#[test]
fn the_account_is_read_without_a_key_and_nothing_else_is() {
    let emulator = Emulator::start(&[], &[]);
    let mut client = emulator.client("cosmos");
    let root = client.send(&unsigned("/")).expect(200);
    assert!(!root.text().contains(WELL_KNOWN_KEY));
    assert_eq!(root.json()["id"], "bolide");
    for request in [
        unsigned("/dbs"),
        unsigned("/offers"),
        unsigned("/_bolide/metrics"),
        Request::post("/", "").unsigned(),
        Request::get("/").key(OWN_KEY),
    ] {
        client.send(&request).expect_error(401);
    }
    client.send(&unsigned("/").host("evil.example")).expect_error(400);
    client
        .send(&unsigned("/").header("origin", "http://evil.example"))
        .expect_error(403);
}

#[test]
fn health_checks_have_a_port_of_their_own() {
    let emulator = Emulator::start(&["--protocol", "https"], &[]);
    let mut client = emulator.client("health");
    for path in ["/alive", "/ready", "/status"] {
        client.send(&unsigned(path)).expect(200).json();
    }
    for path in ["/", "/dbs", "/_bolide/metrics", "/_explorer/index.html"] {
        client.send(&Request::get(path)).expect_error(404);
    }
    client.send(&unsigned("/ready").host("evil.example")).expect_error(400);
}

#[test]
fn the_explorer_has_a_port_of_its_own_with_the_database_that_it_shows() {
    let emulator = Emulator::start(&[], &[]);
    let database = emulator.port("cosmos");
    let mut client = emulator.client("explorer");
    for path in ["/", "/_explorer/index.html"] {
        let page = client.send(&unsigned(path).host("cosmos:1234")).expect(200);
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    }
    let session = client
        .send(&unsigned("/_explorer/session").host("cosmos:1234"))
        .expect(200)
        .json();
    assert_eq!(session["key"], WELL_KNOWN_KEY);
    assert_eq!(
        session["endpoint"],
        format!("http://cosmos:{database}"),
        "what programs connect to"
    );
    client.send(&unsigned("/_explorer/emulator.pem")).expect(200);
    client.send(&Request::get("/dbs")).expect(200).json();
    client.send(&Request::get("/")).expect(200).json();
    client.send(&Request::get("/_bolide/metrics")).expect(200);
    client.send(&unsigned("/dbs")).expect_error(401);
    client.send(&unsigned("/_bolide/metrics")).expect_error(401);
    client.send(&unsigned("/").host("evil.example")).expect_error(400);
}

#[test]
fn the_explorers_scheme_is_the_one_that_was_asked_for() {
    let emulator = Emulator::start(&[], &[("EXPLORER_PROTOCOL", "https")]);
    let pem = emulator
        .client("cosmos")
        .send(&unsigned("/_explorer/emulator.pem"))
        .expect(200);
    let mut encrypted = Client::new(tls_stream(emulator.port("explorer"), &pem.body, "localhost"));
    encrypted.send(&unsigned("/")).expect(200);
    let session = encrypted.send(&unsigned("/_explorer/session")).expect(200).json();
    let endpoint = session["endpoint"].as_str().expect("text");
    assert!(
        endpoint.starts_with("http://localhost:"),
        "the database's scheme: {endpoint}"
    );
    assert!(emulator.client("explorer").try_send(&unsigned("/")).is_err());
    let plain = Emulator::start(&[], &[]);
    let mut refused = Client::new(tls_stream(plain.port("explorer"), &pem.body, "localhost"));
    assert!(refused.try_send(&unsigned("/")).is_err());
}

#[test]
fn without_the_explorer_only_the_certificate_is_left() {
    for (arguments, variables) in [
        (&["--no-explorer"][..], &[][..]),
        (&["--enable-explorer", "false"], &[("ENABLE_TELEMETRY", "false")]),
        (&[], &[("ENABLE_EXPLORER", "false")]),
    ] {
        let emulator = Emulator::start(arguments, variables);
        assert!(emulator.ready["explorer"].is_null());
        let mut client = emulator.client("cosmos");
        for path in ["/_explorer/index.html", "/_explorer/", "/_explorer/other.html"] {
            client.send(&unsigned(path)).expect_error(404);
        }
        client.send(&unsigned("/_explorer/emulator.pem")).expect(200);
        client
            .send(&unsigned("/").header("accept", "text/html"))
            .expect(200)
            .json();
    }
}

#[test]
fn a_taken_side_port_is_one_warning_and_a_taken_port_of_the_database_the_end() {
    let taken = TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    for (option, name) in [("--health-port", "health"), ("--explorer-port", "explorer")] {
        let emulator = Emulator::start(&[option, &port], &[]);
        assert!(emulator.ready[name].is_null());
        emulator.client("cosmos").send(&Request::get("/")).expect(200);
        let log = emulator.log();
        assert_eq!(log.matches(option).count(), 1, "{log}");
    }
    let refused = refusal(&["--port", &port], &[]);
    assert!(refused.contains("--port") && refused.lines().count() == 1, "{refused}");
}

#[test]
fn the_port_is_that_of_the_variable_and_both_protocols_are_answered() {
    let free = TcpListener::bind("0.0.0.0:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let text = port.to_string();
    let ports = &FREE_PORTS[1..];
    let emulator = Emulator::start_with(&["--memory"], &[("PORT", &text), ("PROTOCOL", "https")], ports);
    let shown = format!("Now listening on: https://0.0.0.0:{port}\n");
    assert!(emulator.printed.contains(&shown), "{}", emulator.printed);
    let pem = Client::connect(port)
        .send(&unsigned("/_explorer/emulator.pem"))
        .expect(200);
    let mut encrypted = Client::new(tls_stream(port, &pem.body, "localhost"));
    encrypted.send(&Request::get("/")).expect(200);
}

#[test]
fn keys_of_variables_are_used_and_not_shown() {
    let emulator = Emulator::start(&[], &[("AZURE_COSMOS_EMULATOR_KEY", OWN_KEY)]);
    let mut client = emulator.client("cosmos");
    client.send(&Request::get("/dbs").key(OWN_KEY)).expect(200);
    client.send(&Request::get("/dbs")).expect_error(401);
    // With a key of one's own every name is answered.
    client
        .send(&Request::get("/dbs").key(OWN_KEY).host("db.example"))
        .expect(200);
    assert!(!emulator.printed.contains(OWN_KEY), "{}", emulator.printed);
    let page = emulator.client("explorer").send(&unsigned("/")).expect(200).text();
    assert!(!page.contains(OWN_KEY) && !page.contains(WELL_KNOWN_KEY), "{page}");
    let files = TempDir::new().expect("a temporary directory");
    let file = files.path().join("key");
    std::fs::write(&file, format!("{OWN_KEY}\n")).expect("written");
    let emulator = Emulator::start(&[], &[("KEY_FILE", file.to_str().expect("UTF-8"))]);
    emulator
        .client("cosmos")
        .send(&Request::get("/dbs").key(OWN_KEY))
        .expect(200);
}

#[test]
fn the_advertised_host_is_the_one_that_was_asked_for() {
    let advertised = |emulator: &Emulator, host: &str| {
        let root = emulator
            .client("cosmos")
            .send(&unsigned("/").host(host))
            .expect(200)
            .json();
        root["writableLocations"][0]["databaseAccountEndpoint"]
            .as_str()
            .expect("a URL")
            .to_owned()
    };
    let follows = Emulator::start(&[], &[]);
    assert_eq!(advertised(&follows, "cosmos:49152"), "http://cosmos:49152/");
    let fixed = Emulator::start(&[], &[("GATEWAY_PUBLIC_ENDPOINT", "db.example")]);
    assert_eq!(advertised(&fixed, "localhost:8081"), "http://db.example:8081/");
    assert_eq!(
        advertised(&fixed, "db.example:8081"),
        "http://db.example:8081/",
        "clients go there"
    );
}

#[test]
fn what_has_no_meaning_is_one_line_in_the_log_and_nothing_more() {
    let emulator = Emulator::start(
        &["--enable-telemetry", "false", "--init-path=nowhere"],
        &[
            ("AZURE_COSMOS_EMULATOR_PARTITION_COUNT", "None"),
            ("QUERY_BUFFER_SIZE_KB", "much"),
            ("UNKNOWN_VARIABLE", "x"),
        ],
    );
    let log = emulator.log();
    for name in [
        "--enable-telemetry",
        "--init-path",
        "AZURE_COSMOS_EMULATOR_PARTITION_COUNT",
        "QUERY_BUFFER_SIZE_KB",
    ] {
        let lines = log.lines().filter(|line| line.contains(name)).count();
        assert_eq!(lines, 1, "{name}: {log}");
    }
    assert!(!log.contains("UNKNOWN_VARIABLE"), "{log}");
    let unknown = refusal(&["--nonsense"], &[]);
    assert!(unknown.contains("--nonsense"), "{unknown}");
}

#[test]
fn without_the_switch_there_are_no_such_arguments_and_no_such_variables() {
    for argument in [
        "--protocol=https",
        "--data-path=x",
        "--enable-explorer=false",
        "--health-port=0",
    ] {
        let ended = run(&["--memory", "--port", "0", "--mongo-port", "0", argument]);
        let name = argument.split('=').next().expect("a name");
        assert!(
            !ended.status.success() && ended.stderr.contains(name),
            "{}",
            ended.stderr
        );
    }
    let variables = [
        ("PORT", "nonsense"),
        ("PROTOCOL", "nonsense"),
        ("LOG_LEVEL", "trace"),
        ("KEY_FILE", "/none"),
    ];
    let server = crate::server::Server::with_environment(&variables, &["--memory", "--log", "warn"]);
    let mut client = server.client();
    client.send(&Request::get("/")).expect(200);
    client.send(&unsigned("/")).expect_error(401);
    client.send(&Request::get("/").host("cosmos")).expect_error(400);
    assert!(server.ready().get("explorer").is_none());
}

#[test]
fn a_certificate_comes_from_a_pfx_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pfx");
    let ca = std::fs::read(folder.join("ca.pem")).expect("readable");
    for (name, secret) in [("aes.pfx", "cosmos-secret"), ("triple_des.pfx", "cosmos-secret")] {
        let path = folder.join(name);
        let path = path.to_str().expect("UTF-8");
        let emulator = Emulator::start(&[], &[("CERT_PATH", path), ("CERT_SECRET", secret)]);
        // The file's certificate is for `cosmos`, and issued by this authority.
        let mut client = Client::new(tls_stream(emulator.port("cosmosTls"), &ca, "cosmos"));
        client.send(&unsigned("/")).expect(200);
        let refused = refusal(&["--cert-path", path], &[("CERT_SECRET", "wrong-secret")]);
        assert!(refused.contains(name) && refused.contains("CERT_SECRET"), "{refused}");
        assert!(!refused.contains("wrong-secret"), "{refused}");
    }
}

#[test]
fn the_certificate_has_the_names_that_were_asked_for_also_when_it_was_kept() {
    let data = TempDir::new().expect("a temporary directory");
    let dir = data.path().join("store");
    let arguments = ["--data-dir", dir.to_str().expect("UTF-8"), "--tls-name", "cosmos"];
    let address = [("AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE", "10.1.2.3")];
    let certificate = |emulator: &Emulator| {
        let port = emulator.port("cosmos");
        Client::connect(port)
            .send(&unsigned("/_explorer/emulator.pem"))
            .expect(200)
            .body
    };
    let first = Emulator::start_with(&arguments[..2], &[], &FREE_PORTS);
    let old = certificate(&first);
    drop(first);
    for expects_new in [true, false] {
        let emulator = Emulator::start_with(&arguments, &address, &FREE_PORTS);
        let pem = certificate(&emulator);
        for name in ["cosmos", "10.1.2.3", "localhost"] {
            let mut client = Client::new(tls_stream(emulator.port("cosmos"), &pem, name));
            client.send(&unsigned("/")).expect(200);
        }
        assert_ne!(pem, old);
        let log = emulator.log();
        assert_eq!(
            log.contains("cosmos"),
            expects_new,
            "a warning that clients have to trust another one: {log}"
        );
    }
}

/// The path is the same for all servers of the machine, so this only shows that one of them has written it.
#[test]
fn the_certificate_is_also_at_its_classic_path() {
    let emulator = Emulator::start(&[], &[]);
    let log = emulator.log();
    let pem = std::fs::read_to_string(CLASSIC_PEM);
    assert!(
        pem.is_ok_and(|pem| pem.contains("BEGIN CERTIFICATE")) || log.contains(CLASSIC_PEM),
        "neither the file nor a line in the log: {log}"
    );
}

#[test]
fn data_can_be_kept_in_memory_by_the_classic_variable() {
    let data = TempDir::new().expect("a temporary directory");
    let dir = data.path().join("store");
    let path = ("DATA_PATH", dir.to_str().expect("UTF-8"));
    let persistence = "AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE";
    let emulator = Emulator::start_with(&[], &[path, (persistence, "false")], &FREE_PORTS);
    assert!(
        !dir.exists() && emulator.printed.contains("in memory"),
        "{}",
        emulator.printed
    );
    drop(emulator);
    let emulator = Emulator::start_with(&[], &[path, (persistence, "true")], &FREE_PORTS);
    assert!(
        dir.is_dir() && emulator.printed.contains(path.1),
        "{}",
        emulator.printed
    );
}
