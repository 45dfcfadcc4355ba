//! A query on a running server, through its admin API.

use std::path::Path;
use std::sync::Arc;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::crypto::ring;
use serde_json::{Value, json};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use super::{Page, QueryOptions, Source, sentence};
use crate::server::Failure;
use crate::tls;

pub struct Remote {
    agent: ureq::Agent,
    endpoint: String,
    key: String,
}

impl Remote {
    /// The server at the options' endpoint.
    ///
    /// # Errors
    /// An endpoint that is neither `http://host:port` nor `https://host:port`; an HTTPS endpoint without an option for trust; certificates that cannot be read.
    pub fn new(options: &QueryOptions, key: &str) -> Result<Remote, Failure> {
        let endpoint = options.endpoint.as_str();
        let is_tls = endpoint.starts_with("https://");
        if !is_tls && !endpoint.starts_with("http://") {
            return Err(Failure::new(format!(
                "--endpoint: expected http://host:port or https://host:port. value=`{endpoint}`"
            )));
        }
        // The key must not be sent to any other server.
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0);
        if is_tls {
            config = config.tls_config(tls(options.ca.as_deref(), options.insecure)?);
        }
        Ok(Remote {
            agent: config.build().into(),
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            key: key.to_owned(),
        })
    }

    fn ask(&self, options: &QueryOptions, mut body: Value) -> Result<Value, Failure> {
        let parameters = options.parameters.iter();
        body["query"] = json!(options.text);
        body["parameters"] = parameters
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        body["partitionKey"] = json!(options.partition_key);
        let segment = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let url = format!(
            "{}/_bolide/dbs/{}/colls/{}/query",
            self.endpoint,
            segment(&options.database),
            segment(&options.container)
        );
        let request = self
            .agent
            .post(&url)
            .header("authorization", format!("Bearer {}", self.key))
            .header("content-type", "application/json");
        let unreachable = |error: ureq::Error| Failure::new(format!("--endpoint: {}: {error}", self.endpoint));
        let mut response = request.send(body.to_string()).map_err(unreachable)?;
        let text = response
            .body_mut()
            .with_config()
            .limit(u64::MAX)
            .read_to_string()
            .map_err(unreachable)?;
        let answer: Value = serde_json::from_str(&text)
            .map_err(|_| Failure::new(format!("--endpoint: {}: no Bolide server answers there", self.endpoint)))?;
        if response.status().is_success() {
            return Ok(answer);
        }
        Err(Failure::new(refusal(answer["message"].as_str().unwrap_or_default())))
    }
}

/// The certificates to trust over HTTPS.
pub fn tls(ca: Option<&Path>, is_insecure: bool) -> Result<TlsConfig, Failure> {
    let config = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
    if is_insecure {
        return Ok(config.disable_verification(true).build());
    }
    let Some(file) = ca else {
        return Err(Failure::new(
            "--endpoint https:// needs --ca FILE with the certificates to trust (http://HOST:PORT/_explorer/emulator.pem has the server's \
             own, /etc/ssl/certs/ca-certificates.crt often the system's), or --insecure",
        ));
    };
    let unusable = |why: String| Failure::new(format!("--ca {}: {why}", file.display()));
    let pem = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
    let chain = tls::chain(&pem).map_err(unusable)?;
    let certificates: Vec<Certificate<'static>> = chain
        .iter()
        .map(|certificate| Certificate::from_der(certificate).to_owned())
        .collect();
    Ok(config.root_certs(RootCerts::new_with_certs(&certificates)).build())
}

/// The message of an error body, without its activity id.
pub fn refusal(message: &str) -> String {
    let words = message.split("\r\nActivityId").next().unwrap_or_default();
    let document = words.strip_prefix("Message: ").unwrap_or(words);
    sentence(document).unwrap_or_else(|| words.to_owned())
}

impl Source for Remote {
    fn page(&mut self, options: &QueryOptions, continuation: Option<String>) -> Result<Page, Failure> {
        let mut answer = self.ask(options, json!({ "continuation": continuation }))?;
        match answer["rows"].take() {
            Value::Array(rows) => Ok(Page {
                rows,
                continuation: answer["continuation"].as_str().map(str::to_owned),
            }),
            _ => Err(Failure::new(format!(
                "--endpoint: {}: a page has no rows",
                self.endpoint
            ))),
        }
    }

    fn explain(&mut self, options: &QueryOptions) -> Result<String, Failure> {
        let answer = self.ask(options, json!({"explain": true}))?;
        Ok(answer["plan"].as_str().unwrap_or_default().to_owned())
    }

    fn close(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
