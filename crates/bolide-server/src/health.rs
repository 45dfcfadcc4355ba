//! `bolide health`: asks a server whether it is ready, for health checks of containers that have no shell and no curl.

use std::time::Duration;

use clap::Args;
use clap::builder::BoolishValueParser;

use crate::server::Failure;

/// The port of a server that was given none.
const DEFAULT_PORT: u16 = 8081;

/// The variable of the official emulator that sets the port. It counts only under `--emulator`, as in the server.
const EMULATOR_PORT: &str = "PORT";

/// The options of `health`.
#[derive(Debug, Clone, Args)]
pub struct HealthOptions {
    /// The server, as `http://HOST:PORT`. By default 127.0.0.1 and the port below.
    #[arg(long, value_name = "URL", conflicts_with = "port")]
    pub endpoint: Option<String>,
    /// The server's port on this machine. By default 8081; under `BOLIDE_EMULATOR` the variable `PORT`, if it is set.
    #[arg(long, env = "BOLIDE_PORT", value_name = "N")]
    pub port: Option<u16>,
    /// Whether the server is in emulator mode.
    #[arg(long, env = "BOLIDE_EMULATOR", hide = true, value_parser = BoolishValueParser::new())]
    pub emulator: bool,
    /// Seconds to wait for the answer.
    #[arg(long, default_value_t = 2, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=600))]
    pub timeout: u64,
}

/// Returns normally if the server is ready.
///
/// # Errors
/// An endpoint that is not HTTP, no answer in time, or an answer other than 200, such as 503 during recovery.
pub fn run(options: &HealthOptions) -> Result<(), Failure> {
    let emulator_port = std::env::var(EMULATOR_PORT).ok();
    let endpoint = endpoint(options, emulator_port.as_deref())?;
    // A proxy named in the environment is for other hosts than this one, and a redirect is not an answer.
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .timeout_global(Some(Duration::from_secs(options.timeout)))
        .build()
        .into();
    let url = format!("{endpoint}/_bolide/health");
    let response = agent
        .get(&url)
        .call()
        .map_err(|error| Failure::new(format!("{url}: {error}")))?;
    match response.status().as_u16() {
        200 => Ok(()),
        status => Err(Failure::new(format!("{url}: not ready. status={status}"))),
    }
}

/// The endpoint without a slash at its end.
///
/// `emulator_port` is the value of `PORT`. Where the emulator's port makes no sense, the server has refused it, so this fails too.
fn endpoint(options: &HealthOptions, emulator_port: Option<&str>) -> Result<String, Failure> {
    if let Some(endpoint) = &options.endpoint {
        return match endpoint.starts_with("http://") {
            true => Ok(endpoint.trim_end_matches('/').to_owned()),
            // Every port answers plain HTTP, so there is nothing to trust or to verify.
            false => Err(Failure::new(format!(
                "--endpoint: expected http://host:port. value=`{endpoint}`"
            ))),
        };
    }
    let port = match (options.port, emulator_port.filter(|_| options.emulator)) {
        (Some(port), _) => port,
        (None, Some(text)) => text
            .parse()
            .map_err(|_| Failure::new(format!("{EMULATOR_PORT}: expected a port. value=`{text}`")))?,
        (None, None) => DEFAULT_PORT,
    };
    Ok(format!("http://127.0.0.1:{port}"))
}

#[cfg(test)]
mod tests;
