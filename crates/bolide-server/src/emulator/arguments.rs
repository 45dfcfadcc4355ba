//! The switch and what belongs to it: Bolide's own options, and the arguments of the official emulators.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};

use crate::server::Failure;

/// Heading of the emulators' arguments in the help.
const HEADING: &str = "Arguments of the official emulators (only with --emulator)";

/// Options that only a server with `--emulator` has, and the switch.
#[derive(Debug, Clone, Args)]
pub struct EmulatorOptions {
    /// Take the place of the official emulator: listen on all addresses with its well-known key, which everybody knows, and accept its arguments,
    /// variables and ports.
    #[arg(long = "emulator", env = "BOLIDE_EMULATOR", value_parser = BoolishValueParser::new())]
    pub is_on: bool,
    /// With --emulator: port for the health checks /alive, /ready and /status; 8080 by default, 0 picks a free one.
    #[arg(long, env = "BOLIDE_HEALTH_PORT", value_name = "PORT")]
    pub health_port: Option<u16>,
    /// With --emulator: port that has the data explorer at its root; 1234 by default, 0 picks a free one.
    #[arg(long, env = "BOLIDE_EXPLORER_PORT", value_name = "PORT")]
    pub explorer_port: Option<u16>,
    /// No data explorer under /_explorer/, and with --emulator no port for it.
    #[arg(long, env = "BOLIDE_NO_EXPLORER", value_parser = BoolishValueParser::new())]
    pub no_explorer: bool,
    #[command(flatten)]
    pub arguments: EmulatorArguments,
}

/// The emulators' arguments that are not options of Bolide as well, as `--port` and `--key-file` are.
#[derive(Debug, Clone, Default, Args)]
pub struct EmulatorArguments {
    /// The scheme in the line `Now listening on:`; HTTP and HTTPS are both answered always.
    #[arg(long, value_enum, value_name = "PROTOCOL", help_heading = HEADING)]
    pub protocol: Option<Protocol>,
    /// Whether there is an explorer.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", value_parser = BoolishValueParser::new(), help_heading = HEADING)]
    pub enable_explorer: Option<bool>,
    /// The scheme of the explorer's port; by default that of --protocol.
    #[arg(long, value_enum, value_name = "PROTOCOL", help_heading = HEADING)]
    pub explorer_protocol: Option<Protocol>,
    /// As --advertise-host.
    #[arg(long, value_name = "HOST", help_heading = HEADING)]
    pub gateway_endpoint: Option<String>,
    /// As --data-dir.
    #[arg(long, value_name = "DIR", help_heading = HEADING)]
    pub data_path: Option<PathBuf>,
    /// PFX file with the certificate for HTTPS and its key; its password is in the variable CERT_SECRET.
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub cert_path: Option<PathBuf>,
    /// As --log; `quiet` is `off`.
    #[arg(long, value_name = "LEVEL", help_heading = HEADING)]
    pub log_level: Option<String>,
    /// No meaning here.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = HEADING)]
    pub enable_telemetry: Option<String>,
    /// No meaning here.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = HEADING)]
    pub enable_otlp: Option<String>,
    /// No meaning here.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = HEADING)]
    pub enable_console: Option<String>,
    /// No meaning here.
    #[arg(long, value_name = "KB", allow_negative_numbers = true, help_heading = HEADING)]
    pub query_buffer_size: Option<String>,
    /// No meaning here.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = HEADING)]
    pub enable_init_data: Option<String>,
    /// No meaning here.
    #[arg(long, value_name = "DIR", help_heading = HEADING)]
    pub init_path: Option<String>,
    /// No meaning here.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = HEADING)]
    pub verbose: Option<String>,
}

/// A scheme, as the emulators name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// HTTP.
    Http,
    /// HTTPS.
    Https,
    /// The same.
    HttpsInsecure,
}

impl Protocol {
    /// Whether it is HTTPS.
    pub fn is_tls(self) -> bool {
        self != Protocol::Http
    }

    /// The scheme of URLs.
    pub fn scheme(self) -> &'static str {
        if self.is_tls() { "https" } else { "http" }
    }
}

impl EmulatorOptions {
    /// Refuses what is known only together with the switch.
    ///
    /// # Errors
    /// The first such option or argument.
    pub fn refuse_without_switch(&self) -> Result<(), Failure> {
        if self.is_on {
            return Ok(());
        }
        let own = [
            ("--health-port", self.health_port.is_some()),
            ("--explorer-port", self.explorer_port.is_some()),
        ];
        if let Some((name, _)) = own.into_iter().find(|(_, is_given)| *is_given) {
            return Err(Failure::new(format!("{name} has a meaning only with --emulator")));
        }
        match self.arguments.given().next() {
            Some(name) => Err(Failure::new(format!(
                "unexpected argument {name}: it is one of the official emulators, and known only with --emulator"
            ))),
            None => Ok(()),
        }
    }
}

impl EmulatorArguments {
    /// The arguments that were given and mean something.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        let meaningful = [
            ("--protocol", self.protocol.is_some()),
            ("--enable-explorer", self.enable_explorer.is_some()),
            ("--explorer-protocol", self.explorer_protocol.is_some()),
            ("--gateway-endpoint", self.gateway_endpoint.is_some()),
            ("--data-path", self.data_path.is_some()),
            ("--cert-path", self.cert_path.is_some()),
            ("--log-level", self.log_level.is_some()),
        ];
        meaningful
            .into_iter()
            .filter_map(|(name, is_given)| is_given.then_some(name))
            .chain(self.meaningless())
    }

    /// The arguments that were given and mean nothing here.
    pub fn meaningless(&self) -> impl Iterator<Item = &'static str> + use<> {
        let all = [
            ("--enable-telemetry", self.enable_telemetry.is_some()),
            ("--enable-otlp", self.enable_otlp.is_some()),
            ("--enable-console", self.enable_console.is_some()),
            ("--query-buffer-size", self.query_buffer_size.is_some()),
            ("--enable-init-data", self.enable_init_data.is_some()),
            ("--init-path", self.init_path.is_some()),
            ("--verbose", self.verbose.is_some()),
        ];
        all.into_iter().filter_map(|(name, is_given)| is_given.then_some(name))
    }
}
