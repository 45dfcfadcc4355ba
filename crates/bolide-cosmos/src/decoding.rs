//! Decoding of large bodies: where it does not hold up what others ask.

use bytes::Bytes;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

/// Bodies up to so many bytes are decoded at once.
const AT_ONCE_BYTES: usize = 64 * 1024;

/// Larger bodies that are decoded at one time.
const TURNS: usize = 2;

/// Turns to decode large bodies. A body of two megabytes may take a hundred milliseconds, and whoever serves a connection serves others, too:
/// so a few are decoded at a time, and the thread's other tasks go on elsewhere.
#[derive(Debug)]
pub(crate) struct Decoding {
    turns: Semaphore,
}

impl Default for Decoding {
    fn default() -> Decoding {
        Decoding {
            turns: Semaphore::new(TURNS),
        }
    }
}

impl Decoding {
    /// Decodes a body.
    pub(crate) async fn run<T>(&self, body: &Bytes, decode: impl FnOnce() -> T) -> T {
        if body.len() <= AT_ONCE_BYTES {
            return decode();
        }
        let _turn = self.turns.acquire().await;
        match Handle::current().runtime_flavor() {
            RuntimeFlavor::MultiThread => tokio::task::block_in_place(decode),
            _ => decode(),
        }
    }
}
