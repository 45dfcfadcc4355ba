//! How far this process's memory grows while something runs.

use std::fs;

use crate::Result;
use crate::process::{field, resident_kib};

/// What was resident at the beginning.
#[derive(Clone, Copy)]
pub struct Baseline {
    kib: u64,
}

impl Baseline {
    /// What is resident now: taken with the store open and nothing read, so that whatever queries make the process keep counts as theirs.
    pub fn now() -> Result<Baseline> {
        Ok(Baseline {
            kib: resident_kib(std::process::id())?,
        })
    }

    /// Sets the kernel's high-water mark back to what is resident now.
    ///
    /// Source: proc(5), `/proc/pid/clear_refs`, value 5.
    pub fn watch(self) -> Result<()> {
        Ok(fs::write("/proc/self/clear_refs", "5")?)
    }

    /// How far the high-water mark since [`Baseline::watch`] is above the baseline, in KiB.
    pub fn grown_kib(self) -> Result<u64> {
        let most = field(&fs::read_to_string("/proc/self/status")?, "VmHWM:")?;
        Ok(most.saturating_sub(self.kib))
    }
}
