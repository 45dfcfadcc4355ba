//! The most that a process and its children took while it was watched.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::process::{children, field, resident_kib};

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(50);

/// The most of each that was seen at one time.
#[derive(Debug, Default, Clone, Copy)]
pub struct Peak {
    /// Memory in RAM, of the process and its children together, in KiB.
    pub memory_kib: u64,
    /// Open files and sockets of the process.
    pub descriptors: usize,
    /// Threads of the process and its children.
    pub threads: u64,
}

/// A process under watch.
pub struct Watch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Peak>,
}

impl Watch {
    /// Begins to watch a process.
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

    /// Ends, and tells what was seen.
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
        descriptors: fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count),
        ..Peak::default()
    };
    // Children come and go while they are counted.
    for pid in children(pid).into_iter().chain([pid]) {
        seen.memory_kib += resident_kib(pid).unwrap_or(0);
        seen.threads += threads(pid).unwrap_or(0);
    }
    seen
}

fn threads(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    field(&status, "Threads:").ok()
}
