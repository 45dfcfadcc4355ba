//! The bare server: hyper without anything behind it, returning a response that Bolide gave.
//!
//! It runs in its own process, on as many threads as Bolide's runtime has, and gives every request the same status, headers and body. `date` and
//! `content-length` are left to hyper, which also adds them for Bolide. Signatures are not checked.

use std::convert::Infallible;
use std::future::ready;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, DATE};
use http::{HeaderName, HeaderValue, Response};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tempfile::NamedTempFile;
use tokio::net::{TcpListener, TcpStream};

use crate::Result;
use crate::connection::HttpResponse;
use crate::process::OwnedChild;

/// A bare server in a child process; ends when dropped.
pub struct BareServer {
    child: OwnedChild,
    pub address: SocketAddr,
    _answer: NamedTempFile,
}

impl BareServer {
    /// Starts a server that returns `response`.
    pub fn start(response: &HttpResponse<'_>) -> Result<BareServer> {
        let file = NamedTempFile::new()?;
        std::fs::write(file.path(), [response.head, response.body].concat())?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("bare")
            .arg(file.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = OwnedChild(command.spawn()?);
        let output = child.0.stdout.take().ok_or("the bare server has no output")?;
        let mut port = String::new();
        BufReader::new(output).read_line(&mut port)?;
        Ok(BareServer {
            child,
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, port.trim().parse()?)),
            _answer: file,
        })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }
}

/// Serves the response in a file until the process is ended. Prints the port first.
pub fn serve(response: &Path) -> Result<()> {
    let response = parse(&std::fs::read(response)?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        println!("{}", listener.local_addr()?.port());
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            tokio::spawn(serve_connection(stream, response.clone()));
        }
    })
}

async fn serve_connection(stream: TcpStream, response: Response<Full<Bytes>>) {
    let service = service_fn(move |_| ready(Ok::<_, Infallible>(response.clone())));
    // It is no error if a client disconnects.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Parses a response as received.
fn parse(bytes: &[u8]) -> Result<Response<Full<Bytes>>> {
    let head_end = memchr::memmem::find(bytes, b"\r\n\r\n").ok_or("an answer without a head")?;
    let head = std::str::from_utf8(&bytes[..head_end])?;
    let body = Bytes::copy_from_slice(&bytes[head_end + 4..]);
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .ok_or("an answer without a status")?;
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status.parse()?;
    for line in lines {
        let (name, value) = line.split_once(": ").ok_or("a malformed header")?;
        let name: HeaderName = name.parse()?;
        if name != DATE && name != CONTENT_LENGTH {
            response.headers_mut().append(name, HeaderValue::from_str(value)?);
        }
    }
    Ok(response)
}

#[cfg(test)]
mod tests;
