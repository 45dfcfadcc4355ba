//! Kills at every step of snapshots and replacements: the next start finds the old or the new state.

use tempfile::TempDir;

use super::{admin, assert_items, data, names, restore, take};
use crate::client::{Client, Request, create_container, create_item};
use crate::server::Server;

/// More steps than any operation has.
const MAX_STEPS: u64 = 30;

/// A directory with one item in the snapshot `base`, and two in the store.
fn prepared(dir: &TempDir) -> Server {
    let server = Server::on(&data(dir), &["--enable-faults"]);
    let mut client = server.client();
    create_container(&mut client);
    create_item(&mut client, "0");
    take(&mut client, "base");
    create_item(&mut client, "1");
    server
}

/// Lets the server abort after so many steps of a request. Returns false if the request was done before.
fn is_killed(server: &mut Server, request: &Request, steps: u64) -> bool {
    let mut client = server.client();
    let fault = format!(r#"{{"point":"snapshot-step","after":{steps}}}"#);
    client.send(&Request::put("/_bolide/faults", fault)).expect(200);
    match client.try_send(request) {
        Ok(response) => {
            response.expect(200);
            false
        }
        Err(_) => {
            assert!(!server.wait().success(), "it was aborted");
            true
        }
    }
}

/// Kills the server after each step of a request, and checks what the next start finds. Returns the number of kills.
fn kill_at_every_step(dir: &TempDir, request: &Request, check: impl Fn(&mut Client)) -> u64 {
    let mut server = prepared(dir);
    for steps in 1..MAX_STEPS {
        if !is_killed(&mut server, request, steps) {
            return steps - 1;
        }
        server = Server::on(&data(dir), &["--enable-faults", "--verify-on-start"]);
        let mut client = server.client();
        check(&mut client);
        // As before the kill.
        client
            .send(&Request::put(
                "/_bolide/faults",
                r#"{"point":"snapshot-step","after":0}"#,
            ))
            .expect(200);
        restore(&mut client, "base");
        assert_items(&mut client, 1);
        create_item(&mut client, "1");
    }
    panic!("the request has more steps than {MAX_STEPS}");
}

/// Whether the database is there.
fn has_database(client: &mut Client) -> bool {
    client.send(&Request::get("/dbs/d")).status == 200
}

fn live(client: &mut Client) -> u64 {
    let verified = client.send(&admin("POST", "dbs/d/colls/c/verify")).expect(200).json();
    assert_eq!(verified["ok"], true, "{verified}");
    verified["live"].as_u64().expect("a number")
}

#[test]
fn a_kill_during_a_restore_leaves_the_old_or_the_new_state() {
    let dir = TempDir::new().expect("a directory");
    let kills = kill_at_every_step(&dir, &admin("POST", "snapshots/base/restore"), |client| {
        let live = live(client);
        assert!([1, 2].contains(&live), "{live}");
    });
    assert!(kills >= 6, "{kills}");
}

#[test]
fn a_kill_during_a_reset_leaves_everything_or_nothing() {
    let dir = TempDir::new().expect("a directory");
    let kills = kill_at_every_step(&dir, &admin("POST", "reset"), |client| {
        if has_database(client) {
            assert_items(client, 2);
        }
    });
    assert!(kills >= 6, "{kills}");
}

#[test]
fn a_kill_during_a_snapshot_leaves_the_one_before_or_the_new_one() {
    let dir = TempDir::new().expect("a directory");
    let mut server = prepared(&dir);
    for steps in 1..MAX_STEPS {
        let was_killed = is_killed(&mut server, &admin("POST", "snapshots/other"), steps);
        if !was_killed {
            assert!(steps > 4, "{steps}");
            return;
        }
        server = Server::on(&data(&dir), &["--enable-faults", "--verify-on-start"]);
        let mut client = server.client();
        assert_items(&mut client, 2);
        let kept = names(&mut client);
        if kept.iter().any(|name| name == "other") {
            restore(&mut client, "other");
            assert_items(&mut client, 2);
            client.send(&admin("DELETE", "snapshots/other")).expect(200);
        }
        assert!(kept.iter().any(|name| name == "base"), "{kept:?}");
    }
    panic!("the request has more steps than {MAX_STEPS}");
}
