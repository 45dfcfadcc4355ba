//! The priority of the thread that merges tables.

/// Lowers the priority of this thread below that of the threads that serve requests: a merge keeps a processor for milliseconds at a time. Not as low as
/// that of queries: without merges, writes have to wait in the end, and a thread cannot raise its priority again.
#[cfg(target_os = "linux")]
pub(super) fn lower() {
    const NICE: i32 = 5;
    // On Linux a priority belongs to a thread.
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE) {
        tracing::debug!(%error, "the priority of the thread that merges tables was not lowered");
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn lower() {}
