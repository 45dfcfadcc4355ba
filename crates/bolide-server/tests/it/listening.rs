//! Addresses, ports and TLS.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tempfile::TempDir;

use crate::client::{Client, Request};
use crate::server::Server;

pub type Tls = StreamOwned<ClientConnection, TcpStream>;

/// Connects with TLS, trusting only the server's certificate.
pub fn tls_client(server: &Server, pem: &[u8], name: &str) -> Client<Tls> {
    Client::new(tls_stream(server.port(), pem, name))
}

/// As [`tls_client`], to any port.
pub fn tls_stream(port: u16, pem: &[u8], name: &str) -> Tls {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    tls_over(stream, pem, name)
}

/// As [`tls_client`], over a connection.
pub fn tls_over(stream: TcpStream, pem: &[u8], name: &str) -> Tls {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(pem).expect("a certificate"))
        .expect("it can be trusted");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS 1.2 and 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    StreamOwned::new(connection, stream)
}

pub fn certificate(server: &Server) -> Vec<u8> {
    let response = server
        .client()
        .send(&Request::get("/_explorer/emulator.pem").header("authorization", ""))
        .expect(200);
    response.body
}

#[test]
fn http_and_https_share_a_port_and_the_certificate_is_handed_out() {
    let server = Server::in_memory(&[]);
    let pem = certificate(&server);
    for name in ["localhost", "127.0.0.1"] {
        let root = tls_client(&server, &pem, name)
            .send(&Request::get("/"))
            .expect(200)
            .json();
        assert_eq!(
            root["writableLocations"][0]["databaseAccountEndpoint"], "https://localhost/",
            "{name}"
        );
    }
    let root = server.client().send(&Request::get("/")).expect(200).json();
    assert_eq!(
        root["writableLocations"][0]["databaseAccountEndpoint"],
        "http://localhost/"
    );
}

#[test]
fn the_certificate_is_kept_in_the_data_directory() {
    let data = TempDir::new().expect("a temporary directory");
    let mut first = Server::on(data.path(), &[]);
    let pem = certificate(&first);
    assert!(first.stop().success());
    let second = Server::on(data.path(), &[]);
    assert_eq!(certificate(&second), pem);
    tls_client(&second, &pem, "localhost")
        .send(&Request::get("/"))
        .expect(200);
}

#[test]
fn localhost_is_reached_over_ipv4_and_ipv6() {
    let server = Server::in_memory(&[]);
    server.client().send(&Request::get("/")).expect(200);
    // Machines without IPv6 have only one address.
    if let Ok(stream) = TcpStream::connect(("::1", server.port())) {
        Client::over(stream).send(&Request::get("/")).expect(200);
    }
}

#[test]
fn http2_is_spoken_without_tls_to_clients_that_begin_so() {
    let server = Server::in_memory(&[]);
    let mut stream = server.client().into_stream();
    // RFC 9113: the client's preface ends with a SETTINGS frame, here an empty one. The server also sends one first.
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    stream
        .write_all(&[&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &settings].concat())
        .expect("it can be sent");
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).expect("the server answers");
    assert_eq!(frame[3], 4, "the type of a SETTINGS frame");
}

#[test]
fn the_ready_file_names_the_endpoints() {
    let server = Server::in_memory(&[]);
    let ready = server.ready();
    let port = server.port();
    assert_eq!(ready["cosmos"], format!("http://127.0.0.1:{port}"));
    assert_eq!(ready["cosmosTls"], format!("https://127.0.0.1:{port}"));
    let mongo = ready["mongo"].as_str().expect("a URL");
    assert!(
        mongo.starts_with("mongodb://127.0.0.1:") && !mongo.ends_with(":0"),
        "{mongo}"
    );
    assert_eq!(ready["pid"], server.pid());
}
