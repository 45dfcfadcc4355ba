//! The options of `bolide serve`: one definition for the command line, the environment and the help.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bolide_cosmos::{ConsistencyLevel, Endpoint, Names, Origins};
use bolide_model::UnixMillis;
use bolide_model::time::Clock;
use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::connection::Limits;
use crate::keys::{AccountKeys, KeyOptions};
use crate::machine;
use crate::mongo::MongoListenerOptions;
use crate::query::QueryOptions;
use crate::reset_time::ResetTimeOptions;
use crate::server::Failure;
use crate::snapshot_commands::{ResetOptions, SnapshotOptions};

/// The default directory of the store.
const DATA_DIR: &str = "./bolide-data";

/// Memory for requests per open HTTP/2 request: each uses some ten kilobytes that are not counted.
const BYTES_PER_STREAM: usize = 64 * 1024;

/// A document database that speaks Azure Cosmos DB for NoSQL and MongoDB, and expires data exactly.
#[derive(Debug, Parser)]
#[command(name = "bolide", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeOptions,
}

/// The commands of the binary.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve a database (the default command).
    Serve(Box<ServeOptions>),
    /// Run a query against a running server or a data directory, and print the results.
    Query(Box<QueryOptions>),
    /// Keep the content of a running server as it is now, under a name.
    Snapshot(SnapshotOptions),
    /// Replace the content of a running server by a snapshot; everything that was made later is gone.
    Restore(SnapshotOptions),
    /// Remove everything from a running server; its snapshots are kept.
    Reset(ResetOptions),
    /// Copy a store whose server time is far ahead, because the clock was, into a new store with the time of the wall clock. Expired items are not copied.
    ResetTime(ResetTimeOptions),
    /// Run scripts for the server that has started this process.
    #[command(name = crate::script_host::COMMAND, hide = true)]
    ScriptHost,
}

impl Cli {
    /// The command; `serve` if none was given.
    pub fn into_command(self) -> Command {
        self.command.unwrap_or_else(|| Command::Serve(Box::new(self.serve)))
    }
}

