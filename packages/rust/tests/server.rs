//! What the crate promises of a server besides the clients' view: its end, its errors, its clock.

use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};

use bolide_testing::{Bolide, Error};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const START: Duration = Duration::from_secs(1_900_000_000);

#[test]
fn a_server_ends_when_it_is_stopped_or_dropped() -> Outcome {
    let db = Bolide::start()?;
    let pid = db.pid();
    assert!(is_running(pid));
    db.stop()?;
    assert!(!is_running(pid));
    let dropped = Bolide::start()?.pid();
    assert!(!is_running(dropped));
    Ok(())
}

#[test]
fn a_server_ends_with_the_process_that_started_it() -> Outcome {
    if std::env::var_os("START_AND_DIE").is_some() {
        println!("pid={}.", Bolide::start()?.pid_of_a_leaked_server());
        std::process::abort();
    }
    let this = std::env::current_exe()?;
    let output = Command::new(this)
        .args(["--exact", "a_server_ends_with_the_process_that_started_it", "--nocapture"])
        .env("START_AND_DIE", "1")
        .stderr(Stdio::null())
        .output()?;
    let output = String::from_utf8(output.stdout)?;
    let pid = output.split_once("pid=").and_then(|(_, rest)| rest.split_once('.'));
    let pid: u32 = pid.ok_or(format!("no process id in {output:?}"))?.0.parse()?;
    for _ in 0..1000 {
        if !is_running(pid) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err("the server outlived its parent".into())
}

/// A server whose value is never dropped.
trait Leaked {
    fn pid_of_a_leaked_server(self) -> u32;
}

impl Leaked for Bolide {
    fn pid_of_a_leaked_server(self) -> u32 {
        let pid = self.pid();
        std::mem::forget(self);
        pid
    }
}

#[test]
fn a_refused_option_is_shown_with_what_the_server_says_of_it() {
    let error = Bolide::options().arg("--no-such-option").start().unwrap_err();
    assert!(matches!(&error, Error::Start(text) if text.contains("--no-such-option")), "{error}");
}

#[test]
fn a_missing_binary_is_named() {
    let error = Bolide::options().binary("/no/such/file").start().unwrap_err();
    assert_eq!(error.to_string(), "binary: not a file. value=`/no/such/file`");
}

#[cfg(unix)]
#[test]
fn a_server_that_does_not_get_ready_is_ended_in_time() -> Outcome {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir()?;
    let binary = folder.path().join("slow");
    std::fs::write(&binary, "#!/bin/sh\necho still busy >&2\nexec sleep 600\n")?;
    std::fs::set_permissions(&binary, std::fs::Permissions::from_mode(0o755))?;
    let slow = Bolide::options().binary(binary).start_timeout(Duration::from_millis(500));
    let error = slow.start().unwrap_err();
    assert_eq!(error.to_string(), "the server was not ready within 500ms\nstill busy");
    Ok(())
}

#[test]
fn the_clock_moves_forward_and_to_an_instant() -> Outcome {
    let folder = tempfile::tempdir()?;
    let start = UNIX_EPOCH + START;
    let options = Bolide::options().virtual_clock(start).data_dir(folder.path().join("data"));
    let db = options.key("YSBrZXkgb2Ygb25lJ3Mgb3du").start()?;
    assert!(db.connection_string().contains("AccountKey=YSBrZXkgb2Ygb25lJ3Mgb3du;"));
    assert!(db.mongo_uri().is_some_and(|uri| uri.starts_with("mongodb://localhost:YSBr")));
    let step = Duration::from_millis(36 * 60 * 60 * 1000 + 5);
    assert_eq!(db.clock().advance(step)?, start + step);
    assert_eq!(db.clock().now()?, start + step);
    assert_eq!(db.clock().set(start + 2 * step)?, start + 2 * step);
    Ok(())
}

#[test]
fn the_systems_clock_cannot_be_moved() -> Outcome {
    let db = Bolide::options().system_clock().arg("--no-mongo").start()?;
    let refused = db.clock().advance(Duration::from_secs(1)).unwrap_err();
    assert!(matches!(refused, Error::Request { status: Some(409), .. }), "{refused}");
    assert_eq!(db.mongo_uri(), None);
    Ok(())
}

/// Whether a process with this id has not ended; one that only waits to be collected has.
fn is_running(pid: u32) -> bool {
    let about = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    about.is_ok_and(|about| !about.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('Z')))
}
