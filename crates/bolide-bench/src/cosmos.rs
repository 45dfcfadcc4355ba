//! Requests of the Cosmos DB protocol as bytes, signed like those of the SDKs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_model::time::wall_clock;
use hmac::{Hmac, Mac};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::Sha256;

use std::net::SocketAddr;
use std::time::{Duration, UNIX_EPOCH};

use crate::Result;
use crate::connection::Connection;
use crate::item;

const KEY: &[u8] = b"a key that guards benchmarks only";
const READ_ONLY_KEY: &[u8] = b"a key that reads in benchmarks only";
/// A new container has a physical partition for each of these.
const RU_OF_A_RANGE: u32 = 6_000;
/// The only container.
pub const CONTAINER: &str = "dbs/bench/colls/items";

/// The account key of the measured servers.
pub fn account_key() -> String {
    STANDARD.encode(KEY)
}

/// The read-only key of servers that are given one.
pub fn read_only_key() -> String {
    STANDARD.encode(READ_ONLY_KEY)
}

/// Queries with one signature: it covers the container and the date, and not the query.
pub struct Queries {
    head: String,
}

impl Queries {
    /// The request for a query; `body` has its text and its parameters.
    pub fn request(&self, body: &serde_json::Value) -> Vec<u8> {
        with_body(&self.head, &body.to_string())
    }
}

/// Completes a request; see [`Requests::head`].
fn with_body(head: &str, body: &str) -> Vec<u8> {
    format!("{head}{}\r\n\r\n{body}", body.len()).into_bytes()
}

/// Makes requests to one server. They have the date at which this value was made, so it must not live for more than a quarter of an hour.
pub struct Requests {
    address: SocketAddr,
    date: String,
    key: &'static [u8],
}

/// What differs between requests.
pub struct Draft<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub resource_type: &'a str,
    /// The link to sign: the resource for operations on one, its parent for feeds.
    pub link: &'a str,
    /// Complete lines with line breaks.
    pub headers: &'a str,
    pub body: &'a str,
}

impl Requests {
    /// Requests dated now.
    pub fn to(address: SocketAddr) -> Requests {
        let now = UNIX_EPOCH + Duration::from_millis(u64::try_from(wall_clock().0).unwrap_or_default());
        Requests {
            address,
            date: httpdate::fmt_http_date(now),
            key: KEY,
        }
    }

    /// The same, signed with the read-only key.
    pub fn read_only(self) -> Requests {
        Requests {
            key: READ_ONLY_KEY,
            ..self
        }
    }

    /// Reads an item.
    pub fn read(&self, id: &str) -> Vec<u8> {
        let path = format!("{CONTAINER}/docs/{id}");
        self.request(&Draft {
            method: "GET",
            path: &path,
            resource_type: "docs",
            link: &path,
            headers: &partition_key(id),
            body: "",
        })
    }

    /// Creates an item; see [`item::document`].
    pub fn create(&self, id: &str, ttl: Option<i32>) -> Vec<u8> {
        self.post_item(&partition_key(id), &item::document(id, ttl))
    }

    /// Creates or replaces an item; see [`item::document`].
    pub fn upsert(&self, id: &str, ttl: Option<i32>) -> Vec<u8> {
        let headers = format!("{}x-ms-documentdb-is-upsert: True\r\n", partition_key(id));
        self.post_item(&headers, &item::document(id, ttl))
    }

    fn post_item(&self, headers: &str, body: &str) -> Vec<u8> {
        let path = format!("{CONTAINER}/docs");
        self.request(&Draft {
            method: "POST",
            path: &path,
            resource_type: "docs",
            link: CONTAINER,
            headers,
            body,
        })
    }

    /// Reads a page of the all-versions change feed, from a continuation, or from now with `*`.
    pub fn all_versions(&self, from: &str) -> Vec<u8> {
        let headers = format!(
            "a-im: Full-Fidelity Feed\r\nx-ms-cosmos-changefeed-wire-format-version: 2021-09-15\r\n\
             x-ms-max-item-count: -1\r\nif-none-match: {from}\r\n"
        );
        self.request(&Draft {
            method: "GET",
            path: &format!("{CONTAINER}/docs"),
            resource_type: "docs",
            link: CONTAINER,
            headers: &headers,
            body: "",
        })
    }

    /// Runs a query over the whole container.
    pub fn query(&self, text: &str) -> Vec<u8> {
        self.queries().request(&serde_json::json!({ "query": text }))
    }

    /// Queries over the whole container.
    pub fn queries(&self) -> Queries {
        let head = self.head(&Draft {
            method: "POST",
            path: &format!("{CONTAINER}/docs"),
            resource_type: "docs",
            link: CONTAINER,
            headers: "x-ms-documentdb-isquery: true\r\nx-ms-documentdb-query-enablecrosspartition: true\r\n",
            body: "",
        });
        Queries { head }
    }

