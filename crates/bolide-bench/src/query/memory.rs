//! The growth of this process's memory during an operation.

use std::fs;

use crate::Result;
use crate::process::{field, resident_kib};

/// The resident memory at the beginning.
#[derive(Clone, Copy)]
pub struct Baseline {
    kib: u64,
}

impl Baseline {
    /// The resident memory now. Measured with the store open and before any read, so that memory the process keeps for queries counts as theirs.
    pub fn now() -> Result<Baseline> {
        Ok(Baseline {
            kib: resident_kib(std::process::id())?,
        })
    }

    /// Resets the kernel's high-water mark to the current resident memory.
    ///
    /// Source: proc(5), `/proc/pid/clear_refs`, value 5.
    pub fn watch(self) -> Result<()> {
        Ok(fs::write("/proc/self/clear_refs", "5")?)
    }

    /// The high-water mark since [`Baseline::watch`] above the baseline, in KiB.
    pub fn grown_kib(self) -> Result<u64> {
        let peak = field(&fs::read_to_string("/proc/self/status")?, "VmHWM:")?;
        Ok(peak.saturating_sub(self.kib))
    }
}