/// The options of `serve`.
#[derive(Debug, Clone, Args)]
pub struct ServeOptions {
    /// Directory of the store; created if it does not exist. By default ./bolide-data.
    #[arg(long, env = "BOLIDE_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Keep everything in memory; nothing survives a stop.
    #[arg(long, env = "BOLIDE_MEMORY", value_parser = BoolishValueParser::new())]
    pub memory: bool,
    /// Address or name to listen on. The default listens on IPv4 and IPv6 loopback.
    #[arg(long, env = "BOLIDE_HOST", default_value = "127.0.0.1")]
    pub host: String,
    /// Port for HTTP and HTTPS, distinguished by the first byte of a connection; 0 picks a free one.
    #[arg(long, env = "BOLIDE_PORT", default_value_t = 8081)]
    pub port: u16,
    #[command(flatten)]
    pub mongo: MongoListenerOptions,
    #[command(flatten)]
    pub keys: KeyOptions,
    /// Allow the emulator's well-known key on addresses that others can reach, and answer to names in container networks.
    #[arg(long, env = "BOLIDE_EMULATOR", value_parser = BoolishValueParser::new())]
    pub emulator: bool,
    /// With the well-known key: another name under which the server answers, `*` for all; may be given several times.
    #[arg(
        long = "allow-host",
        env = "BOLIDE_ALLOW_HOST",
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub allowed_hosts: Vec<String>,
    /// Origin of web pages that may use the server, such as `http://localhost:3000`; may be given several times.
    #[arg(
        long = "allow-origin",
        env = "BOLIDE_ALLOW_ORIGIN",
        value_name = "ORIGIN",
        value_delimiter = ','
    )]
    pub allowed_origins: Vec<String>,
    /// The address for clients, such as `https://db.example`, if a proxy hides the server: SDKs send all requests to the address that the server
    /// returns. By default it is the address of the request, with the headers `X-Forwarded-Proto` and `X-Forwarded-Host`.
    #[arg(long, env = "BOLIDE_PUBLIC_ENDPOINT", value_name = "URL")]
    pub public_endpoint: Option<String>,
    /// The account's default consistency, which no request may exceed: Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual.
    #[arg(long, env = "BOLIDE_CONSISTENCY", default_value = "Session", value_name = "LEVEL", value_parser = ConsistencyLevel::parse)]
    pub consistency: ConsistencyLevel,
    /// When a write is acknowledged.
    #[arg(long, env = "BOLIDE_DURABILITY", value_enum, default_value_t = DurabilityOption::Sync)]
    pub durability: DurabilityOption,
    /// Memory for cached blocks of the store, in MiB.
    #[arg(long, env = "BOLIDE_CACHE_MB", default_value_t = 64, value_name = "MIB")]
    pub cache_mb: u64,
    /// Memory for all requests together (bodies, responses, the state of queries and scripts), in MiB. By default a quarter of the memory of the
    /// machine or its container, from 64 to 2048. Definitions of databases and containers may use a quarter of it in addition, and at least 128.
    #[arg(long = "memory-limit", env = "BOLIDE_MEMORY_LIMIT", value_name = "MIB", value_parser = clap::value_parser!(u64).range(16..))]
    pub memory_limit_mb: Option<u64>,
    /// Open a store even if acknowledged writes are missing, and keep the rest.
    #[arg(long, env = "BOLIDE_ACCEPT_DATA_LOSS", value_parser = BoolishValueParser::new())]
    pub accept_data_loss: bool,
    /// Read every table of the store at start, and refuse to start if one was changed on the disk.
    #[arg(long, env = "BOLIDE_VERIFY_ON_START", value_parser = BoolishValueParser::new())]
    pub verify_on_start: bool,
    /// Respond with 429 to requests above a container's throughput.
    #[arg(long, env = "BOLIDE_ENFORCE_THROUGHPUT", value_parser = BoolishValueParser::new())]
    pub enforce_throughput: bool,
    /// Seconds without purging after the clock stepped forward by more than a day; 0 for no pause.
    #[arg(long, env = "BOLIDE_PURGE_HOLD", default_value_t = 600, value_name = "SECONDS")]
    pub purge_hold: u64,
    /// Use a clock that stands still until the admin API moves it; starts at this instant (RFC 3339), or now.
    #[arg(long, env = "BOLIDE_VIRTUAL_CLOCK", num_args = 0..=1, require_equals = true, default_missing_value = "now", value_name = "RFC3339")]
    pub virtual_clock: Option<String>,
    /// Let the admin API inject faults, for tests.
    #[arg(long, env = "BOLIDE_ENABLE_FAULTS", value_parser = BoolishValueParser::new())]
    pub enable_faults: bool,
    /// PEM file with the certificate for HTTPS, with --tls-key; without both, one is generated and stored.
    #[arg(long, env = "BOLIDE_TLS_CERT", requires = "tls_key", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file with the certificate's private key.
    #[arg(long, env = "BOLIDE_TLS_KEY", requires = "tls_cert", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// File to write endpoints and process id to, as JSON, once the server is ready.
    #[arg(long, env = "BOLIDE_READY_FILE", value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// What to log to standard error: a level, or directives such as `bolide_core=debug,warn`.
    #[arg(long, env = "BOLIDE_LOG", default_value = "warn", value_name = "FILTER")]
    pub log: String,
    /// Log every request with its headers and those of its response, for debugging clients; keys, tokens and bodies are left out.
    #[arg(long, env = "BOLIDE_LOG_REQUESTS", value_parser = BoolishValueParser::new())]
    pub log_requests: bool,
    /// Maximum number of connections. If there are more, connections that have shown no key or were idle for longest are ended.
    #[arg(long, env = "BOLIDE_MAX_CONNECTIONS", default_value_t = 4096, value_name = "N")]
    pub max_connections: usize,
    /// Seconds a client may take to send a request's head, or the next part of its body.
    #[arg(long, env = "BOLIDE_REQUEST_TIMEOUT", default_value_t = 20, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub request_timeout: u64,
    /// Seconds a connection may be idle between requests.
    #[arg(long, env = "BOLIDE_IDLE_TIMEOUT", default_value_t = 600, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub idle_timeout: u64,
}

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DurabilityOption {
    /// After it is on the disk: survives power loss.
    Sync,
    /// At once; it is on the disk within 10 ms.
    Interval,
    /// At once; the operating system chooses when to write it.
    Buffered,
}

