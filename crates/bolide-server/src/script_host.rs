//! The processes in which scripts run: this binary once more, with a command of its own.

use std::path::PathBuf;

use bolide_core::ScriptHosting;

use crate::server::Failure;

/// The hidden command that serves scripts on standard input and output.
pub const COMMAND: &str = "script-host";

/// How an account starts such processes.
///
/// # Errors
/// When the path of the binary cannot be found out.
pub fn hosting() -> Result<ScriptHosting, Failure> {
    Ok(ScriptHosting::Processes {
        program: program()?,
        arguments: vec![COMMAND.into()],
    })
}

/// This very binary, also after its file was replaced by another version.
#[cfg(target_os = "linux")]
fn program() -> Result<PathBuf, Failure> {
    Ok(PathBuf::from("/proc/self/exe"))
}

#[cfg(not(target_os = "linux"))]
fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::new(format!("cannot find the path of this program: {error}")))
}

/// Serves scripts until the server is gone. Returns only what kept it from that.
pub fn serve() -> Failure {
    let error = bolide_core::serve_scripts();
    Failure::new(format!("cannot serve scripts: {error}"))
}
