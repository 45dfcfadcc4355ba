//! `bolide copy --to-store` and `--to-data-dir`: a whole store is moved while it is in use.

mod content;
mod interrupted;
mod load;
mod sealed;

use std::path::PathBuf;
use std::process::Output;

use bolide_postgres_server::Database;
use serde_json::Value;
use tempfile::TempDir;

use crate::client::{Client, Request, Response};
use crate::server::{Server, command};

/// Where the virtual clocks of these tests begin.
const CLOCK: &str = "--virtual-clock=2023-11-14T22:13:20Z";
const OPEN: &str = "--mongo-no-auth";

/// A place for a store.
enum Place {
    Directory(TempDir),
    Database(Database),
}

impl Place {
    fn directory() -> Place {
        Place::Directory(TempDir::new().expect("a temporary directory"))
    }

    fn database() -> Place {
        Place::Database(Database::create().expect("PostgreSQL is installed"))
    }

    fn path(&self) -> PathBuf {
        match self {
            Place::Directory(directory) => directory.path().join("store"),
            Place::Database(_) => panic!("it is no directory"),
        }
    }

    /// A server on the store.
    fn serve(&self, arguments: &[&str]) -> Server {
        match self {
            Place::Directory(_) => Server::on(&self.path(), arguments),
            Place::Database(database) => Server::with_environment(&[("BOLIDE_STORE", &database.address())], arguments),
        }
    }

    /// The options that name the place as the target of a copy.
    fn target(&self) -> [String; 2] {
        match self {
            Place::Directory(_) => ["--to-data-dir".to_owned(), self.path().display().to_string()],
            Place::Database(database) => ["--to-store".to_owned(), database.address()],
        }
    }
}

fn endpoint(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

fn copy_from(port: u16, to: &Place, more: &[&str]) -> Output {
    let mut copy = command();
    copy.args(["copy", "--from", &endpoint(port)])
        .args(to.target())
        .args(more);
    copy.output().expect("the binary runs")
}

/// The summary of a copy that must succeed.
#[track_caller]
fn copied(from: &Server, to: &Place, more: &[&str]) -> String {
    let output = copy_from(from.port(), to, more);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The line of a copy that must fail.
#[track_caller]
fn refused(port: u16, to: &Place) -> String {
    let output = copy_from(port, to, &[]);
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8(output.stderr).expect("UTF-8")
}

/// Sends a POST to the admin API.
fn ask(client: &mut Client, route: &str, body: &str) -> Response {
    client.send(&Request::post(&format!("/_bolide/{route}"), body))
}

/// Begins a copy by hand, and returns its id.
fn begin(client: &mut Client) -> String {
    let begun = ask(client, "copies", "").expect(200).json();
    begun["id"].as_str().expect("an id").to_owned()
}

/// Whether the store is sealed, and whether it has moved.
fn seal(client: &mut Client) -> (bool, bool) {
    let seal: Value = client.send(&Request::get("/_bolide/seal")).expect(200).json();
    (seal["sealed"] == true, seal["moved"] == true)
}
