//! File descriptors: the limit of the process, and how it is divided.
//!
//! Unknown clients can make the server open connections, so connections get only what is left after the store and everything else: a store that
//! cannot open a file cannot serve any request.

/// Number of files that the store keeps open for reading, if there are enough descriptors.
const STORE_FILES: usize = 900;
/// Further descriptors of the store (`LsmOptions::descriptors`), listeners, threads, pipes to script processes, and connections that are about to end.
const OTHERS: usize = 256;
/// Minimum for connections, however few descriptors there are.
const MIN_CONNECTIONS: usize = 8;

/// The division of descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptors {
    /// Connections at the same time.
    pub connections: usize,
    /// Files of the store that are open for reading at the same time.
    pub store_files: usize,
}

impl Descriptors {
    /// Raises the process's limit as far as possible, and divides it.
    pub fn prepare(asked_connections: usize) -> Descriptors {
        let Some(limit) = raise_limit() else {
            return Descriptors {
                connections: asked_connections,
                store_files: STORE_FILES,
            };
        };
        let descriptors = Descriptors::divide(limit, asked_connections);
        if descriptors.connections < asked_connections {
            tracing::warn!(
                limit,
                connections = descriptors.connections,
                "the limit on open files (ulimit -n) allows fewer connections than --max-connections"
            );
        }
        descriptors
    }

    fn divide(limit: usize, asked_connections: usize) -> Descriptors {
        let store_files = (limit / 4).clamp(32, STORE_FILES);
        let others = OTHERS.min(limit / 4);
        let left = limit.saturating_sub(store_files + others);
        Descriptors {
            connections: asked_connections.min(left.max(MIN_CONNECTIONS)),
            store_files,
        }
    }
}

#[cfg(unix)]
fn raise_limit() -> Option<usize> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    // `None` means no limit.
    current.map(|current| usize::try_from(current).unwrap_or(usize::MAX))
}

#[cfg(not(unix))]
fn raise_limit() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests;
