//! One other server, as it has answered so far.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bolide_core::NodeId;
use http::{HeaderValue, Method, Request, Uri, header};
use parking_lot::Mutex;

use super::connection::Connection;
use super::frame::Sent;
use super::mark::{MARK, Opening};
use super::{Forwarding, Outcome, PATH, PROTOCOL, SendError};

/// How long a server may take to accept a connection and to show that it has the key.
const OPENING: Duration = Duration::from_millis(500);
/// How long nothing is sent to a server after it has failed; twice as long after each further failure.
const PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// See the module.
pub(super) struct Destination {
    pub node: NodeId,
    pub endpoint: String,
    state: Mutex<State>,
}

struct State {
    connection: Option<Arc<Connection>>,
    is_opening: bool,
    paused_until: Option<Instant>,
    pause: Duration,
}

/// Opens a connection. Nobody else does meanwhile.
struct Opener<'d>(&'d Destination);

impl Drop for Opener<'_> {
    fn drop(&mut self) {
        self.0.state.lock().is_opening = false;
    }
}

/// What there is to send a write by.
enum Way<'d> {
    Connection(Arc<Connection>),
    ToOpen(Opener<'d>),
    /// The server has failed of late, or a connection is being opened.
    None,
}

impl Destination {
    pub fn new(node: NodeId, endpoint: String) -> Destination {
        Destination {
            node,
            endpoint,
            state: Mutex::new(State {
                connection: None,
                is_opening: false,
                paused_until: None,
                pause: PAUSE,
            }),
        }
    }

    /// Sends a request, unless the server has failed of late, and waits for the response.
    pub async fn carry_out(&self, forwarding: &Forwarding, sent: Sent<'_>) -> Outcome {
        let connection = match self.way(forwarding.clock.now()) {
            Way::Connection(connection) => connection,
            Way::ToOpen(_opener) => match self.open(forwarding).await {
                Ok(connection) => connection,
                Err(why) => {
                    self.failed(forwarding, None, &why);
                    return Outcome::NotSent;
                }
            },
            // Those who come while one is opened do not wait.
            Way::None => return Outcome::NotSent,
        };
        match connection.send(sent).await {
            Ok(response) => {
                self.state.lock().pause = PAUSE;
                Outcome::Answered(response)
            }
            Err(SendError::NotSent(_)) => Outcome::NotSent,
            Err(SendError::Unsendable) => Outcome::Unknown,
            Err(SendError::NoResponse(why)) => {
                self.failed(forwarding, Some(&connection), &why);
                Outcome::Unknown
            }
        }
    }

    fn way(&self, now: Instant) -> Way<'_> {
        let mut state = self.state.lock();
        if state.is_opening || state.paused_until.is_some_and(|until| now < until) {
            return Way::None;
        }
        match state.connection.as_ref().filter(|connection| connection.is_open()) {
            Some(connection) => Way::Connection(connection.clone()),
            None => {
                state.is_opening = true;
                Way::ToOpen(Opener(self))
            }
        }
    }

    /// Opens a connection to the server, which has to show that it has the key of the account.
    async fn open(&self, forwarding: &Forwarding) -> Result<Arc<Connection>, String> {
        let opening = Opening::to(self.node.to_string());
        let mut request = Request::new(());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = Uri::from_static(PATH);
        let headers = request.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static(PROTOCOL));
        headers.insert(&MARK, opening.request_mark(&forwarding.keys));
        let clock = &forwarding.clock;
        let opened = forwarding.peers.open(&self.endpoint, request);
        let opened = clock.timeout_at(clock.now() + OPENING, opened).await;
        let (headers, stream) = opened.ok_or("it does not answer in time")??;
        if !opening.is_shown(&forwarding.keys, &headers) {
            return Err("something else is there".to_owned());
        }
        let timeout = forwarding.peers.response_timeout();
        let connection = Arc::new(Connection::over(stream, clock.clone(), timeout));
        self.state.lock().connection = Some(connection.clone());
        Ok(connection)
    }

    /// Sends nothing for a while. `by`: the connection that has failed.
    fn failed(&self, forwarding: &Forwarding, by: Option<&Arc<Connection>>, why: &str) {
        let now = forwarding.clock.now();
        let mut state = self.state.lock();
        let is_current = match (&state.connection, by) {
            (Some(current), Some(failed)) => Arc::ptr_eq(current, failed),
            _ => true,
        };
        if !is_current {
            // Another one was opened since then.
            return;
        }
        state.connection = None;
        // Those that are under way fail together, and are one failure.
        if state.paused_until.is_none_or(|until| until <= now) {
            let (node, endpoint) = (self.node, &self.endpoint);
            tracing::warn!(%node, endpoint, why, "writes are not forwarded for a while");
            state.paused_until = Some(now + state.pause);
            state.pause = LONGEST_PAUSE.min(state.pause * 2);
        }
    }
}