    /// Stores an item; its partition key is its id.
    pub fn create_document(&self, id: &str, document: &str) -> Vec<u8> {
        self.post_item(&partition_key(id), document)
    }

    /// Creates or replaces items in the only range, with one request that does not answer with the items; pairs of id and document.
    pub fn bulk_upsert(&self, items: &[(String, String)]) -> Vec<u8> {
        let operations: Vec<String> = items
            .iter()
            .map(|(id, document)| {
                format!(
                    "{{\"operationType\":\"Upsert\",\"partitionKey\":\"[\\\"{id}\\\"]\",\"resourceBody\":{document}}}"
                )
            })
            .collect();
        self.request(&Draft {
            method: "POST",
            path: &format!("{CONTAINER}/docs"),
            resource_type: "docs",
            link: CONTAINER,
            headers: "x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: False\r\n\
                      x-ms-cosmos-batch-continue-on-error: True\r\nx-ms-documentdb-partitionkeyrangeid: 0\r\nprefer: return=minimal\r\n",
            body: &format!("[{}]", operations.join(",")),
        })
    }

    /// Patches an item.
    pub fn patch(&self, id: &str, patch: &str) -> Vec<u8> {
        let path = format!("{CONTAINER}/docs/{id}");
        self.request(&Draft {
            method: "PATCH",
            path: &path,
            resource_type: "docs",
            link: &path,
            headers: &partition_key(id),
            body: patch,
        })
    }

    /// Creates a stored procedure.
    pub fn create_procedure(&self, id: &str, source: &str) -> Vec<u8> {
        self.request(&Draft {
            method: "POST",
            path: &format!("{CONTAINER}/sprocs"),
            resource_type: "sprocs",
            link: CONTAINER,
            headers: "",
            body: &serde_json::json!({ "id": id, "body": source }).to_string(),
        })
    }

    /// Runs a stored procedure.
    pub fn execute(&self, id: &str, key: &str) -> Vec<u8> {
        let path = format!("{CONTAINER}/sprocs/{id}");
        self.request(&Draft {
            method: "POST",
            path: &path,
            resource_type: "sprocs",
            link: &path,
            headers: &partition_key(key),
            body: "[]",
        })
    }

    /// The head of an unsigned request that declares a body of this length.
    pub fn unsigned_head(&self, body_bytes: usize) -> Vec<u8> {
        format!(
            "POST /{CONTAINER}/docs HTTP/1.1\r\nhost: {}\r\nauthorization: type%3Dmaster%26ver%3D1.0%26sig%3DAAAA\r\n\
             x-ms-date: {}\r\nx-ms-version: 2020-07-15\r\ncontent-length: {body_bytes}\r\n\r\n",
            self.address, self.date
        )
        .into_bytes()
    }

    /// Lists the databases: the cheapest request that needs an open store.
    pub fn list_databases(&self) -> Vec<u8> {
        self.request(&Draft {
            method: "GET",
            path: "dbs",
            resource_type: "dbs",
            link: "",
            headers: "",
            body: "",
        })
    }

    /// Creates the database and the container, without a throughput that would slow down the purge.
    pub async fn set_up(&self, connection: &mut Connection, default_ttl: Option<i32>) -> Result<()> {
        self.set_up_with("", connection, default_ttl).await
    }

    /// The same, with so many physical partitions, which their throughput asks for. Nothing is throttled unless a server is told to.
    pub async fn set_up_ranges(&self, connection: &mut Connection, ranges: u32) -> Result<()> {
        let throughput = match ranges {
            1 => String::new(),
            ranges => format!("x-ms-offer-throughput: {}\r\n", ranges * RU_OF_A_RANGE),
        };
        self.set_up_with(&throughput, connection, None).await
    }

    async fn set_up_with(&self, headers: &str, connection: &mut Connection, default_ttl: Option<i32>) -> Result<()> {
        let database = self.request(&Draft {
            method: "POST",
            path: "dbs",
            resource_type: "dbs",
            link: "",
            headers: "",
            body: r#"{"id":"bench"}"#,
        });
        connection.expect(201, &database).await?;
        let container = self.request(&Draft {
            method: "POST",
            path: "dbs/bench/colls",
            resource_type: "colls",
            link: "dbs/bench",
            headers,
            body: &container_definition(default_ttl, ""),
        });
        connection.expect(201, &container).await?;
        Ok(())
    }

    /// Sets the container's default ttl, which also applies to existing items.
    pub fn set_default_ttl(&self, seconds: i32) -> Vec<u8> {
        self.replace_container(&container_definition(Some(seconds), ""))
    }

    /// Sets the container's indexing policy.
    pub fn set_indexing_policy(&self, policy: &serde_json::Value) -> Vec<u8> {
        self.replace_container(&container_definition(None, &format!(",\"indexingPolicy\":{policy}")))
    }

    /// Whether all property indexes of the container are complete.
    pub async fn are_indexes_ready(&self, connection: &mut Connection) -> Result<bool> {
        let body = self.admin_report(connection, "indexes").await?;
        let indexes = body["indexes"].as_array().ok_or("an answer without indexes")?;
        Ok(!indexes.is_empty() && indexes.iter().all(|index| index["state"] == "ready"))
    }

