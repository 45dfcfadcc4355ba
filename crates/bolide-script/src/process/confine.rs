//! What a script's process gives up before it runs a script, so that not even a fault of the engine lets a script do more.

use std::io::{self, Stdin};
use std::time::Duration;

/// Open files: the pipes, and a few for the start of a thread.
const FILES: u64 = 16;
/// Memory beyond what the process has mapped when it starts, as address space: several times what the engine gives a script.
const MORE_BYTES: u64 = 512 * 1024 * 1024;
/// How much less urgent than the server.
const NICE: i32 = 5;
/// Processor time beyond a run's own time, in seconds, after which the system ends the process, should the server not have done so.
const SPARE_SECONDS: u64 = 10;

/// Lowers what the process may use. Where the system knows no such limit there is none.
#[cfg(unix)]
pub fn lower_limits() -> io::Result<()> {
    use rustix::process::Resource;
    #[cfg(target_os = "linux")]
    {
        // If the machine runs out of memory, a script is ended and not the server.
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

/// Starts no further process or thread, where the system's user is not above such limits.
#[cfg(unix)]
pub fn forbid_processes() -> io::Result<()> {
    lower(rustix::process::Resource::Nproc, 0)
}

#[cfg(unix)]
fn lower(resource: rustix::process::Resource, most: u64) -> io::Result<()> {
    use rustix::process::{Rlimit, getrlimit, setrlimit};
    let most = getrlimit(resource).maximum.map_or(most, |maximum| maximum.min(most));
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(resource, limit).map_err(io::Error::from)
}

/// The address space of the process. Allocators reserve more than they use.
#[cfg(target_os = "linux")]
fn mapped_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').next()?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Lets the system end the process if a run takes much more processor time than it is given.
#[cfg(unix)]
pub fn limit_processor_time(time: Duration) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec;
    let most = u64::try_from(used).unwrap_or(0) + time.as_secs() + SPARE_SECONDS;
    let limit = Rlimit {
        current: Some(most),
        maximum: getrlimit(Resource::Cpu).maximum,
    };
    // The server's own limit comes long before this one.
    let _ = setrlimit(Resource::Cpu, limit);
}

/// Waits until the other end of the input is closed. Reads nothing.
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

/// Waits for ever: the thread that reads the input ends the process at its end.
#[cfg(not(unix))]
pub fn wait_for_hangup(_: &Stdin) {
    loop {
        std::thread::park();
    }
}
