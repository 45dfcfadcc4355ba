//! `bolide import`, `bolide export` and `bolide copy`: the real binary against real servers and files.

mod copying;
mod formats;
mod hostile;
mod kills;
mod resuming;

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, Request, Response};
use crate::server::{Server, command};

/// Runs the binary with these arguments.
fn bolide(arguments: &[&str]) -> Output {
    command().args(arguments).output().expect("the binary runs")
}

/// The standard output of a run that must succeed.
fn succeeds(arguments: &[&str]) -> String {
    let output = bolide(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    assert_eq!(stderr, "", "nothing but the summary");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The line of a run that must fail.
fn fails(arguments: &[&str]) -> String {
    let output = bolide(arguments);
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "one line: {stderr}");
    stderr
}

fn endpoint(server: &Server) -> String {
    format!("http://127.0.0.1:{}", server.port())
}

/// A directory for files.
struct Files(TempDir);

impl Files {
    fn new() -> Files {
        Files(TempDir::new().expect("a temporary directory"))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("UTF-8").to_owned()
    }

    /// Writes a file, and returns its path.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), content).expect("it can be written");
        self.text(name)
    }
}

/// Creates the database `db` and a container in it.
fn create(client: &mut Client, container: &Value, throughput: &str) {
    let database = client.send(&Request::post("/dbs", r#"{"id": "db"}"#));
    assert!(matches!(database.status, 201 | 409));
    let create = Request::post("/dbs/db/colls", container.to_string()).header("x-ms-offer-throughput", throughput);
    client.send(&create).expect(201);
}

/// A container with the partition key `/pk`, and three ranges.
fn create_plain(server: &Server, id: &str) {
    let container = json!({"id": id, "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2}});
    create(&mut server.client(), &container, "30000");
}

/// The options of a container.
fn of<'a>(endpoint: &'a str, container: &'a str) -> [&'a str; 6] {
    ["--endpoint", endpoint, "--database", "db", "--container", container]
}

/// Sends a request, again while the container's throughput is used up.
fn unthrottled(client: &mut Client, request: &Request) -> Response {
    loop {
        let response = client.send(request);
        if response.status != 429 {
            return response.expect(200);
        }
        let pause = response.header("x-ms-retry-after-ms").expect("a time").parse();
        std::thread::sleep(std::time::Duration::from_millis(pause.expect("milliseconds")));
    }
}

/// All items of a container by id, without system properties.
fn items(server: &Server, container: &str) -> Vec<Value> {
    let mut client = server.client();
    let (mut all, mut continuation) = (Vec::new(), None::<String>);
    loop {
        let path = format!("/dbs/db/colls/{container}/docs");
        let mut request = Request::get(&path).header("x-ms-max-item-count", "-1");
        if let Some(continuation) = &continuation {
            request = request.header("x-ms-continuation", continuation);
        }
        let response = unthrottled(&mut client, &request);
        for item in response.json()["Documents"].as_array().expect("a list") {
            let mut item = item.as_object().expect("an item").clone();
            item.retain(|name, _| !name.starts_with('_'));
            all.push(Value::Object(item));
        }
        continuation = response.header("x-ms-continuation").map(str::to_owned);
        if continuation.is_none() {
            break;
        }
    }
    all.sort_by_key(|item| item["id"].as_str().map(str::to_owned));
    all
}

/// Items of different shapes in several partition keys.
fn samples(count: usize) -> Vec<Value> {
    let item = |n: usize| {
        json!({
            "id": format!("i{n:06}"), "pk": format!("p{}", n % 17), "n": n, "x": n as f64 + 0.125, "ok": n.is_multiple_of(2), "nothing": null,
            "text": "commas, \"quotes\"\nlines ä 🦀", "number": "12", "empty": "", "list": [1, "two", {"three": 3}],
        })
    };
    (0..count).map(item).collect()
}

/// Items as lines.
fn lines(items: &[Value]) -> String {
    items.iter().map(|item| format!("{item}\n")).collect()
}

fn has_place(file: &str, kind: &str) -> bool {
    Path::new(&format!("{file}.bolide-{kind}")).exists()
}
