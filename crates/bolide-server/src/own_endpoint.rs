//! Where clients and other servers of the store reach this server, as it tells the others.

use bolide_core::Endpoint;
use bolide_cosmos::Endpoint as Configured;

use crate::endpoint::Target;
use crate::options::Settings;
use crate::ready_file;
use crate::server::Ports;

/// As far as this server knows.
pub fn of(settings: &Settings, ports: Ports) -> Endpoint {
    Endpoint {
        http: http(settings, ports),
        frames: frames(settings, ports),
    }
}

/// Over HTTP; where the other servers do, if they have another way.
fn http(settings: &Settings, ports: Ports) -> String {
    if let Some(host) = &settings.options.peer_host {
        return format!("http://{}", ready_file::endpoint(host, ports.http));
    }
    match &settings.endpoint {
        Some(Configured::Whole(endpoint)) => endpoint.clone(),
        Some(Configured::Host(host)) => format!("http://{host}:{}", ports.http),
        None => format!("http://{}", ready_file::endpoint(settings.options.host(), ports.http)),
    }
}

/// In direct mode: a name under which this server alone is reached. That of several servers together would not lead to the owner of a partition, but to any of them,
/// which is right, too. `None` where clients are refused, and where nobody has said under which name clients know this server: what it listens on may be
/// an address of its own network.
fn frames(settings: &Settings, ports: Ports) -> Option<String> {
    if settings.options.no_direct {
        return None;
    }
    match &settings.endpoint {
        Some(Configured::Whole(endpoint)) => Some(Target::parse("--public-endpoint", endpoint).ok()?.authority()),
        Some(Configured::Host(host)) => Some(ready_file::endpoint(host, ports.http)),
        None => None,
    }
}

#[cfg(test)]
mod tests;
