//! From arguments and variables of the official emulators to Bolide's options.
//!
//! Precedence: an option of Bolide's own, its variable `BOLIDE_…`, the emulators' argument, their variable, the default. clap has decided between the
//! first two when this begins.

use std::net::IpAddr;
use std::path::PathBuf;

use bolide_cosmos::Endpoint;
use bolide_model::account_key::AccountKey;
use tracing_subscriber::EnvFilter;

use super::arguments::Protocol;
use super::data_dir;
use super::variables::Variables;
use crate::options::ServeOptions;
use crate::pfx::Pfx;
use crate::server::Failure;

/// Default ports.
const HEALTH_PORT: u16 = 8080;
const EXPLORER_PORT: u16 = 1234;

/// What an emulator has that other servers do not.
#[derive(Debug, Clone)]
pub struct Emulator {
    /// The scheme to show.
    pub protocol: Protocol,
    /// The port for health checks.
    pub health_port: u16,
    /// The explorer's port, unless the explorer is switched off.
    pub explorer: Option<Explorer>,
    /// Arguments and variables that were given and mean nothing here.
    meaningless: Vec<&'static str>,
}

/// The port of the explorer.
#[derive(Debug, Clone, Copy)]
pub struct Explorer {
    /// Its number.
    pub port: u16,
    /// Its scheme, the only one that is answered.
    pub protocol: Protocol,
}

impl Emulator {
    /// Completes `options` by the emulators' arguments and variables; `None` without the switch, when no variable is looked at.
    ///
    /// # Errors
    /// A malformed value, named by its variable; arguments of the emulators without the switch.
    pub fn complete(options: &mut ServeOptions, variables: Variables<'_>) -> Result<Option<Emulator>, Failure> {
        options.emulator.refuse_without_switch()?;
        if !options.emulator.is_on {
            return Ok(None);
        }
        let given = &options.emulator.arguments;
        let meaningless = given.meaningless().chain(variables.meaningless()).collect();
        let protocol = match given.protocol {
            Some(protocol) => Some(protocol),
            None => variables.protocol("PROTOCOL")?,
        };
        let protocol = protocol.unwrap_or(Protocol::Http);
        let emulator = Emulator {
            protocol,
            health_port: options.emulator.health_port.unwrap_or(HEALTH_PORT),
            explorer: explorer(options, variables, protocol)?,
            meaningless,
        };
        if options.port.is_none() {
            options.port = variables.port("PORT")?;
        }
        complete_key(options, variables)?;
        complete_data(options, variables)?;
        complete_tls(options, variables)?;
        complete_endpoint(options, variables)?;
        complete_log(options, variables)?;
        Ok(Some(emulator))
    }

    /// Logs a line for each argument and variable without a meaning.
    pub fn log_meaningless(&self) {
        for name in &self.meaningless {
            tracing::warn!("{name} has no meaning here and is ignored");
        }
    }
}

fn explorer(options: &ServeOptions, variables: Variables<'_>, protocol: Protocol) -> Result<Option<Explorer>, Failure> {
    let (own, given) = (&options.emulator, &options.emulator.arguments);
    // All are looked at, so that a malformed one is an error whatever the others say.
    let enabled = variables.boolean("ENABLE_EXPLORER")?;
    let port = variables.port("EXPLORER_PORT")?;
    let scheme = variables.protocol("EXPLORER_PROTOCOL")?;
    let is_enabled = if own.no_explorer {
        false
    } else if variables.is_set("BOLIDE_NO_EXPLORER") {
        true
    } else {
        given.enable_explorer.or(enabled).unwrap_or(true)
    };
    Ok(is_enabled.then(|| Explorer {
        port: own.explorer_port.or(port).unwrap_or(EXPLORER_PORT),
        protocol: given.explorer_protocol.or(scheme).unwrap_or(protocol),
    }))
}

