//! The processes that run scripts: this binary, with a hidden command.

use std::path::PathBuf;

use bolide_core::ScriptHosting;

use crate::server::Failure;

/// The hidden command that serves scripts on standard input and output.
pub const COMMAND: &str = "script-host";

/// How an account starts these processes.
///
/// # Errors
/// If the path of the binary cannot be determined.
pub fn hosting() -> Result<ScriptHosting, Failure> {
    Ok(ScriptHosting::Processes {
        program: program()?,
        arguments: vec![COMMAND.into()],
    })
}

/// The path of this binary, valid even after its file was replaced by another version.
#[cfg(target_os = "linux")]
fn program() -> Result<PathBuf, Failure> {
    Ok(PathBuf::from("/proc/self/exe"))
}

#[cfg(not(target_os = "linux"))]
fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(|error| Failure::new(format!("cannot find the path of this program: {error}")))
}

/// Serves scripts until the server ends. Returns only an error.
pub fn serve() -> Failure {
    let error = bolide_core::serve_scripts();
    Failure::new(format!("cannot serve scripts: {error}"))
}
