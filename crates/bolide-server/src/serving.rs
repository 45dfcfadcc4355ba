//! The service that answers HTTP requests, and how another one takes its place while connections stay open.

use std::sync::Arc;
use std::time::Duration;

use bolide_cosmos::CosmosService;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a request waits for the service that takes the place of another one.
const REPLACEMENT: Duration = Duration::from_secs(10);

/// See the module. A request holds a reference to the service, so there are as many as requests.
#[derive(Debug)]
pub struct Serving(watch::Sender<State>);

enum State {
    Starting,
    InUse(Arc<CosmosService>),
    /// Another one is about to take its place.
    Replaced,
    /// There will be none; why.
    Lost(Arc<str>),
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            State::Starting => "Starting",
            State::InUse(_) => "InUse",
            State::Replaced => "Replaced",
            State::Lost(_) => "Lost",
        })
    }
}

/// Why there is no service for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absent {
    /// The store is not open yet.
    Starting,
    /// The account is being replaced; the reason, if that has failed.
    Replaced(Option<Arc<str>>),
}

impl Default for Serving {
    fn default() -> Serving {
        Serving(watch::Sender::new(State::Starting))
    }
}

impl Serving {
    /// The service for a request; waits while it is being replaced.
    ///
    /// # Errors
    /// There is none.
    pub async fn get(&self) -> Result<Arc<CosmosService>, Absent> {
        match &*self.0.borrow() {
            State::InUse(service) => return Ok(service.clone()),
            State::Starting => return Err(Absent::Starting),
            State::Lost(why) => return Err(Absent::Replaced(Some(why.clone()))),
            State::Replaced => {}
        }
        let mut states = self.0.subscribe();
        let waited = timeout(REPLACEMENT, states.wait_for(|state| !matches!(state, State::Replaced)));
        match waited.await.as_ref().map(|state| state.as_deref()) {
            Ok(Ok(State::InUse(service))) => Ok(service.clone()),
            Ok(Ok(State::Lost(why))) => Err(Absent::Replaced(Some(why.clone()))),
            _ => Err(Absent::Replaced(None)),
        }
    }

    /// Whether requests wait for memory.
    pub fn is_memory_short(&self) -> bool {
        match &*self.0.borrow() {
            State::InUse(service) => service.is_memory_short(),
            _ => false,
        }
    }

    /// Requests are answered by `service` from now on.
    pub fn start(&self, service: CosmosService) {
        self.0.send_replace(State::InUse(Arc::new(service)));
    }

    /// Requests wait from now on, until [`Serving::start`]. Returns the service that was in use.
    pub fn suspend(&self) -> Option<Arc<CosmosService>> {
        match self.0.send_replace(State::Replaced) {
            State::InUse(service) => Some(service),
            _ => None,
        }
    }

    /// Requests are refused from now on.
    pub fn lose(&self, why: &str) {
        self.0.send_replace(State::Lost(why.into()));
    }
}
