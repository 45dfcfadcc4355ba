//! What the system tells and is told about threads.

use std::time::Duration;

/// Lets the threads that serve connections and partitions go before this one.
#[cfg(target_os = "linux")]
pub(super) fn lower() {
    // Far enough for whoever serves to go first when it wakes; not so far that other processes leave nothing for queries.
    const NICE: i32 = 10;
    // On Linux a priority is a thread's. Without it, work competes with requests on equal terms.
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE) {
        tracing::debug!(%error, "the priority of a thread for queries was not lowered");
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn lower() {}

/// How long this thread has run on a processor.
#[cfg(target_os = "linux")]
pub(super) fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Elsewhere the time that passed stands for it.
#[cfg(not(target_os = "linux"))]
pub(super) fn thread_time() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;

    use bolide_model::time::Monotonic;

    static START: LazyLock<Instant> = LazyLock::new(|| Monotonic::system().now());
    Monotonic::system().since(*START)
}
