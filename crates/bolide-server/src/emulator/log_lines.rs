//! What an emulator prints besides the banner: its ports, a warning, and the lines that tools wait for.
//!
//! `Now listening on: ` is the line of Testcontainers for Node.js; `Started` at the end of the last line that of those for Java, Python, Go and .NET.

use super::settings::Emulator;
use crate::listeners::ALL_ADDRESSES;
use crate::options::{Settings, is_loopback};
use crate::ready_file;
use crate::server::Ports;

/// The other ports, for the banner: a name and a URL each; none without the switch.
pub fn in_banner(settings: &Settings, ports: Ports) -> Vec<(&'static str, String)> {
    let Some(emulator) = &settings.emulator else {
        return Vec::new();
    };
    let host = settings.options.host();
    let explorer = explorer_url(emulator, host, ports).map(|url| ("Explorer", url));
    let health = health_url(host, ports).map(|url| ("Emulator", format!("{url}/ready")));
    explorer.into_iter().chain(health).collect()
}

/// The lines of the warning of a server that others can reach and whose key they know.
pub fn warning(settings: &Settings) -> Vec<String> {
    let host = settings.options.host();
    if !settings.keys.is_public || is_loopback(host) {
        return Vec::new();
    }
    let addresses = match host {
        ALL_ADDRESSES => "all addresses of this machine, IPv4 and IPv6,",
        host => host,
    };
    vec![
        format!("--emulator: listens on {addresses} with the emulator's well-known key."),
        "Anyone who reaches this address has full access: the key is public.".to_owned(),
    ]
}

/// The lines after the banner; empty without the switch. Nothing may follow them, and nothing before them may contain the last word.
pub fn last(settings: &Settings, ports: Ports) -> String {
    let Some(emulator) = &settings.emulator else {
        return String::new();
    };
    let scheme = emulator.protocol.scheme();
    let host = match settings.options.host() {
        ALL_ADDRESSES => "0.0.0.0",
        host => host,
    };
    let host = match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    };
    format!("Now listening on: {scheme}://{host}:{}\nStarted\r\n", ports.http)
}

/// The URL of the explorer's port, for clients on this machine.
pub fn explorer_url(emulator: &Emulator, host: &str, ports: Ports) -> Option<String> {
    let scheme = emulator.explorer.as_ref()?.protocol.scheme();
    let endpoint = ready_file::endpoint(host, ports.explorer?);
    Some(format!("{scheme}://{endpoint}"))
}

/// The URL of the health checks' port, for clients on this machine.
pub fn health_url(host: &str, ports: Ports) -> Option<String> {
    let endpoint = ready_file::endpoint(host, ports.health?);
    Some(format!("http://{endpoint}"))
}
