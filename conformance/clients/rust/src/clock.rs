//! The server's virtual clock, moved through the admin API.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::checks::Outcome;

/// Moves the clock of a server that was started with `--virtual-clock`.
pub struct Clock {
    authority: String,
    key: String,
}

impl Clock {
    /// `endpoint` may be HTTP or HTTPS. The call itself is plain HTTP: the server answers both on one port.
    pub fn new(endpoint: &str, key: &str) -> Self {
        let authority = endpoint.split("//").nth(1).unwrap_or(endpoint).trim_end_matches('/');
        Self {
            authority: authority.to_owned(),
            key: key.to_owned(),
        }
    }

    /// Moves the clock to an instant in epoch milliseconds.
    pub fn set_ms(&self, instant: i64) -> Outcome {
        let body = format!(r#"{{"setMs":{instant}}}"#);
        let request = format!(
            "PUT /_bolide/clock HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
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
        if answer.starts_with("HTTP/1.1 200") {
            return Ok(());
        }
        Err(format!("moving the clock: {answer}").into())
    }

    /// Moves the clock to the first millisecond of a second.
    pub fn set_seconds(&self, instant: i64) -> Outcome {
        self.set_ms(instant * 1000)
    }
}
