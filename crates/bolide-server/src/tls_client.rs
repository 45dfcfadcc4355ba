//! TLS connections of commands that look at a server's certificate instead of relying on it, and what they see.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use bolide_model::time::wall_clock;
use parking_lot::Mutex;
use ring::digest;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring as provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme, StreamOwned};
use time::OffsetDateTime;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// A TLS connection, and what the server showed.
pub struct Handshake {
    /// The connection, for a request.
    pub stream: StreamOwned<ClientConnection, TcpStream>,
    /// The server's own certificate, without those that signed it.
    pub certificate: CertificateDer<'static>,
    /// Why a client that trusts `roots` would refuse it; `None` if it would not.
    pub refusal: Option<rustls::Error>,
}

/// Connects, and goes on whatever certificate the server shows. Nothing secret may be sent.
///
/// # Errors
/// A server that does not speak TLS, or a connection that ends.
pub fn handshake(stream: TcpStream, host: &str, roots: RootCertStore) -> io::Result<Handshake> {
    let seen = Arc::new(Mutex::new(None));
    let inner = (!roots.is_empty()).then(|| {
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::new(provider::default_provider())).build()
    });
    let verifier = Witness {
        inner: inner.transpose().map_err(io::Error::other)?,
        seen: seen.clone(),
    };
    let config = ClientConfig::builder_with_provider(Arc::new(provider::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    let certificates = stream.conn.peer_certificates().unwrap_or_default();
    let certificate = certificates.first().cloned().map(CertificateDer::into_owned);
    Ok(Handshake {
        certificate: certificate.ok_or_else(|| io::Error::other("the server showed no certificate"))?,
        refusal: seen.lock().take(),
        stream,
    })
}

/// Accepts every certificate, and keeps why a real client would refuse it.
#[derive(Debug)]
struct Witness {
    /// `None`: nothing is trusted.
    inner: Option<Arc<WebPkiServerVerifier>>,
    seen: Arc<Mutex<Option<rustls::Error>>>,
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let unknown = || {
            Err(rustls::Error::InvalidCertificate(
                rustls::CertificateError::UnknownIssuer,
            ))
        };
        let verdict = self.inner.as_ref().map_or_else(unknown, |inner| {
            inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
        });
        *self.seen.lock() = verdict.err();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = provider::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = provider::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// What a certificate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFacts {
    /// The names and addresses that it covers.
    pub names: Vec<String>,
    /// The first instant at which it is valid, and the last.
    pub valid: (OffsetDateTime, OffsetDateTime),
    /// Whether it may sign other certificates.
    pub is_authority: bool,
    /// Whether it names itself as its issuer.
    pub is_self_signed: bool,
    /// The name of the issuer.
    pub issuer: String,
    /// The serial number, in hexadecimal.
    pub serial: String,
    /// SHA-256 of the whole certificate, in lower-case hexadecimal.
    pub fingerprint: String,
}

impl CertificateFacts {
    /// Reads a certificate in DER; `None` if it is not one.
    pub fn of(der: &[u8]) -> Option<CertificateFacts> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let names = certificate.subject_alternative_name().ok().flatten();
        let names = names.map(|extension| extension.value.general_names.iter().filter_map(name_text).collect());
        let validity = certificate.validity();
        Some(CertificateFacts {
            names: names.unwrap_or_default(),
            valid: (validity.not_before.to_datetime(), validity.not_after.to_datetime()),
            is_authority: certificate.is_ca(),
            is_self_signed: certificate.subject().as_raw() == certificate.issuer().as_raw(),
            issuer: certificate.issuer().to_string(),
            serial: hex(certificate.raw_serial()),
            fingerprint: hex(digest::digest(&digest::SHA256, der).as_ref()),
        })
    }

    /// Whether the wall clock is within the validity.
    pub fn is_valid_now(&self) -> bool {
        let now = wall_clock().0 / 1000;
        (self.valid.0.unix_timestamp()..=self.valid.1.unix_timestamp()).contains(&now)
    }
}

fn name_text(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match <[u8; 4]>::try_from(*bytes) {
            Ok(v4) => Some(std::net::Ipv4Addr::from(v4).to_string()),
            Err(_) => <[u8; 16]>::try_from(*bytes)
                .ok()
                .map(|v6| std::net::Ipv6Addr::from(v6).to_string()),
        },
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
