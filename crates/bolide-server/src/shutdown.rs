//! Shutdown: the signals that start it, or the end of standard input, and the steps, which end within seconds whatever requests do.

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::host::Host;
use crate::server::Failure;

/// How long running requests may take to end.
const REQUESTS: Duration = Duration::from_secs(3);
/// How long the store may take to make everything durable.
const STORE: Duration = Duration::from_secs(10);

/// Notifies all tasks that the server stops.
#[derive(Debug, Clone)]
pub struct Shutdown {
    sender: watch::Sender<bool>,
}

impl Default for Shutdown {
    fn default() -> Shutdown {
        Shutdown {
            sender: watch::Sender::new(false),
        }
    }
}

impl Shutdown {
    /// Starts the shutdown.
    pub fn begin(&self) {
        self.sender.send_replace(true);
    }

    /// Resolves when the server stops.
    pub fn begun(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut receiver = self.sender.subscribe();
        async move {
            // The sender lives as long as any receiver.
            let _ = receiver.wait_for(|begun| *begun).await;
        }
    }
}

/// Waits for connections, up to a timeout, then closes the store. A snapshot that is being taken or restored is completed.
///
/// # Errors
/// If the store cannot make everything durable.
pub async fn finish(mut serving: JoinHandle<()>, host: &Host) -> Result<(), Failure> {
    let Ok(account) = tokio::time::timeout(STORE, host.account()).await else {
        return Err(Failure::new(
            "a snapshot is not restored in time; the next start completes that",
        ));
    };
    // It was lost, and the log has the reason; the next start finds the store.
    let Some(account) = account else { return Ok(()) };
    // Queries could use all of that time; clients can repeat them.
    let (served, ()) = tokio::join!(tokio::time::timeout(REQUESTS, &mut serving), account.end_queries());
    if served.is_err() {
        tracing::warn!("some requests did not end in time and are cut off");
        serving.abort();
    }
    match tokio::time::timeout(STORE, account.close()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Failure::new(format!("cannot close the store: {error}"))),
        Err(_) => Err(Failure::new(
            "cannot close the store in time; the next start recovers it",
        )),
    }
}

/// What stops the process: signals, and the end of standard input if that was asked for.
pub struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    stdin_end: Shutdown,
}

impl Signals {
    /// Handles SIGTERM and SIGINT, and reads standard input to its end if `stop_with_stdin`.
    ///
    /// # Errors
    /// If the system does not allow it.
    #[cfg(unix)]
    pub fn install(stop_with_stdin: bool) -> Result<Signals, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let install = |kind| signal(kind).map_err(|error| Failure::new(format!("cannot watch for signals: {error}")));
        Ok(Signals {
            terminate: install(SignalKind::terminate())?,
            interrupt: install(SignalKind::interrupt())?,
            stdin_end: stdin_end(stop_with_stdin)?,
        })
    }

    /// Handles Ctrl-C, and reads standard input to its end if `stop_with_stdin`.
    #[cfg(not(unix))]
    pub fn install(stop_with_stdin: bool) -> Result<Signals, Failure> {
        Ok(Signals {
            stdin_end: stdin_end(stop_with_stdin)?,
        })
    }

    /// Resolves when the process must stop.
    #[cfg(unix)]
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            () = self.stdin_end.begun() => {}
        }
    }

    /// Resolves when the process must stop.
    #[cfg(not(unix))]
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = self.stdin_end.begun() => {}
        }
    }
}

/// Begins when standard input has ended; never unless `watch`.
fn stdin_end(watch: bool) -> Result<Shutdown, Failure> {
    let end = Shutdown::default();
    if watch {
        let ended = end.clone();
        // A thread of its own, because a blocked read of a pipe cannot be cancelled.
        let reader = std::thread::Builder::new().name("stdin".to_owned());
        let started = reader.spawn(move || {
            // What comes has no meaning; an error is an end, too.
            let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            tracing::info!("standard input has ended");
            ended.begin();
        });
        started.map_err(|error| Failure::new(format!("cannot watch standard input: {error}")))?;
    }
    Ok(end)
}
