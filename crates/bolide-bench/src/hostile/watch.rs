//! The peak resource use of a process and its children.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::process::{children, field, resident_kib};

/// Time between two measurements.
const PERIOD: Duration = Duration::from_millis(50);

/// The maximum of each that was measured.
#[derive(Debug, Default, Clone, Copy)]
pub struct Peak {
    /// Memory in RAM, of the process and its children together, in KiB.
    pub memory_kib: u64,
    /// Open files and sockets of the process.
    pub descriptors: usize,
    /// Threads of the process and its children.
    pub threads: u64,
}

/// A process that is measured.
pub struct Watch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Peak>,
}

impl Watch {
    /// Starts measuring a process.
    pub fn start(pid: u32) -> Watch {
        let is_over = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let is_over = is_over.clone();
            move || {
                let mut peak = Peak::default();
                while !is_over.load(Ordering::Relaxed) {
                    peak.raise(look(pid));
                    std::thread::sleep(PERIOD);
                }
                peak
            }
        });
        Watch { is_over, thread }
    }

    /// Stops, and returns the peak.
    pub fn stop(self) -> Peak {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

impl Peak {
    fn raise(&mut self, seen: Peak) {
        self.memory_kib = self.memory_kib.max(seen.memory_kib);
        self.descriptors = self.descriptors.max(seen.descriptors);
        self.threads = self.threads.max(seen.threads);
    }
}

fn look(pid: u32) -> Peak {
    let mut seen = Peak {
        descriptors: descriptors(pid),
        ..Peak::default()
    };
    // Children may start and end while they are counted.
    for pid in children(pid).into_iter().chain([pid]) {
        seen.memory_kib += resident_kib(pid).unwrap_or(0);
        seen.threads += threads(pid).unwrap_or(0);
    }
    seen
}

/// Counting thousands, twenty times a second, takes time from what is measured: Linux 6.2 and later say how many there are.
fn descriptors(pid: u32) -> usize {
    let directory = format!("/proc/{pid}/fd");
    let said = fs::metadata(&directory).map_or(0, |directory| directory.len());
    match usize::try_from(said) {
        Ok(0) | Err(_) => fs::read_dir(&directory).map_or(0, Iterator::count),
        Ok(count) => count,
    }
}

fn threads(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    field(&status, "Threads:").ok()
}