/// Validated options.
#[derive(Debug)]
pub struct Settings {
    /// The options as given.
    pub options: ServeOptions,
    /// The keys and their rights.
    pub keys: AccountKeys,
    /// Origins of web pages that may send requests.
    pub origins: Origins,
    /// The address that clients are told to use.
    pub endpoint: Option<Endpoint>,
    /// The clock to run on.
    pub clock: Arc<Clock>,
}

impl Settings {
    /// The names under which the server answers.
    pub fn names(&self) -> Names {
        let allowed = &self.options.allowed_hosts;
        if !self.keys.is_public || allowed.iter().any(|name| name == "*") {
            return Names::All;
        }
        let mut names = machine::names();
        names.extend(allowed.iter().cloned());
        Names::Listed {
            names,
            emulator: self.options.emulator,
        }
    }

    /// Memory for all requests together, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let bytes = match self.options.memory_limit_mb {
            Some(mib) => mib.saturating_mul(1024 * 1024),
            None => machine::request_memory_bytes(),
        };
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// The limits for clients, with this maximum number of connections.
    pub fn limits(&self, connections: usize) -> Limits {
        Limits {
            connections,
            streams: self.memory_bytes() / BYTES_PER_STREAM,
            request: Duration::from_secs(self.options.request_timeout),
            idle: Duration::from_secs(self.options.idle_timeout),
        }
    }
}

impl ServeOptions {
    /// The directory of the store, unless everything is kept in memory.
    pub fn data_dir(&self) -> &Path {
        self.data_dir.as_deref().unwrap_or(Path::new(DATA_DIR))
    }

    /// Validates what the parser cannot.
    ///
    /// # Errors
    /// Malformed keys or instants, a host that others can reach with the well-known key, and options that contradict each other.
    pub fn validate(self: Box<Self>) -> Result<Settings, Failure> {
        if let Some(dir) = self.data_dir.as_deref().filter(|_| self.memory) {
            return Err(Failure::new(format!(
                "--memory keeps nothing on the disk, and --data-dir (or BOLIDE_DATA_DIR) names a directory: leave one of them out. value=`{}`",
                dir.display()
            )));
        }
        let keys = self.keys.read()?;
        if keys.is_public && !self.emulator && !is_loopback(&self.host) {
            return Err(Failure::new(format!(
                "host {} can be reached by others, and everybody knows the emulator's well-known key: pass a key of your own with \
                 --key-file, --key or BOLIDE_KEY, for example the output of `openssl rand -base64 64 | tr -d '\\n'`, or listen on \
                 127.0.0.1, or pass --emulator if everybody on that network may do everything",
                self.host
            )));
        }
        self.mongo.validate(&self.host, keys.is_public)?;
        let origins = Origins::parse(&self.allowed_origins);
        let origins = origins.map_err(|origin| {
            Failure::new(format!(
                "--allow-origin: expected an origin such as http://localhost:3000. value=`{origin}`"
            ))
        })?;
        let endpoint = self.public_endpoint.as_deref().map(Endpoint::parse).transpose();
        let endpoint = endpoint.map_err(|url| {
            Failure::new(format!(
                "--public-endpoint: expected a scheme, a host and maybe a port, such as https://db.example. value=`{url}`"
            ))
        })?;
        let clock = self.virtual_clock.as_deref().map_or(Ok(Clock::System), virtual_clock)?;
        Ok(Settings {
            keys,
            origins,
            endpoint,
            clock: Arc::new(clock),
            options: *self,
        })
    }
}

/// Whether a host can be reached only from this machine.
pub fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn virtual_clock(start: &str) -> Result<Clock, Failure> {
    if start == "now" {
        return Ok(Clock::virtual_at(bolide_model::time::wall_clock()));
    }
    let start = OffsetDateTime::parse(start, &Rfc3339).map_err(|_| {
        Failure::new(format!(
            "--virtual-clock: expected an instant such as 2026-01-31T12:00:00Z. value=`{start}`"
        ))
    })?;
    let millis = start.unix_timestamp_nanos().div_euclid(1_000_000);
    Ok(Clock::virtual_at(UnixMillis(i64::try_from(millis).unwrap_or(i64::MAX))))
}

#[cfg(test)]
mod tests;
