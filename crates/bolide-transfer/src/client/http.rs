//! Requests over HTTP and HTTPS.

use std::io::Read;
use std::time::Duration;

use ureq::http::{Request, Response, Uri};
use ureq::tls::TlsConfig;
use ureq::{Agent, Body, SendBody};

use super::Transport;
use crate::failure::{Failure, Result};

/// Most bytes of a response: a page of a feed has 4 MiB, and more on servers with one larger item.
const RESPONSE_BYTES: u64 = 64 * 1024 * 1024;
/// The longest time to connect, and for one request with its response.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest time for an import in one request.
const IMPORT_TIMEOUT: Duration = Duration::from_secs(24 * 3600);
/// Connections that are kept.
const CONNECTIONS: usize = 256;

/// A server at an endpoint.
pub struct HttpTransport {
    agent: Agent,
    endpoint: String,
}

impl HttpTransport {
    /// The server at `http://host:port` or `https://host:port`.
    ///
    /// # Errors
    /// Another endpoint; `option` is what its user calls it.
    pub fn new(option: &str, endpoint: &str, tls: Option<TlsConfig>) -> Result<HttpTransport> {
        let expected = || {
            Failure::new(format!(
                "{option}: expected http://host:port or https://host:port. value=`{endpoint}`"
            ))
        };
        let uri: Uri = endpoint.parse().map_err(|_| expected())?;
        let is_plain = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
        if !is_plain || !uri.path().trim_end_matches('/').is_empty() || uri.query().is_some() {
            return Err(expected());
        }
        // The key must not be sent to any other server.
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_connections(CONNECTIONS)
            .max_idle_connections_per_host(CONNECTIONS)
            .timeout_connect(Some(CONNECT_TIMEOUT));
        if let Some(tls) = tls {
            config = config.tls_config(tls);
        }
        Ok(HttpTransport {
            agent: config.build().into(),
            endpoint: endpoint.trim_end_matches('/').to_owned(),
        })
    }

    fn addressed<B>(&self, request: Request<B>) -> std::result::Result<Request<B>, String> {
        let (mut head, body) = request.into_parts();
        let uri = format!("{}{}", self.endpoint, head.uri);
        head.uri = uri.parse().map_err(|error| format!("{uri}: {error}"))?;
        Ok(Request::from_parts(head, body))
    }
}

fn whole(response: std::result::Result<Response<Body>, ureq::Error>) -> std::result::Result<Response<Vec<u8>>, String> {
    let (head, mut body) = response.map_err(|error| error.to_string())?.into_parts();
    let body = body.with_config().limit(RESPONSE_BYTES).read_to_vec();
    body.map(|body| Response::from_parts(head, body))
        .map_err(|error| error.to_string())
}

impl Transport for HttpTransport {
    fn send(&self, request: Request<Vec<u8>>) -> std::result::Result<Response<Vec<u8>>, String> {
        let request = self.addressed(request)?;
        if request.body().is_empty() && request.method() == "GET" {
            let request = self.agent.configure_request(request.map(|_| ()));
            let request = request.timeout_global(Some(REQUEST_TIMEOUT)).build();
            return whole(self.agent.run(request));
        }
        let request = self.agent.configure_request(request);
        let request = request.timeout_global(Some(REQUEST_TIMEOUT)).build();
        whole(self.agent.run(request))
    }

    fn import_lines(
        &self,
        request: Request<()>,
        lines: &mut dyn Read,
    ) -> std::result::Result<Response<Vec<u8>>, String> {
        let mut lines = lines;
        let request = self.addressed(request)?;
        let (head, ()) = request.into_parts();
        let request = Request::from_parts(head, SendBody::from_reader(&mut lines));
        let request = self.agent.configure_request(request);
        let request = request.timeout_global(Some(IMPORT_TIMEOUT)).build();
        whole(self.agent.run(request))
    }

    fn name(&self) -> &str {
        &self.endpoint
    }
}
