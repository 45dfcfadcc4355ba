//! `bolide snapshot`, `bolide restore`, `bolide reset`: snapshots of a running server, through its admin API.

use std::io::{self, Write as _};
use std::path::PathBuf;

use bolide_model::SnapshotName;
use bolide_model::account_key::WELL_KNOWN_KEY;
use clap::Args;
use serde_json::Value;

use crate::keys;
use crate::query::remote;
use crate::server::Failure;

/// The options of `snapshot` and `restore`.
#[derive(Debug, Clone, Args)]
pub struct SnapshotOptions {
    /// The name of the snapshot: letters, digits, `.`, `_` and `-`.
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: SnapshotName,
    #[command(flatten)]
    pub server: ServerOptions,
}

/// The options of `reset`.
#[derive(Debug, Clone, Args)]
pub struct ResetOptions {
    #[command(flatten)]
    pub server: ServerOptions,
}

/// The server of a command.
#[derive(Debug, Clone, Args)]
pub struct ServerOptions {
    /// The server.
    #[arg(long, default_value = "http://127.0.0.1:8081", value_name = "URL")]
    pub endpoint: String,
    /// For https: a PEM file with the certificates to trust, such as the server's own from http://HOST:PORT/_explorer/emulator.pem.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// For https: trust any certificate. An attacker in between can then read the key.
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
    /// Primary or secondary account key of that server, base64; by default the emulator's well-known key.
    #[arg(long, env = "BOLIDE_KEY", hide_env_values = true, value_name = "BASE64")]
    pub key: Option<String>,
    /// File with that key.
    #[arg(long, env = "BOLIDE_KEY_FILE", value_name = "FILE", conflicts_with = "key")]
    pub key_file: Option<PathBuf>,
}

fn name(text: &str) -> Result<SnapshotName, String> {
    SnapshotName::parse(text).map_err(|error| error.to_string())
}

/// Takes a snapshot.
///
/// # Errors
/// Why there is none, in one line.
pub fn take(options: &SnapshotOptions) -> Result<(), Failure> {
    options.server.post(&format!("snapshots/{}", options.name))?;
    say(&format!("The snapshot {} is taken.", options.name))
}

/// Restores a snapshot.
///
/// # Errors
/// Why it is not restored, in one line.
pub fn restore(options: &SnapshotOptions) -> Result<(), Failure> {
    options.server.post(&format!("snapshots/{}/restore", options.name))?;
    say(&format!("The content is that of the snapshot {}.", options.name))
}

/// Removes everything.
///
/// # Errors
/// Why it is not removed, in one line.
pub fn reset(options: &ResetOptions) -> Result<(), Failure> {
    options.server.post("reset")?;
    say("The server is empty.")
}

fn say(line: &str) -> Result<(), Failure> {
    let written = writeln!(io::stdout().lock(), "{line}");
    written.map_err(|error| Failure::new(format!("cannot write to standard output: {error}")))
}

impl ServerOptions {
    /// Sends a request without a body to a route of the admin API.
    fn post(&self, route: &str) -> Result<(), Failure> {
        let endpoint = self.endpoint.trim_end_matches('/');
        let is_tls = endpoint.starts_with("https://");
        if !is_tls && !endpoint.starts_with("http://") {
            return Err(Failure::new(format!(
                "--endpoint: expected http://host:port or https://host:port. value=`{endpoint}`"
            )));
        }
        let key = keys::given("--key", self.key.as_deref(), self.key_file.as_deref())?;
        let key = key.as_deref().unwrap_or(WELL_KNOWN_KEY);
        // The key must not be sent to any other server.
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0);
        if is_tls {
            config = config.tls_config(remote::tls(self.ca.as_deref(), self.insecure)?);
        }
        let agent: ureq::Agent = config.build().into();
        let unreachable = |error: ureq::Error| Failure::new(format!("--endpoint: {endpoint}: {error}"));
        let request = agent.post(format!("{endpoint}/_bolide/{route}"));
        let request = request.header("authorization", format!("Bearer {key}"));
        let mut response = request.send_empty().map_err(unreachable)?;
        let text = response.body_mut().read_to_string().map_err(unreachable)?;
        let answer: Value = serde_json::from_str(&text)
            .map_err(|_| Failure::new(format!("--endpoint: {endpoint}: no Bolide server answers there")))?;
        if response.status().is_success() {
            return Ok(());
        }
        let message = answer["message"].as_str().unwrap_or_default();
        Err(Failure::new(remote::refusal(message)))
    }
}