    /// Sets the container's default ttl, and its only indexed path.
    pub fn set_ttl_and_index(&self, seconds: i32, path: &str) -> Vec<u8> {
        let policy = format!(",\"indexingPolicy\":{{\"includedPaths\":[{{\"path\":\"/*\"}},{{\"path\":\"{path}\"}}]}}");
        self.replace_container(&container_definition(Some(seconds), &policy))
    }

    /// Keeps the container's history for a day, for the all-versions change feed; its default ttl is −1.
    pub fn keep_history(&self) -> Vec<u8> {
        let history = ",\"changeFeedPolicy\":{\"retentionDuration\":1440}";
        self.replace_container(&container_definition(Some(-1), history))
    }

    fn replace_container(&self, definition: &str) -> Vec<u8> {
        self.request(&Draft {
            method: "PUT",
            path: CONTAINER,
            resource_type: "colls",
            link: CONTAINER,
            headers: "",
            body: definition,
        })
    }

    /// Loads items, one per line, into the new container.
    pub fn import(&self, items: &str) -> Vec<u8> {
        let head = format!(
            "POST /_bolide/{CONTAINER}/import HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\ncontent-length: {}\r\n\r\n",
            self.address,
            account_key(),
            items.len()
        );
        (head + items).into_bytes()
    }

    /// The number of expired items that are still stored.
    pub async fn backlog(&self, connection: &mut Connection) -> Result<u64> {
        let body = self.admin_report(connection, "ttl").await?;
        Ok(body["backlogItems"].as_u64().ok_or("a report without a backlog")?)
    }

    /// What the admin API reports of the container.
    async fn admin_report(&self, connection: &mut Connection, path: &str) -> Result<serde_json::Value> {
        let request = format!(
            "GET /_bolide/{CONTAINER}/{path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
            self.address,
            account_key()
        );
        let response = connection.expect(200, request.as_bytes()).await?;
        Ok(serde_json::from_slice(response.body)?)
    }

    /// Whether an item is stored, live or not, according to the server's explanation. Costs the server as much as a point read.
    pub async fn is_stored(&self, connection: &mut Connection, id: &str) -> Result<bool> {
        let pk = utf8_percent_encode(&format!("[\"{id}\"]"), NON_ALPHANUMERIC).to_string();
        let body = self
            .admin_report(connection, &format!("ttl/why?id={id}&pk={pk}"))
            .await?;
        Ok(body["state"].as_str().ok_or("an answer without a state")? != "absent")
    }

    /// Any request, signed.
    pub fn request(&self, draft: &Draft<'_>) -> Vec<u8> {
        with_body(&self.head(draft), draft.body)
    }

    /// The head of a request, up to the value of `content-length`.
    fn head(&self, draft: &Draft<'_>) -> String {
        let Draft {
            method, path, headers, ..
        } = draft;
        format!(
            "{method} /{path} HTTP/1.1\r\nhost: {address}\r\nauthorization: {authorization}\r\nx-ms-date: {date}\r\n\
             x-ms-version: 2020-07-15\r\naccept: application/json\r\ncache-control: no-cache\r\nuser-agent: bolide-bench\r\n\
             content-type: {content_type}\r\n{headers}content-length: ",
            address = self.address,
            authorization = self.authorization(draft),
            date = self.date,
            content_type = if headers.contains("isquery") {
                "application/query+json"
            } else {
                "application/json"
            },
        )
    }

    /// The value of `x-ms-date`.
    pub fn date(&self) -> &str {
        &self.date
    }

    /// The value of `authorization`, for the method, the type and the link of a request.
    ///
    /// Source: REST reference, "Access control on Cosmos DB resources".
    pub fn authorization(&self, draft: &Draft<'_>) -> String {
        let Draft {
            method,
            resource_type,
            link,
            ..
        } = draft;
        let payload = format!(
            "{}\n{resource_type}\n{link}\n{}\n\n",
            method.to_lowercase(),
            self.date.to_lowercase()
        );
        let mut mac = Hmac::<Sha256>::new_from_slice(self.key).expect("HMAC takes keys of any length");
        mac.update(payload.as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        utf8_percent_encode(&format!("type=master&ver=1.0&sig={signature}"), NON_ALPHANUMERIC).to_string()
    }
}

fn partition_key(id: &str) -> String {
    format!("x-ms-documentdb-partitionkey: [\"{id}\"]\r\n")
}

fn container_definition(default_ttl: Option<i32>, more: &str) -> String {
    let ttl = default_ttl
        .map(|seconds| format!(",\"defaultTtl\":{seconds}"))
        .unwrap_or_default();
    format!("{{\"id\":\"items\",\"partitionKey\":{{\"paths\":[\"/id\"],\"kind\":\"Hash\",\"version\":2}}{ttl}{more}}}")
}
