//! A small client: signs requests as SDKs do and speaks HTTP/1.1 over any stream.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bolide_model::account_key::WELL_KNOWN_KEY;
use bolide_model::time::wall_clock;
use hmac::{Hmac, Mac as _};
use serde_json::Value;
use sha2::Sha256;

/// A connection.
pub struct Client<S = TcpStream> {
    stream: BufReader<S>,
}

/// A request under construction.
#[derive(Debug, Clone)]
pub struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    key: String,
    host: String,
    /// Offset of the signed date from now, in seconds.
    date_offset: i64,
    /// The link to sign, if it differs from the path's.
    signed_link: Option<String>,
    /// The resource type to sign, if it differs from the path's.
    signed_resource: Option<String>,
}

/// A response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Client {
    pub fn connect(port: u16) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
        Client::over(stream)
    }

    /// The stream of the connection, for sending what no client should send.
    pub fn into_stream(self) -> TcpStream {
        self.stream.into_inner()
    }

    pub fn over(stream: TcpStream) -> Client {
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("a timeout can be set");
        Client::new(stream)
    }
}

impl<S: Read + Write> Client<S> {
    pub fn new(stream: S) -> Client<S> {
        Client {
            stream: BufReader::new(stream),
        }
    }

    /// The stream, for its timeouts.
    pub fn stream(&self) -> &S {
        self.stream.get_ref()
    }

    /// Sends a request and waits for its response.
    pub fn send(&mut self, request: &Request) -> Response {
        self.try_send(request).expect("the server answers")
    }

    pub fn try_send(&mut self, request: &Request) -> io::Result<Response> {
        self.stream.get_mut().write_all(&request.to_bytes())?;
        self.stream.get_mut().flush()?;
        self.receive(request.method == "HEAD")
    }

