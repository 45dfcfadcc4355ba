//! Servers, ranges and connections that end under load: nothing acknowledged is lost, and nothing is done twice.
//!
//!   kills     SIGKILL, and the same port again       splits     ranges that are split while they are written, read and followed
//!   channels  connections that are silent, and that are cut in the middle of frames, by a [`relay`]
//!
//! `BOLIDE_ROUNDS=n`: so many kills, splits and cuts instead of the usual number.

mod channels;
mod kills;
mod relay;
mod splits;

use std::time::{Duration, Instant};

use crate::client::{Client, Request};
use crate::direct::frames::PATIENCE;

/// Waits for a condition, which must hold soon.
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "no {what} in time");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Checks that what is stored is in order.
fn verify(client: &mut Client) {
    let verify = Request::post("/_bolide/dbs/d/colls/c/verify", "{}");
    let report = client.send(&verify).expect(200).json();
    assert_eq!(report["ok"], true, "{report}");
}

/// Tells the others when a thread ends, with an error, too: they would wait for it.
struct Ends<'a>(&'a std::sync::atomic::AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        }
    }
}
