//! How a script fails.

/// Why a script ended early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The source is no JavaScript, or no function.
    Syntax,
    /// It threw, with the number of the error; 0 without one.
    Thrown {
        /// `error.number`, as `new Error(number, message)` and refused operations set it.
        number: u32,
    },
    /// It needed more time than it had, or the host wanted it to end.
    OutOfTime,
    /// It needed more memory than [`crate::Limits::memory_bytes`].
    OutOfMemory,
    /// What it answers with is larger than [`crate::Limits::message_bytes`].
    TooLarge,
    /// Its process ended, or said what it must not: the script found a fault of the engine.
    Crashed,
    /// There is no process to run it. No fault of the script.
    Unavailable,
}

/// A script that ended early. What it did before counts for nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptError {
    /// Why.
    pub problem: Problem,
    /// For people: the text of the exception and its stack.
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
