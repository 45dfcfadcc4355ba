//! The limit on open files of this process, which has a connection for each attacker.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::Result;

/// Raises the limit as far as possible; an error if that is below `files`.
pub fn suffice_for(files: usize) -> Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised)?;
    match maximum {
        Some(maximum) if maximum < u64::try_from(files)? => {
            Err(format!("this attack needs {files} open files, and the hard limit (ulimit -H -n) is {maximum}").into())
        }
        _ => Ok(()),
    }
}
