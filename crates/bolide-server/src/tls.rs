//! The certificate for HTTPS: the user's, the one stored at an earlier start, or a new one.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bolide_model::time::wall_clock;
use bytes::Bytes;
use clap::Args;
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::ParsedCertificate;
use time::OffsetDateTime;
use tokio_rustls::TlsAcceptor;

use crate::files::{self, Readers};
use crate::options::ServeOptions;
use crate::pfx::Pfx;
use crate::server::Failure;
use crate::tls_client::CertificateFacts;

/// The options of the certificate for HTTPS.
#[derive(Debug, Clone, Args)]
pub struct TlsOptions {
    /// PEM file with the certificate for HTTPS, with --tls-key; without both, one is generated and stored.
    #[arg(long, env = "BOLIDE_TLS_CERT", requires = "tls_key", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file with the certificate's private key.
    #[arg(long, env = "BOLIDE_TLS_KEY", requires = "tls_cert", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Another name or address in the certificate that is generated, such as a service's in a compose file; may be given several times.
    #[arg(
        long = "tls-name",
        env = "BOLIDE_TLS_NAME",
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub tls_names: Vec<String>,
    /// The file of an emulator that was told to use one.
    #[arg(skip)]
    pub pfx: Option<Pfx>,
}

impl TlsOptions {
    /// Validates what the parser cannot.
    ///
    /// # Errors
    /// Names that no certificate can have; names for a certificate that is not generated.
    pub fn validate(&self) -> Result<(), Failure> {
        if !self.tls_names.is_empty() && (self.tls_cert.is_some() || self.pfx.is_some()) {
            return Err(Failure::new(
                "--tls-name adds names to the certificate that is generated, and another one is given: leave one of them out",
            ));
        }
        for name in &self.tls_names {
            let host = name.strip_prefix("*.").unwrap_or(name);
            if ServerName::try_from(host).is_err() {
                let text =
                    format!("--tls-name: expected a name or an IP address, without scheme and port. value=`{name}`");
                return Err(Failure::new(text));
            }
        }
        Ok(())
    }
}

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
        let tls = &options.tls;
        if let Some(pfx) = &tls.pfx {
            return Certificate::of_pfx(pfx);
        }
        if let (Some(certificate), Some(key)) = (&tls.tls_cert, &tls.tls_key) {
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
        if options.has_directory() && (certificate.is_file() || key.is_file()) {
            let kept = Certificate::kept(&certificate, &key)?;
            match kept.and_then(|kept| kept.check_names(&tls.tls_names).map(|()| kept)) {
                Ok(kept) => return Ok(kept),
                Err(why) => tracing::warn!(
                    why,
                    certificate = %certificate.display(),
                    key = %key.display(),
                    "the TLS certificate in the data directory cannot be used; another one is made, which clients have to trust anew"
                ),
            }
        }
        Certificate::make(options.host(), &tls.tls_names)
    }

    /// The certificate of a PFX file.
    fn of_pfx(pfx: &Pfx) -> Result<Certificate, Failure> {
        let content = pfx.read()?;
        let certificate = Certificate {
            certificate: content.certificates,
            key: content.key,
            is_new: false,
        };
        match certificate.config() {
            Ok(_) => Ok(certificate),
            Err(Unusable { why, .. }) => Err(Failure::new(format!("{} {}: {why}", pfx.source, pfx.path.display()))),
        }
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

    /// Checks that the certificate is for all of these names.
    fn check_names(&self, names: &[String]) -> Result<(), String> {
        let chain = chain(&self.certificate)?;
        let parsed = chain.first().map(ParsedCertificate::try_from);
        let Some(Ok(parsed)) = parsed else {
            return Err("it cannot be parsed".to_owned());
        };
        for name in names {
            // A name under the wildcard stands for it.
            let shown = name
                .strip_prefix("*.")
                .map_or(name.clone(), |parent| format!("any.{parent}"));
            let is_covered = ServerName::try_from(shown).is_ok_and(|shown| verify_server_name(&parsed, &shown).is_ok());
            if !is_covered {
                return Err(format!("it is not for the name {name}"));
            }
        }
        Ok(())
    }

    /// The last instant at which it is valid.
    fn end(&self) -> Option<OffsetDateTime> {
        let chain = chain(&self.certificate).ok()?;
        CertificateFacts::of(chain.first()?).map(|facts| facts.valid.1)
    }

    /// Makes a certificate that signs itself and nothing else, so that trusting it opens nothing but this server.
    fn make(host: &str, others: &[String]) -> Result<Certificate, Failure> {
        let failure = |error: rcgen::Error| Failure::new(format!("cannot make a certificate: {error}"));
        let mut params = CertificateParams::new(subject_names(host, others)).map_err(failure)?;
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
        if !self.is_new || !options.has_directory() {
            return Ok(());
        }
        let (certificate, key) = kept_files(options);
        // The embedded engine has made it; with `--store` there is none.
        let made = fs::create_dir_all(options.data_dir());
        made.map_err(|error| cannot("make", options.data_dir(), &error))?;
        // A crash in between leaves a pair that does not match, which the next start detects.
        for (file, text) in [(&key, &self.key), (&certificate, &self.certificate)] {
            files::write(file, text, Readers::Owner).map_err(|error| cannot("write", file, &error))?;
        }
        Ok(())
    }

    /// The certificate with its chain, as PEM text.
    pub fn text(&self) -> &str {
        &self.certificate
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

/// The names by which clients may call this machine, and the other ones.
fn subject_names(host: &str, others: &[String]) -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_wildcard = host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified());
    let machine = fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok());
    let found = machine
        .iter()
        .map(|name| name.trim())
        .chain((!is_wildcard).then_some(host));
    let found = found.filter(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:".contains(&b)));
    for name in found.chain(others.iter().map(String::as_str)) {
        if !name.is_empty() && !names.iter().any(|known| known == name) {
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
