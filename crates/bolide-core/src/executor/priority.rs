//! Priority and processor time of threads, from the operating system.

use std::time::Duration;

/// Lowers the priority of this thread below that of the threads that serve connections and partitions.
#[cfg(target_os = "linux")]
pub(super) fn lower() {
    // High enough that a serving thread runs first when it wakes; not so high that other processes leave no processor time for queries.
    const NICE: i32 = 10;
    // On Linux a priority belongs to a thread. Without a lower one, queries compete with requests on equal terms.
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE) {
        tracing::debug!(%error, "the priority of a thread for queries was not lowered");
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn lower() {}

/// Returns how long this thread has run on a processor.
#[cfg(target_os = "linux")]
pub(super) fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the time that has passed, on systems without processor times of threads.
#[cfg(not(target_os = "linux"))]
pub(super) fn thread_time() -> Duration {
    use std::sync::LazyLock;
    use std::time::Instant;

    use bolide_model::time::Monotonic;

    static START: LazyLock<Instant> = LazyLock::new(|| Monotonic::system().now());
    Monotonic::system().since(*START)
}
