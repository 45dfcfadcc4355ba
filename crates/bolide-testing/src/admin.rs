//! Requests to the admin API.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::error::Error;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Sends requests below `/_bolide/` of a server on this machine, with the account key.
#[derive(Debug, Clone)]
pub struct Admin {
    agent: ureq::Agent,
    endpoint: Arc<str>,
    authorization: Arc<str>,
}

impl Admin {
    pub fn new(endpoint: &str, key: &str) -> Admin {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // A proxy of the environment must not see requests to this machine.
            .proxy(None)
            .timeout_global(Some(TIMEOUT));
        Admin {
            agent: config.build().into(),
            endpoint: endpoint.into(),
            authorization: format!("Bearer {key}").into(),
        }
    }

    pub fn get(&self, path: &str) -> Result<Value, Error> {
        let request = self.agent.get(self.url(path));
        let sent = request.header("authorization", &*self.authorization).call();
        answer(&format!("GET /_bolide/{path}"), sent)
    }

    pub fn put(&self, path: &str, body: &Value) -> Result<Value, Error> {
        self.send("PUT", self.agent.put(self.url(path)), path, body)
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Value, Error> {
        self.send("POST", self.agent.post(self.url(path)), path, body)
    }

    fn send(
        &self,
        method: &str,
        request: ureq::RequestBuilder<ureq::typestate::WithBody>,
        path: &str,
        body: &Value,
    ) -> Result<Value, Error> {
        let request = request
            .header("authorization", &*self.authorization)
            .header("content-type", "application/json");
        answer(&format!("{method} /_bolide/{path}"), request.send(body.to_string()))
    }

    fn url(&self, path: &str) -> String {
        format!("{}/_bolide/{path}", self.endpoint)
    }
}

/// The JSON of an answer, `null` for an empty one.
fn answer(what: &str, sent: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Value, Error> {
    let failed = |error: ureq::Error| Error::Request {
        status: None,
        message: format!("{what}: {error}"),
    };
    let mut response = sent.map_err(failed)?;
    let text = response.body_mut().read_to_string().map_err(failed)?;
    let body: Value = serde_json::from_str(&text).unwrap_or_default();
    let status = response.status();
    if status.is_success() {
        return Ok(body);
    }
    let message = body["message"].as_str().unwrap_or(&text);
    Err(Error::Request {
        status: Some(status.as_u16()),
        message: format!("{what}: {} {message}", status.as_u16()),
    })
}
