//! The certificate of the HTTPS side: the user's, the one kept from an earlier start, or a new one.

use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::options::ServeOptions;
use crate::server::Failure;

const CERTIFICATE_FILE: &str = "tls-certificate.pem";
const KEY_FILE: &str = "tls-key.pem";

/// A certificate with its private key, both as PEM text.
pub struct Certificate {
    certificate: String,
    key: String,
    /// Whether it was made by this process and is not on the disk yet.
    is_new: bool,
}

impl Certificate {
    /// Takes the files named by options, or those in the data directory, or makes a certificate. Writes nothing, since the data
    /// directory may turn out not to be ours; see [`Certificate::keep`].
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn find_or_make(options: &ServeOptions) -> Result<Certificate, Failure> {
        if let (Some(certificate), Some(key)) = (&options.tls_cert, &options.tls_key) {
            return Certificate::read(certificate, key);
        }
        let (certificate, key) = kept_files(options);
        if !options.memory && certificate.is_file() && key.is_file() {
            return Certificate::read(&certificate, &key);
        }
        Certificate::make(&options.host)
    }

    fn read(certificate: &Path, key: &Path) -> Result<Certificate, Failure> {
        Ok(Certificate {
            certificate: read(certificate)?,
            key: read(key)?,
            is_new: false,
        })
    }

    fn make(host: &str) -> Result<Certificate, Failure> {
        let failure = |error: rcgen::Error| Failure::new(format!("cannot make a certificate: {error}"));
        let mut params = CertificateParams::new(subject_names(host)).map_err(failure)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "localhost");
        params.distinguished_name.push(DnType::OrganizationName, "Bolide");
        let key = KeyPair::generate().map_err(failure)?;
        let certificate = params.self_signed(&key).map_err(failure)?;
        Ok(Certificate {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            is_new: true,
        })
    }

    /// Keeps a new certificate in the data directory, so that clients need to trust it once only.
    ///
    /// # Errors
    /// From the file system.
    pub fn keep(&self, options: &ServeOptions) -> Result<(), Failure> {
        if !self.is_new || options.memory {
            return Ok(());
        }
        let (certificate, key) = kept_files(options);
        write_private(&key, &self.key)?;
        fs::write(&certificate, &self.certificate).map_err(|error| cannot("write", &certificate, &error))
    }

    /// The certificate for clients to trust, as PEM.
    pub fn pem(&self) -> Bytes {
        Bytes::copy_from_slice(self.certificate.as_bytes())
    }

    /// What encrypts connections with this certificate; HTTP/2 is offered.
    ///
    /// # Errors
    /// PEM text that holds no certificate or no key, or two that do not belong together.
    pub fn acceptor(&self) -> Result<TlsAcceptor, Failure> {
        let failure = |error: &dyn std::fmt::Display| Failure::new(format!("cannot use the TLS certificate: {error}"));
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| failure(&error))?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|error| failure(&error))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| failure(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn kept_files(options: &ServeOptions) -> (PathBuf, PathBuf) {
    (options.data_dir.join(CERTIFICATE_FILE), options.data_dir.join(KEY_FILE))
}

/// What clients may call this machine.
fn subject_names(host: &str) -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_wildcard = host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
    let machine = fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok());
    for name in machine
        .iter()
        .map(|name| name.trim())
        .chain((!is_wildcard).then_some(host))
    {
        let is_usable = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:".contains(&b));
        if is_usable && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| cannot("read", path, &error))
}

/// Writes a file that only its owner may read.
fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| cannot("write", path, &error))
}

fn cannot(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot {verb} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_made_certificate_can_be_used() {
        let certificate = Certificate::make("127.0.0.1").expect("it can be made");
        assert!(certificate.acceptor().is_ok());
    }

    #[test]
    fn every_name_of_this_machine_stands_once() {
        let names = subject_names("db.example");
        for name in ["localhost", "127.0.0.1", "::1", "db.example"] {
            assert_eq!(names.iter().filter(|known| *known == name).count(), 1, "{name}");
        }
        assert!(!subject_names("0.0.0.0").iter().any(|name| name == "0.0.0.0"));
    }
}
