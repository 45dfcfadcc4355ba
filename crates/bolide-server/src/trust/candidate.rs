//! The certificate that is to be trusted, and whether it may be.

use std::net::IpAddr;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::TrustOptions;
use crate::endpoint::Target;
use crate::machine;
use crate::server::Failure;
use crate::tls;
use crate::tls_client::{self, CertificateFacts};

/// Characters of base64 in a line of PEM (RFC 7468).
const PEM_LINE: usize = 64;

/// A certificate and where it comes from.
pub struct Candidate {
    /// In DER.
    pub der: CertificateDer<'static>,
    /// What it says.
    pub facts: CertificateFacts,
    /// The server or file that has it.
    pub source: String,
    /// The options that name the source.
    pub option: String,
    /// Whether nobody but this machine's programs could have given it.
    is_local: bool,
    /// The file that has it, if it is one.
    file: Option<String>,
}

/// A file with the certificate, for environment variables.
pub struct FileHint {
    /// Its path.
    pub path: String,
    /// The line that makes it, if it is not there yet.
    pub make: String,
}

impl Candidate {
    /// Takes the certificate from the data directory, or from the server as clients see it.
    ///
    /// # Errors
    /// No certificate there, or nobody who speaks TLS.
    pub fn find(options: &TrustOptions) -> Result<Candidate, Failure> {
        match &options.data_dir {
            Some(dir) => Candidate::of_directory(dir),
            None => Candidate::of_server(&Target::parse("--endpoint", &options.endpoint)?),
        }
    }

    fn of_directory(dir: &std::path::Path) -> Result<Candidate, Failure> {
        let file = std::path::absolute(tls::kept_certificate(dir)).unwrap_or_else(|_| tls::kept_certificate(dir));
        let failure = |why: String| Failure::new(format!("--data-dir: {}: {why}", file.display()));
        let pem = std::fs::read(&file).map_err(|error| {
            failure(format!(
                "{error}; a server makes its certificate when it starts on the directory for the first time"
            ))
        })?;
        let der = CertificateDer::from_pem_slice(&pem).map_err(|error| failure(error.to_string()))?;
        let facts = CertificateFacts::of(&der).ok_or_else(|| failure("it is no certificate".to_owned()))?;
        Ok(Candidate {
            der: der.into_owned(),
            facts,
            source: file.display().to_string(),
            option: format!("--data-dir {}", dir.display()),
            is_local: true,
            file: Some(file.display().to_string()),
        })
    }

    fn of_server(target: &Target) -> Result<Candidate, Failure> {
        let url = target.url("https");
        let failure = |why: String| Failure::new(format!("--endpoint: {url}: {why}"));
        let stream = target.connect().map_err(|error| {
            failure(format!(
                "{error}; start the server, or name its data directory with --data-dir"
            ))
        })?;
        let shown = tls_client::handshake(stream, &target.host, RootCertStore::empty())
            .map_err(|error| failure(format!("no server with TLS answers there: {error}")))?;
        let facts = CertificateFacts::of(&shown.certificate);
        Ok(Candidate {
            facts: facts.ok_or_else(|| failure("what it shows is no certificate".to_owned()))?,
            der: shown.certificate,
            option: format!("--endpoint {url}"),
            source: url,
            is_local: target.is_loopback(),
            file: None,
        })
    }

    /// Checks that trusting the certificate opens nothing but this server.
    ///
    /// # Errors
    /// An authority, a certificate that somebody else issued, one that is not valid now; one that names other machines or came over a network, unless
    /// `--fingerprint` names it.
    pub fn check_fitness(&self, options: &TrustOptions) -> Result<(), Failure> {
        let facts = &self.facts;
        let refused = |why: String| Err(Failure::new(format!("{}: {why}", self.source)));
        if facts.is_authority {
            return refused(
                "its certificate may sign certificates for any name, so it is not added; make one with CA:FALSE, or let \
                 Bolide make it"
                    .to_owned(),
            );
        }
        if !facts.is_self_signed {
            return refused(format!(
                "its certificate was issued by `{}`: clients need that authority's certificate, which is not this server's to give",
                facts.issuer
            ));
        }
        if !facts.is_valid_now() {
            return refused(format!(
                "its certificate is valid from {} until {}, and not now",
                facts.valid.0.date(),
                facts.valid.1.date()
            ));
        }
        if let Some(expected) = &options.fingerprint {
            return match normal(expected) == facts.fingerprint {
                true => Ok(()),
                false => refused(format!(
                    "its certificate has another fingerprint than --fingerprint says: {}",
                    facts.fingerprint
                )),
            };
        }
        let compare =
            "`openssl x509 -noout -fingerprint -sha256 -in tls-certificate.pem` in its data directory prints it";
        if !self.is_local {
            return refused(format!(
                "somebody between here and there could have exchanged the certificate: repeat with --fingerprint {} \
                 if that is the server's own; {compare}",
                facts.fingerprint
            ));
        }
        let own = machine::names();
        if let Some(name) = facts.names.iter().find(|name| !is_of_this_machine(name, &own)) {
            return refused(format!(
                "its certificate also covers `{name}`, which is not this machine: repeat with --fingerprint {} if it \
                 is meant to; {compare}",
                facts.fingerprint
            ));
        }
        Ok(())
    }

    /// The certificate in PEM.
    pub fn pem(&self) -> String {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(&self.der);
        let mut pem = "-----BEGIN CERTIFICATE-----\n".to_owned();
        for line in text.as_bytes().chunks(PEM_LINE) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem.push_str("-----END CERTIFICATE-----\n");
        pem
    }

    /// A file with it.
    pub fn file_hint(&self) -> FileHint {
        match &self.file {
            Some(path) => FileHint {
                path: path.clone(),
                make: String::new(),
            },
            None => FileHint {
                path: "bolide.pem".to_owned(),
                make: format!("  (once)      bolide trust {} --pem bolide.pem\n", self.option),
            },
        }
    }
}

/// A fingerprint as tools print it: with colons, in either case.
fn normal(fingerprint: &str) -> String {
    let digits = fingerprint.chars().filter(|c| *c != ':');
    digits.collect::<String>().to_ascii_lowercase()
}

/// Whether a certificate with this name can only speak for this machine, or for one of its own network that has no public name.
fn is_of_this_machine(name: &str, own: &[String]) -> bool {
    if let Ok(address) = name.parse::<IpAddr>() {
        return address.is_loopback() || is_private(address);
    }
    let is_local_name = !name.contains('.') || name.ends_with(".localhost");
    (is_local_name && !name.contains('*'))
        || own.iter().any(|own| own.eq_ignore_ascii_case(name))
        || ["host.docker.internal", "host.containers.internal"].contains(&name)
}

/// Whether an address is one of a local network (RFC 1918, RFC 4193).
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_private() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests;
