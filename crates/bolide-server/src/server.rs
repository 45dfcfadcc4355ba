//! From options to a running server, until it stops.

use std::borrow::Cow;
use std::fmt;
use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use bolide_core::Account;
use bolide_cosmos::forwarding::Peers;
use bolide_cosmos::{CosmosOptions, Emulation};
use bolide_model::time::{Clock, Monotonic};
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

use crate::clock::ServerClock;
use crate::connection::{Door, Frames, Shared};
use crate::descriptors::Descriptors;
use crate::emulator::ports::SidePorts;
use crate::host::Host;
use crate::listeners::{self, Listeners, PortOption, Protocols};
use crate::options::{ServeOptions, Settings};
use crate::peers::PeerConnections;
use crate::shutdown::{self, Shutdown};
use crate::tls::Certificate;
use crate::{banner, demo, emulator, files, mongo, own_endpoint, ready_file};

/// Lines of the log that may wait to be written; further lines are lost. Memory for them is allocated at the start.
const LOG_LINES: usize = 4_096;

/// How much longer the answer of another server may take than one of the store.
const PEER_MARGIN: Duration = Duration::from_secs(2);

/// A warning is logged at the start if server time is ahead of the wall clock by more than this. A restart after a crash, or a clock adjustment, leaves less.
pub const TIME_AHEAD_SECONDS: i64 = 60;

