//! Processes: their resource use, and children that end with their owner.

use std::fs;
use std::process::Child;
use std::time::Duration;

use crate::Result;

/// Units of CPU time per second in `/proc`: part of the kernel's interface, the same on every machine.
const TICKS_PER_SECOND: u64 = 100;

/// CPU time that a process has used so far, in all of its threads, in steps of 10 ms.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let [own, _] = cpu_times(pid)?;
    Ok(own)
}

/// As [`cpu_time`], with that of its children, also of those that have ended.
pub fn family_cpu_time(pid: u32) -> Result<Duration> {
    // One that ends in between is missing rather than counted twice.
    let [own, of_ended] = cpu_times(pid)?;
    let living = children(pid).into_iter().filter_map(|child| cpu_time(child).ok());
    Ok(own + of_ended + living.sum::<Duration>())
}

fn cpu_times(pid: u32) -> Result<[Duration; 2]> {
    parse_cpu_times(&fs::read_to_string(format!("/proc/{pid}/stat"))?)
}

/// CPU time of a process, and of its children that have ended.
///
/// Source: proc(5), `/proc/pid/stat`, fields 14 to 17.
fn parse_cpu_times(stat: &str) -> Result<[Duration; 2]> {
    // The second field is the command in parentheses, which may contain blanks.
    let (_, fields) = stat.rsplit_once(')').ok_or("a malformed process status")?;
    let fields = fields.split_whitespace().skip(11).take(4).map(str::parse::<u64>);
    let fields: Vec<u64> = fields.collect::<std::result::Result<_, _>>()?;
    let [user, system, children_user, children_system] = fields[..] else {
        return Err("a malformed process status".into());
    };
    let time = |ticks: u64| Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND);
    Ok([time(user + system), time(children_user + children_system)])
}

/// Memory of a process that is in RAM, in KiB.
pub fn resident_kib(pid: u32) -> Result<u64> {
    field(&fs::read_to_string(format!("/proc/{pid}/status"))?, "VmRSS:")
}

/// The most memory that a process has had in RAM, in KiB.
pub fn peak_kib(pid: u32) -> Result<u64> {
    field(&fs::read_to_string(format!("/proc/{pid}/status"))?, "VmHWM:")
}

/// Memory of a process and its children that is in RAM, in KiB, with what they share counted once.
///
/// Source: proc(5), `Pss` in `/proc/pid/smaps_rollup`.
pub fn proportional_kib(pid: u32) -> Result<u64> {
    let of = |pid: u32| field(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?, "Pss:");
    // A child may have ended meanwhile.
    let children = children(pid).into_iter().filter_map(|child| of(child).ok());
    Ok(of(pid)? + children.sum::<u64>())
}

/// The running children of a process.
///
/// Source: proc(5), `PPid` in `/proc/pid/status`.
pub fn children(parent: u32) -> Vec<u32> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_child = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        field(&status, "PPid:").is_ok_and(|its_parent| its_parent == u64::from(parent))
    };
    pids.filter(is_child).collect()
}

/// The number after a name in a file of `name: number kB` lines.
pub fn field(text: &str, name: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    Ok(number.ok_or_else(|| format!("`{name}` is missing"))?.parse()?)
}

/// A child process that is killed when its owner is dropped.
pub struct OwnedChild(pub Child);

impl Drop for OwnedChild {
    fn drop(&mut self) {
        // Both fail only if it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests;
