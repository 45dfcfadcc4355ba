//! `bolide query` on a server and on a data directory.

use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, Request};
use crate::server::{Server, command};

/// Runs `bolide query` on the container of these tests.
fn query(arguments: &[&str]) -> Output {
    let place = ["--database", "db", "--container", "c"];
    command()
        .arg("query")
        .args(arguments)
        .args(place)
        .output()
        .expect("the binary runs")
}

fn lines(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout.clone()).expect("results are UTF-8");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("results are UTF-8")
}

/// The line of a failure.
fn failure(output: &Output) -> String {
    assert!(!output.status.success());
    assert!(output.stdout.is_empty(), "nothing is printed before the failure");
    let text = String::from_utf8(output.stderr.clone()).expect("errors are UTF-8");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

/// Items `i0` to `i29` over five ranges.
fn fill(port: u16) {
    let mut client = Client::connect(port);
    client.send(&Request::post("/dbs", r#"{"id": "db"}"#)).expect(201);
    let definition =
        r#"{"id": "c", "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}, "defaultTtl": -1}"#;
    let create = Request::post("/dbs/db/colls", definition).header("x-ms-offer-throughput", "30000");
    client.send(&create).expect(201);
    for n in 0..30 {
        let item = json!({"id": format!("i{n}"), "pk": format!("p{n}"), "n": n, "g": n % 3}).to_string();
        let create =
            Request::post("/dbs/db/colls/c/docs", item).header("x-ms-documentdb-partitionkey", &format!(r#"["p{n}"]"#));
        client.send(&create).expect(201);
    }
}

fn endpoint(server: &Server) -> String {
    format!("http://127.0.0.1:{}", server.port())
}

#[test]
fn a_server_is_asked_and_the_results_of_its_ranges_are_merged() {
    let server = Server::in_memory(&[]);
    fill(server.port());
    let endpoint = endpoint(&server);
    let ask = |sql: &str, more: &[&str]| query(&[&[sql, "--endpoint", &endpoint], more].concat());

    let sorted = lines(&ask(
        "SELECT TOP 3 VALUE c.n FROM c WHERE c.n < @most ORDER BY c.n DESC",
        &["--param", "@most=10"],
    ));
    assert_eq!(sorted, [json!(9), json!(8), json!(7)]);
    assert_eq!(lines(&ask("SELECT VALUE COUNT(1) FROM c", &[])), [json!(30)]);
    assert_eq!(
        lines(&ask("SELECT c.id FROM c", &["--partition-key", r#"["p4"]"#])),
        [json!({"id": "i4"})]
    );
    let mut groups = lines(&ask("SELECT c.g, SUM(c.n) AS sum FROM c GROUP BY c.g", &[]));
    groups.sort_by_key(|group| group["g"].as_u64());
    assert_eq!(groups[0], json!({"g": 0, "sum": 135}));
    let table = text(&ask("SELECT c.id, c.n FROM c WHERE c.n = 5", &["--format", "table"]));
    assert_eq!(table, "id  n\n--  -\ni5  5\n");
    let plan = text(&ask("SELECT TOP 3 VALUE c.n FROM c ORDER BY c.n", &["--explain"]));
    assert!(plan.contains("sort: keys=1\n") && plan.contains("take: 3\n"), "{plan}");
}

#[test]
fn a_server_is_asked_over_https_if_its_certificate_is_trusted() {
    let server = Server::in_memory(&[]);
    fill(server.port());
    let files = TempDir::new().expect("a temporary directory");
    let pem_of = |server: &Server, name: &str| {
        let pem = server
            .client()
            .send(&Request::get("/_explorer/emulator.pem").unsigned());
        let file = files.path().join(name);
        std::fs::write(&file, pem.expect(200).body).expect("it can be written");
        file.to_str().expect("UTF-8").to_owned()
    };
    let ca = pem_of(&server, "ca.pem");
    let endpoint = format!("https://127.0.0.1:{}", server.port());
    let ask = |more: &[&str]| query(&[&["SELECT VALUE COUNT(1) FROM c", "--endpoint", &endpoint], more].concat());
    let expected = lines(&ask(&["--insecure"]));
    assert_eq!(lines(&ask(&["--ca", &ca])), expected);
    assert!(failure(&ask(&[])).contains("--ca"));
    assert!(failure(&ask(&["--ca", "/nowhere.pem"])).contains("/nowhere.pem"));
    let other = pem_of(&Server::in_memory(&[]), "other.pem");
    let untrusted = failure(&ask(&["--ca", &other]));
    assert!(untrusted.contains(&endpoint), "{untrusted}");
}

#[test]
fn a_partition_key_may_be_a_plain_value() {
    let server = Server::in_memory(&[]);
    fill(server.port());
    let endpoint = endpoint(&server);
    let of = |key: &str| {
        lines(&query(&[
            "SELECT c.id FROM c",
            "--endpoint",
            &endpoint,
            "--partition-key",
            key,
        ]))
    };
    assert_eq!(of("p1"), of(r#"["p1"]"#));
    assert!(!of("p1").is_empty());
    let malformed = query(&["SELECT c.id FROM c", "--endpoint", &endpoint, "--partition-key", "[p1]"]);
    assert!(!malformed.status.success());
}

#[test]
fn failures_are_one_line_with_the_cause() {
    let server = Server::in_memory(&[]);
    fill(server.port());
    let endpoint = endpoint(&server);
    let syntax = failure(&query(&["SELECT x.id FROM c", "--endpoint", &endpoint]));
    assert_eq!(
        syntax,
        "bolide: SC2001: Identifier 'x' could not be resolved. (characters 7 to 8)\n"
    );
    let key = failure(&query(&[
        "SELECT 1",
        "--endpoint",
        &endpoint,
        "--key",
        "MDEyMzQ1Njc4OWFiY2RlZg==",
    ]));
    assert!(key.contains("key"), "{key}");
    let scheme = failure(&query(&["SELECT 1", "--endpoint", "ftp://127.0.0.1"]));
    assert!(scheme.contains("--endpoint"), "{scheme}");
    drop(server);
    let gone = failure(&query(&["SELECT 1", "--endpoint", &endpoint]));
    assert!(gone.contains("--endpoint") && gone.contains(&endpoint), "{gone}");
    let nowhere = failure(&query(&["SELECT 1", "--data-dir", "/no/such/directory"]));
    assert!(nowhere.contains("--data-dir"), "{nowhere}");
    let empty = TempDir::new().expect("a temporary directory");
    let store = failure(&query(&[
        "SELECT 1",
        "--data-dir",
        empty.path().to_str().expect("UTF-8"),
    ]));
    assert!(store.contains("there is no store"), "{store}");
    assert_eq!(
        std::fs::read_dir(empty.path()).expect("readable").count(),
        0,
        "nothing was made"
    );
}

#[test]
fn a_data_directory_is_asked_when_no_server_has_it() {
    let data = TempDir::new().expect("a temporary directory");
    let directory = data.path().to_str().expect("UTF-8");
    let server = Server::on(data.path(), &[]);
    fill(server.port());
    let taken = failure(&query(&["SELECT 1", "--data-dir", directory]));
    assert!(taken.contains("--data-dir"), "{taken}");
    drop(server);

    let all = lines(&query(&[
        "SELECT VALUE c.n FROM c ORDER BY c.n",
        "--data-dir",
        directory,
    ]));
    assert_eq!(all, (0..30).map(Value::from).collect::<Vec<_>>());
    let missing = command()
        .args([
            "query",
            "SELECT 1",
            "--data-dir",
            directory,
            "--database",
            "db",
            "--container",
            "other",
        ])
        .output()
        .expect("the binary runs");
    assert_eq!(failure(&missing), "bolide: no such container. id=`other`\n");
    let again = Server::on(data.path(), &[]);
    let count = lines(&query(&[
        "SELECT VALUE COUNT(1) FROM c",
        "--endpoint",
        &endpoint(&again),
    ]));
    assert_eq!(count, [json!(30)], "a server takes it up again");
}
