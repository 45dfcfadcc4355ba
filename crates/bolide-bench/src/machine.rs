//! A description of the machine for readers of the figures, without its name.

use std::fs;

use crate::Result;

/// A paragraph on the machine and its other load, and the commands of a run.
pub fn describe() -> Result<String> {
    Ok(format!(
        "{}\n\n    \
         cargo build --release -p bolide-server -p bolide-bench\n    \
         target/release/bolide-bench all\n",
        sentence()?
    ))
}

/// Sentences on the machine and its other load.
pub fn sentence() -> Result<String> {
    let cores = std::thread::available_parallelism()?;
    let memory_gib = memory_kib()? as f64 / 1024.0 / 1024.0;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let load = fs::read_to_string("/proc/loadavg")?;
    Ok(format!(
        "Machine: {cores} cores ({arch}), {memory_gib:.0} GiB of memory, Linux {kernel}. Load average when the run began: {load}.",
        arch = std::env::consts::ARCH,
        kernel = kernel.trim(),
        load = load.split(' ').next().unwrap_or_default(),
    ))
}

fn memory_kib() -> Result<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    crate::process::field(&text, "MemTotal:")
}
