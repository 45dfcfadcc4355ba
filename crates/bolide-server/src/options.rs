//! The options of `bolide serve`: one definition for the command line, the environment and the help.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bolide_cosmos::{ConsistencyLevel, Endpoint, Names, Origins};
use bolide_model::UnixMillis;
use bolide_model::time::Clock;
use bolide_storage_postgres::PostgresOptions;
use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::connection::Limits;
use crate::demo::DemoOptions;
use crate::doctor::DoctorOptions;
use crate::emulator::arguments::EmulatorOptions;
use crate::emulator::settings::Emulator;
use crate::emulator::variables::Variables;
use crate::health::HealthOptions;
use crate::keys::{AccountKeys, KeyOptions};
use crate::listeners::ALL_ADDRESSES;
use crate::mongo::MongoListenerOptions;
use crate::nodes::NodesOptions;
use crate::postgres::InitOptions;
use crate::query::QueryOptions;
use crate::reset_time::ResetTimeOptions;
use crate::server::Failure;
use crate::snapshot_commands::{ResetOptions, SnapshotOptions};
use crate::tls::TlsOptions;
use crate::transfer::{CopyArguments, ExportArguments, ImportArguments};
use crate::trust::TrustOptions;
use crate::unseal::UnsealOptions;
use crate::usage::{CompletionsOptions, ManOptions};
use crate::{machine, postgres};

