//! One other server, as it has answered so far.

use std::time::{Duration, Instant};

use bolide_core::NodeId;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use parking_lot::Mutex;
use subtle::ConstantTimeEq as _;

use super::{Forwarding, MARK, OF_THE_CONNECTION, Outcome, SendError, receiver_mac, sender_mac};

/// Writes that are under way to one server. More are carried out where they arrived.
pub(super) const UNDER_WAY: usize = 128;
/// How long a server may take to show that it has the key.
const PROOF: Duration = Duration::from_millis(500);
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
    under_way: usize,
    trust: Trust,
    paused_until: Option<Instant>,
    pause: Duration,
}

/// Whether a server has shown that it has the key of the account, since it last failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    None,
    /// It is being asked.
    Asked,
    Shown,
}

/// One of the writes that are under way.
struct UnderWay<'d>(&'d Destination);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.under_way -= 1;
        if state.trust == Trust::Asked {
            // Whoever has asked is gone, or has not got the answer.
            state.trust = Trust::None;
        }
    }
}

impl Destination {
    pub fn new(node: NodeId, endpoint: String) -> Destination {
        Destination {
            node,
            endpoint,
            state: Mutex::new(State {
                under_way: 0,
                trust: Trust::None,
                paused_until: None,
                pause: PAUSE,
            }),
        }
    }

    /// Sends a request, unless the server has failed of late, and waits for the response.
    pub async fn carry_out(&self, forwarding: &Forwarding, request: Request<Bytes>) -> Outcome {
        let Some((_under_way, trust)) = self.begin(forwarding.clock.now()) else {
            return Outcome::NotSent;
        };
        if trust == Trust::None
            && let Err(why) = self.ask_for_proof(forwarding).await
        {
            self.failed(forwarding, &why);
            return Outcome::NotSent;
        }
        match self.send(forwarding, request).await {
            Ok(response) => {
                self.state.lock().pause = PAUSE;
                Outcome::Answered(response)
            }
            Err(SendError::NotSent(why)) => {
                self.failed(forwarding, &why);
                Outcome::NotSent
            }
            Err(SendError::NoResponse(why)) => {
                self.failed(forwarding, &why);
                Outcome::Unknown
            }
        }
    }

    /// Counts a write, and tells whether the server has shown that it has the key. `None`: nothing is to be sent now.
    fn begin(&self, now: Instant) -> Option<(UnderWay<'_>, Trust)> {
        let mut state = self.state.lock();
        let is_paused = state.paused_until.is_some_and(|until| now < until);
        // Those who come while it is asked do not wait for the answer.
        if is_paused || state.under_way == UNDER_WAY || state.trust == Trust::Asked {
            return None;
        }
        state.under_way += 1;
        let trust = state.trust;
        if trust == Trust::None {
            state.trust = Trust::Asked;
        }
        Some((UnderWay(self), trust))
    }

    async fn ask_for_proof(&self, forwarding: &Forwarding) -> Result<(), String> {
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = http::Uri::from_static("/_bolide/health");
        let until = forwarding.clock.now() + PROOF;
        let asked = forwarding.clock.timeout_at(until, self.send(forwarding, request)).await;
        let response = asked.ok_or("it does not answer in time")?;
        let response = response.map_err(|(SendError::NotSent(why) | SendError::NoResponse(why))| why)?;
        match response.status() {
            StatusCode::OK => {
                self.state.lock().trust = Trust::Shown;
                Ok(())
            }
            status => Err(format!("it answers {status}")),
        }
    }

    /// Sends a request with the header that shows from whom it comes, and checks that of the response.
    async fn send(&self, forwarding: &Forwarding, mut request: Request<Bytes>) -> Result<Response<Bytes>, SendError> {
        let (node, keys) = (self.node.to_string(), &forwarding.keys);
        let nonce = uuid::Uuid::new_v4().simple().to_string();
        let mark = format!("{node} {nonce} {}", sender_mac(keys, &node, &nonce));
        let mark = HeaderValue::try_from(mark).map_err(|error| SendError::NotSent(error.to_string()))?;
        request.headers_mut().insert(MARK, mark);
        let mut response = forwarding.peers.send(&self.endpoint, request).await?;
        let shown = response
            .headers()
            .get(MARK)
            .map(HeaderValue::as_bytes)
            .unwrap_or_default();
        if !bool::from(shown.ct_eq(receiver_mac(keys, &node, &nonce).as_bytes())) {
            let why = format!("something else is there, which answers {}", response.status());
            return Err(SendError::NoResponse(why));
        }
        for name in OF_THE_CONNECTION {
            response.headers_mut().remove(name);
        }
        Ok(response)
    }

    /// Sends nothing for a while.
    fn failed(&self, forwarding: &Forwarding, why: &str) {
        let now = forwarding.clock.now();
        let mut state = self.state.lock();
        state.trust = Trust::None;
        // Those that are under way fail together, and are one failure.
        if state.paused_until.is_none_or(|until| until <= now) {
            let (node, endpoint) = (self.node, &self.endpoint);
            tracing::warn!(%node, endpoint, why, "writes are not forwarded for a while");
            state.paused_until = Some(now + state.pause);
            state.pause = LONGEST_PAUSE.min(state.pause * 2);
        }
    }
}
