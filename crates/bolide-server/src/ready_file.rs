//! The ready file, from which a test runner learns the server's address.

use std::path::Path;

use serde_json::json;

use crate::emulator::log_lines;
use crate::files::{self, Readers};
use crate::listeners::ALL_ADDRESSES;
use crate::mongo;
use crate::options::Settings;
use crate::server::{Failure, Ports};

/// Writes endpoints and process id, atomically.
///
/// # Errors
/// An error of the file system.
pub fn write(path: &Path, settings: &Settings, ports: Ports) -> Result<(), Failure> {
    let host = settings.options.host();
    let endpoint = endpoint(host, ports.http);
    let mut ready = json!({
        "cosmos": format!("http://{endpoint}"),
        "cosmosTls": format!("https://{endpoint}"),
        "mongo": ports.mongo.map(|port| mongo::url(host, port)),
        "pid": std::process::id(),
    });
    if let Some(emulator) = &settings.emulator {
        ready["health"] = log_lines::health_url(host, ports).into();
        ready["explorer"] = log_lines::explorer_url(emulator, host, ports).into();
    }
    // It contains no secrets, and the user who reads it may differ from the one who starts the server.
    let written = files::write(path, &format!("{ready}\n"), Readers::Everybody);
    written.map_err(|error| Failure::new(format!("cannot write the ready file {}: {error}", path.display())))
}

/// Host and port for clients on this machine.
pub fn endpoint(host: &str, port: u16) -> String {
    match host.trim_start_matches('[').trim_end_matches(']') {
        ALL_ADDRESSES | "0.0.0.0" | "::" => format!("127.0.0.1:{port}"),
        v6 if v6.contains(':') => format!("[{v6}]:{port}"),
        host => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests;
