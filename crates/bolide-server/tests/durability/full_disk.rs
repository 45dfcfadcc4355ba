//! Fills the disk under a server: writes are refused, reads continue, and writes work again once there is space, without a restart.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{Client, Request, create_container};
use crate::server::{Server, ServerFiles, Start};
use crate::wire::{expect, keyed, verify};

const CONTAINER: &str = "/dbs/d/colls/c";
/// Space for the store and its reserve.
const DISK: &str = "192m";
/// The server checks for space every second.
const RECOVERY_LIMIT: Duration = Duration::from_secs(15);

/// A small disk for one test.
struct Disk {
    root: tempfile::TempDir,
    /// On another disk, so that the server's log has space.
    elsewhere: tempfile::TempDir,
}

/// A file that takes up space.
struct Ballast(PathBuf);

#[test]
fn writes_come_back_with_the_space_and_nothing_acknowledged_is_lost() {
    let Some(disk) = Disk::mount() else { return };
    let files = disk.files();
    let server = start_with_container(&files);
    let mut client = server.client();
    let mut acknowledged = Vec::new();
    for n in 0..50 {
        assert!(create(&mut client, &format!("before-{n}"), 1_000));
        acknowledged.push(format!("before-{n}"));
    }

    let ballast = Ballast::fill(disk.path());
    let refused = client.send(&creation("while-full", 1_000)).expect_error(503);
    assert!(
        refused.text().contains("the disk is full"),
        "the reason is effect: {}",
        refused.text()
    );
    assert_all_there(&mut client, &acknowledged);
    client.send(&Request::get(CONTAINER)).expect(200);
    client.send(&Request::get(&format!("{CONTAINER}/docs"))).expect(200);

    drop(ballast);
    acknowledged.push(create_when_there_is_space(&mut client, "after"));
    client.send(&read("while-full")).expect(404);
    assert_all_there(&mut client, &acknowledged);
    server.kill();
    assert_all_there(&mut files.start().client(), &acknowledged);
}

#[test]
fn disk_that_fills_up_in_the_middle_of_writes_loses_nothing_acknowledged() {
    let Some(disk) = Disk::mount() else { return };
    let files = disk.files();
    let server = start_with_container(&files);
    let mut acknowledged = Vec::new();
    for round in 0..4 {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|writer| {
                    let (server, is_over) = (&server, &is_over);
                    scope.spawn(move || write_until(server, &format!("r{round}-w{writer}"), is_over))
                })
                .collect();
            std::thread::sleep(Duration::from_millis(100));
            let ballast = Ballast::fill(disk.path());
            std::thread::sleep(Duration::from_millis(300));
            assert_all_there(&mut server.client(), &acknowledged);
            drop(ballast);
            acknowledged.push(create_when_there_is_space(
                &mut server.client(),
                &format!("r{round}-after"),
            ));
            is_over.store(true, Ordering::Relaxed);
            for writer in writers {
                acknowledged.extend(writer.join().expect("the message is above"));
            }
        });
    }
    assert_all_there(&mut server.client(), &acknowledged);
    verify(&mut server.client(), CONTAINER);
    server.kill();
    assert_all_there(&mut files.start().client(), &acknowledged);
}

/// Earlier, the status was 1 with nothing missing, if tables were being written when the space ended.
#[test]
fn server_on_a_full_disk_stops_in_order() {
    let Some(disk) = Disk::mount() else { return };
    let files = disk.files();
    let server = start_with_container(&files);
    let mut client = server.client();
    // More than may be left for the next start to replay.
    let mut acknowledged = Vec::new();
    for n in 0..6 {
        assert!(create(&mut client, &format!("large-{n}"), 1_000_000));
        acknowledged.push(format!("large-{n}"));
    }
    let ballast = Ballast::fill(disk.path());
    client.send(&creation("while-full", 1_000)).expect_error(503);
    server.stop();
    drop(ballast);
    assert_all_there(&mut files.start().client(), &acknowledged);
}

/// The log is often on the disk that is full, and the first message is then about the full disk.
#[test]
#[cfg(target_os = "linux")]
fn log_that_cannot_be_written_stops_nothing() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let files = ServerFiles::new(root.path()).with_log("/dev/full".into());
    let Start::Ready(server) = files.try_start(&["--log=info"]) else {
        panic!("the server does not start without a log")
    };
    create_container(&mut server.client());
    // Stopping is logged too; a panic would change the status.
    server.stop();
}

fn start_with_container(files: &ServerFiles) -> Server {
    let server = files.start();
    create_container(&mut server.client());
    server
}

/// Creates items and returns those that were acknowledged. The others were refused with a Cosmos error.
fn write_until(server: &Server, prefix: &str, is_over: &AtomicBool) -> Vec<String> {
    let mut client = server.client();
    let mut acknowledged = Vec::new();
    for n in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let id = format!("{prefix}-{n}");
        if create(&mut client, &id, 8_000) {
            acknowledged.push(id);
        }
    }
    acknowledged
}

fn creation(id: &str, bytes: usize) -> Request {
    let body = json!({"id": id, "pk": id, "padding": "x".repeat(bytes)});
    keyed("POST", &format!("{CONTAINER}/docs"), id).body(body.to_string())
}

/// Creates an item, unless this is refused in the way that Cosmos clients expect.
fn create(client: &mut Client, id: &str, bytes: usize) -> bool {
    let response = expect(client, &creation(id, bytes), &[201, 503]);
    let is_created = response.status == 201;
    if !is_created {
        response.expect_error(503);
    }
    is_created
}

/// Creates an item as soon as the server accepts writes again.
fn create_when_there_is_space(client: &mut Client, id: &str) -> String {
    let deadline = Instant::now() + RECOVERY_LIMIT;
    while !create(client, id, 1_000) {
        assert!(Instant::now() < deadline, "writes do not come back with the space");
        std::thread::sleep(Duration::from_millis(20));
    }
    id.to_owned()
}

fn read(id: &str) -> Request {
    keyed("GET", &format!("{CONTAINER}/docs/{id}"), id)
}

fn assert_all_there(client: &mut Client, ids: &[String]) {
    for id in ids {
        client.send(&read(id)).expect(200);
    }
}

impl Disk {
    /// A disk, or a message that root is needed to make one.
    fn mount() -> Option<Disk> {
        let root = tempfile::tempdir().expect("a temporary directory");
        let options = format!("size={DISK}");
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", &options, "bolide-test"])
            .arg(root.path())
            .stderr(Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            let elsewhere = tempfile::tempdir().expect("a temporary directory");
            return Some(Disk { root, elsewhere });
        }
        // Bypasses the capture of the test harness, so that it is shown even if the test passes.
        let _ =
            io::stderr().write_all(b"skipped: a test of a full disk needs the right to mount a tmpfs (Linux, root)\n");
        None
    }

    fn files(&self) -> ServerFiles {
        ServerFiles::new(self.elsewhere.path()).with_data_dir(self.path().join("data"))
    }

    fn path(&self) -> &Path {
        self.root.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a server left over from a failed test may still use it.
        let _ = Command::new("umount").arg("-l").arg(self.root.path()).status();
    }
}

impl Ballast {
    /// Uses all the free space.
    fn fill(disk: &Path) -> Ballast {
        let path = disk.join("ballast");
        let mut file = File::create(&path).expect("a name takes no space");
        for bytes in [1 << 20, 1 << 12] {
            while file.write_all(&vec![1; bytes]).is_ok() {}
        }
        Ballast(path)
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        fs::remove_file(&self.0).expect("it was there");
    }
}
