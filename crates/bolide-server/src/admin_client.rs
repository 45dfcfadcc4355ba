//! Requests to the admin API of a running server, for commands.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::server::Failure;
use crate::target::{ServerOptions, TrustOptions};

/// A client of one server.
pub struct AdminClient {
    agent: ureq::Agent,
    /// What the user calls the server.
    option: &'static str,
    endpoint: String,
    key: String,
}

/// Why a request was not carried out, as far as is known.
#[derive(Debug)]
pub struct Refused {
    /// The status of the answer; `None`: there was none.
    pub status: Option<u16>,
    /// For people.
    pub message: String,
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Failure {
        Failure::new(refused.message)
    }
}

impl AdminClient {
    /// A client of the options' server.
    ///
    /// # Errors
    /// An endpoint that is neither `http://host:port` nor `https://host:port`; an HTTPS endpoint without an option for trust; a key or certificates that cannot
    /// be read.
    pub fn new(options: &ServerOptions) -> Result<AdminClient, Failure> {
        AdminClient::to(("--endpoint", &options.endpoint), options.key()?, &options.trust, None)
    }

    /// A client of a server that the user calls `option`, whose answers may take so long.
    ///
    /// # Errors
    /// As [`AdminClient::new`].
    pub fn to(
        (option, endpoint): (&'static str, &str),
        key: String,
        trust: &TrustOptions,
        longest: Option<Duration>,
    ) -> Result<AdminClient, Failure> {
        if !endpoint.starts_with("https://") && !endpoint.starts_with("http://") {
            return Err(Failure::new(format!(
                "{option}: expected http://host:port or https://host:port. value=`{endpoint}`"
            )));
        }
        // The key must not be sent to any other server.
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(longest)
            .max_redirects(0);
        if let Some(tls) = trust.tls_for(option, endpoint)? {
            config = config.tls_config(tls);
        }
        Ok(AdminClient {
            agent: config.build().into(),
            option,
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            key,
        })
    }

    /// The server's URL.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Asks a route below `/_bolide/`. Returns the answer.
    ///
    /// # Errors
    /// No server, no Bolide server, or its refusal, in one line.
    pub fn get(&self, route: &str) -> Result<Value, Failure> {
        let request = self.agent.get(format!("{}/_bolide/{route}", self.endpoint));
        Ok(self.answer(request.header("authorization", format!("Bearer {}", self.key)).call())?)
    }

    /// As [`AdminClient::get`], to delete what the route names.
    ///
    /// # Errors
    /// As [`AdminClient::get`].
    pub fn delete(&self, route: &str) -> Result<Value, Refused> {
        let request = self.agent.delete(format!("{}/_bolide/{route}", self.endpoint));
        self.answer(request.header("authorization", format!("Bearer {}", self.key)).call())
    }

    /// Sends a body to a route below `/_bolide/`, or nothing. Returns the answer.
    ///
    /// # Errors
    /// No server, no Bolide server, or its refusal, in one line.
    pub fn post(&self, route: &str, body: Option<&Value>) -> Result<Value, Failure> {
        Ok(self.send(route, body)?)
    }

    /// As [`AdminClient::post`], for callers that look at the status of a refusal.
    ///
    /// # Errors
    /// As [`AdminClient::post`].
    pub fn send(&self, route: &str, body: Option<&Value>) -> Result<Value, Refused> {
        self.answer(self.posted(route, body))
    }

    /// As [`AdminClient::send`], for routes that answer with bytes.
    ///
    /// # Errors
    /// As [`AdminClient::post`].
    pub fn send_for_bytes(&self, route: &str, body: &Value) -> Result<Bytes, Refused> {
        let mut response = self
            .posted(route, Some(body))
            .map_err(|error| self.unreachable(&error))?;
        if !response.status().is_success() {
            self.answer(Ok(response))?;
            return Ok(Bytes::new());
        }
        let body = response.body_mut().with_config().limit(u64::MAX);
        let bytes = body.read_to_vec().map_err(|error| self.unreachable(&error))?;
        Ok(bytes.into())
    }

    fn posted(&self, route: &str, body: Option<&Value>) -> Result<http::Response<ureq::Body>, ureq::Error> {
        let request = self.agent.post(format!("{}/_bolide/{route}", self.endpoint));
        let request = request.header("authorization", format!("Bearer {}", self.key));
        match body {
            Some(body) => request
                .header("content-type", "application/json")
                .send(body.to_string()),
            None => request.send_empty(),
        }
    }

    fn answer(&self, sent: Result<http::Response<ureq::Body>, ureq::Error>) -> Result<Value, Refused> {
        let mut response = sent.map_err(|error| self.unreachable(&error))?;
        let body = response.body_mut().with_config().limit(u64::MAX);
        let text = body.read_to_string().map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let answer: Value = serde_json::from_str(&text).map_err(|_| Refused {
            status: Some(status.as_u16()),
            message: format!("{}: {}: no Bolide server answers there", self.option, self.endpoint),
        })?;
        if status.is_success() {
            return Ok(answer);
        }
        Err(Refused {
            status: Some(status.as_u16()),
            message: refusal(answer["message"].as_str().unwrap_or_default()),
        })
    }

    fn unreachable(&self, error: &ureq::Error) -> Refused {
        Refused {
            status: None,
            message: format!("{}: {}: {error}", self.option, self.endpoint),
        }
    }
}

/// The message of an error body, without its activity id.
fn refusal(message: &str) -> String {
    let words = message.split("\r\nActivityId").next().unwrap_or_default();
    let document = words.strip_prefix("Message: ").unwrap_or(words);
    sentence(document).unwrap_or_else(|| words.to_owned())
}

/// The first error of a query, from the document in the service's message: code, message and location.
pub fn sentence(document: &str) -> Option<String> {
    let document: Value = serde_json::from_str(document).ok()?;
    if let Some(text) = document["Errors"][0].as_str() {
        return Some(text.to_owned());
    }
    let error = &document["errors"][0];
    let code = match &error["code"] {
        Value::String(code) => format!("{code}: "),
        Value::Number(code) => format!("{code}: "),
        _ => String::new(),
    };
    let place = match (&error["location"]["start"], &error["location"]["end"]) {
        (Value::Number(start), Value::Number(end)) => format!(" (characters {start} to {end})"),
        _ => String::new(),
    };
    Some(format!("{code}{}{place}", error["message"].as_str()?))
}

#[cfg(test)]
mod tests;
