//! Whether other servers write a partition at the same time. Then its writes are better committed by one of them: its owner.

use std::sync::atomic::{AtomicU32, Ordering};

/// Number of writes that are sent to the owner, before the next ones are committed here to see whether there still are others.
const FORWARDED: u32 = 4_000;
/// Others are taken for writers after so many write batches that met a commit of theirs, those subtracted that met none. One may have been a purge, or what
/// the owner has committed for this server.
const MET: u32 = 4;

/// See the module.
#[derive(Default)]
pub(crate) struct Rivals {
    met: AtomicU32,
    left: AtomicU32,
}

impl Rivals {
    /// A write batch was committed. Only the worker calls this. `met`: another server has committed in between.
    pub fn committed(&self, met: bool) {
        let before = self.met.load(Ordering::Relaxed);
        let count = if met { before + 1 } else { before.saturating_sub(1) };
        if count >= MET {
            self.left.store(FORWARDED, Ordering::Relaxed);
        }
        self.met.store(if count >= MET { 0 } else { count }, Ordering::Relaxed);
    }

    /// Whether the next write is better committed by the owner. Counts it.
    pub fn take_forward(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forwarded(rivals: &Rivals) -> usize {
        (0..10_000).filter(|_| rivals.take_forward()).count()
    }

    #[test]
    fn writes_are_forwarded_for_a_while_when_others_write_all_the_time() {
        let rivals = Rivals::default();
        for _ in 0..3 {
            rivals.committed(true);
            assert_eq!(forwarded(&rivals), 0);
        }
        rivals.committed(true);
        assert_eq!(forwarded(&rivals), 4_000);
        rivals.committed(true);
        assert_eq!(
            forwarded(&rivals),
            0,
            "it begins anew: what was met may be what the owner has committed for this server"
        );
    }

    #[test]
    fn who_writes_alone_forwards_nothing_although_a_purge_comes_in_between() {
        let rivals = Rivals::default();
        for _ in 0..100 {
            rivals.committed(true);
            rivals.committed(false);
            rivals.committed(false);
        }
        assert_eq!(forwarded(&rivals), 0);
    }
}
