//! HTTP connections to the other servers of a store, for forwarded writes ([`bolide_cosmos::forwarding`]).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bolide_cosmos::forwarding::{Peers, SendError};
use bolide_model::time::Monotonic;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::header::HOST;
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;

/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_millis(500);
/// Connections to one server that are kept while they are not in use.
const KEPT: usize = 64;
/// How long they are kept: the other side ends connections that are idle for longer.
const IDLE: Duration = Duration::from_millis(500);
/// Servers to which connections are kept.
const SERVERS: usize = 64;
/// Largest response.
const RESPONSE_BYTES: usize = 1024 * 1024;

type Connection = SendRequest<Full<Bytes>>;

/// See the module. Only servers that listen for HTTP are reached: others have certificates that nobody here can judge.
pub struct PeerConnections {
    timeout: Duration,
    clock: Monotonic,
    kept: Mutex<HashMap<String, Vec<(Connection, Instant)>>>,
}

impl Peers for PeerConnections {
    fn send<'p>(
        &'p self,
        endpoint: &'p str,
        request: Request<Bytes>,
    ) -> BoxFuture<'p, Result<Response<Bytes>, SendError>> {
        self.send_to(endpoint, request.map(Full::new)).boxed()
    }
}

impl PeerConnections {
    /// Waits `timeout` for a response.
    pub fn new(timeout: Duration, clock: Monotonic) -> PeerConnections {
        PeerConnections {
            timeout,
            clock,
            kept: Mutex::default(),
        }
    }

    async fn send_to(&self, endpoint: &str, mut request: Request<Full<Bytes>>) -> Result<Response<Bytes>, SendError> {
        let authority = authority(endpoint)?;
        let host = HeaderValue::from_str(&authority).map_err(|error| not_sent(&error))?;
        request.headers_mut().insert(HOST, host);
        let until = self.clock.now() + self.timeout;
        loop {
            let (mut connection, is_new) = match self.take_kept(endpoint) {
                Some(connection) => (connection, false),
                None => (self.connect(&authority).await?, true),
            };
            let sent = self.clock.timeout_at(until, connection.try_send_request(request)).await;
            let response = match sent.ok_or_else(late)? {
                Ok(response) => response,
                Err(mut error) => match error.take_message() {
                    // The other side has ended it meanwhile.
                    Some(unsent) if !is_new => {
                        request = unsent;
                        continue;
                    }
                    Some(_) => return Err(not_sent(error.error())),
                    None => return Err(SendError::NoResponse(error.error().to_string())),
                },
            };
            let (head, body) = response.into_parts();
            let body = self
                .clock
                .timeout_at(until, Limited::new(body, RESPONSE_BYTES).collect())
                .await;
            let body = body.ok_or_else(late)?;
            let body = body
                .map_err(|error| SendError::NoResponse(error.to_string()))?
                .to_bytes();
            self.keep(endpoint, connection);
            return Ok(Response::from_parts(head, body));
        }
    }

    async fn connect(&self, authority: &str) -> Result<Connection, SendError> {
        let opening = async {
            let stream = TcpStream::connect(authority).await?;
            stream.set_nodelay(true)?;
            handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)
        };
        let opened = self.clock.timeout_at(self.clock.now() + CONNECT, opening).await;
        let opened = opened.ok_or_else(|| SendError::NotSent("it does not accept connections in time".to_owned()))?;
        let (connection, driver) = opened.map_err(|error| not_sent(&error))?;
        // Ends with the connection.
        tokio::spawn(driver);
        Ok(connection)
    }

    fn take_kept(&self, endpoint: &str) -> Option<Connection> {
        let mut kept = self.kept.lock();
        let connections = kept.get_mut(endpoint)?;
        // The last one was used last.
        let now = self.clock.now();
        connections.retain(|(connection, since)| connection.is_ready() && now.duration_since(*since) < IDLE);
        connections.pop().map(|(connection, _)| connection)
    }

    fn keep(&self, endpoint: &str, connection: Connection) {
        let mut kept = self.kept.lock();
        if kept.len() >= SERVERS && !kept.contains_key(endpoint) {
            kept.clear();
        }
        let connections = kept.entry(endpoint.to_owned()).or_default();
        if connections.len() < KEPT {
            connections.push((connection, self.clock.now()));
        }
    }
}

/// Host and port of an endpoint.
fn authority(endpoint: &str) -> Result<String, SendError> {
    let uri: Uri = endpoint.parse().map_err(|error| not_sent(&error))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http"), Some(host)) => Ok(format!("{host}:{}", uri.port_u16().unwrap_or(80))),
        _ => Err(SendError::NotSent("it is not reached by HTTP".to_owned())),
    }
}

fn not_sent(error: &dyn std::fmt::Display) -> SendError {
    SendError::NotSent(error.to_string())
}

fn late() -> SendError {
    SendError::NoResponse("no response in time".to_owned())
}
