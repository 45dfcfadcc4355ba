//! HTTP connections to the other servers of a store, for forwarded writes ([`bolide_cosmos::forwarding`]).

use std::time::Duration;

use bolide_cosmos::forwarding::{PeerStream, Peers};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// See the module. Only servers that listen for HTTP are reached: others have certificates that nobody here can judge.
pub struct PeerConnections {
    response_timeout: Duration,
}

impl PeerConnections {
    /// Connections on which each response is waited for so long.
    pub fn new(response_timeout: Duration) -> PeerConnections {
        PeerConnections { response_timeout }
    }
}

impl Peers for PeerConnections {
    fn open<'p>(
        &'p self,
        endpoint: &'p str,
        request: Request<()>,
    ) -> BoxFuture<'p, Result<(HeaderMap, PeerStream), String>> {
        open(endpoint, request).boxed()
    }

    fn response_timeout(&self) -> Duration {
        self.response_timeout
    }
}

async fn open(endpoint: &str, request: Request<()>) -> Result<(HeaderMap, PeerStream), String> {
    let authority = authority(endpoint)?;
    let mut request = request.map(|()| Empty::<&[u8]>::new());
    let host = HeaderValue::from_str(&authority).map_err(why)?;
    request.headers_mut().insert(HOST, host);
    let stream = TcpStream::connect(authority).await.map_err(why)?;
    stream.set_nodelay(true).map_err(why)?;
    let (mut connection, driver) = handshake(TokioIo::new(stream)).await.map_err(why)?;
    // Ends with the connection, or when it is upgraded.
    tokio::spawn(driver.with_upgrades());
    let response = connection.send_request(request).await.map_err(why)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(format!("it answers {}", response.status()));
    }
    let headers = response.headers().clone();
    let upgraded = hyper::upgrade::on(response).await.map_err(why)?;
    Ok((headers, Box::new(TokioIo::new(upgraded))))
}

/// Host and port of an endpoint.
fn authority(endpoint: &str) -> Result<String, String> {
    let uri: Uri = endpoint.parse().map_err(why)?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http"), Some(host)) => Ok(format!("{host}:{}", uri.port_u16().unwrap_or(80))),
        _ => Err("it is not reached by HTTP".to_owned()),
    }
}

fn why(error: impl std::fmt::Display) -> String {
    error.to_string()
}
