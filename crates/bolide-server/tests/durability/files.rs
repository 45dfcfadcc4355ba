//! Files of a server: their permissions, limits on them, and what happens if they are broken or disappear.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::json;

use crate::client::{Client, Request, create_container};
use crate::server::{Server, ServerFiles, Start};
use crate::wire::{expect, keyed};

const CONTAINER: &str = "/dbs/d/colls/c";
/// The server retries every second.
const RECOVERY_LIMIT: Duration = Duration::from_secs(20);

/// Far more than the store keeps in memory and in its journal before it has to make a file.
const WRITTEN_BYTES: usize = 400_000_000;

struct Running {
    root: tempfile::TempDir,
    files: ServerFiles,
    server: Server,
    /// Connected at the start: under a limit on descriptors a later connection could fail.
    client: Client,
}

impl Running {
    fn start() -> Running {
        let root = tempfile::tempdir().expect("a temporary directory");
        let files = ServerFiles::new(root.path());
        let server = files.start();
        let mut client = server.client();
        create_container(&mut client);
        Running {
            root,
            files,
            server,
            client,
        }
    }

    /// Writes until a write is refused; returns the acknowledged ones and the refusal.
    fn write_until_refused(&mut self, prefix: &str, bytes: usize) -> (Vec<String>, String) {
        let mut acknowledged = Vec::new();
        for n in 0..WRITTEN_BYTES / bytes {
            let id = format!("{prefix}{n}");
            // If the store fails during a write, the outcome of this write is unknown.
            let response = expect(&mut self.client, &creation(&id, bytes), &[201, 408, 503]);
            match response.status {
                201 => acknowledged.push(id),
                408 => {}
                _ => return (acknowledged, response.text()),
            }
        }
        panic!("writes are not refused");
    }

