//! Keys chosen by the user stay secret: on the command line, in files, in output.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::client::Request;
use crate::server::{Server, run};

const OWN_KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZg==";
const OTHER_KEY: &str = "ZmVkY2JhOTg3NjU0MzIxMA==";

fn key_file(dir: &Path, key: &str) -> String {
    let file = dir.join("key");
    fs::write(&file, format!("{key}\n")).expect("it can be written");
    file.to_str().expect("temporary paths are UTF-8").to_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn the_arguments_of_the_process_show_no_key() {
    let equals = format!("--secondary-key={OTHER_KEY}");
    let mut server = Server::in_memory(&["--key", OWN_KEY, &equals]);
    let arguments = fs::read(format!("/proc/{}/cmdline", server.pid())).expect("it can be read");
    let arguments = String::from_utf8(arguments).expect("UTF-8");
    assert!(arguments.contains("--memory"), "{arguments}");
    for key in [OWN_KEY, OTHER_KEY] {
        assert!(!arguments.contains(key), "{arguments}");
        server.client().send(&Request::get("/").key(key)).expect(200);
    }
    assert_eq!(server.ready()["pid"], server.pid(), "it is the same process");
    server.client().send(&Request::get("/")).expect(401);
    assert!(server.stop().success());
}

#[test]
fn keys_may_be_in_files() {
    let dir = TempDir::new().expect("a temporary directory");
    let file = key_file(dir.path(), OWN_KEY);
    for (option, key) in [
        ("--key-file", &["--secondary-key", OTHER_KEY]),
        ("--readonly-key-file", &["--key", OTHER_KEY]),
    ] {
        let server = Server::in_memory(&[&[option, &file], &key[..]].concat());
        for key in [OWN_KEY, OTHER_KEY] {
            server.client().send(&Request::get("/").key(key)).expect(200);
        }
    }
}

#[test]
fn a_key_comes_from_one_place() {
    let dir = TempDir::new().expect("a temporary directory");
    let file = key_file(dir.path(), OWN_KEY);
    let ended = run(&["--memory", "--port", "0", "--key", OWN_KEY, "--key-file", &file]);
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    let missing = dir.path().join("none");
    let missing = missing.to_str().expect("UTF-8");
    let ended = run(&["--memory", "--port", "0", "--key-file", missing]);
    assert!(!ended.status.success());
    assert!(
        ended.stderr.contains("--key-file") && ended.stderr.contains(missing),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_key_given_as_the_name_of_a_file_is_not_printed() {
    let ended = run(&["--memory", "--port", "0", "--key-file", OWN_KEY]);
    assert!(!ended.status.success());
    assert!(
        ended.stderr.contains("--key-file") && !ended.stderr.contains(OWN_KEY),
        "{}",
        ended.stderr
    );
}

#[cfg(unix)]
#[test]
fn a_key_file_without_end_is_read_up_to_a_limit() {
    let ended = run(&["--memory", "--port", "0", "--key-file", "/dev/zero"]);
    assert!(!ended.status.success());
    assert!(ended.stderr.contains("/dev/zero"), "{}", ended.stderr);
}
