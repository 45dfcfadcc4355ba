//! The shared state of the checks: a client, a database, the clock, connection strings of other kinds.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::Duration;

use bson::Document;
use mongodb::{Client, Collection, Database};
use serde_json::{Value, json};

use crate::checks::Outcome;

/// A connected client and the tour's database.
pub struct World {
    pub client: Client,
    pub database: Database,
    pub clock: Clock,
    pub certificate: String,
    uri: String,
    tables: PathBuf,
}

impl World {
    /// Reads the command line and connects.
    pub async fn open() -> Outcome<Self> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let options: HashMap<&str, &str> = words
            .chunks(2)
            .map(|pair| (pair[0].as_str(), pair[1].as_str()))
            .collect();
        let option = |name: &str| {
            options
                .get(name)
                .map(|value| (*value).to_owned())
                .ok_or(format!("{name} is needed"))
        };
        let uri = option("--uri")?;
        let client = Client::with_uri_str(&uri).await?;
        let database = client.database(&format!("tour-{}", bson::oid::ObjectId::new().to_hex()));
        Ok(Self {
            client,
            database,
            clock: Clock {
                authority: option("--endpoint")?
                    .trim_start_matches("http://")
                    .trim_end_matches('/')
                    .to_owned(),
                key: option("--key")?,
            },
            certificate: option("--certificate")?,
            uri,
            tables: option("--tables")?.into(),
        })
    }

    /// Connects with other options than the tour's, and perhaps without credentials or with another password.
    pub async fn connect(&self, credentials: Credentials<'_>, options: &str) -> mongodb::error::Result<Client> {
        let rest = self.uri.trim_start_matches("mongodb://");
        let (login, rest) = rest.split_once('@').unwrap_or(("", rest));
        let host = rest.split('/').next().unwrap_or_default();
        let user = login.split(':').next().unwrap_or_default();
        let login = match credentials {
            Credentials::Own => format!("{login}@"),
            Credentials::Password(password) => format!("{user}:{password}@"),
            Credentials::None => String::new(),
        };
        Client::with_uri_str(format!(
            "mongodb://{login}{host}/?serverSelectionTimeoutMS=8000&{options}"
        ))
        .await
    }

    /// A collection of the tour's database that holds exactly these documents.
    pub async fn collection(&self, name: &str, documents: &[Document]) -> mongodb::error::Result<Collection<Document>> {
        let collection = self.database.collection(name);
        collection.drop().await?;
        if !documents.is_empty() {
            collection.insert_many(documents).await?;
        }
        Ok(collection)
    }

    /// A file of the data that the tours of all languages share.
    pub fn table(&self, name: &str) -> Outcome<Document> {
        let text = std::fs::read_to_string(self.tables.join(format!("tour_{name}.json")))?;
        match serde_json::from_str(&text)? {
            Value::Object(table) => Ok(Document::try_from(table)?),
            _ => Err(format!("tour_{name}.json is no object").into()),
        }
    }
}

/// With what a client authenticates.
pub enum Credentials<'a> {
    Own,
    Password(&'a str),
    None,
}

/// The server's virtual clock, moved through the admin API.
pub struct Clock {
    authority: String,
    key: String,
}

impl Clock {
    /// Moves the clock to an instant in epoch milliseconds.
    pub fn set_ms(&self, instant: i64) -> Outcome {
        self.call("PUT", &json!({ "setMs": instant }).to_string()).map(drop)
    }

    /// Moves the clock to the beginning of the next second and returns it in epoch milliseconds.
    pub fn next_second(&self) -> Outcome<i64> {
        let now: Value = serde_json::from_str(&self.call("GET", "")?)?;
        let now = now["nowMs"].as_i64().ok_or("the clock has no time")?;
        let next = (now / 1000 + 1) * 1000;
        self.set_ms(next)?;
        Ok(next)
    }

    fn call(&self, method: &str, body: &str) -> Outcome<String> {
        let request = format!(
            "{method} /_bolide/clock HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.authority,
            self.key,
            body.len(),
        );
        let mut connection = TcpStream::connect(&self.authority)?;
        connection.set_read_timeout(Some(Duration::from_secs(10)))?;
        connection.write_all(request.as_bytes())?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        if answer.split(' ').nth(1) == Some("200") {
            return Ok(body.to_owned());
        }
        Err(format!("the clock: {answer}").into())
    }
}