    /// Writes as soon as this is possible again.
    fn write_again(&mut self, id: &str) {
        let deadline = Instant::now() + RECOVERY_LIMIT;
        while expect(&mut self.client, &creation(id, 100), &[201, 408, 409, 503]).status > 201 {
            assert!(
                Instant::now() < deadline,
                "writes do not come back: {}",
                self.files.stderr()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn assert_all_there(&mut self, ids: &[String]) {
        for id in ids {
            self.client.send(&read(id)).expect(200);
        }
    }

    fn limit(&self, resource: Resource, to: Option<u64>) {
        let pid = Pid::from_raw(self.server.pid() as i32).expect("a process has a number");
        let limit = Rlimit {
            current: to,
            // The limit must be raised again later.
            maximum: prlimit_of(pid, resource).maximum,
        };
        prlimit(Some(pid), resource, limit).expect("our own child");
    }

    fn limit_of(&self, resource: Resource) -> Option<u64> {
        let pid = Pid::from_raw(self.server.pid() as i32).expect("a process has a number");
        prlimit_of(pid, resource).current
    }
}

/// The limit of a process, as the kernel reports it.
fn prlimit_of(pid: Pid, resource: Resource) -> Rlimit {
    let name = match resource {
        Resource::Fsize => "Max file size",
        Resource::Nofile => "Max open files",
        _ => unreachable!("not limited here"),
    };
    let limits = fs::read_to_string(format!("/proc/{}/limits", pid.as_raw_nonzero())).expect("Linux shows limits");
    let line = limits.lines().find(|line| line.starts_with(name)).expect("shown");
    let mut values = line[name.len()..].split_whitespace().map(|value| value.parse().ok());
    Rlimit {
        current: values.next().expect("a soft limit"),
        maximum: values.next().expect("a hard limit"),
    }
}

fn creation(id: &str, bytes: usize) -> Request {
    let body = json!({"id": id, "pk": id, "padding": random_text(id, bytes)});
    keyed("POST", &format!("{CONTAINER}/docs"), id).body(body.to_string())
}

/// Text that hardly compresses.
fn random_text(seed: &str, bytes: usize) -> String {
    let seed = seed.bytes().fold(17_u64, |seed, byte| seed * 31 + u64::from(byte));
    let mut random = fastrand::Rng::with_seed(seed);
    let letters = std::iter::repeat_with(|| random.lowercase());
    letters.take(bytes).collect()
}

fn read(id: &str) -> Request {
    keyed("GET", &format!("{CONTAINER}/docs/{id}"), id)
}

fn refused(files: &ServerFiles, options: &[&str]) -> String {
    let Start::Ended { status, stderr } = files.try_start(options) else {
        panic!("the server started")
    };
    assert!(!status.success() && status.code().is_some(), "{status}: {stderr}");
    stderr
}

fn assert_private(path: &Path) {
    let found = fs::metadata(path).expect("it is there");
    let mode = found.permissions().mode() & 0o777;
    assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    if found.is_dir() {
        for entry in fs::read_dir(path).expect("readable") {
            assert_private(&entry.expect("readable").path());
        }
    }
}

#[test]
fn data_directory_and_everything_in_it_is_its_owners_alone() {
    let running = Running::start();
    assert_private(running.files.data_dir());
    running.server.stop();
    assert_private(running.files.data_dir());
}

#[test]
fn broken_certificate_of_our_own_is_made_again_with_a_warning() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let files = ServerFiles::new(root.path());
    files.start().stop();
    let certificate = files.data_dir().join("tls-certificate.pem");
    let key = files.data_dir().join("tls-key.pem");
    // The state after a power loss, and after a crash between the two writes.
    let damages: [&dyn Fn(); 4] = [
        &|| fs::write(&key, "").expect("writable"),
        &|| fs::write(&certificate, "").expect("writable"),
        &|| fs::write(&certificate, "-----BEGIN CERTIFICATE-----\nMIIB").expect("writable"),
        &|| fs::remove_file(&key).expect("it was there"),
    ];
    for harm in damages {
        let before = fs::read_to_string(&certificate).expect("readable");
        harm();
        let server = files.start();
        assert!(
            files.stderr().contains("tls-key.pem") && files.stderr().contains("WARN"),
            "{}",
            files.stderr()
        );
        server.stop();
        assert_ne!(fs::read_to_string(&certificate).expect("readable"), before);
        assert_private(&key);
        let kept = fs::read_to_string(&certificate).expect("readable");
        files.start().stop();
        assert_eq!(fs::read_to_string(&certificate).expect("readable"), kept);
    }
}

#[test]
fn broken_certificate_of_the_users_is_named() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let files = ServerFiles::new(root.path());
    files.start().stop();
    let empty = root.path().join("mine.pem");
    fs::write(&empty, "").expect("writable");
    let empty = empty.to_str().expect("a path of ours");
    let key = files.data_dir().join("tls-key.pem");
    let stderr = refused(
        &files,
        &["--tls-cert", empty, "--tls-key", key.to_str().expect("a path")],
    );
    assert!(stderr.contains(empty), "{stderr}");
}

#[test]
fn a_too_low_limit_on_file_sizes_is_reported_at_start() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let files = ServerFiles::new(root.path()).with_limit("ulimit -f 65536");
    let stderr = refused(&files, &[]);
    assert!(stderr.contains("limit on the size of files"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn limit_on_file_sizes_refuses_writes_and_nothing_else() {
    let mut running = Running::start();
    running.client.send(&creation("before", 1_000)).expect(201);
    let usual = running.limit_of(Resource::Fsize);
    running.limit(Resource::Fsize, Some(1));
    let (_, why) = running.write_until_refused("over", 1_000);
    assert!(why.contains("File too large"), "{why}");
    running.assert_all_there(&["before".into()]);
    running.limit(Resource::Fsize, usual);
    running.write_again("after");
    running.assert_all_there(&["before".into(), "after".into()]);
    running.server.kill();
    let server = running.files.start();
    server.client().send(&read("after")).expect(200);
}

#[test]
fn a_store_without_descriptors_continues_to_read_and_writes_when_some_are_free() {
    let mut running = Running::start();
    let usual = running.limit_of(Resource::Nofile);
    // No descriptor is free any more.
    running.limit(Resource::Nofile, Some(8));
    // Tables cannot be written.
    let (acknowledged, why) = running.write_until_refused("n", 400_000);
    assert!(why.contains("Too many open files"), "{why}");
    // Longer than the interval in which the store is retried.
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        running.assert_all_there(&acknowledged);
    }
    running.limit(Resource::Nofile, usual);
    running.write_again("after");
    running.assert_all_there(&acknowledged);
    running.server.kill();
    let server = running.files.start();
    let mut client = server.client();
    for id in &acknowledged {
        client.send(&read(id)).expect(200);
    }
}

#[test]
fn writes_to_a_directory_that_was_removed_are_not_acknowledged() {
    let mut running = Running::start();
    running.client.send(&creation("before", 1_000)).expect(201);
    // A new store may still be putting files in place: then the directory is not empty in the end.
    let removed = (0..1_000).any(|_| fs::remove_dir_all(running.files.data_dir()).is_ok());
    assert!(removed);
    for n in 0..20 {
        let refused = running
            .client
            .send(&creation(&format!("lost{n}"), 100))
            .expect_error(503);
        assert!(refused.text().contains("was removed"), "{}", refused.text());
    }
    running.assert_all_there(&["before".into()]);
    running.server.assert_no_panic();
    assert!(
        !running.root.path().join("data").exists(),
        "it is not for the server to make it again"
    );
}

#[test]
fn writes_go_on_when_a_directory_that_was_moved_away_is_back() {
    let mut running = Running::start();
    running.client.send(&creation("before", 1_000)).expect(201);
    let away = running.root.path().join("away");
    fs::rename(running.files.data_dir(), &away).expect("ours");
    running.client.send(&creation("meanwhile", 100)).expect_error(503);
    fs::rename(&away, running.files.data_dir()).expect("ours");
    running.write_again("after");
    running.assert_all_there(&["before".into(), "after".into()]);
    running.client.send(&read("meanwhile")).expect(404);
}

#[test]
fn an_unusable_data_directory_is_reported_in_one_line() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let file = root.path().join("file");
    fs::write(&file, "not a directory").expect("writable");
    for data_dir in [file.clone(), file.join("below"), "/proc/nothing/here".into()] {
        let files = ServerFiles::new(root.path()).with_data_dir(data_dir.clone());
        let stderr = refused(&files, &[]);
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.contains(data_dir.to_str().expect("a path")), "{stderr}");
    }
    // A link to a directory works like the directory.
    std::os::unix::fs::symlink(root.path().join("real"), root.path().join("link")).expect("ours");
    fs::create_dir(root.path().join("real")).expect("ours");
    let files = ServerFiles::new(root.path()).with_data_dir(root.path().join("link"));
    let server = files.start();
    create_container(&mut server.client());
    server.client().send(&creation("a", 10)).expect(201);
    server.stop();
}
