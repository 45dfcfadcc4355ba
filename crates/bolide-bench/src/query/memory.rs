//! How far this process's memory grows while something runs.

use std::fs;

use crate::Result;
use crate::process::{field, resident_kib};

/// A measurement under way.
pub struct Peak {
    before_kib: u64,
}

impl Peak {
    /// Sets the kernel's high-water mark back to what is resident now.
    ///
    /// Source: proc(5), `/proc/pid/clear_refs`, value 5.
    pub fn start() -> Result<Peak> {
        fs::write("/proc/self/clear_refs", "5")?;
        Ok(Peak {
            before_kib: resident_kib(std::process::id())?,
        })
    }

    /// How far the high-water mark is above what was resident at the start, in KiB.
    pub fn grown_kib(&self) -> Result<u64> {
        let most = field(&fs::read_to_string("/proc/self/status")?, "VmHWM:")?;
        Ok(most.saturating_sub(self.before_kib))
    }
}
