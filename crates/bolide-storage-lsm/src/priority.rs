//! The priority of threads that nobody waits for.

use std::io;
use std::thread::JoinHandle;

/// Starts a thread of lower priority, see [`lower`].
///
/// # Errors
/// If there are no threads; `work` is dropped then.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.into()).spawn(move || {
        lower();
        work()
    })
}

/// Lowers the priority of this thread below that of the threads that serve requests: a merge keeps a processor for milliseconds at a time. Not as low as
/// that of queries: without merges, writes have to wait in the end, and a thread cannot raise its priority again.
#[cfg(target_os = "linux")]
pub(crate) fn lower() {
    const NICE: i32 = 5;
    // On Linux a priority belongs to a thread.
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE) {
        tracing::debug!(%error, "the priority of a thread was not lowered");
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn lower() {}