    /// Reads one response.
    pub fn receive(&mut self, is_head: bool) -> io::Result<Response> {
        let status_line = self.line()?;
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status line: `{status_line}`")))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut response = Response {
            status,
            headers,
            body: Vec::new(),
        };
        if !is_head {
            response.body = self.body(&response)?;
        }
        Ok(response)
    }

    fn body(&mut self, response: &Response) -> io::Result<Vec<u8>> {
        if response.header("transfer-encoding") == Some("chunked") {
            return self.chunks();
        }
        let length = response
            .header("content-length")
            .map_or(0, |length| length.parse().expect("a length"));
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok(body)
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)?;
            let start = body.len();
            body.resize(start + size, 0);
            self.stream.read_exact(&mut body[start..])?;
            self.line()?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Request {
    pub fn new(method: &str, path: &str) -> Request {
        Request {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            key: WELL_KNOWN_KEY.to_owned(),
            host: "localhost".to_owned(),
            date_offset: 0,
            signed_link: None,
            signed_resource: None,
        }
    }

    pub fn get(path: &str) -> Request {
        Request::new("GET", path)
    }

    pub fn post(path: &str, body: impl AsRef<[u8]>) -> Request {
        Request::new("POST", path).body(body)
    }

    pub fn put(path: &str, body: impl AsRef<[u8]>) -> Request {
        Request::new("PUT", path).body(body)
    }

    pub fn body(mut self, body: impl AsRef<[u8]>) -> Request {
        self.body = body.as_ref().to_vec();
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Request {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the partition key `["p"]`.
    pub fn pk(self) -> Request {
        self.header("x-ms-documentdb-partitionkey", r#"["p"]"#)
    }

    /// Marks the body as a query over all partitions.
    pub fn query(self) -> Request {
        self.header("x-ms-documentdb-isquery", "True")
            .header("x-ms-documentdb-query-enablecrosspartition", "True")
    }

    /// Signs with another key.
    pub fn key(mut self, key: &str) -> Request {
        key.clone_into(&mut self.key);
        self
    }

    /// Sends another `Host`.
    pub fn host(mut self, host: &str) -> Request {
        host.clone_into(&mut self.host);
        self
    }

    /// Sends no signature.
    pub fn unsigned(self) -> Request {
        self.header("authorization", "")
    }

    /// Signs a date with an offset in seconds from now.
    pub fn dated(mut self, seconds: i64) -> Request {
        self.date_offset = seconds;
        self
    }

    /// Signs this link instead of the path's.
    pub fn signing(mut self, link: &str) -> Request {
        self.signed_link = Some(link.to_owned());
        self
    }

    /// Signs this resource type and link instead of the path's.
    pub fn signing_as(mut self, resource: &str, link: &str) -> Request {
        self.signed_resource = Some(resource.to_owned());
        self.signing(link)
    }

    /// The request as sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!(
            "{} {} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n",
            self.method,
            self.path,
            self.host,
            self.body.len()
        );
        let signs = !self
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let signed = if signs && self.path.starts_with("/_bolide/") {
            vec![("authorization".to_owned(), format!("Bearer {}", self.key))]
        } else if signs {
            self.signature()
        } else {
            Vec::new()
        };
        // A version set by the request replaces the default one.
        let is_own = |name: &str| self.headers.iter().any(|(own, _)| own == name && own == "x-ms-version");
        let signed = signed.iter().filter(|(name, _)| !is_own(name));
        for (name, value) in signed.chain(&self.headers) {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        [text.into_bytes(), self.body.clone()].concat()
    }

    /// The authorization of the request and its date.
    pub fn authorization(&self) -> (String, String) {
        let mut signed = self.signature().into_iter().map(|(_, value)| value);
        let mut next = || signed.next().expect("three headers");
        (next(), next())
    }

    fn signature(&self) -> Vec<(String, String)> {
        let seconds = u64::try_from(wall_clock().0 / 1000 + self.date_offset).expect("after 1970");
        let date = httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_secs(seconds));
        let path = self.path.trim_matches('/');
        let segments: Vec<&str> = if path.is_empty() {
            Vec::new()
        } else {
            path.split('/').collect()
        };
        let (resource, link) = match segments.as_slice() {
            [] => ("", String::new()),
            // An id with an unescaped slash.
            ["dbs", _, "colls", _, "docs", _, ..] => ("docs", path.to_owned()),
            [parent @ .., feed] if segments.len() % 2 == 1 => (*feed, parent.join("/")),
            [.., kind, _] => (*kind, path.to_owned()),
            [feed] => (*feed, String::new()),
        };
        let link = self.signed_link.clone().unwrap_or(link);
        let resource = self.signed_resource.as_deref().unwrap_or(resource);
        let payload = format!(
            "{}\n{resource}\n{link}\n{}\n\n",
            self.method.to_lowercase(),
            date.to_lowercase()
        );
        let key = STANDARD.decode(&self.key).expect("the test's key is base64");
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any key will do");
        mac.update(payload.as_bytes());
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        let token = format!(
            "type%3Dmaster%26ver%3D1.0%26sig%3D{}",
            signature.replace('+', "%2B").replace('=', "%3D")
        );
        vec![
            ("authorization".to_owned(), token),
            ("x-ms-date".to_owned(), date),
            ("x-ms-version".to_owned(), "2020-07-15".to_owned()),
        ]
    }
}

impl Response {
    /// The names of the headers, in their order.
    pub fn header_names(&self) -> Vec<&str> {
        self.headers.iter().map(|(name, _)| name.as_str()).collect()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("no JSON: {error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Fails unless the response has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Response {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// Fails unless the response is an error in the format that SDKs parse.
    #[track_caller]
    pub fn expect_error(self, status: u16) -> Response {
        let response = self.expect(status);
        assert_eq!(response.header("content-type"), Some("application/json"));
        let body = response.json();
        assert!(body["code"].is_string() && body["message"].is_string(), "{body}");
        assert!(response.header("x-ms-activity-id").is_some_and(|id| !id.is_empty()));
        response
    }
}

/// Creates database `d` with container `c`, partitioned by `/pk`.
pub fn create_container(client: &mut Client) {
    client.send(&Request::post("/dbs", r#"{"id":"d"}"#)).expect(201);
    client
        .send(&Request::post(
            "/dbs/d/colls",
            r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#,
        ))
        .expect(201);
}

/// Creates item `id` in it, under the partition key `p`.
pub fn create_item(client: &mut Client, id: &str) -> Response {
    let body = format!(r#"{{"id":"{id}","pk":"p"}}"#);
    client
        .send(&Request::post("/dbs/d/colls/c/docs", body).pk())
        .expect(201)
}