fn complete_key(options: &mut ServeOptions, variables: Variables<'_>) -> Result<(), Failure> {
    const KEY: &str = "AZURE_COSMOS_EMULATOR_KEY";
    if options.keys.key.is_some() || options.keys.key_file.is_some() {
        return Ok(());
    }
    let (file, key) = (variables.path("KEY_FILE"), variables.text(KEY)?);
    if file.is_some() && key.is_some() {
        return Err(Failure::new(format!(
            "KEY_FILE and {KEY} both name the key: leave one of them out"
        )));
    }
    if let Some(key) = &key {
        AccountKey::parse(key).map_err(|error| Failure::new(format!("{KEY}: {error}")))?;
    }
    (options.keys.key_file, options.keys.key) = (file, key);
    Ok(())
}

fn complete_data(options: &mut ServeOptions, variables: Variables<'_>) -> Result<(), Failure> {
    if options.memory || options.data_dir.is_some() || options.store.is_some() {
        return Ok(());
    }
    let persistence = variables.text("AZURE_COSMOS_EMULATOR_ENABLE_DATA_PERSISTENCE")?;
    let is_refused = persistence.is_some_and(|text| text.eq_ignore_ascii_case("false") || text == "0");
    let path: Option<PathBuf> = options.emulator.arguments.data_path.clone();
    if is_refused && path.is_none() && !variables.is_set("BOLIDE_MEMORY") {
        options.memory = true;
        return Ok(());
    }
    let path = path.or_else(|| variables.path("DATA_PATH"));
    options.data_dir = path.or_else(data_dir::usual);
    Ok(())
}

fn complete_tls(options: &mut ServeOptions, variables: Variables<'_>) -> Result<(), Failure> {
    const ADDRESS: &str = "AZURE_COSMOS_EMULATOR_IP_ADDRESS_OVERRIDE";
    let address = variables.parsed(ADDRESS, "an IP address", |text| text.trim().parse::<IpAddr>().ok())?;
    let tls = &mut options.tls;
    if tls.tls_cert.is_some() {
        return Ok(());
    }
    let given = options.emulator.arguments.cert_path.clone();
    let (path, source) = match (given, variables.path("CERT_PATH")) {
        (Some(path), _) => (path, "--cert-path"),
        (None, Some(path)) => (path, "CERT_PATH"),
        (None, None) => {
            tls.tls_names.extend(address.map(|address| address.to_string()));
            return Ok(());
        }
    };
    let secret = variables.text("CERT_SECRET")?.unwrap_or_default();
    tls.pfx = Some(Pfx { path, secret, source });
    Ok(())
}

fn complete_endpoint(options: &mut ServeOptions, variables: Variables<'_>) -> Result<(), Failure> {
    if options.public_endpoint.is_some() || options.advertise_host.is_some() {
        return Ok(());
    }
    let given = options.emulator.arguments.gateway_endpoint.clone();
    let (host, source) = match (given, variables.text("GATEWAY_PUBLIC_ENDPOINT")?) {
        (Some(host), _) => (host, "--gateway-endpoint"),
        (None, Some(host)) => (host, "GATEWAY_PUBLIC_ENDPOINT"),
        (None, None) => return Ok(()),
    };
    Endpoint::of_host(&host).map_err(|host| {
        Failure::new(format!(
            "{source}: expected a name or an IP address, without scheme and port. value=`{host}`"
        ))
    })?;
    options.advertise_host = Some(host);
    Ok(())
}

fn complete_log(options: &mut ServeOptions, variables: Variables<'_>) -> Result<(), Failure> {
    if options.log.is_some() {
        return Ok(());
    }
    let given = options.emulator.arguments.log_level.clone();
    let (level, source) = match (given, variables.text("LOG_LEVEL")?) {
        (Some(level), _) => (level, "--log-level"),
        (None, Some(level)) => (level, "LOG_LEVEL"),
        (None, None) => return Ok(()),
    };
    let level = if level.eq_ignore_ascii_case("quiet") {
        "off".to_owned()
    } else {
        level
    };
    EnvFilter::try_new(&level).map_err(|error| Failure::new(format!("{source}: {error}. value=`{level}`")))?;
    options.log = Some(level);
    Ok(())
}

#[cfg(test)]
mod tests;
