//! Time that the host of a virtual machine gave to others, and in which no figure says anything about a server.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often the kernel's counters are read. They count hundredths of a second.
const INTERVAL: Duration = Duration::from_secs(1);
/// The part of all processors' time that others may take in an interval.
const TOLERATED: f64 = 0.02;

/// Reads the kernel's counters until it is finished.
pub struct StealWatch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Interval>>,
}

/// An interval, and the part of all processors' time that others took in it.
#[derive(Debug, Clone, Copy)]
struct Interval {
    from: Instant,
    to: Instant,
    stolen: f64,
}

/// When others took the processors.
#[derive(Debug, Default)]
pub struct Stolen {
    intervals: Vec<Interval>,
}

/// Processor time since the start of the machine, in the kernel's ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    stolen: u64,
    all: u64,
}

impl StealWatch {
    /// Starts a thread that reads the counters.
    pub fn start() -> StealWatch {
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = is_over.clone();
        let thread = std::thread::spawn(move || watch(&ended));
        StealWatch { is_over, thread }
    }

    /// Returns what was seen so far. Without such counters, nothing was stolen.
    pub fn finish(self) -> Stolen {
        self.is_over.store(true, Ordering::Relaxed);
        let intervals = self.thread.join().unwrap_or_default();
        Stolen { intervals }
    }
}

fn watch(is_over: &AtomicBool) -> Vec<Interval> {
    let mut intervals = Vec::new();
    let Some(mut last) = Ticks::now() else {
        return intervals;
    };
    let mut from = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(INTERVAL);
        let (to, Some(ticks)) = (Instant::now(), Ticks::now()) else {
            break;
        };
        intervals.push(Interval {
            from,
            to,
            stolen: ticks.stolen_since(last),
        });
        (from, last) = (to, ticks);
    }
    intervals
}

impl Ticks {
    fn now() -> Option<Ticks> {
        Ticks::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal, and what is contained in these.
    fn parse(text: &str) -> Option<Ticks> {
        let line = text.lines().next()?.strip_prefix("cpu ")?;
        let fields: Vec<u64> = line
            .split_ascii_whitespace()
            .take(8)
            .map_while(|field| field.parse().ok())
            .collect();
        (fields.len() == 8).then(|| Ticks {
            stolen: fields[7],
            all: fields.iter().sum(),
        })
    }

    fn stolen_since(self, earlier: Ticks) -> f64 {
        // That of iowait can go back (proc(5)).
        let (stolen, all) = (
            self.stolen.saturating_sub(earlier.stolen),
            self.all.saturating_sub(earlier.all),
        );
        stolen as f64 / all.max(1) as f64
    }
}

impl Stolen {
    /// Whether the processors were the machine's own at an instant, and in the interval before: what had to wait then is done a little later.
    pub fn is_quiet(&self, instant: Instant) -> bool {
        let after = self.intervals.partition_point(|interval| interval.to <= instant);
        let near = after.saturating_sub(1)..(after + 1).min(self.intervals.len());
        self.intervals[near].iter().all(|interval| interval.stolen <= TOLERATED)
    }

    /// The quiet time between two instants.
    pub fn quiet_between(&self, from: Instant, to: Instant) -> Duration {
        let inside = self
            .intervals
            .iter()
            .filter(|interval| interval.from >= from && interval.to <= to);
        let quiet = inside.filter(|interval| self.is_quiet(interval.from));
        quiet.map(|interval| interval.to - interval.from).sum()
    }
}

#[cfg(test)]
mod tests;
