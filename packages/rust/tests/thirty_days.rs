//! The example: thirty days pass in a test.
//!
//! Requests are signed here, so that the test needs no SDK, whose build takes minutes; azure_data_cosmos takes the same endpoint and key.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_testing::Bolide;
use hmac::{Hmac, Mac};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use sha2::Sha256;

type Outcome = Result<(), Box<dyn std::error::Error>>;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[test]
fn an_item_lives_for_thirty_days() -> Outcome {
    let db = Bolide::start()?;
    let client = Client::new(&db);
    client.post("dbs", "", &json!({"id": "retention"}))?;
    let container = json!({"id": "tokens", "partitionKey": {"paths": ["/user"], "kind": "Hash", "version": 2}, "defaultTtl": -1});
    client.post("colls", "dbs/retention", &container)?;
    let tokens = "dbs/retention/colls/tokens";
    client.post("docs", tokens, &json!({"id": "t1", "user": "ada", "ttl": 30 * DAY.as_secs()}))?;

    db.clock().advance(29 * DAY)?;
    assert_eq!(client.get(&format!("{tokens}/docs/t1"))?, 200);
    db.clock().advance(DAY)?;
    assert_eq!(client.get(&format!("{tokens}/docs/t1"))?, 404);
    assert_eq!(db.purge("retention", "tokens")?, 1);
    Ok(())
}

/// Just enough of a client of Cosmos DB. Source: "Access control on Azure Cosmos DB resources", REST reference.
struct Client {
    agent: ureq::Agent,
    endpoint: String,
    key: Vec<u8>,
}

impl Client {
    fn new(db: &Bolide) -> Client {
        let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None);
        Client {
            agent: config.build().into(),
            endpoint: db.endpoint().to_owned(),
            key: STANDARD.decode(db.key()).expect("a key is base64"),
        }
    }

    /// Creates a resource of this type below a parent.
    fn post(&self, kind: &str, parent: &str, body: &Value) -> Outcome {
        let path = if parent.is_empty() { kind.to_owned() } else { format!("{parent}/{kind}") };
        let mut request = self.agent.post(format!("{}/{path}", self.endpoint));
        for (name, value) in self.headers("post", kind, parent) {
            request = request.header(name, value);
        }
        let mut response = request.send(body.to_string())?;
        match response.status().as_u16() {
            201 => Ok(()),
            status => Err(format!("{path}: {status} {}", response.body_mut().read_to_string()?).into()),
        }
    }

    /// The status of reading an item of the partition `ada`.
    fn get(&self, link: &str) -> Result<u16, ureq::Error> {
        let mut request = self.agent.get(format!("{}/{link}", self.endpoint));
        for (name, value) in self.headers("get", "docs", link) {
            request = request.header(name, value);
        }
        Ok(request.call()?.status().as_u16())
    }

    fn headers(&self, verb: &str, kind: &str, link: &str) -> [(&'static str, String); 4] {
        let date = httpdate::fmt_http_date(SystemTime::now());
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).expect("a key of any length");
        mac.update(format!("{verb}\n{kind}\n{link}\n{}\n\n", date.to_lowercase()).as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        let token = format!("type=master&ver=1.0&sig={signature}");
        [
            ("authorization", utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string()),
            ("x-ms-date", date),
            ("x-ms-version", "2020-07-15".to_owned()),
            ("x-ms-documentdb-partitionkey", "[\"ada\"]".to_owned()),
        ]
    }
}
