//! The certificate for HTTPS: the user's, the one stored at an earlier start, or a new one.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bolide_model::time::wall_clock;
use bytes::Bytes;
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use time::OffsetDateTime;
use tokio_rustls::TlsAcceptor;

use crate::files::{self, Readers};
use crate::options::ServeOptions;
use crate::server::Failure;
use crate::tls_client::CertificateFacts;

const CERTIFICATE_FILE: &str = "tls-certificate.pem";
const KEY_FILE: &str = "tls-key.pem";

const DAY: time::Duration = time::Duration::days(1);
/// How long a new certificate is valid: as long as all clients accept (Apple's limit for server certificates is 825 days).
const VALIDITY: time::Duration = time::Duration::days(824);
/// A start makes another certificate if this one is valid for less than this.
const RENEWAL: time::Duration = time::Duration::days(30);

/// A certificate with its private key, both as PEM text.
pub struct Certificate {
    certificate: String,
    key: String,
    /// Whether this process made it and it is not stored yet.
    is_new: bool,
}

impl Certificate {
    /// Reads the files named by options, or those in the data directory, or makes a certificate. Writes nothing, because the data directory may
    /// belong to something else; see [`Certificate::keep`].
    ///
    /// Files in the data directory were made by a server, so a new pair is made if they are invalid. Clients then have to trust the new one.
    ///
    /// # Errors
    /// Files that cannot be read; and files named by options that are invalid.
    pub fn find_or_make(options: &ServeOptions) -> Result<Certificate, Failure> {
        if let (Some(certificate), Some(key)) = (&options.tls_cert, &options.tls_key) {
            let named = Certificate {
                certificate: read(certificate).map_err(|failure| Failure::new(format!("--tls-cert: {failure}")))?,
                key: read(key).map_err(|failure| Failure::new(format!("--tls-key: {failure}")))?,
                is_new: false,
            };
            return match named.config() {
                Ok(_) => Ok(named),
                Err(Unusable { part, why }) => {
                    let (certificate, key) = (certificate.display(), key.display());
                    let files = match part {
                        Part::Certificate => format!("--tls-cert {certificate}"),
                        Part::Key => format!("--tls-key {key}"),
                        Part::Pair => format!("--tls-cert {certificate}, --tls-key {key}"),
                    };
                    Err(Failure::new(format!("{files}: {why}")))
                }
            };
        }
        let (certificate, key) = kept_files(options);
        if !options.memory && (certificate.is_file() || key.is_file()) {
            match Certificate::kept(&certificate, &key)? {
                Ok(kept) => return Ok(kept),
                Err(why) => tracing::warn!(
                    why,
                    certificate = %certificate.display(),
                    key = %key.display(),
                    "the TLS certificate in the data directory cannot be used; another one is made, which clients have to trust anew"
                ),
            }
        }
        Certificate::make(&options.host)
    }

    /// The pair in the data directory, or why it cannot be used.
    fn kept(certificate: &Path, key: &Path) -> Result<Result<Certificate, String>, Failure> {
        for file in [certificate, key] {
            match fs::read_to_string(file) {
                Ok(text) if text.trim().is_empty() => return Ok(Err(format!("{} is empty", file.display()))),
                Ok(_) => {}
                Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::InvalidData].contains(&error.kind()) => {
                    return Ok(Err(format!("{}: {error}", file.display())));
                }
                Err(error) => return Err(cannot("read", file, &error)),
            }
        }
        let kept = Certificate::read(certificate, key)?;
        if let Some(end) = kept.end().filter(|end| *end < now() + RENEWAL) {
            return Ok(Err(format!("it is valid only until {}", end.date())));
        }
        Ok(kept.acceptor().map(|_| kept).map_err(|why| why.to_string()))
    }

    fn read(certificate: &Path, key: &Path) -> Result<Certificate, Failure> {
        Ok(Certificate {
            certificate: read(certificate)?,
            key: read(key)?,
            is_new: false,
        })
    }

    /// The last instant at which it is valid.
    fn end(&self) -> Option<OffsetDateTime> {
        let chain = chain(&self.certificate).ok()?;
        CertificateFacts::of(chain.first()?).map(|facts| facts.valid.1)
    }

    /// Makes a certificate that signs itself and nothing else, so that trusting it opens nothing but this server.
    fn make(host: &str) -> Result<Certificate, Failure> {
        let failure = |error: rcgen::Error| Failure::new(format!("cannot make a certificate: {error}"));
        let mut params = CertificateParams::new(subject_names(host)).map_err(failure)?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "localhost");
        params.distinguished_name.push(DnType::OrganizationName, "Bolide");
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // Clients' clocks may be behind.
        params.not_before = now() - DAY;
        params.not_after = now() + VALIDITY;
        let key = KeyPair::generate().map_err(failure)?;
        let certificate = params.self_signed(&key).map_err(failure)?;
        Ok(Certificate {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
            is_new: true,
        })
    }

    /// Stores a new certificate in the data directory, so that clients need to trust it only once.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn keep(&self, options: &ServeOptions) -> Result<(), Failure> {
        if !self.is_new || options.memory {
            return Ok(());
        }
        let (certificate, key) = kept_files(options);
        // A crash in between leaves a pair that does not match, which the next start detects.
        for (file, text) in [(&key, &self.key), (&certificate, &self.certificate)] {
            files::write(file, text, Readers::Owner).map_err(|error| cannot("write", file, &error))?;
        }
        Ok(())
    }

    /// The certificate for clients to trust, as PEM.
    pub fn pem(&self) -> Bytes {
        Bytes::copy_from_slice(self.certificate.as_bytes())
    }

    /// Accepts TLS connections with this certificate; offers HTTP/2.
    ///
    /// # Errors
    /// PEM text without a certificate or key, or a pair that does not match.
    pub fn acceptor(&self) -> Result<TlsAcceptor, Failure> {
        let mut config = self
            .config()
            .map_err(|unusable| Failure::new(format!("cannot use the TLS certificate: {}", unusable.why)))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    fn config(&self) -> Result<ServerConfig, Unusable> {
        let chain = chain(&self.certificate).map_err(|why| Unusable {
            part: Part::Certificate,
            why,
        })?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|error| Unusable {
            part: Part::Key,
            why: format!("no private key in PEM: {error}"),
        })?;
        ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| Unusable {
                part: Part::Pair,
                why: format!("the certificate and the key cannot be used, or do not belong together: {error}"),
            })
    }
}

/// The invalid file of a pair, and why.
struct Unusable {
    part: Part,
    why: String,
}

enum Part {
    Certificate,
    Key,
    Pair,
}

/// The certificates of a PEM text: at least one.
pub fn chain(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain = CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<Vec<_>, _>>();
    match chain {
        Ok(chain) if chain.is_empty() => Err("no certificate in PEM".to_owned()),
        Ok(chain) => Ok(chain),
        Err(error) => Err(format!("no certificate in PEM: {error}")),
    }
}

/// The certificate that a server has made for itself in its data directory.
pub fn kept_certificate(data_dir: &Path) -> PathBuf {
    data_dir.join(CERTIFICATE_FILE)
}

/// The time for certificates: clients check them by their own clocks, whatever clock the database runs on.
fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(wall_clock().0 / 1000).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

fn kept_files(options: &ServeOptions) -> (PathBuf, PathBuf) {
    (kept_certificate(options.data_dir()), options.data_dir().join(KEY_FILE))
}

/// The names by which clients may call this machine.
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

fn cannot(verb: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot {verb} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
