//! Fail points: injected errors for the tests of drivers. Only with `--enable-faults`.
//!
//! There is one, `failCommand`, which applies to the commands that it names.
//!
//! Source: mongo.md §6, `configureFailPoint`.

use std::time::Duration;

use bolide_mql::{Code, Error, Result};
use bson::RawDocumentBuf;
use parking_lot::Mutex;
use uuid::Uuid;

/// When a fail point applies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mode {
    /// Always.
    AlwaysOn,
    /// This many more times.
    Times(u64),
    /// Always, after this many commands to which it would have applied.
    Skip(u64),
    /// Randomly, with this probability.
    Probability(f64),
}

/// What `failCommand` does.
#[derive(Debug, Clone, Default)]
pub struct FailCommand {
    /// The names of the commands.
    pub commands: Vec<String>,
    /// Only for clients with this application name.
    pub application: Option<String>,
    /// Only for this namespace.
    pub namespace: Option<String>,
    /// The error, by its number.
    pub error_code: Option<i32>,
    /// Labels of the error, instead of the usual ones.
    pub error_labels: Option<Vec<String>>,
    /// Whether the connection is closed instead.
    pub closes_connection: bool,
    /// Added to the reply of the command, which runs.
    pub write_concern_error: Option<RawDocumentBuf>,
    /// Waits before everything else.
    pub block: Option<Duration>,
}

impl FailCommand {
    /// The error for the client, if the command must not run.
    pub fn error(&self) -> Option<Error> {
        let code = self.error_code?;
        Some(Error::new(Code(code), "Failing command via 'failCommand' failpoint"))
    }

    fn applies_to(&self, command: &str, application: &str, namespace: &str) -> bool {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|wanted| wanted == is);
        self.commands.iter().any(|name| name == command)
            && fits(&self.application, application)
            && fits(&self.namespace, namespace)
    }
}

/// The fail points of a server.
#[derive(Debug, Default)]
pub struct FailPoints {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    fail_command: Option<(Mode, FailCommand)>,
    /// How often it applied since it was set.
    applied: i64,
}

impl FailPoints {
    /// Sets `failCommand`; `None` switches it off. Returns how often the previous one applied.
    pub fn set(&self, fail_command: Option<(Mode, FailCommand)>) -> i64 {
        let mut state = self.state.lock();
        state.fail_command = fail_command;
        std::mem::take(&mut state.applied)
    }

    /// What happens to a command, if anything; counts one use.
    pub fn take(&self, command: &str, application: &str, namespace: &str) -> Option<FailCommand> {
        let mut state = self.state.lock();
        let (mode, fail_command) = state.fail_command.as_mut()?;
        if !fail_command.applies_to(command, application, namespace) {
            return None;
        }
        let applies = match mode {
            Mode::AlwaysOn => true,
            Mode::Times(0) => false,
            Mode::Times(times) => {
                *times -= 1;
                true
            }
            Mode::Skip(0) => true,
            Mode::Skip(times) => {
                *times -= 1;
                false
            }
            Mode::Probability(probability) => random() < *probability,
        };
        let found = applies.then(|| fail_command.clone());
        state.applied += i64::from(found.is_some());
        found
    }
}

/// A random number from 0 to 1.
fn random() -> f64 {
    f64::from(Uuid::new_v4().as_fields().0) / f64::from(u32::MAX)
}

/// Whether a fail point has this name.
///
/// # Errors
/// It does not.
pub fn check_name(name: &str) -> Result<()> {
    if name == "failCommand" {
        return Ok(());
    }
    Err(Error::bad_value(format!("failpoint not found. name=`{name}`")))
}

#[cfg(test)]
mod tests;
