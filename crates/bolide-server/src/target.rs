//! Options that say where data is: a server, or a data directory. Commands other than `serve` share them.

use std::path::PathBuf;
use std::sync::Arc;

use bolide_model::account_key::WELL_KNOWN_KEY;
use clap::Args;
use rustls::crypto::ring;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use crate::keys;
use crate::server::Failure;
use crate::tls;

/// The container of a command, and where it is.
#[derive(Debug, Clone, Args)]
pub struct TargetOptions {
    /// The database.
    #[arg(long, value_name = "ID")]
    pub database: String,
    /// The container.
    #[arg(long, value_name = "ID")]
    pub container: String,
    #[command(flatten)]
    pub server: ServerOptions,
    /// Use this data directory instead of a server. No server may be using it.
    #[arg(long, value_name = "DIR", conflicts_with = "endpoint")]
    pub data_dir: Option<PathBuf>,
}

/// A server, and how to talk with it.
#[derive(Debug, Clone, Args)]
pub struct ServerOptions {
    /// The server.
    #[arg(long, default_value = "http://127.0.0.1:8081", value_name = "URL")]
    pub endpoint: String,
    #[command(flatten)]
    pub trust: TrustOptions,
    /// Account key of that server, base64; by default the emulator's well-known key.
    #[arg(long, env = "BOLIDE_KEY", hide_env_values = true, value_name = "BASE64")]
    pub key: Option<String>,
    /// File with that key.
    #[arg(long, env = "BOLIDE_KEY_FILE", value_name = "FILE", conflicts_with = "key")]
    pub key_file: Option<PathBuf>,
}

/// Which certificates to trust.
#[derive(Debug, Clone, Args)]
pub struct TrustOptions {
    /// For https: a PEM file with the certificates to trust, such as the server's own from http://HOST:PORT/_explorer/emulator.pem.
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// For https: trust any certificate. An attacker in between can then read the key and change the data.
    #[arg(long, conflicts_with = "ca")]
    pub insecure: bool,
}

impl ServerOptions {
    /// The account key.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn key(&self) -> Result<String, Failure> {
        let key = keys::given("--key", self.key.as_deref(), self.key_file.as_deref())?;
        Ok(key.unwrap_or_else(|| WELL_KNOWN_KEY.to_owned()))
    }
}

impl TrustOptions {
    /// How to speak HTTPS with an endpoint; `None` for one without it. `option` is what its user calls it.
    ///
    /// # Errors
    /// An HTTPS endpoint without an option for trust; certificates that cannot be read.
    pub fn tls_for(&self, option: &str, endpoint: &str) -> Result<Option<TlsConfig>, Failure> {
        if !endpoint.starts_with("https://") {
            return Ok(None);
        }
        let config = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
        if self.insecure {
            return Ok(Some(config.disable_verification(true).build()));
        }
        let Some(file) = &self.ca else {
            return Err(Failure::new(format!(
                "{option} https:// needs --ca FILE with the certificates to trust (http://HOST:PORT/_explorer/emulator.pem has the server's \
                 own, /etc/ssl/certs/ca-certificates.crt often the system's), or --insecure"
            )));
        };
        let unusable = |why: String| Failure::new(format!("--ca {}: {why}", file.display()));
        let pem = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
        let chain = tls::chain(&pem).map_err(unusable)?;
        let certificates: Vec<Certificate<'static>> = chain
            .iter()
            .map(|certificate| Certificate::from_der(certificate).to_owned())
            .collect();
        let roots = RootCerts::new_with_certs(&certificates);
        Ok(Some(config.root_certs(roots).build()))
    }
}
