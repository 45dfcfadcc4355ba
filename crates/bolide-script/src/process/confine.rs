//! Restrictions of a script's process, set before it runs a script, so that even a bug in the engine gives a script no more rights.

use std::io::{self, Stdin};
use std::time::Duration;

/// Open files: the pipes, and a few for the start of a thread.
const FILES: u64 = 16;
/// Address space beyond what the process has mapped at its start: several times the memory that the engine gives a script.
const MORE_BYTES: u64 = 512 * 1024 * 1024;
/// Lower priority than the server.
const NICE: i32 = 5;
/// Processor time beyond a run's own, in seconds, after which the system ends the process if the server has not done so.
const SPARE_SECONDS: u64 = 10;

/// Lowers the limits of the process. Limits that the system does not support are skipped.
#[cfg(unix)]
pub fn lower_limits() -> io::Result<()> {
    use rustix::process::Resource;
    #[cfg(target_os = "linux")]
    {
        // If the machine runs out of memory, the script's process is ended and not the server.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        if let Some(mapped) = mapped_bytes() {
            lower(Resource::As, mapped + MORE_BYTES)?;
        }
        rustix::thread::set_no_new_privs(true)?;
    }
    lower(Resource::Core, 0)?;
    lower(Resource::Fsize, 0)?;
    lower(Resource::Nofile, FILES)?;
    rustix::process::nice(NICE)?;
    Ok(())
}

/// Forbids further processes and threads; has no effect for users above such limits.
#[cfg(unix)]
pub fn forbid_processes() -> io::Result<()> {
    lower(rustix::process::Resource::Nproc, 0)
}

#[cfg(unix)]
fn lower(resource: rustix::process::Resource, max_bytes: u64) -> io::Result<()> {
    use rustix::process::{Rlimit, getrlimit, setrlimit};
    let max_bytes = getrlimit(resource)
        .maximum
        .map_or(max_bytes, |maximum| maximum.min(max_bytes));
    let limit = Rlimit {
        current: Some(max_bytes),
        maximum: Some(max_bytes),
    };
    setrlimit(resource, limit).map_err(io::Error::from)
}

/// The address space of the process. It is larger than the memory in use, because allocators reserve more.
#[cfg(target_os = "linux")]
fn mapped_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').next()?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Lets the system end the process if a run takes much more processor time than its limit.
#[cfg(unix)]
pub fn limit_processor_time(time: Duration) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec;
    let max_bytes = u64::try_from(used).unwrap_or(0) + time.as_secs() + SPARE_SECONDS;
    let limit = Rlimit {
        current: Some(max_bytes),
        maximum: getrlimit(Resource::Cpu).maximum,
    };
    // The server's own limit is reached long before this one.
    let _ = setrlimit(Resource::Cpu, limit);
}

/// Waits until the other end of the input is closed. Reads no data.
#[cfg(unix)]
pub fn wait_for_hangup(input: &Stdin) {
    use rustix::event::{PollFd, PollFlags, poll};
    loop {
        let mut watched = [PollFd::new(input, PollFlags::empty())];
        if poll(&mut watched, None).is_ok() && !watched[0].revents().is_empty() {
            return;
        }
    }
}

#[cfg(not(unix))]
pub fn lower_limits() -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
pub fn forbid_processes() -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
pub fn limit_processor_time(_: Duration) {}

/// Waits forever: the thread that reads the input ends the process.
#[cfg(not(unix))]
pub fn wait_for_hangup(_: &Stdin) {
    loop {
        std::thread::park();
    }
}
