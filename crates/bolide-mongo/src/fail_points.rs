//! Fail points: injected errors for the tests of drivers. Only with `--enable-faults`.
//!
//! `failCommand` applies to the commands that it names, `onPrimaryTransactionalWrite` to each retryable write that is carried out,
//! `failGetMoreAfterCursorCheckout` to `getMore` of an open cursor, `maxTimeAlwaysTimeOut` and `maxTimeNeverTimeOut` to commands with a time limit.
//!
//! Source: mongo.md §6, `configureFailPoint`; the specifications' tests of drivers.

use std::time::Duration;

use bolide_mql::{Code, Error};
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

/// What `onPrimaryTransactionalWrite` does to a retryable write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailWrite {
    /// Whether the connection is closed afterwards.
    pub closes_connection: bool,
    /// The error, by its number, instead of the write; otherwise it is carried out.
    pub error_code: Option<i32>,
}

/// The text of the error of a write that was kept from being carried out.
pub const WRITE_FAILED: &str = "Failing write due to failpoint. The write must not be reflected.";

/// The fail points of a server.
#[derive(Debug, Default)]
pub struct FailPoints {
    /// `failCommand`.
    pub command: FailPoint<FailCommand>,
    /// `onPrimaryTransactionalWrite`.
    pub write: FailPoint<FailWrite>,
    /// `failGetMoreAfterCursorCheckout`, with the number of the error.
    pub get_more: FailPoint<i32>,
    /// `maxTimeAlwaysTimeOut`.
    pub always_late: FailPoint<()>,
    /// `maxTimeNeverTimeOut`.
    pub never_late: FailPoint<()>,
}

impl FailPoints {
    /// What happens to a command, if anything; counts one use.
    pub fn take(&self, command: &str, application: &str, namespace: &str) -> Option<FailCommand> {
        self.command
            .take_if(|fail_command| fail_command.applies_to(command, application, namespace))
    }
}

/// A fail point, with what it does.
#[derive(Debug)]
pub struct FailPoint<T>(Mutex<State<T>>);

#[derive(Debug)]
struct State<T> {
    set: Option<(Mode, T)>,
    /// How often it applied since it was set.
    applied: i64,
}

impl<T> Default for FailPoint<T> {
    fn default() -> FailPoint<T> {
        FailPoint(Mutex::new(State { set: None, applied: 0 }))
    }
}

impl<T: Clone> FailPoint<T> {
    /// Sets it; `None` switches it off. Returns how often it applied before.
    pub fn set(&self, set: Option<(Mode, T)>) -> i64 {
        let mut state = self.0.lock();
        state.set = set;
        std::mem::take(&mut state.applied)
    }

    /// What happens now, if anything; counts one use.
    pub fn take(&self) -> Option<T> {
        self.take_if(|_| true)
    }

    /// What the next use would do.
    pub fn next(&self) -> Option<T> {
        let state = self.0.lock();
        let (mode, does) = state.set.as_ref()?;
        let applies = match mode {
            Mode::AlwaysOn | Mode::Skip(0) | Mode::Probability(_) => true,
            Mode::Times(times) => *times > 0,
            Mode::Skip(_) => false,
        };
        applies.then(|| does.clone())
    }

    fn take_if(&self, concerns: impl Fn(&T) -> bool) -> Option<T> {
        let mut state = self.0.lock();
        let (mode, does) = state.set.as_mut()?;
        if !concerns(does) {
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
        let taken = applies.then(|| does.clone());
        state.applied += i64::from(taken.is_some());
        taken
    }
}

/// A random number from 0 to 1.
fn random() -> f64 {
    f64::from(Uuid::new_v4().as_fields().0) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests;