/// Why the server does not run, in one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// A failure with its line.
    pub fn new(line: impl Into<String>) -> Failure {
        Failure(line.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Runs until it is stopped.
///
/// # Errors
/// The reason why the server cannot start.
pub fn run(settings: Settings) -> Result<(), Failure> {
    let _log = start_logging(&settings.options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
    let result = runtime.block_on(serve(settings));
    // A request that hangs must not keep the process alive.
    runtime.shutdown_background();
    result
}

// Long: the steps of a start, in their order.
async fn serve(settings: Settings) -> Result<(), Failure> {
    let settings = Arc::new(settings);
    let descriptors = Descriptors::prepare(settings.options.max_connections.max(1));
    settings.keys.warn();
    if let Some(emulator) = &settings.emulator {
        emulator.log_meaningless();
    }
    let mut signals = shutdown::Signals::install(settings.options.stop_with_stdin)?;
    files::survive_size_limit()?;
    let (ports, all) = listen(&settings).await?;
    let certificate = Certificate::find_or_make(&settings.options)?;
    let monotonic = Monotonic::system();
    let shared = Arc::new(Shared::new(
        certificate.acceptor()?,
        Frames {
            direct: !settings.options.no_direct,
            gateway_v2: settings.options.gateway_v2,
        },
        settings.limits(descriptors.connections),
        ServerClock::new(monotonic.clone()),
    ));
    let shutdown = Shutdown::default();
    let serving = tokio::spawn(listeners::serve(all, shared.clone(), shutdown.clone()));

    let host = tokio::select! {
        opened = Host::open(settings.clone(), shared.clone(), monotonic, descriptors.store_files) => opened?,
        () = signals.stop() => return Ok(()),
    };
    if settings.options.is_demo
        && let Some(account) = host.account().await
    {
        demo::fill(&account, &settings).await?;
    }
    let options = cosmos_options(&settings, &certificate, &shared, ports);
    let recent = options.recent_requests.clone();
    let mongo = |account| {
        let port = ports.mongo?;
        Some(mongo::service(
            &settings,
            account,
            port,
            descriptors.connections,
            recent,
        ))
    };
    if let Some(account) = host.account().await {
        account.set_endpoint(own_endpoint::of(&settings, ports)).await;
    }
    host.start(options, mongo).await;
    // Requests are served while this syncs its files; the server is reported as ready after it.
    certificate.keep(&settings.options)?;
    if settings.emulator.is_some() {
        emulator::certificate::write(certificate.text());
    }
    if let Some(path) = &settings.options.ready_file {
        ready_file::write(path, &settings, ports)?;
    }
    banner::print(&settings, ports, host.engine_name());

    signals.stop().await;
    tracing::info!("stopping");
    shutdown.begin();
    shutdown::finish(serving, &host).await
}

/// The ports that the server listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    /// For HTTP and HTTPS.
    pub http: u16,
    /// For MongoDB's drivers.
    pub mongo: Option<u16>,
    /// For health checks, with `--emulator`.
    pub health: Option<u16>,
    /// For the explorer's page, with `--emulator`.
    pub explorer: Option<u16>,
}

/// Listens on all ports; returns them, and the listeners with what they speak.
async fn listen(settings: &Settings) -> Result<(Ports, Vec<(Listeners, Protocols)>), Failure> {
    let (options, host) = (&settings.options, settings.options.host());
    let http = Listeners::bind(host, options.port(), PortOption::Http).await?;
    let mongo = match options.mongo.no_mongo {
        true => None,
        false => Some(Listeners::bind(host, options.mongo.mongo_port, PortOption::Mongo).await?),
    };
    let side_ports = SidePorts::bind(settings.emulator.as_ref(), host).await?;
    let ports = Ports {
        http: http.port(),
        mongo: mongo.as_ref().map(Listeners::port),
        health: side_ports.health(),
        explorer: side_ports.explorer(),
    };
    let mut all = vec![(http, Protocols::Http(Door::DATABASE))];
    all.extend(mongo.map(|listeners| (listeners, Protocols::Mongo)));
    all.extend(side_ports.into_listeners());
    Ok((ports, all))
}

fn cosmos_options(settings: &Settings, certificate: &Certificate, shared: &Shared, ports: Ports) -> CosmosOptions {
    CosmosOptions {
        clock: settings.clock.clone(),
        faults_enabled: settings.options.enable_faults,
        certificate_pem: Some(certificate.pem()),
        names: settings.names(),
        origins: settings.origins.clone(),
        consistency: settings.options.consistency,
        endpoint: settings.endpoint.clone(),
        log_headers: settings.options.log_requests,
        connections: shared.slots().count(),
        has_direct: !settings.options.no_direct,
        has_gateway_v2: settings.options.gateway_v2,
        has_explorer: match &settings.emulator {
            Some(emulator) => emulator.explorer.is_some(),
            None => !settings.options.emulator.no_explorer,
        },
        emulation: settings.emulator.as_ref().map(|emulator| Emulation {
            port: ports.http,
            is_tls: emulator.protocol.is_tls(),
        }),
        snapshots: None,
        peers: peers(settings),
        recent_requests: Arc::default(),
        mongo: None,
    }
}

/// The way to other servers; `None` if no other process can use the store.
fn peers(settings: &Settings) -> Option<Arc<dyn Peers>> {
    let options = &settings.options;
    let is_on = settings.store.is_some() && !options.no_forwarding;
    is_on.then(|| {
        // A little more than the other server waits for the store.
        let timeout = Duration::from_secs(options.store_timeout) + PEER_MARGIN;
        Arc::new(PeerConnections::new(timeout)) as Arc<dyn Peers>
    })
}

/// Warns the operator that nothing expires because the clock was ahead earlier, and server time waits for it (TTL-202).
pub fn warn_of_time_ahead(account: &Account, clock: &Clock) {
    let (server, wall) = (account.server_time(), clock.now());
    let ahead = server.0.saturating_sub(wall.0) / 1000;
    if ahead >= TIME_AHEAD_SECONDS {
        tracing::warn!(
            seconds = ahead,
            "server time is ahead of the wall clock, which was ahead once, and stands still until that has caught up: until then nothing \
             expires, and what is written carries the same _ts. If the wall clock is right, `bolide reset-time` brings the store back to the present"
        );
    }
}

/// Ends the process at once, as a crash does.
pub fn crash() {
    std::process::abort();
}

/// Logs to standard error, from a separate thread: if nobody reads it, lines are lost but no thread waits. Remaining lines are written when the
/// result is dropped, within a short time.
fn start_logging(options: &ServeOptions) -> Result<WorkerGuard, Failure> {
    let filter = options.log();
    let mut directives = with_libraries(filter);
    if options.log_requests {
        directives = format!("{directives},bolide::requests=info").into();
    }
    let filter =
        EnvFilter::try_new(directives).map_err(|error| Failure::new(format!("--log: {error}. value=`{filter}`")))?;
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(LOG_LINES)
        .finish(std::io::stderr());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(std::io::stderr().is_terminal())
        // A line that cannot be written is dropped. By default the logger would report this to the same closed pipe or full disk, which panics in the
        // thread that logged.
        .log_internal_errors(false)
        .init();
    Ok(guard)
}

/// Extends the levels `error` to `info`: libraries also warn about the behaviour of unknown clients, which would flood the log.
fn with_libraries(filter: &str) -> Cow<'_, str> {
    match filter.to_ascii_lowercase().as_str() {
        "warn" | "info" => Cow::Owned(format!("{filter},h2=error,hyper=error,hyper_util=error,rustls=error")),
        _ => Cow::Borrowed(filter),
    }
}
