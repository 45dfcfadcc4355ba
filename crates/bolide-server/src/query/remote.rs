//! A query on a running server, through its admin API.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::{Page, QueryOptions, Source};
use crate::admin_client::AdminClient;
use crate::server::Failure;

pub struct Remote(AdminClient);

impl Remote {
    /// The server at the options' endpoint.
    ///
    /// # Errors
    /// Those of [`AdminClient::new`].
    pub fn new(options: &QueryOptions) -> Result<Remote, Failure> {
        AdminClient::new(&options.target.server).map(Remote)
    }

    fn ask(&self, options: &QueryOptions, mut body: Value) -> Result<Value, Failure> {
        let parameters = options.parameters.iter();
        body["query"] = json!(options.text);
        body["parameters"] = parameters
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        body["partitionKey"] = json!(options.partition_key);
        let segment = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let (database, container) = (segment(&options.target.database), segment(&options.target.container));
        self.0
            .post(&format!("dbs/{database}/colls/{container}/query"), Some(&body))
    }
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
                self.0.endpoint()
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
