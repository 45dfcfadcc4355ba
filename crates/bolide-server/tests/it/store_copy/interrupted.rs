//! Copies that do not end, and places where none is made.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use super::{CLOCK, Place, copied, endpoint, refused, seal};
use crate::client::{Request, create_container, create_item};
use crate::server::{Server, command, run};

/// What happens to the request with which a copy would end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtTheEnd {
    /// Its connection is cut, and it does not come to the server.
    Cut,
    /// It is held back, and the test is told.
    Hold,
}

/// Passes connections on to a server, except the last request of a copy. Returns its port.
fn proxy(server: u16, at_the_end: AtTheEnd) -> (u16, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let (told, tell) = mpsc::channel();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.expect("a connection");
            let to = TcpStream::connect(("127.0.0.1", server)).expect("the server listens");
            let (mut answers, mut asking) = (to.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
            std::thread::spawn(move || std::io::copy(&mut answers, &mut asking));
            let told = told.clone();
            std::thread::spawn(move || pass(client, to, at_the_end, &told));
        }
    });
    (port, tell)
}

fn pass(mut client: TcpStream, mut to: TcpStream, at_the_end: AtTheEnd, told: &mpsc::Sender<()>) {
    let mut part = vec![0; 64 * 1024];
    while let Ok(bytes @ 1..) = client.read(&mut part) {
        let is_last = part[..bytes].windows(8).any(|window| window == b"/finish ");
        if is_last && at_the_end == AtTheEnd::Hold {
            let _ = told.send(());
            // Until the process that copies is killed.
            while matches!(client.read(&mut part), Ok(1..)) {}
            return;
        }
        if is_last {
            let _ = client.shutdown(Shutdown::Both);
            let _ = to.shutdown(Shutdown::Both);
            return;
        }
        if to.write_all(&part[..bytes]).is_err() {
            return;
        }
    }
}

fn filled() -> Server {
    let server = Server::in_memory(&[CLOCK]);
    let mut client = server.client();
    create_container(&mut client);
    create_item(&mut client, "a");
    server
}

/// Checks that no server opens what a copy has left.
fn check_refused(place: &Place) {
    let arguments = place.target();
    let option = if arguments[0] == "--to-store" {
        "--store"
    } else {
        "--data-dir"
    };
    let ended = run(&["serve", "--port", "0", "--mongo-port", "0", option, &arguments[1]]);
    assert!(!ended.status.success());
    assert!(ended.stderr.contains("unfinished copy"), "{}", ended.stderr);
}

#[test]
fn a_copy_that_fails_at_its_end_leaves_the_source_writable_and_nothing_to_open() {
    for target in [Place::directory(), Place::database()] {
        let source = filled();
        let (port, _) = proxy(source.port(), AtTheEnd::Cut);
        let failure = refused(port, &target);
        assert!(failure.contains("`bolide unseal`"), "{failure}");
        let mut client = source.client();
        assert_eq!(seal(&mut client), (false, false));
        create_item(&mut client, "b");
        check_refused(&target);
        let again = refused(source.port(), &target);
        let expected = match target {
            Place::Directory(_) => "the directory is not empty",
            Place::Database(_) => "an unfinished copy",
        };
        assert!(again.contains(expected), "{again}");
        copied(&source, &Place::directory(), &[]);
    }
}

#[test]
fn a_copy_that_is_killed_ends_with_its_lease_and_can_be_made_again() {
    let source = filled();
    let target = Place::directory();
    let (port, held) = proxy(source.port(), AtTheEnd::Hold);
    let mut copy = command();
    copy.args(["copy", "--from", &endpoint(port)]).args(target.target());
    let mut child = copy.spawn().expect("the binary starts");
    held.recv_timeout(Duration::from_secs(60))
        .expect("the copy comes to its end");
    let mut client = source.client();
    assert_eq!(seal(&mut client), (true, false));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    client
        .send(&Request::put("/_bolide/clock", r#"{"advanceMs":20000}"#))
        .expect(200);
    create_item(&mut client, "b");
    check_refused(&target);
    let again = Place::directory();
    copied(&source, &again, &[]);
    let moved = again.serve(&[CLOCK]);
    moved
        .client()
        .send(&Request::get("/dbs/d/colls/c/docs/b").pk())
        .expect(200);
}

#[test]
fn a_place_that_has_a_store_is_refused_and_the_source_is_written_on() {
    let source = filled();
    let database = Place::database();
    drop(database.serve(&[]));
    let failure = refused(source.port(), &database);
    assert!(failure.contains("a store already"), "{failure}");
    let directory = Place::directory();
    drop(directory.serve(&[]));
    let failure = refused(source.port(), &directory);
    assert!(failure.contains("the directory is not empty"), "{failure}");
    let nowhere = run(&["copy", "--from", &endpoint(source.port())]);
    assert_eq!(nowhere.status.code(), Some(2), "{}", nowhere.stderr);
    create_item(&mut source.client(), "b");
    copied(&source, &Place::directory(), &["--unseal"]);
    create_item(&mut source.client(), "c");
}
