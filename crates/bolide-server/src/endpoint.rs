//! The endpoint of a running server, as commands get it, and single requests to it. Whoever answers there may be any program: time and size are bounded.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use bolide_model::time::Monotonic;
use http::Uri;

use crate::options::is_loopback;
use crate::server::Failure;

/// Time to connect to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Time for one read or write.
const STEP_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for a whole answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of an answer.
const ANSWER_BYTES: usize = 256 * 1024;

/// An endpoint: `http://host:port` or `https://host:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Whether the scheme is `https`.
    pub is_tls: bool,
    /// A name or an address, without brackets.
    pub host: String,
    /// The port; 80 or 443 if none was given.
    pub port: u16,
}

impl Target {
    /// Reads the text of an option.
    ///
    /// # Errors
    /// Another scheme, no host, or more than a host and a port.
    pub fn parse(option: &str, text: &str) -> Result<Target, Failure> {
        let malformed = || {
            Failure::new(format!(
                "{option}: expected http://host:port or https://host:port. value=`{text}`"
            ))
        };
        let uri: Uri = text.parse().map_err(|_| malformed())?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(malformed()),
        };
        let authority = uri.authority().filter(|authority| !authority.as_str().contains('@'));
        let host = authority.ok_or_else(malformed)?.host();
        if host.is_empty() || !uri.path().trim_matches('/').is_empty() || uri.query().is_some() {
            return Err(malformed());
        }
        Ok(Target {
            is_tls,
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
        })
    }

    /// Host and port, as in a URL.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// The URL with this scheme.
    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.authority())
    }

    /// Whether it can only be a program on this machine.
    pub fn is_loopback(&self) -> bool {
        is_loopback(&self.host)
    }

    /// The addresses of the host.
    ///
    /// # Errors
    /// A name that the system does not know.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        let mut addresses: Vec<SocketAddr> = (self.host.as_str(), self.port).to_socket_addrs()?.collect();
        addresses.dedup();
        Ok(addresses)
    }

    /// Connects to the first address that accepts.
    ///
    /// # Errors
    /// The error of the last address.
    pub fn connect(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for address in self.addresses()? {
            match connect(address) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// Connects to an address; the stream has timeouts.
///
/// # Errors
/// Refused, unreachable, or no answer in time.
pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)?;
    stream.set_read_timeout(Some(STEP_TIMEOUT))?;
    stream.set_write_timeout(Some(STEP_TIMEOUT))?;
    Ok(stream)
}

/// The answer to an HTTP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// The body, at most 256 KiB of it.
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// Reads the bytes of an answer; `None` if they are not HTTP.
    pub fn parse(bytes: &[u8]) -> Option<HttpAnswer> {
        let (head, body) = split_head(bytes)?;
        let head = String::from_utf8_lossy(head);
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        words.next().filter(|version| version.starts_with("HTTP/"))?;
        let status = words.next()?.parse().ok()?;
        let headers = lines.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        });
        Some(HttpAnswer {
            status,
            headers: headers.collect(),
            body: body.to_vec(),
        })
    }

    /// The value of a header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends a GET request, and returns the bytes of the answer, whatever they are.
///
/// # Errors
/// An error of the connection before anything has come, or no answer in time.
pub fn get<S: Read + Write>(
    stream: &mut S,
    authority: &str,
    path: &str,
    headers: &[(&str, String)],
) -> io::Result<Vec<u8>> {
    let mut request =
        format!("GET {path} HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\naccept: application/json\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    receive(stream)
}

/// Reads until the answer is complete, the connection ends, or a limit is reached.
fn receive(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let clock = Monotonic::system();
    let began = clock.now();
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    while bytes.len() < ANSWER_BYTES && !is_complete(&bytes) && clock.since(began) < ANSWER_TIMEOUT {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // What has come so far tells who answers.
            Err(_) if !bytes.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// Whether bytes are a whole answer, by its declared length.
fn is_complete(bytes: &[u8]) -> bool {
    let Some((_, body)) = split_head(bytes) else {
        return false;
    };
    let length = HttpAnswer::parse(bytes).and_then(|answer| answer.header("content-length")?.parse::<usize>().ok());
    length.is_some_and(|length| body.len() >= length)
}

fn split_head(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((&bytes[..end], &bytes[end + 4..]))
}

#[cfg(test)]
mod tests;
