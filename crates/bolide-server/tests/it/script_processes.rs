//! Scripts run in separate processes: what these can reach, and when they end.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::client::{Client, Request, create_container, create_item};
use crate::server::Server;

/// Longest time that something may take before a test fails.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Stays inside a built-in function of the engine, unless its argument says not to.
const STUCK: &str = "function (isHarmless) { if (isHarmless) return getContext().getResponse().setBody('done'); \
    var s = 'a'.repeat(2 ** 21), t = 'b' + 'a'.repeat(400); for (;;) s.lastIndexOf(t) }";

fn define(client: &mut Client, keyword: &str, id: &str, body: &str) {
    let script = json!({"id": id, "body": body}).to_string();
    client
        .send(&Request::post(&format!("/dbs/d/colls/c/{keyword}"), script))
        .expect(201);
}

fn execute(id: &str, arguments: &str) -> Request {
    Request::post(&format!("/dbs/d/colls/c/sprocs/{id}"), arguments).pk()
}

fn query(text: &str) -> Request {
    Request::post("/dbs/d/colls/c/docs", json!({"query": text}).to_string())
        .pk()
        .query()
}

/// Starts a stored procedure that does not end. Returns its connection.
fn begin_stuck(server: &Server) -> std::net::TcpStream {
    let mut stream = server.client().into_stream();
    stream
        .write_all(&execute("stuck", "[]").to_bytes())
        .expect("it can be sent");
    stream
}

/// The state and parent of a process; `None` if it is gone.
fn stat(process: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

/// Whether a process has ended, even if its parent has not waited for it.
fn is_over(process: u32) -> bool {
    stat(process).is_none_or(|(state, _)| state == 'Z')
}

fn children(server: &Server) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("processes are listed");
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    ids.filter(|id| stat(*id).is_some_and(|(_, parent)| parent == server.pid()))
        .collect()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < TEST_TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether any thread of a process is running.
fn is_busy(process: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let stats = threads.into_iter().flatten().filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.ok()?.path().join("stat"));
        Some(stat.ok()?.contains(") R "))
    });
    stats.into_iter().any(|is_running| is_running)
}

/// The script process of a server that is busy, once there is one.
fn busy_child(server: &Server) -> u32 {
    let mut found = None;
    wait_until("a process runs the script", || {
        found = children(server).into_iter().find(|id| is_busy(*id));
        found.is_some()
    });
    found.expect("it was found")
}

#[test]
fn a_script_process_knows_no_key_and_holds_no_file_of_the_server() {
    const KEY: &str = "c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IHNlY3JldCBzZWNyZXQgISE=";
    let data = TempDir::new().expect("a directory");
    let server = Server::on(data.path(), &["--secondary-key", KEY]);
    let mut client = server.client();
    create_container(&mut client);
    assert!(children(&server).is_empty(), "none before the first script");
    define(&mut client, "sprocs", "stuck", STUCK);
    client.send(&execute("stuck", "[true]")).expect(200);
    let children = children(&server);
    assert_eq!(children.len(), 1);
    let process = PathBuf::from(format!("/proc/{}", children[0]));
    let read = |name: &str| std::fs::read_to_string(process.join(name)).expect("proc can be read");
    assert_eq!(read("environ"), "");
    assert!(!read("cmdline").contains(KEY), "{}", read("cmdline"));
    assert_eq!(
        std::fs::read_link(process.join("cwd")).expect("a directory"),
        Path::new("/")
    );
    for file in std::fs::read_dir(process.join("fd")).expect("files are listed") {
        let target = std::fs::read_link(file.expect("a file").path()).unwrap_or_default();
        let target = target.to_string_lossy();
        assert!(!target.starts_with("socket:"), "{target}");
        assert!(!target.starts_with(&*data.path().to_string_lossy()), "{target}");
    }
}

#[test]
fn a_script_process_ends_with_a_server_that_is_killed() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    define(&mut client, "sprocs", "stuck", STUCK);
    let _waiting = begin_stuck(&server);
    let child = busy_child(&server);
    // The server is killed when dropped.
    drop(server);
    wait_until("the process ends", || is_over(child));
}

#[test]
fn an_orderly_stop_ends_scripts() {
    let mut server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    define(&mut client, "sprocs", "stuck", STUCK);
    let _waiting = begin_stuck(&server);
    let child = busy_child(&server);
    assert_eq!(server.stop().code(), Some(0));
    wait_until("the process ends", || is_over(child));
}

#[test]
fn a_client_that_leaves_ends_its_script() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    define(&mut client, "sprocs", "stuck", STUCK);
    // Three runs that time out would block the procedure.
    for _ in 0..4 {
        let waiting = begin_stuck(&server);
        let child = busy_child(&server);
        drop(waiting);
        wait_until("the process ends", || is_over(child));
    }
    create_item(&mut client, "a");
    let answer = client.send(&execute("stuck", "[true]")).expect(200);
    assert_eq!(answer.json(), json!("done"));
}

#[test]
fn functions_that_stay_in_the_engine_leave_their_places_to_others() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    create_item(&mut client, "a");
    let calls = std::thread::available_parallelism().map_or(1, usize::from).max(2) * 4;
    for n in 0..calls {
        define(&mut client, "udfs", &format!("stuck{n}"), STUCK);
    }
    define(&mut client, "udfs", "good", "function (id) { return id + '!' }");
    let clients: Vec<_> = (0..calls)
        .map(|n| {
            let mut client = server.client();
            std::thread::spawn(move || {
                client
                    .send(&query(&format!("SELECT VALUE udf.stuck{n}(false) FROM c")))
                    .status
            })
        })
        .collect();
    for client in clients {
        let status = client.join().expect("no panic");
        assert!([408, 429].contains(&status), "{status}");
    }
    let rows = client
        .send(&query("SELECT VALUE udf.good(c.id) FROM c"))
        .expect(200)
        .json();
    assert_eq!(rows["Documents"], json!(["a!"]));
}

#[test]
fn a_procedure_that_stays_in_a_builtin_function_is_ended_and_the_partition_continues() {
    let server = Server::in_memory(&[]);
    let mut client = server.client();
    create_container(&mut client);
    define(&mut client, "sprocs", "stuck", STUCK);
    client.send(&execute("stuck", "[]")).expect_error(408);
    create_item(&mut client, "a");
    client.send(&execute("stuck", "[true]")).expect(200);
}
