//! How a store is reached.

use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::connection::Target;
use crate::error::OpenError;

/// Connections for everything but held snapshots: group commit needs few.
const CONNECTIONS: usize = 8;
/// Each of them, and each request, takes at most this long.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Memory for rows that were read.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// How a store is reached.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Where the servers are, and as whom. Several hosts are tried in turn.
    pub(crate) target: Target,
    /// Connections of this process, besides those of held snapshots and one for the time.
    pub connections: usize,
    /// Timeout of each request.
    pub timeout: Duration,
    /// Memory for rows that were read; none are kept with 0.
    pub cache_bytes: usize,
}

impl PostgresOptions {
    /// Reads a connection string: an address as `postgres://user:password@host:5432/database`, or pairs as `host=… user=…`.
    ///
    /// # Errors
    /// If it is neither.
    pub fn parse(text: &str) -> Result<PostgresOptions, OpenError> {
        let mut config: Config = text.parse().map_err(OpenError::Config)?;
        if config.get_application_name().is_none() {
            config.application_name("bolide");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(TIMEOUT);
        }
        // A server that is gone without a word is noticed in seconds.
        config.keepalives(true).keepalives_idle(Duration::from_secs(5));
        config.keepalives_interval(Duration::from_secs(2)).keepalives_retries(3);
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(TIMEOUT);
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host("localhost");
        }
        let is_encrypted = config.get_ssl_mode() == SslMode::Require;
        let tls = is_encrypted.then(|| tls(system_roots())).transpose()?;
        Ok(PostgresOptions {
            target: Target { config, tls },
            connections: CONNECTIONS,
            timeout: TIMEOUT,
            cache_bytes: CACHE_BYTES,
        })
    }

    /// Trusts only servers whose certificates these have signed, in PEM, instead of those that the system trusts. With `sslmode=require` only: other connections
    /// are not encrypted.
    ///
    /// # Errors
    /// If there is no certificate in it, or connections are not encrypted.
    pub fn trust(&mut self, pem: &[u8]) -> Result<(), OpenError> {
        if self.target.tls.is_none() {
            return Err(OpenError::Authorities(
                "connections are not encrypted without `sslmode=require`".to_owned(),
            ));
        }
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let added = certificate.map_err(|error| error.to_string());
            let added = added.and_then(|certificate| roots.add(certificate).map_err(|error| error.to_string()));
            added.map_err(OpenError::Authorities)?;
        }
        if roots.is_empty() {
            return Err(OpenError::Authorities("there is no certificate in it".to_owned()));
        }
        self.target.tls = Some(tls(roots)?);
        Ok(())
    }

    /// Where the store is, for people, without user and password: `db1:5432,db2:5432/shop`.
    pub fn place(&self) -> String {
        let config = &self.target.config;
        let ports = config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        let hosts = config.get_hosts().iter().enumerate().map(|(at, host)| match host {
            Host::Tcp(name) => format!("{name}:{}", port(at)),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<String> = hosts.collect();
        let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
        format!("{}/{database}", hosts.join(","))
    }
}

/// The authorities that the system trusts. Some may be unreadable; a server that they have signed is refused then.
fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn tls(roots: RootCertStore) -> Result<Arc<ClientConfig>, OpenError> {
    let config =
        ClientConfig::builder_with_provider(Arc::new(default_provider())).with_safe_default_protocol_versions();
    let config = config.map_err(|error| OpenError::Authorities(error.to_string()))?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}
