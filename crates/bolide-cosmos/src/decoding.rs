//! Decodes large bodies without delaying other requests.

use bytes::Bytes;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

/// Bodies up to this size are decoded without a permit.
const INLINE_BYTES: usize = 64 * 1024;

/// Number of larger bodies that are decoded at the same time.
const PERMITS: usize = 2;

/// Permits to decode large bodies. A body of two megabytes may take a hundred milliseconds, and the thread of a connection also serves others. So
/// only a few are decoded at a time, while the thread's other tasks move to other threads.
#[derive(Debug)]
pub(crate) struct Decoding {
    turns: Semaphore,
}

impl Default for Decoding {
    fn default() -> Decoding {
        Decoding {
            turns: Semaphore::new(PERMITS),
        }
    }
}

impl Decoding {
    /// Decodes a body.
    pub(crate) async fn run<T>(&self, body: &Bytes, decode: impl FnOnce() -> T) -> T {
        if body.len() <= INLINE_BYTES {
            return decode();
        }
        let _turn = self.turns.acquire().await;
        match Handle::current().runtime_flavor() {
            RuntimeFlavor::MultiThread => tokio::task::block_in_place(decode),
            _ => decode(),
        }
    }
}
