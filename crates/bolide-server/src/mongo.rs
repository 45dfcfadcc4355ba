//! The MongoDB listener: its options, and how its connections are served.
//!
//! TLS is told apart by the first bytes. A message begins with its length, so the first byte alone does not tell: 0x16 is the low byte of some
//! lengths. The first three of a TLS handshake would be a message of more than 64 KiB, which nobody may send before authentication.

pub mod commands;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bolide_core::{Account, RecentRequests, TtlMode};
use bolide_model::account_key::AccountKey;
use bolide_mongo::authentication::Credentials;
use bolide_mongo::client::Peer;
use bolide_mongo::connection::{Activity as MongoActivity, Timeouts};
use bolide_mongo::service::MongoService;
use bolide_mongo::state::{Host, MongoOptions};
use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::connection::Shared;
use crate::options::{Settings, is_loopback};
use crate::server::Failure;
use crate::shutdown::Shutdown;
use crate::timeouts::Activity;
use crate::{machine, ready_file};

/// The user of the emulator, whom every server has.
pub const USER: &str = "localhost";
/// Maximum length of the name of a replica set.
const SET_NAME_BYTES: usize = 64;
/// Bytes that tell TLS from a message.
const HEAD_BYTES: usize = 3;
/// The first two bytes of a TLS handshake: its kind, and the major version. The minor version follows, at least 1.
const TLS_HANDSHAKE: [u8; 2] = [0x16, 0x03];
/// Pause between checks of a connection whose first bytes arrive one by one.
const TRICKLE: Duration = Duration::from_millis(50);

/// The options of the MongoDB listener.
#[derive(Debug, Clone, Args)]
pub struct MongoListenerOptions {
    /// Port for MongoDB's drivers, with and without TLS; 0 picks a free one.
    #[arg(long, env = "BOLIDE_MONGO_PORT", default_value_t = 10255, value_name = "PORT")]
    pub mongo_port: u16,
    /// Do not listen for MongoDB's drivers.
    #[arg(long, env = "BOLIDE_NO_MONGO", value_parser = BoolishValueParser::new())]
    pub no_mongo: bool,
    /// Name of the replica set, as in `replicaSet=globaldb`.
    #[arg(long, env = "BOLIDE_MONGO_SET_NAME", default_value = "globaldb", value_name = "NAME")]
    pub mongo_set_name: String,
    /// The address for MongoDB's drivers, which go on with it after they have connected. By default the local address of their connection, which is
    /// wrong behind a proxy or a mapped port.
    #[arg(long, env = "BOLIDE_MONGO_ADVERTISE", value_name = "HOST:PORT")]
    pub mongo_advertise: Option<String>,
    /// Another name of the user, besides `localhost`, such as the name of an account in connection strings. The passwords are the account keys.
    #[arg(long, env = "BOLIDE_MONGO_USER", value_name = "NAME")]
    pub mongo_user: Option<String>,
    /// Let MongoDB's drivers do everything without authentication: only on loopback addresses, and with the well-known key.
    #[arg(long, env = "BOLIDE_MONGO_NO_AUTH", value_parser = BoolishValueParser::new())]
    pub mongo_no_auth: bool,
    /// Which fields may have a TTL index. Changing it later does not change when documents end that are stored already.
    #[arg(long, env = "BOLIDE_MONGO_TTL_MODE", value_enum, default_value_t = TtlModeOption::Mongodb, value_name = "MODE")]
    pub mongo_ttl_mode: TtlModeOption,
}

/// Which fields of a collection may have a TTL index (mongo.md §18.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TtlModeOption {
    /// Any fields, whose dates count as in MongoDB, and `_ts`.
    Mongodb,
    /// One field, `_ts` or another, in which numbers count as milliseconds since 1970, too.
    CosmosCustomPath,
    /// Only `_ts`.
    CosmosTsOnly,
}

impl From<TtlModeOption> for TtlMode {
    fn from(option: TtlModeOption) -> TtlMode {
        match option {
            TtlModeOption::Mongodb => TtlMode::Mongodb,
            TtlModeOption::CosmosCustomPath => TtlMode::CosmosCustomPath,
            TtlModeOption::CosmosTsOnly => TtlMode::CosmosTsOnly,
        }
    }
}

