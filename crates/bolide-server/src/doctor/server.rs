//! Who answers at the endpoint: nobody, another program, or Bolide.

use std::io::{self, ErrorKind};
use std::net::TcpStream;

use rustls::RootCertStore;
use serde_json::Value;

use super::report::Report;
use crate::endpoint::{self, HttpAnswer, Target};
use crate::tls_client;

const TOPIC: &str = "server";
const HEALTH: &str = "/_bolide/health";
/// Characters of another program's answer that are shown.
const QUOTED: usize = 60;

/// A server that is Bolide.
pub struct Server {
    /// Its `Date`, if it sent one.
    pub date: Option<String>,
}

/// Finds out who answers; `None` if nothing further can be checked.
pub fn check(report: &mut Report, target: &Target) -> Option<Server> {
    check_addresses(report, target)?;
    let answer = match get(target, HEALTH, &[]) {
        Ok(bytes) => bytes,
        Err(error) => {
            report.fail(
                TOPIC,
                format!("{} accepts connections and {error}", target.authority()),
                other_protocol(target),
            );
            return None;
        }
    };
    let Some(answer) = HttpAnswer::parse(&answer) else {
        let what = match answer.first() {
            None => "another program closes the connection without an answer".to_owned(),
            // A TLS record: an alert, or a handshake.
            Some(0x15 | 0x16) => "the server there speaks only TLS".to_owned(),
            Some(_) => format!("another program answers there, with `{}`", quoted(&answer)),
        };
        report.fail(TOPIC, format!("{}: {what}", target.authority()), other_protocol(target));
        return None;
    };
    judge(report, target, &answer)
}

/// Checks that the name is known, and that somebody listens on each of its addresses.
fn check_addresses(report: &mut Report, target: &Target) -> Option<()> {
    let authority = target.authority();
    let addresses = match target.addresses() {
        Ok(addresses) if !addresses.is_empty() => addresses,
        other => {
            let why = other
                .err()
                .map_or("it has no address".to_owned(), |error| error.to_string());
            report.fail(
                "name",
                format!("{}: {why}", target.host),
                "check --endpoint, or /etc/hosts and the name server",
            );
            return None;
        }
    };
    let attempts: Vec<(_, io::Result<TcpStream>)> = addresses
        .iter()
        .map(|address| (*address, endpoint::connect(*address)))
        .collect();
    let refused = attempts
        .iter()
        .filter_map(|(address, attempt)| Some((address, attempt.as_ref().err()?)));
    let refused: Vec<String> = refused.map(|(address, error)| format!("{address}: {error}")).collect();
    if refused.len() < attempts.len() {
        if !refused.is_empty() {
            report.warn(
                "name",
                format!(
                    "{} has several addresses, and not all answer ({})",
                    target.host,
                    refused.join("; ")
                ),
                "clients may try these first; write 127.0.0.1 instead of the name",
            );
        }
        return Some(());
    }
    let is_refused = attempts.iter().any(|(_, attempt)| {
        attempt
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
    });
    report.fail(
        TOPIC,
        format!("nobody answers at {authority} ({})", refused.join("; ")),
        start_advice(target, is_refused),
    );
    None
}

/// What to do if nobody answers; `is_refused`: the machine does, but no program listens.
fn start_advice(target: &Target, is_refused: bool) -> String {
    match (is_refused, target.is_loopback()) {
        (true, true) => format!(
            "start the server (`bolide --port {}`), or give the port it has in --endpoint",
            target.port
        ),
        (true, false) => {
            "start the server there with --host 0.0.0.0 and a key of its own, and publish the container's port"
                .to_owned()
        }
        (false, _) => "a firewall drops the packets, or the machine is off".to_owned(),
    }
}

fn judge(report: &mut Report, target: &Target, answer: &HttpAnswer) -> Option<Server> {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let server = Server {
        date: answer.header("date").map(str::to_owned),
    };
    match (answer.status, body["status"].as_str()) {
        (200, Some("ok")) if body["engine"].is_string() => {
            let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
            let url = target.url(scheme(target));
            report.ok(
                TOPIC,
                format!(
                    "Bolide {} answers at {url} (engine: {})",
                    text("version"),
                    text("engine")
                ),
            );
            Some(server)
        }
        (503, Some("starting")) => {
            report.fail(
                TOPIC,
                "Bolide is there and still opens its store",
                "wait until GET /_bolide/health is 200",
            );
            None
        }
        (400, _) if answer.text().contains("--allow-host") => {
            report.fail(
                TOPIC,
                format!("Bolide does not answer to the name `{}`", target.host),
                format!("start it with --allow-host {}, or with a key of its own", target.host),
            );
            None
        }
        _ => {
            let program = answer
                .header("server")
                .map_or_else(|| quoted(&answer.body), str::to_owned);
            report.fail(
                TOPIC,
                format!(
                    "another program has {}: it answers {} to {HEALTH} (`{program}`)",
                    target.authority(),
                    answer.status
                ),
                "stop it, or start Bolide on another port with --port",
            );
            None
        }
    }
}

/// The scheme of the endpoint.
pub fn scheme(target: &Target) -> &'static str {
    if target.is_tls { "https" } else { "http" }
}

/// What to try if the server does not speak the endpoint's protocol.
fn other_protocol(target: &Target) -> String {
    match target.is_tls {
        true => format!(
            "try {} in --endpoint and in clients, or start Bolide on another port with --port",
            target.url("http")
        ),
        false => format!(
            "try {} in --endpoint and in clients, or start Bolide on another port with --port",
            target.url("https")
        ),
    }
}

/// Sends a request over the endpoint's protocol, whatever the certificate.
pub fn get(target: &Target, path: &str, headers: &[(&str, String)]) -> io::Result<Vec<u8>> {
    let mut stream = target.connect()?;
    if !target.is_tls {
        return endpoint::get(&mut stream, &target.authority(), path, headers)
            .map_err(|error| io::Error::new(error.kind(), format!("answers nothing to HTTP ({error})")));
    }
    let mut shown = tls_client::handshake(stream, &target.host, RootCertStore::empty())
        .map_err(|error| io::Error::new(error.kind(), format!("does not speak TLS ({error})")))?;
    endpoint::get(&mut shown.stream, &target.authority(), path, headers)
}

/// The beginning of an answer.
fn quoted(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.lines().next().unwrap_or_default().chars().take(QUOTED).collect()
}
