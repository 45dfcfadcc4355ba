//! The names of the machine, its memory, and how that is given to the process.

use std::fs;
use std::path::{Path, PathBuf};

const MIB: u64 = 1024 * 1024;
/// Default memory for requests, and for cached blocks: minimum and maximum.
const MIN_BYTES: u64 = 64 * MIB;
const MAX_BYTES: u64 = 2048 * MIB;
/// The default memory for requests is this part of the memory that the process may use, and that for cached blocks this one.
const REQUESTS: u64 = 4;
const CACHE: u64 = 8;

/// Makes the kernel give memory to the process in pages of 4 KiB. Before it gives a huge page it clears 2 MiB, which takes milliseconds in a virtual machine, and
/// the thread that needed some bytes of it serves nobody meanwhile.
#[cfg(target_os = "linux")]
pub fn avoid_huge_pages() {
    // Where it is not allowed, some requests are slower.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

#[cfg(not(target_os = "linux"))]
pub fn avoid_huge_pages() {}

/// The names of this machine: the full name, and the part before its first dot.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = host_name().into_iter().filter(|name| !name.is_empty()).collect();
    let short = names
        .first()
        .and_then(|name| name.split_once('.'))
        .map(|(short, _)| short.to_owned());
    names.extend(short);
    names
}

#[cfg(unix)]
fn host_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}

#[cfg(not(unix))]
fn host_name() -> Option<String> {
    std::env::var("COMPUTERNAME").ok()
}

/// Default memory for requests: a quarter of the memory that the process may use.
pub fn request_memory_bytes() -> u64 {
    share(&Files::system(), REQUESTS)
}

/// Default memory for cached blocks of the store: an eighth of the memory that the process may use. The rest is left to the system, which caches files, too.
pub fn cache_bytes() -> u64 {
    share(&Files::system(), CACHE)
}

/// Memory that the process may use, in bytes; `None` where the system does not tell.
pub fn memory_bytes() -> Option<u64> {
    usable_bytes(&Files::system())
}

/// The files in which Linux reports memory.
struct Files {
    memory: PathBuf,
    membership: PathBuf,
    groups: PathBuf,
}

impl Files {
    fn system() -> Files {
        Files {
            memory: "/proc/meminfo".into(),
            membership: "/proc/self/cgroup".into(),
            groups: "/sys/fs/cgroup".into(),
        }
    }
}

/// The memory of the machine, or of its container if that is less.
fn usable_bytes(files: &Files) -> Option<u64> {
    [machine_bytes(files), group_bytes(files)].into_iter().flatten().min()
}

fn share(files: &Files, part: u64) -> u64 {
    let bytes = usable_bytes(files);
    // Only Linux reports this; elsewhere the minimum is used.
    bytes.map_or(MIN_BYTES, |bytes| (bytes / part).clamp(MIN_BYTES, MAX_BYTES))
}

fn machine_bytes(files: &Files) -> Option<u64> {
    let text = fs::read_to_string(&files.memory).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The smallest limit of the control groups of the process, of either version.
fn group_bytes(files: &Files) -> Option<u64> {
    let membership = fs::read_to_string(&files.membership).ok()?;
    let limits = membership.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        if controllers.is_empty() {
            return least_limit(&files.groups, path, "memory.max");
        }
        let is_memory = controllers.split(',').any(|controller| controller == "memory");
        is_memory.then(|| least_limit(&files.groups.join("memory"), path, "memory.limit_in_bytes"))?
    });
    limits.min()
}

/// A group is limited by its own limit and by those of all its parents. In a container, its own group may be the visible root.
fn least_limit(root: &Path, path: &str, file: &str) -> Option<u64> {
    let own = root.join(path.trim_start_matches('/'));
    let groups = own.ancestors().take_while(|group| group.starts_with(root));
    let limits = groups.filter_map(|group| fs::read_to_string(group.join(file)).ok()?.trim().parse().ok());
    limits.min()
}

#[cfg(test)]
mod tests;