impl MongoListenerOptions {
    /// Validates what the parser cannot; `host` is the address to listen on, `is_key_public` whether one of the keys is the well-known one.
    ///
    /// # Errors
    /// A malformed name or address; no authentication where others could use it.
    pub fn validate(&self, host: &str, is_key_public: bool) -> Result<(), Failure> {
        let name = &self.mongo_set_name;
        if name.is_empty() || name.len() > SET_NAME_BYTES || name.contains(['/', ',', '&', '?', '\0']) {
            let text = format!("--mongo-set-name: expected a name such as globaldb. value=`{name}`");
            return Err(Failure::new(text));
        }
        if let Some(address) = &self.mongo_advertise {
            let is_address = address.rsplit_once(':').is_some_and(|(host, port)| {
                !host.is_empty() && !host.contains(['/', '@', ',']) && port.parse::<u16>().is_ok_and(|port| port != 0)
            });
            if !is_address {
                let text = format!(
                    "--mongo-advertise: expected a host and a port, such as db.example:10255. value=`{address}`"
                );
                return Err(Failure::new(text));
            }
        }
        if self.mongo_user.as_deref() == Some("") {
            return Err(Failure::new("--mongo-user: expected a name"));
        }
        if self.mongo_no_auth && !(is_loopback(host) && is_key_public) {
            return Err(Failure::new(
                "--mongo-no-auth lets everybody who reaches the port do everything, so it is allowed only on loopback addresses and with the \
                 emulator's well-known key",
            ));
        }
        Ok(())
    }

    /// The names of the user.
    fn users(&self) -> impl Iterator<Item = String> {
        let other = self.mongo_user.clone().filter(|name| name != USER);
        [USER.to_owned()].into_iter().chain(other)
    }
}

/// The front end for `account`, with the options of a server that listens on `port`.
pub fn service(
    settings: &Settings,
    account: Arc<Account>,
    port: u16,
    max_connections: usize,
    recent_requests: Arc<RecentRequests>,
) -> MongoService {
    let options = &settings.options.mongo;
    let keys = settings.keys.keys.iter();
    let keys = keys
        .map(|(access, key): (_, &AccountKey)| (access, key.clone()))
        .collect();
    let mib = machine::memory_bytes().unwrap_or_default() / (1024 * 1024);
    let options = MongoOptions {
        credentials: Credentials::new(options.users(), keys),
        requires_authentication: !options.mongo_no_auth,
        set_name: options.mongo_set_name.clone(),
        advertised: options.mongo_advertise.clone(),
        faults_enabled: settings.options.enable_faults,
        max_connections,
        host: Host {
            name: machine::names().into_iter().next().unwrap_or_default(),
            memory_mib: i64::try_from(mib).unwrap_or(i64::MAX),
            port,
        },
        recent_requests,
    };
    MongoService::new(account, options)
}

/// The URL of the listener, without user and password.
pub fn url(host: &str, port: u16) -> String {
    format!("mongodb://{}", ready_file::endpoint(host, port))
}

/// Serves a connection to its end, and records its state in `activity`.
pub async fn serve(
    stream: TcpStream,
    remote: SocketAddr,
    shared: Arc<Shared>,
    shutdown: Shutdown,
    activity: Arc<Activity>,
) {
    let Ok(local) = stream.local_addr() else { return };
    let _ = stream.set_nodelay(true);
    let limits = shared.limits();
    let timeouts = Timeouts {
        request: limits.request,
        idle: limits.idle,
    };
    let prepared = async {
        // Connections may come while the store is still opened.
        let service = shared.mongo().await;
        let is_tls = is_tls(&stream).await?;
        Some((service, is_tls))
    };
    let prepared = tokio::select! {
        prepared = timeout(limits.request, prepared) => prepared,
        () = shutdown.begun() => return,
    };
    let Ok(Some((service, is_tls))) = prepared else { return };
    let observer = Arc::new(Observer(activity));
    let peer = Peer { local, remote, is_tls };
    if !is_tls {
        return service.serve(stream, peer, timeouts, observer).await;
    }
    let accepted = tokio::select! {
        accepted = timeout(limits.request, shared.tls().accept(stream)) => accepted,
        () = shutdown.begun() => return,
    };
    if let Ok(Ok(stream)) = accepted {
        service.serve(stream, peer, timeouts, observer).await;
    }
}

/// Whether a connection begins with a TLS handshake; `None` if it ends before that is known.
async fn is_tls(stream: &TcpStream) -> Option<bool> {
    let mut head = [0; HEAD_BYTES];
    loop {
        let seen = stream.peek(&mut head).await.ok().filter(|seen| *seen > 0)?;
        if let Some(is_tls) = begins_with_tls(&head[..seen]) {
            return Some(is_tls);
        }
        // Readiness does not help here: the bytes already received keep the stream ready.
        tokio::time::sleep(TRICKLE).await;
    }
}

/// Whether these are the first bytes of a TLS handshake; `None` while that is not known.
fn begins_with_tls(head: &[u8]) -> Option<bool> {
    match head {
        [first, second, minor, ..] => Some([*first, *second] == TLS_HANDSHAKE && *minor != 0),
        head if TLS_HANDSHAKE.starts_with(head) => None,
        _ => Some(false),
    }
}

/// Records the state of a connection, for the choice of the one that is ended when there are too many.
struct Observer(Arc<Activity>);

impl MongoActivity for Observer {
    fn idle(&self) {
        self.0.idle();
    }

    fn reading(&self) {
        self.0.read();
    }

    fn running(&self) {
        self.0.begin();
    }

    fn answering(&self) {
        self.0.answer();
    }

    fn admitted(&self) {
        self.0.admit();
    }
}

#[cfg(test)]
mod tests;
