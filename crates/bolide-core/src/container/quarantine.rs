//! A script that repeatedly exceeds its limits is blocked for a while (cosmos-rest §11.2), because each of its runs blocks its whole partition.
//!
//! A run that is ended for its time or its memory, or that crashes its process, is an offence. After [`MAX`] offences within [`WITHIN_SECONDS`],
//! without a completed run between them, the script is refused until [`WITHIN_SECONDS`] after the last offence, by server time. A script that is
//! replaced, or deleted and created again, counts as a new one. Offences are not persisted: a block saves time, and a restart takes some anyway.

use std::sync::Arc;

use bolide_model::{Reason, Result, UnixSeconds};
use bolide_script::{Problem, ScriptError};
use parking_lot::Mutex;

use super::Script;

/// Number of offences after which a script is blocked.
const MAX: usize = 3;
/// Maximum time between the first and the last of these offences, and how long the block lasts, in seconds.
const WITHIN_SECONDS: i64 = 600;

/// The most recent offences of a script, by server time.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScriptQuarantine(Arc<Mutex<Vec<UnixSeconds>>>);

/// Always equal, because offences are not a property of the script itself.
impl PartialEq for ScriptQuarantine {
    fn eq(&self, _: &ScriptQuarantine) -> bool {
        true
    }
}

impl Eq for ScriptQuarantine {}

impl ScriptQuarantine {
    /// Records the end of a run: whether it completed or was an offence.
    pub fn ended<T>(&self, result: &Result<T, ScriptError>, now: UnixSeconds) {
        match result {
            Ok(_) => self.0.lock().clear(),
            Err(error)
                if matches!(
                    error.problem,
                    Problem::OutOfTime | Problem::OutOfMemory | Problem::Crashed
                ) =>
            {
                self.offended(now);
            }
            Err(_) => {}
        }
    }

    /// Records that a run was ended for its time or its memory.
    pub fn offended(&self, now: UnixSeconds) {
        let mut offences = self.0.lock();
        if offences.len() == MAX {
            offences.remove(0);
        }
        offences.push(now);
    }

    /// Returns the second from which the script may run again, if it is blocked.
    fn blocked_until(&self, now: UnixSeconds) -> Option<i64> {
        let offences = self.0.lock();
        let (first, last) = (offences.first()?.0, offences.last()?.0);
        let end = last.saturating_add(WITHIN_SECONDS);
        (offences.len() == MAX && last - first <= WITHIN_SECONDS && now.0 < end).then_some(end)
    }
}

impl Script {
    /// Checks whether the script may run.
    ///
    /// # Errors
    /// `Forbidden` while the script is blocked.
    pub(crate) fn check_quarantine(&self, now: UnixSeconds) -> Result<()> {
        let Some(end) = self.quarantine.blocked_until(now) else {
            return Ok(());
        };
        Err(Reason::ScriptBlocked {
            id: self.id.clone(),
            seconds: end - now.0,
        }
        .into())
    }
}
