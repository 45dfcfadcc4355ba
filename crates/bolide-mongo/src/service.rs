//! The front end, as a server uses it.

mod without_connection;

use std::sync::Arc;
use std::time::Duration;

use bolide_core::Account;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};

use crate::client::Peer;
use crate::connection::{self, Activity, Timeouts};
use crate::state::{MongoOptions, MongoState};

pub use without_connection::JsonReply;

/// Time between searches for sessions and cursors that were unused for too long.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);

/// An account with a front end in MongoDB's protocol.
#[derive(Clone)]
pub struct MongoService {
    states: Arc<watch::Sender<Arc<MongoState>>>,
    /// Permits to run commands without a connection.
    turns: Arc<Semaphore>,
}

impl MongoService {
    /// A front end for `account`.
    pub fn new(account: Arc<Account>, options: MongoOptions) -> MongoService {
        MongoService::over(Arc::new(MongoState::new(account, options)))
    }

    fn over(state: Arc<MongoState>) -> MongoService {
        MongoService {
            states: Arc::new(watch::Sender::new(state)),
            turns: Arc::new(Semaphore::new(without_connection::AT_A_TIME)),
        }
    }

    /// Serves a connection to its end.
    pub async fn serve<S>(&self, stream: S, peer: Peer, timeouts: Timeouts, activity: Arc<dyn Activity>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        connection::serve(self.states.subscribe(), stream, peer, timeouts, activity).await;
    }

    /// Work in the background until the server stops: prepares authentication, and ends sessions and cursors that were unused for too long.
    pub async fn run_background(&self) {
        let options = self.state().options.clone();
        options.credentials.prepare().await;
        let mut states = self.states.subscribe();
        loop {
            let state = states.borrow_and_update().clone();
            tokio::select! {
                () = state.monotonic().sleep(EXPIRY_INTERVAL) => state.expire(),
                // Whether there is another state or none, this one is not needed.
                _ = states.changed() => {}
                () = state.stopped(), if !state.is_replaced() => {
                    if state.is_stopping() {
                        return;
                    }
                }
            }
        }
    }

    /// The account's content is about to be replaced: commands that run are ended as far as they can be, and those that come wait for
    /// [`MongoService::replace`].
    pub fn retire(&self) {
        self.state().retire();
    }

    /// Whether no command runs.
    pub fn is_idle(&self) -> bool {
        self.state().operations.is_empty()
    }

    /// Serves another account in the place of the one before. Connections stay open; there are no sessions, transactions and cursors yet.
    pub fn replace(&self, account: Arc<Account>) {
        let before = self.state();
        let next = before.successor(account);
        if before.is_stopping() {
            next.stop();
        }
        self.states.send_replace(Arc::new(next));
        before.clear();
    }

    fn state(&self) -> Arc<MongoState> {
        self.states.borrow().clone()
    }

    /// Connections that wait for their clients are closed, and new commands are refused.
    pub fn stop(&self) {
        self.state().stop();
    }
}
