//! Requests to the admin API of a running server, for commands.

use serde_json::Value;

use crate::server::Failure;
use crate::target::ServerOptions;

/// A client of one server.
pub struct AdminClient {
    agent: ureq::Agent,
    endpoint: String,
    key: String,
}

impl AdminClient {
    /// A client of the options' server.
    ///
    /// # Errors
    /// An endpoint that is neither `http://host:port` nor `https://host:port`; an HTTPS endpoint without an option for trust; a key or certificates that cannot
    /// be read.
    pub fn new(options: &ServerOptions) -> Result<AdminClient, Failure> {
        let endpoint = options.endpoint.as_str();
        if !endpoint.starts_with("https://") && !endpoint.starts_with("http://") {
            return Err(Failure::new(format!(
                "--endpoint: expected http://host:port or https://host:port. value=`{endpoint}`"
            )));
        }
        // The key must not be sent to any other server.
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0);
        if let Some(tls) = options.trust.tls_for("--endpoint", endpoint)? {
            config = config.tls_config(tls);
        }
        Ok(AdminClient {
            agent: config.build().into(),
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            key: options.key()?,
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
        self.answer(request.header("authorization", format!("Bearer {}", self.key)).call())
    }

    /// Sends a body to a route below `/_bolide/`, or nothing. Returns the answer.
    ///
    /// # Errors
    /// No server, no Bolide server, or its refusal, in one line.
    pub fn post(&self, route: &str, body: Option<&Value>) -> Result<Value, Failure> {
        let request = self.agent.post(format!("{}/_bolide/{route}", self.endpoint));
        let request = request.header("authorization", format!("Bearer {}", self.key));
        let sent = match body {
            Some(body) => request
                .header("content-type", "application/json")
                .send(body.to_string()),
            None => request.send_empty(),
        };
        self.answer(sent)
    }

    fn answer(&self, sent: Result<http::Response<ureq::Body>, ureq::Error>) -> Result<Value, Failure> {
        let unreachable = |error: ureq::Error| Failure::new(format!("--endpoint: {}: {error}", self.endpoint));
        let mut response = sent.map_err(unreachable)?;
        let body = response.body_mut().with_config().limit(u64::MAX);
        let text = body.read_to_string().map_err(unreachable)?;
        let answer: Value = serde_json::from_str(&text)
            .map_err(|_| Failure::new(format!("--endpoint: {}: no Bolide server answers there", self.endpoint)))?;
        if response.status().is_success() {
            return Ok(answer);
        }
        Err(Failure::new(refusal(answer["message"].as_str().unwrap_or_default())))
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
