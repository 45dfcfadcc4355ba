//! The port of a server where it speaks TLS, with its certificate.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::Result;
use crate::connection::Connection;

/// A stream of either protocol.
pub type Tls = TlsStream<TcpStream>;

/// See the module.
pub struct Endpoint {
    address: SocketAddr,
    tls: TlsConnector,
}

impl Endpoint {
    /// That of the server of a connection, which has its certificate, the only one that is trusted.
    pub async fn of(address: SocketAddr, connection: &mut Connection) -> Result<Endpoint> {
        let request = format!("GET /_explorer/emulator.pem HTTP/1.1\r\nhost: {address}\r\n\r\n");
        let response = connection.expect(200, request.as_bytes()).await?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(response.body)?)?;
        // Without ALPN, as .NET: the first bytes tell the protocols apart.
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Endpoint {
            address,
            tls: TlsConnector::from(Arc::new(config)),
        })
    }

    /// Connects, up to the end of the handshake of TLS.
    pub async fn connect(&self) -> Result<Tls> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from("localhost")?;
        Ok(self.tls.connect(name, stream).await?)
    }

    /// The cipher that a connection gets.
    pub async fn cipher(&self) -> Result<String> {
        let stream = self.connect().await?;
        let suite = stream.get_ref().1.negotiated_cipher_suite().ok_or("no cipher")?;
        Ok(format!("{:?}", suite.suite()))
    }
}
