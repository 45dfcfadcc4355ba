//! Checks of this machine: proxies in the environment, limits of the process, the data directory.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::Path;

use super::report::Report;
use crate::endpoint::Target;

/// The data directory of a server without options.
const DEFAULT_DIR: &str = "./bolide-data";
/// With fewer open files a server has few connections and a small cache of tables.
const OPEN_FILES: u64 = 1024;
/// The largest file of a store.
const FILE_BYTES: u64 = 256 * 1024 * 1024;

/// Checks whether clients send requests for the server to a proxy; `variable` reads the environment.
pub fn check_proxies(report: &mut Report, target: &Target, variable: impl Fn(&str) -> Option<String>) {
    let given = |name: &str| variable(name).filter(|value| !value.is_empty());
    let scheme = if target.is_tls { "https_proxy" } else { "http_proxy" };
    let names = [scheme, "all_proxy"].map(|name| [name.to_owned(), name.to_ascii_uppercase()]);
    let set: Vec<String> = names
        .into_iter()
        .flatten()
        .filter(|name| given(name).is_some())
        .collect();
    if set.is_empty() {
        report.ok("proxy", "no variable sends these requests to a proxy");
        return;
    }
    let set = set.join(", ");
    let exceptions = given("no_proxy").or_else(|| given("NO_PROXY")).unwrap_or_default();
    if is_exempt(&target.host, &exceptions) {
        report.ok("proxy", format!("{set} is set, and NO_PROXY exempts {}", target.host));
        return;
    }
    let advice = format!("set NO_PROXY=localhost,127.0.0.1,::1,{} for the clients", target.host);
    // A proxy on another machine takes these names for its own machine.
    report.problem(
        target.is_loopback(),
        "proxy",
        format!("{set} sends requests for {} to a proxy", target.host),
        advice,
    );
}

/// Whether a list in the form of `NO_PROXY` has a host: names also mean the names below them, networks are written as `10.0.0.0/8`.
fn is_exempt(host: &str, exceptions: &str) -> bool {
    let host = host.to_ascii_lowercase();
    exceptions.split(',').any(|entry| {
        let entry = entry.trim().trim_start_matches('.').to_ascii_lowercase();
        let entry = entry.trim_start_matches('[').trim_end_matches(']');
        entry == "*"
            || (!entry.is_empty() && (host == entry || host.ends_with(&format!(".{entry}"))))
            || is_in_network(&host, entry)
    })
}

fn is_in_network(host: &str, network: &str) -> bool {
    let Some((base, bits)) = network.split_once('/') else {
        return false;
    };
    let (Ok(host), Ok(base), Ok(bits)) = (host.parse::<Ipv4Addr>(), base.parse::<Ipv4Addr>(), bits.parse::<u32>())
    else {
        return false;
    };
    let mask = u32::MAX.checked_shl(32_u32.saturating_sub(bits)).unwrap_or(0);
    u32::from(host) & mask == u32::from(base) & mask
}

/// Checks the limits that a server started from here would have.
#[cfg(unix)]
pub fn check_limits(report: &mut Report) {
    use rustix::process::{Resource, getrlimit};
    // The server raises its own limit as far as the hard one.
    match getrlimit(Resource::Nofile).maximum {
        Some(files) if files < OPEN_FILES => report.warn(
            "limits",
            format!("a server started here may open {files} files"),
            format!("`ulimit -Hn {OPEN_FILES}` or more, or it serves few connections"),
        ),
        _ => report.ok("limits", "a server started here may open enough files"),
    }
    if let Some(bytes) = getrlimit(Resource::Fsize).current.filter(|bytes| *bytes < FILE_BYTES) {
        report.fail(
            "limits",
            format!("files may have {bytes} bytes, and a store needs {FILE_BYTES}"),
            "`ulimit -f unlimited`",
        );
    }
}

/// Checks the limits that a server started from here would have.
#[cfg(not(unix))]
pub fn check_limits(_report: &mut Report) {}

/// Checks that a server could keep its data in the directory.
pub fn check_data_directory(report: &mut Report, named: Option<&Path>) {
    let dir = named.unwrap_or(Path::new(DEFAULT_DIR));
    let place = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let place = place.display();
    match fs::metadata(dir) {
        Err(_) if named.is_none() => {}
        Err(_) => match dir
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
        {
            parent if is_writable(parent) => report.ok("data", format!("{place} is not there yet; a server makes it")),
            parent => report.fail(
                "data",
                format!("{place} is not there and {} cannot be written", parent.display()),
                "another --data-dir, or more rights",
            ),
        },
        Ok(metadata) if !metadata.is_dir() => {
            report.fail("data", format!("{place} is no directory"), "another --data-dir");
        }
        Ok(_) if is_writable(dir) => report.ok("data", format!("{place} can be written")),
        Ok(_) => report.fail(
            "data",
            format!("{place} cannot be written by this user"),
            "start the server as its owner, or give it to this user (chown)",
        ),
    }
}

/// Tries it: the system has more reasons to refuse than permissions.
fn is_writable(dir: &Path) -> bool {
    let probe = dir.join(format!(".bolide-doctor-{}", std::process::id()));
    let made = File::create_new(&probe).is_ok();
    made && fs::remove_file(&probe).is_ok()
}

#[cfg(test)]
mod tests;
