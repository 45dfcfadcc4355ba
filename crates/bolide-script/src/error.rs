//! Errors of scripts.

/// Why a script ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The source is not JavaScript, or not a function.
    Syntax,
    /// It threw an exception, with the number of the error; 0 without one.
    Thrown {
        /// `error.number`, as `new Error(number, message)` and refused operations set it.
        number: u32,
    },
    /// It exceeded its time, or the host cancelled it.
    OutOfTime,
    /// It needed more memory than [`crate::Limits::memory_bytes`].
    OutOfMemory,
    /// Its result is larger than [`crate::Limits::message_bytes`].
    TooLarge,
    /// Its process ended, or sent an invalid message: the script triggered a bug in the engine.
    Crashed,
    /// There is no process to run it. Not the script's fault.
    Unavailable,
}

/// A script that ended early. Its changes must be undone.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptError {
    /// The reason.
    pub problem: Problem,
    /// The text of the exception and its stack, for people.
    pub message: String,
}

impl ScriptError {
    pub(crate) fn new(problem: Problem, message: impl Into<String>) -> ScriptError {
        ScriptError {
            problem,
            message: message.into(),
        }
    }
}

impl std::fmt::Display for ScriptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ScriptError {}
