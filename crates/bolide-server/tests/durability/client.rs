//! A small client: one connection and one request at a time, so that a test knows of every request whether it was answered.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac};
use serde_json::Value;
use sha2::Sha256;

/// The key the server takes by default on loopback.
const KEY: &str = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
/// Far above what any request needs; a server that hangs fails the test.
const PATIENCE: Duration = Duration::from_secs(30);

/// A connection.
pub struct Client {
    stream: BufReader<TcpStream>,
}

/// A request, signed.
pub struct Request {
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: String,
}

/// An answer.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// A request to the list of resources of a kind below `parent`, as `dbs/d/colls/c`.
    pub fn feed(method: &'static str, parent: &str, kind: &str) -> Request {
        let path = [parent, kind]
            .iter()
            .filter(|part| !part.is_empty())
            .map(|part| format!("/{part}"))
            .collect();
        Request::signed(method, path, kind, parent)
    }

    /// A request to one resource, as `dbs/d/colls/c`. Ids must need no escapes.
    pub fn resource(method: &'static str, link: &str) -> Request {
        let kind = link.rsplit('/').nth(1).expect("a link ends with a kind and an id");
        Request::signed(method, format!("/{link}"), kind, link)
    }

    fn signed(method: &'static str, path: String, kind: &str, link: &str) -> Request {
        let date = httpdate::fmt_http_date(now());
        let payload = format!("{}\n{kind}\n{link}\n{}\n\n", method.to_lowercase(), date.to_lowercase());
        let mut mac = Hmac::<Sha256>::new_from_slice(&BASE64.decode(KEY).expect("base64")).expect("any length");
        mac.update(payload.as_bytes());
        let signature = BASE64.encode(mac.finalize().into_bytes());
        let signature = signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
        let token = format!("type%3Dmaster%26ver%3D1.0%26sig%3D{signature}");
        let headers = vec![
            ("authorization", token),
            ("x-ms-date", date),
            ("x-ms-version", "2020-07-15".to_owned()),
        ];
        Request {
            method,
            path,
            headers,
            body: String::new(),
        }
    }

    /// A request to the admin interface.
    pub fn admin(method: &'static str, path: &str) -> Request {
        let headers = vec![("authorization", format!("Bearer {KEY}"))];
        Request {
            method,
            path: format!("/_bolide/{path}"),
            headers,
            body: String::new(),
        }
    }

    /// Adds a header.
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Request {
        self.headers.push((name, value.into()));
        self
    }

    /// Names the logical partition.
    pub fn partition_key(self, key: &str) -> Request {
        self.header("x-ms-documentdb-partitionkey", format!("[\"{key}\"]"))
    }

    /// Sets the body.
    pub fn json(mut self, body: &Value) -> Request {
        self.body = body.to_string();
        self.header("content-type", "application/json")
    }
}

#[expect(clippy::disallowed_methods, reason = "a client's clock, not the server's")]
fn now() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

impl Client {
    /// Connects to a server on this machine.
    pub fn connect(port: u16) -> io::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Client {
            stream: BufReader::new(stream),
        })
    }

    /// Sends a request and reads the whole answer. An error leaves open whether the server carried the request out.
    pub fn send(&mut self, request: &Request) -> io::Result<Response> {
        let mut text = format!("{} {} HTTP/1.1\r\nhost: localhost\r\n", request.method, request.path);
        for (name, value) in &request.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!(
            "content-length: {}\r\n\r\n{}",
            request.body.len(),
            request.body
        ));
        self.stream.get_mut().write_all(text.as_bytes())?;
        self.read_response()
    }

    /// Sends a request that must be answered, and with one of some statuses.
    pub fn expect(&mut self, request: &Request, statuses: &[u16]) -> Response {
        let response = self.send(request).expect("the server answers");
        let what = format!("{} {}", request.method, request.path);
        assert!(
            statuses.contains(&response.status),
            "{what}: {} {}",
            response.status,
            response.text()
        );
        response
    }

    /// Server time in milliseconds.
    pub fn clock(&mut self) -> io::Result<i64> {
        let response = self.send(&Request::admin("GET", "clock"))?;
        Ok(response.json()["nowMs"].as_i64().expect("the clock shows milliseconds"))
    }

    fn read_response(&mut self) -> io::Result<Response> {
        let status_line = self.read_line()?;
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| broken("no status line"))?;
        let mut headers = Vec::new();
        loop {
            let line = self.read_line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| broken("no header"))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = Response {
            status,
            headers,
            body: Vec::new(),
        };
        assert_eq!(
            response.header("transfer-encoding"),
            None,
            "nothing asked for here is answered in chunks"
        );
        let length = response
            .header("content-length")
            .map_or(Ok(0), str::parse)
            .map_err(|_| broken("length"))?;
        response.body.resize(length, 0);
        self.stream.read_exact(&mut response.body)?;
        Ok(response)
    }

    fn read_line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(broken("the connection ended")),
        }
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Response {
    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in `{}`", self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The range the request touched and how far its log had come, from the session token.
    pub fn position(&self) -> (u32, u64) {
        let token = self
            .header("x-ms-session-token")
            .expect("a request for an item touches a range");
        let position = token
            .split_once(":-1#")
            .and_then(|(range, lsn)| Some((range.parse().ok()?, lsn.parse().ok()?)));
        position.unwrap_or_else(|| panic!("one range: {token}"))
    }

    /// Asserts that this is an error as Cosmos clients expect one, and returns its message.
    pub fn cosmos_error(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/json"));
        let body = self.json();
        assert!(body["code"].is_string(), "{body}");
        body["message"]
            .as_str()
            .unwrap_or_else(|| panic!("no message: {body}"))
            .to_owned()
    }
}
