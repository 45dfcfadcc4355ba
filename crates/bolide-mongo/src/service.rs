//! The front end, as a server uses it.

use std::sync::Arc;
use std::time::Duration;

use bolide_core::Account;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::client::Peer;
use crate::connection::{self, Activity, Timeouts};
use crate::state::{MongoOptions, MongoState};

/// Time between searches for sessions and cursors that were unused for too long.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(60);

/// An account with a front end in MongoDB's protocol.
#[derive(Clone)]
pub struct MongoService {
    state: Arc<MongoState>,
}

impl MongoService {
    /// A front end for `account`.
    pub fn new(account: Arc<Account>, options: MongoOptions) -> MongoService {
        MongoService {
            state: Arc::new(MongoState::new(account, options)),
        }
    }

    /// Serves a connection to its end.
    pub async fn serve<S>(&self, stream: S, peer: Peer, timeouts: Timeouts, activity: Arc<dyn Activity>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send,
    {
        connection::serve(self.state.clone(), stream, peer, timeouts, activity).await;
    }

    /// Work in the background until the server stops: prepares authentication, and ends sessions and cursors that were unused for too long.
    pub async fn run_background(&self) {
        self.state.options.credentials.prepare().await;
        loop {
            tokio::select! {
                () = self.state.monotonic().sleep(EXPIRY_INTERVAL) => self.state.expire(),
                () = self.state.stopped() => return,
            }
        }
    }

    /// Connections that wait for their clients are closed, and new commands are refused.
    pub fn stop(&self) {
        self.state.stop();
    }
}
