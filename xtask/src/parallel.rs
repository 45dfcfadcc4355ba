//! The same work on many things, on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Does something with each on some threads; results are in the order of `all`.
pub fn map<T: Sync, R: Send>(all: &[T], threads: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(all.len()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((index, one)) = take(&next, all) {
                    let result = work(one);
                    done.lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

fn take<'a, T>(next: &AtomicUsize, all: &'a [T]) -> Option<(usize, &'a T)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    all.get(index).map(|one| (index, one))
}

/// Lowers the priority of this thread and of the programs that it starts from now on.
#[cfg(target_os = "linux")]
pub fn lower_priority() {
    const NICE: i32 = 10;
    // On Linux a priority belongs to a thread, here to the calling one. If it cannot be lowered, others only get less of the processors.
    let _ = rustix::process::setpriority_process(None, NICE);
}

/// Elsewhere priorities belong to processes.
#[cfg(not(target_os = "linux"))]
pub fn lower_priority() {}
