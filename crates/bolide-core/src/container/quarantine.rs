//! A script that keeps running into its limits is blocked for a while (cosmos-rest §11.2): each run holds up its whole partition.
//!
//! A run that is ended for its time or its memory, or that brings down its process, is an offence. After [`MAX`] of them within [`WITHIN_SECONDS`], without a run that came to
//! its end between them, the script is refused until [`WITHIN_SECONDS`] after the last, by server time. A script that is replaced, or deleted
//! and created, is another one. Offences are forgotten with the process: a block is to save time, and a restart takes some.

use std::sync::Arc;

use bolide_model::{Reason, Result, UnixSeconds};
use bolide_script::{Problem, ScriptError};
use parking_lot::Mutex;

use super::Script;

/// Offences after which a script is blocked.
const MAX: usize = 3;
/// How close together they are, and how long the block lasts.
const WITHIN_SECONDS: i64 = 600;

/// What is remembered of a script's runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScriptQuarantine(Arc<Mutex<Vec<UnixSeconds>>>);

/// No property of the script itself.
impl PartialEq for ScriptQuarantine {
    fn eq(&self, _: &ScriptQuarantine) -> bool {
        true
    }
}

impl Eq for ScriptQuarantine {}

impl ScriptQuarantine {
    /// A run ended: what that says about the script.
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

    /// A run was ended for its time or its memory.
    pub fn offended(&self, now: UnixSeconds) {
        let mut offences = self.0.lock();
        if offences.len() == MAX {
            offences.remove(0);
        }
        offences.push(now);
    }

    /// The second from which the script may run again, if it is blocked.
    fn blocked_until(&self, now: UnixSeconds) -> Option<i64> {
        let offences = self.0.lock();
        let (first, last) = (offences.first()?.0, offences.last()?.0);
        let end = last.saturating_add(WITHIN_SECONDS);
        (offences.len() == MAX && last - first <= WITHIN_SECONDS && now.0 < end).then_some(end)
    }
}

impl Script {
    /// Whether the script may run.
    ///
    /// # Errors
    /// `Forbidden` while it is blocked.
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