/// The default directory of the store.
const DATA_DIR: &str = "./bolide-data";
/// The default address, and the default port.
const HOST: &str = "127.0.0.1";
const PORT: u16 = 8081;
/// What is logged by default.
const LOG: &str = "warn";

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
    /// Write the items of a file (JSON lines, a JSON array, CSV) to a container.
    Import(Box<ImportArguments>),
    /// Write the items of a container to a file (JSON lines, a JSON array, CSV).
    Export(Box<ExportArguments>),
    /// Copy databases and containers, with their settings and items, to another server; or move a whole store, while it is in use, to PostgreSQL or to a
    /// data directory.
    Copy(Box<CopyArguments>),
    /// Make a store in a PostgreSQL or Citus database, for `serve --store`. Leaves a store that is there as it is.
    Init(InitOptions),
    /// Keep the content of a running server as it is now, under a name.
    Snapshot(SnapshotOptions),
    /// Replace the content of a running server by a snapshot; everything that was made later is gone.
    Restore(SnapshotOptions),
    /// Let a store that `copy` has moved elsewhere be written again.
    Unseal(UnsealOptions),
    /// Remove everything from a running server; its snapshots are kept.
    Reset(ResetOptions),
    /// Copy a store whose server time is far ahead, because the clock was, into a new store with the time of the wall clock. Expired items are not copied.
    ResetTime(ResetTimeOptions),
    /// Show the servers that use the store of a running server: who is alive, how far behind, how certain of the time, and what it looks after.
    Nodes(NodesOptions),
    /// Ask a server whether it is ready: status 0 if it is, else 1. For health checks of containers.
    Health(HealthOptions),
    /// Serve a sample database in memory, in which items expire within seconds and minutes. All options of `serve` work, except those of the disk.
    Demo(Box<DemoOptions>),
    /// Explain why clients do not connect: checks the server, its key and certificate, proxies, ports and limits. Exit status 0 if all is well.
    Doctor(DoctorOptions),
    /// Make this machine's clients trust the server's certificate, for HTTPS without a switch in any SDK.
    Trust(TrustOptions),
    /// Print completions for a shell.
    Completions(CompletionsOptions),
    /// Print the man page, or write those of all commands into a directory.
    Man(ManOptions),
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
    /// Keep everything in a database of PostgreSQL 15 or newer, or Citus, such as `postgres://user:password@host/database`. The store is made
    /// if it is missing. A directory that is named has only the certificate then.
    #[arg(long, env = "BOLIDE_STORE", value_name = "URL")]
    pub store: Option<String>,
    /// With `sslmode=require` in --store: a PEM file with the authorities that have signed the certificates of its servers. By default those that the system
    /// trusts.
    #[arg(long, env = "BOLIDE_STORE_CA", value_name = "FILE")]
    pub store_ca: Option<PathBuf>,
    /// Seconds that a server of --store may take for a statement, or for a connection.
    #[arg(long, env = "BOLIDE_STORE_TIMEOUT", default_value_t = 10, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub store_timeout: u64,
    /// With --store: name or address of this server for the other servers, which send it writes over HTTP. By default that of its endpoint for clients.
    #[arg(long, env = "BOLIDE_PEER_HOST", value_name = "HOST")]
    pub peer_host: Option<String>,
    /// With --store: commit all writes here, also those of partitions that other servers write at the same time. By default these are sent to one of them.
    #[arg(long, env = "BOLIDE_NO_FORWARDING", value_parser = BoolishValueParser::new())]
    pub no_forwarding: bool,
    /// Address or name to listen on; `*` for all addresses, IPv4 and IPv6. By default 127.0.0.1, which means IPv4 and IPv6 loopback.
    #[arg(long, env = "BOLIDE_HOST")]
    pub host: Option<String>,
    /// Port for HTTP and HTTPS, distinguished by the first byte of a connection; 8081 by default, 0 picks a free one.
    #[arg(long, env = "BOLIDE_PORT")]
    pub port: Option<u16>,
    #[command(flatten)]
    pub mongo: MongoListenerOptions,
    #[command(flatten)]
    pub keys: KeyOptions,
    #[command(flatten)]
    pub emulator: EmulatorOptions,
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
    /// The host of that address, if only the host differs from that of the request; a name or an IP address, without a port.
    #[arg(
        long,
        env = "BOLIDE_ADVERTISE_HOST",
        value_name = "HOST",
        conflicts_with = "public_endpoint"
    )]
    pub advertise_host: Option<String>,
    /// The account's default consistency, which no request may exceed: Strong, BoundedStaleness, Session, ConsistentPrefix or Eventual.
    #[arg(long, env = "BOLIDE_CONSISTENCY", default_value = "Session", value_name = "LEVEL", value_parser = ConsistencyLevel::parse)]
    pub consistency: ConsistencyLevel,
    /// When a write is acknowledged.
    #[arg(long, env = "BOLIDE_DURABILITY", value_enum, default_value_t = DurabilityOption::Sync)]
    pub durability: DurabilityOption,
    /// Memory for cached blocks of the store, or with `--store` for cached rows, in MiB; it is filled as they are read. By default an eighth of the memory of
    /// the machine or its container, from 64 to 2048.
    #[arg(long, env = "BOLIDE_CACHE_MB", value_name = "MIB")]
    pub cache_mb: Option<u64>,
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
    /// Refuse clients in direct mode, the default of the .NET and Java SDKs: tell them to use gateway mode, and take no frames on the port of HTTPS.
    #[arg(long, env = "BOLIDE_NO_DIRECT", value_parser = BoolishValueParser::new())]
    pub no_direct: bool,
    /// Tell clients of Gateway 2.0 (the thin client) to send frames over HTTP/2. .NET clients in gateway mode use it as soon as they are told.
    #[arg(long, env = "BOLIDE_GATEWAY_V2", value_parser = BoolishValueParser::new())]
    pub gateway_v2: bool,
    /// Let the admin API inject faults, and queries say how they use indexes, for tests.
    #[arg(long, env = "BOLIDE_ENABLE_FAULTS", value_parser = BoolishValueParser::new())]
    pub enable_faults: bool,
    #[command(flatten)]
    pub tls: TlsOptions,
    /// File to write endpoints and process id to, as JSON, once the server is ready.
    #[arg(long, env = "BOLIDE_READY_FILE", value_name = "FILE")]
    pub ready_file: Option<PathBuf>,
    /// Stop when standard input ends. A program that starts the server keeps the other end of the pipe, so the server ends with it even if it is killed.
    #[arg(long, env = "BOLIDE_STOP_WITH_STDIN", value_parser = BoolishValueParser::new())]
    pub stop_with_stdin: bool,
    /// What to log to standard error: a level, or directives such as `bolide_core=debug,warn`. By default `warn`.
    #[arg(long, env = "BOLIDE_LOG", value_name = "FILTER")]
    pub log: Option<String>,
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
    /// Whether the server begins with the sample database.
    #[arg(skip)]
    pub is_demo: bool,
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
    /// Set with `--emulator`.
    pub emulator: Option<Emulator>,
    /// Set with `--store`.
    pub store: Option<PostgresOptions>,
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
        // Clients are told to use this one.
        names.extend(self.options.advertise_host.clone());
        Names::Listed {
            names,
            emulator: self.emulator.is_some(),
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

    /// Whether anything is kept in the directory. With a store elsewhere that is the certificate, if a directory is named.
    pub fn has_directory(&self) -> bool {
        !self.memory && (self.store.is_none() || self.data_dir.is_some())
    }

    /// Memory for what is cached of the store.
    pub fn cache_bytes(&self) -> u64 {
        match self.cache_mb {
            Some(mib) => mib.saturating_mul(1024 * 1024),
            None => machine::cache_bytes(),
        }
    }

    /// The address or name to listen on.
    pub fn host(&self) -> &str {
        let default = if self.emulator.is_on { ALL_ADDRESSES } else { HOST };
        self.host.as_deref().unwrap_or(default)
    }

    /// The port for HTTP and HTTPS; 0 for any.
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(PORT)
    }

    /// What is logged.
    pub fn log(&self) -> &str {
        self.log.as_deref().unwrap_or(LOG)
    }

    /// Validates what the parser cannot.
    ///
    /// # Errors
    /// Malformed keys or instants, a host that others can reach with the well-known key, and options that contradict each other.
    pub fn validate(self: Box<Self>) -> Result<Settings, Failure> {
        self.validate_with(Variables::new(&|name| std::env::var_os(name)))
    }

    /// As [`ServeOptions::validate`]; with `--emulator`, these are the variables of the official emulators.
    fn validate_with(mut self: Box<Self>, variables: Variables<'_>) -> Result<Settings, Failure> {
        if let Some(dir) = self.data_dir.as_deref().filter(|_| self.memory) {
            return Err(Failure::new(format!(
                "--memory keeps nothing on the disk, and --data-dir (or BOLIDE_DATA_DIR) names a directory: leave one of them out. value=`{}`",
                dir.display()
            )));
        }
        if self.memory && self.store.is_some() {
            return Err(Failure::new(
                "--memory keeps nothing, and --store (or BOLIDE_STORE) names a database: leave one of them out",
            ));
        }
        let store = postgres::options_of(&self)?;
        let emulator = Emulator::complete(&mut self, variables)?;
        let keys = self.keys.read()?;
        if keys.is_public && emulator.is_none() && !is_loopback(self.host()) {
            return Err(Failure::new(format!(
                "host {} can be reached by others, and everybody knows the emulator's well-known key: pass a key of your own with \
                 --key-file, --key or BOLIDE_KEY, for example the output of `openssl rand -base64 64 | tr -d '\\n'`, or listen on \
                 127.0.0.1, or pass --emulator if everybody on that network may do everything",
                self.host()
            )));
        }
        self.mongo.validate(self.host(), keys.is_public)?;
        self.tls.validate()?;
        let origins = Origins::parse(&self.allowed_origins);
        let origins = origins.map_err(|origin| {
            Failure::new(format!(
                "--allow-origin: expected an origin such as http://localhost:3000. value=`{origin}`"
            ))
        })?;
        let endpoint = self.endpoint()?;
        let clock = self.virtual_clock.as_deref().map_or(Ok(Clock::System), virtual_clock)?;
        Ok(Settings {
            keys,
            origins,
            endpoint,
            clock: Arc::new(clock),
            emulator,
            store,
            options: *self,
        })
    }

    /// The address for clients, or its host.
    fn endpoint(&self) -> Result<Option<Endpoint>, Failure> {
        if let Some(host) = &self.advertise_host {
            let endpoint = Endpoint::of_host(host).map_err(|host| {
                Failure::new(format!(
                    "--advertise-host: expected a name or an IP address, without scheme and port. value=`{host}`"
                ))
            });
            return endpoint.map(Some);
        }
        let endpoint = self.public_endpoint.as_deref().map(Endpoint::parse).transpose();
        endpoint.map_err(|url| {
            Failure::new(format!(
                "--public-endpoint: expected a scheme, a host and maybe a port, such as https://db.example. value=`{url}`"
            ))
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
