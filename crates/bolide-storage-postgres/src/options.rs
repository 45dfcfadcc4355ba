//! How a store is reached.

use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::error::OpenError;

/// Connections for everything but held snapshots: group commit needs few.
const CONNECTIONS: usize = 8;
/// Each of them, and each request, takes at most this long.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How a store is reached.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// Where the servers are, and as whom. Several hosts are tried in turn.
    pub config: Config,
    /// Connections of this process, besides those of held snapshots and one for the time.
    pub connections: usize,
    /// Timeout of each request.
    pub timeout: Duration,
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
        if config.get_ssl_mode() == SslMode::Require {
            return Err(OpenError::Tls);
        }
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host("localhost");
        }
        Ok(PostgresOptions {
            config,
            connections: CONNECTIONS,
            timeout: TIMEOUT,
        })
    }

    /// Where the store is, for people, without user and password: `db1:5432,db2:5432/shop`.
    pub fn place(&self) -> String {
        let ports = self.config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        let hosts = self.config.get_hosts().iter().enumerate().map(|(at, host)| match host {
            Host::Tcp(name) => format!("{name}:{}", port(at)),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        });
        let hosts: Vec<String> = hosts.collect();
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or_default();
        format!("{}/{database}", hosts.join(","))
    }
}
